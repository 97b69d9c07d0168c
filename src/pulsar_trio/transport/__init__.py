"""Sockets, tasks and timers around a machine of the core."""
