"""Tracking: how each frame changes what the checker knows of a conversation."""
