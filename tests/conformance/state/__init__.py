"""Tests of what the checker knows of a connection."""
