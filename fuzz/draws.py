"""The source of decisions: a seed, for volume, or bytes, for fuzzers that learn and shrink.

Everything in this package that chooses asks a `Draws`. A `Draws` of a seed never ends. A `Draws` of bytes is
`exhausted` when they are used up; from then on every choice is the first one.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Self, TypeVar

T = TypeVar("T")

_UNIT = 1 << 24


class Draws:
    """Choices, all made of `bits(count)`: a whole number of so many random bits."""

    __slots__ = ("_left", "bits")

    def __init__(self, bits: Callable[[int], int], left: Callable[[], int] | None = None) -> None:
        self.bits = bits
        self._left = left

    @classmethod
    def of_seed(cls, seed: int) -> Self:
        return cls(Random(seed).getrandbits)

    @classmethod
    def of_bytes(cls, data: bytes) -> Self:
        """A choice among up to 256 takes one byte, which keeps the meaning of those behind it."""
        position = 0

        def bits(count: int) -> int:
            nonlocal position
            size = (count + 7) // 8
            taken = data[position : position + size]
            position += size
            return int.from_bytes(taken, "little") & ((1 << count) - 1)

        return cls(bits, lambda: len(data) - position)

    @property
    def exhausted(self) -> bool:
        return self._left is not None and self._left() <= 0

    def below(self, limit: int) -> int:
        """0 to limit - 1. The draw is slightly uneven, which does not matter here."""
        return self.bits(8 if limit <= 256 else limit.bit_length() + 8) % limit

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True in `percent` of a hundred draws; never once the bytes are used up."""
        return self.bits(8) * 100 >= (100 - percent) * 256

    def choice(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def blob(self, size: int) -> bytes:
        return self.bits(size * 8).to_bytes(size, "little") if size else b""
