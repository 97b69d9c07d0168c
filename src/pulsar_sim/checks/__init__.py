"""Checks: what must hold of every frame, at rest, and in the statistics."""
