"""Credentials and certificates of a world: their issuer, and the provider of each client process."""
