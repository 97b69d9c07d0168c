"""Faults: the catalogue, brokers that misbehave, and timing."""
