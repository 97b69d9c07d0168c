"""Positions of entries and messages in a topic, as tuples that can be compared."""

from typing import TypeAlias

Position: TypeAlias = tuple[int, int]
"""Ledger id and entry id."""

MessagePosition: TypeAlias = tuple[int, int, int]
"""Ledger id, entry id, and index in the batch, which is 0 without a batch."""

BEFORE_ALL: MessagePosition = (-1, -1, -1)
