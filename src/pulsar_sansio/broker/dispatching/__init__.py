"""Dispatchers: which consumer of a subscription gets which entry, and when."""
