"""Rates that administrators set: token buckets, and what waits for their tokens."""
