"""Decoders remember the form of a command they have read, and only compare the next one that is like it.

Commands of one kind on one link differ in a number or two. A decoder keeps the bytes around the numbers, with
their meaning. When the same bytes arrive with numbers in between, the decoder has to read nothing else. Such
a memory is a pure function of the bytes compared. A decoder that forgets all of it only takes more time for
the next command.

This module has the common parts of these memories: their limits, and the cutting of a number into pieces
whose values stand in tables.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

LONGEST_REMEMBERED = 64
"""Bytes of the longest command that a decoder remembers: more than any real one has.

A hostile peer may repeat fields to any length, and must not fill the memory with that.
"""

LONGEST_NUMBER = 4
"""Bytes of a number in a remembered command: two for `VALUE_OF_CONTINUED`, two for `VALUE_OF_SMALL`."""

MEMORY_LIMIT = 1024
"""Entries of one memory. It is emptied when it is full: looking for the oldest would cost more."""


def make_room(memory: dict[Any, Any] | set[Any]) -> None:
    """Call before something is added to a memory."""
    if len(memory) >= MEMORY_LIMIT:
        memory.clear()


def cut(length: int) -> tuple[int, int]:
    """Split a number of `length` bytes: the bytes of its low part, and those of its high part.

    Decoders look up the value of each part in a table.
    """
    low = 2 if length > 2 else 0
    return low, length - low


def reader(*lengths: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Reads parts of these lengths that follow each other: called with data and position, it gives them."""
    return Struct("".join(f"{length}s" for length in lengths)).unpack_from
