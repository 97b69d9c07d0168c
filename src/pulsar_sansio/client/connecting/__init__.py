"""Connections to brokers: lookup, pool, requests, and attachments that reconnect after a loss."""
