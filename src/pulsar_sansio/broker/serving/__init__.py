"""Connections of clients, and the handlers of the commands that clients send."""
