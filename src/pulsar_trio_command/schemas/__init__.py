"""Schemas on the command line: values as JSON, and definitions as files."""
