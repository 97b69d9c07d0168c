"""What decoders remember: how a command looked that was read, so that one like it need only be compared.

Commands of one kind on one link differ in a number or two. What stands around the numbers is kept, with what
it means; when all of it is there again, with numbers in between, nothing else has to be read. Such a memory
is a pure function of the bytes compared, so forgetting all of it changes nothing but the time the next one
takes.

Here is what the memories have in common: their limits, and how a number is cut so that tables give its value.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

LONGEST_REMEMBERED = 64
"""Bytes of a command up to which it is remembered how it looked: more than any real one has. A stranger may
repeat fields to any length, and must not fill the memory with that."""

LONGEST_NUMBER = 4
"""Bytes of a number in a remembered command: two for `VALUE_OF_CONTINUED`, two for `VALUE_OF_SMALL`."""

MEMORY_LIMIT = 1024
"""Entries of one memory. It is emptied when it is full: looking for the oldest would cost more."""


def make_room(memory: dict[Any, Any] | set[Any]) -> None:
    """Call before something is added to a memory."""
    if len(memory) >= MEMORY_LIMIT:
        memory.clear()


def cut(length: int) -> tuple[int, int]:
    """How many bytes of a number of this length are looked up as its low part, and how many as its high."""
    low = 2 if length > 2 else 0
    return low, length - low


def reader(*lengths: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """Reads parts of these lengths that follow each other: called with data and position, it gives them."""
    return Struct("".join(f"{length}s" for length in lengths)).unpack_from
