"""`Remembered`: a dictionary that a peer cannot make grow without limit."""

from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

MOST = 10_000
"""The number of entries; the oldest one is discarded beyond it."""


class Remembered(dict[KeyT, ValueT]):
    """At most `MOST` entries, the latest ones."""

    def __setitem__(self, key: KeyT, value: ValueT) -> None:
        self.pop(key, None)
        if len(self) >= MOST:
            del self[next(iter(self))]
        super().__setitem__(key, value)
