"""State that machines still hold of connections, handles and links that have ended (INV-L1)."""
