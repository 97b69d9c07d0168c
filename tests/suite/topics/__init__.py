"""Partitioned topics, several topics, compacted topics."""
