"""Typed messages that clients in other languages write and read."""
