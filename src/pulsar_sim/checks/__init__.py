"""Checks of every frame, of the state at rest, and of the statistics."""
