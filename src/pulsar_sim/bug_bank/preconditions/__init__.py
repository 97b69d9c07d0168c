"""Preconditions: what a world must have so that a planted bug can show itself."""
