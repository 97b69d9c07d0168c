"""Subscriptions, acknowledgements and redelivery."""
