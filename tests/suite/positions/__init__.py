"""Readers and seeks."""
