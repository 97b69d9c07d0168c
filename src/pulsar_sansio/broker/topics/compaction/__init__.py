"""Compaction of a topic, and what a compacted reader sees."""
