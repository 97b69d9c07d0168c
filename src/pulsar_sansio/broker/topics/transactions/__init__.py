"""Transactions in one topic: their entries, and the acknowledgements that wait for their end."""
