"""Definitions of schemas between client and broker: see docs/schemas.md."""
