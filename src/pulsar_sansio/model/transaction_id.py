"""`TransactionId`: names a transaction, in commands, messages and what a broker stores."""

from typing import NamedTuple


class TransactionId(NamedTuple):
    """`coordinator`: its number, the most significant bits on the wire. `number`: the least significant
    bits."""

    coordinator: int
    number: int

    def __str__(self) -> str:
        return f"({self.coordinator},{self.number})"


def transaction_id(most_bits: int | None, least_bits: int | None) -> TransactionId | None:
    """Return the id of these halves; None unless both are there."""
    if most_bits is None or least_bits is None:
        return None
    return TransactionId(most_bits, least_bits)
