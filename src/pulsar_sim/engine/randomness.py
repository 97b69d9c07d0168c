"""Randomness of a world: one seed split into independent streams, one per concern.

Owns the split and the draws. Each concern (network, faults, workload of one application …) has a stream
derived from the seed and the concern's name. One more draw in one concern does not shift the others, so a
seed stays comparable while the simulator grows. Only `getrandbits` of the generator is used; it gives the
same numbers on every version of Python.
"""

from collections.abc import MutableSequence, Sequence
from hashlib import blake2b
from typing import TypeVar

from pulsar_sansio.core.rng import Random

T = TypeVar("T")

_UNIT = 1 << 30


class Stream:
    """Draws for one concern. Ranges include both ends."""

    __slots__ = ("_bits",)

    def __init__(self, seed: int) -> None:
        self._bits = Random(seed).getrandbits

    def bits(self, count: int) -> int:
        return self._bits(count)

    def entropy(self, size: int) -> bytes:
        return self._bits(8 * size).to_bytes(size)

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to limit - 1. The bias of the modulo is far below what a simulation
        detects."""
        return self._bits(32) % limit if limit <= _UNIT else self._bits(limit.bit_length() + 32) % limit

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def chance(self, permille: int) -> bool:
        """Return True `permille` times in a thousand."""
        return self._bits(30) * 1000 < permille * _UNIT

    def choice(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[tuple[T, int]]) -> T:
        """Return one item, in proportion to its weight."""
        at = self.below(sum(weight for _, weight in items))
        for item, weight in items:
            at -= weight
            if at < 0:
                return item
        raise AssertionError("weights are positive")

    def shuffle(self, items: MutableSequence[T]) -> None:
        for index in range(len(items) - 1, 0, -1):
            other = self.below(index + 1)
            items[index], items[other] = items[other], items[index]

    def spread(self, low: int, high: int) -> int:
        """Return a number from low to high (both positive); each order of magnitude is equally likely."""
        steps = (high // low).bit_length() if high > low else 1
        top = min(high, low << self.below(steps))
        return self.between(low, max(low, min(high, top * 2)))


class Streams:
    """The streams of one seed, by name. The same name gives a new stream that starts from the same place."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def seed_of(self, concern: str) -> int:
        """Return 63 bits for a machine that takes a seed itself."""
        digest = blake2b(f"{self.seed}/{concern}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> 1

    def stream(self, concern: str) -> Stream:
        return Stream(self.seed_of(concern))
