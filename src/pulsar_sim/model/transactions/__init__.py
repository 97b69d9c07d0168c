"""Transactions of one application: what it sent and acknowledged in each, and what each subscription gave."""
