"""Ledgers, cursors and the store that outlives the broker."""
