"""Connections of clients, and what the broker does with each command that they send."""
