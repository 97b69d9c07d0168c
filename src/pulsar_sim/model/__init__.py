"""The reference model: what applications asked for and were told. It shares no code with the machines."""
