"""Ledgers and cursors of topics over HTTP, and copies of topics that this broker does not make."""
