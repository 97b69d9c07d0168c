"""`DecodeCache`: the bounded memory of a decoder, from bytes that were compared to what they mean.

What a decoder remembers is a pure function of the bytes compared. A decoder that forgets all of it only takes
more time for the next command. A cache belongs to the decoder of one connection.
"""

from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

DecodeCache = dict[KeyT, ValueT]
"""A dictionary to which a decoder adds with `remember` only. It is a plain one: Python looks up faster in it
than in one of a derived class."""

CACHE_LIMIT = 1024
"""Entries of one cache. It is emptied when it is full: looking for the oldest entry would cost more."""


def remember(cache: DecodeCache[KeyT, ValueT], key: KeyT, value: ValueT) -> None:
    """Add an entry, and stay within `CACHE_LIMIT`."""
    if len(cache) >= CACHE_LIMIT:
        cache.clear()
    cache[key] = value
