"""Planted bugs of consumers."""
