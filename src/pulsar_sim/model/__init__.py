"""The reference model: the requests and answers of applications. It shares no code with the machines."""
