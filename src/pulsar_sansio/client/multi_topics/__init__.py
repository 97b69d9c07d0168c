"""Consumers of several topics: lists, partitions and patterns, as one consumer to the application."""
