"""`DecodeCache`: the bounded memory of a decoder, from bytes that were compared to what they mean.

What a decoder remembers is a pure function of the bytes compared. A decoder that forgets all of it only takes
more time for the next command. A cache belongs to the decoder of one connection.
"""

from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

CACHE_LIMIT = 1024
"""Entries of one cache. It is emptied when it is full: looking for the oldest entry would cost more."""


class DecodeCache(dict[KeyT, ValueT]):
    """A dictionary of at most `CACHE_LIMIT` entries, as long as they are added with `remember`."""

    __slots__ = ()

    def remember(self, key: KeyT, value: ValueT) -> None:
        if len(self) >= CACHE_LIMIT:
            self.clear()
        self[key] = value
