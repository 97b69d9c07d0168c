"""Dispatchers: they choose the consumer of a subscription that gets an entry, and when."""
