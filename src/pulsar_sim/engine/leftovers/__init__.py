"""Leftovers: what machines still hold of connections, handles and links that are gone (INV-L1)."""
