"""The rules, by subject. Importing this package fills the registry."""

from . import (
    acknowledgements,
    consumers,
    delivery,
    framing,
    handshake,
    payloads,
    producers,
    requests,
    schemas,
    transactions,
    versions,
)

__all__ = [
    "acknowledgements",
    "consumers",
    "delivery",
    "framing",
    "handshake",
    "payloads",
    "producers",
    "requests",
    "schemas",
    "transactions",
    "versions",
]
