"""The engine: clock, randomness, network, nodes, brokers, and the trace."""
