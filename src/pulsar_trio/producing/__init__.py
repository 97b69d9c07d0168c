"""Producers for trio applications, and receipts of what they send."""
