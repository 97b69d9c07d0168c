"""Connections to brokers: addresses, the pool, requests, and what all machines of a client share."""
