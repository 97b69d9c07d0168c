"""The bench: what it asks of the clients, and what it makes of their answers."""
