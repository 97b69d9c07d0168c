"""Connections to brokers: lookup, pool, requests, and attachments that come back after a loss."""
