"""The choice of a Key_Shared consumer for a key (GAP-18).

A key is hashed to a slot of 1 to 65535, and a selector knows the consumer of each slot. `AutoSplit` halves
ranges as consumers are added; `Sticky` takes the ranges that consumers ask for. Clients cannot see which
automatic selector a broker uses. `AutoSplit` is the Java broker's for
`subscriptionKeySharedUseConsistentHashing=false`; `key_ring` has the other one.
"""

import base64
import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from operator import sub
from typing import TYPE_CHECKING

from ...model.errors import ConsumerAssignError
from ...wire import MessageMetadata

if TYPE_CHECKING:
    from .consumer import Consumer

SLOTS = 65536


def murmur3_32(data: bytes) -> int:
    """MurmurHash3 x86_32, seed 0."""
    return _finish(_begin(data), data)


def murmur3_32_all(front: bytes, backs: Iterable[bytes]) -> Iterator[int]:
    """Hash `front` followed by each of `backs`; `front`, which may be long, is hashed only once."""
    h = _begin(front)
    whole = len(front) & ~3
    for back in backs:
        rest = front[whole:] + back
        yield _finish(_begin(rest, h), rest, whole)


def _begin(data: bytes, h: int = 0) -> int:
    """Mix in the whole words of `data`."""
    for index in range(0, len(data) & ~3, 4):
        k = int.from_bytes(data[index : index + 4], "little") * 0xCC9E2D51 & 0xFFFFFFFF
        k = (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF
        h ^= k
        h = ((h << 13 | h >> 19) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    return h


def _finish(h: int, data: bytes, before: int = 0) -> int:
    """Mix in the last bytes of `data` and the length; `before`: the number of bytes hashed before `data`."""
    whole = len(data) & ~3
    if whole != len(data):
        k = int.from_bytes(data[whole:], "little") * 0xCC9E2D51 & 0xFFFFFFFF
        k = (k << 15 | k >> 17) * 0x1B873593 & 0xFFFFFFFF
        h ^= k
    h ^= before + len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def sticky_key(metadata: MessageMetadata) -> bytes:
    """Return the key that is hashed: the ordering key, else the key, else the producer's name and sequence
    id."""
    if metadata.ordering_key is not None:
        return metadata.ordering_key
    if metadata.partition_key is not None and not metadata.null_partition_key:
        text = metadata.partition_key.encode("utf-8", "surrogateescape")
        if metadata.partition_key_b64_encoded:
            try:
                return base64.b64decode(text)
            except (binascii.Error, ValueError):
                return text
        return text
    return f"{metadata.producer_name}-{metadata.sequence_id}".encode("utf-8", "surrogateescape")


def slot_of(key: bytes) -> int:
    """Hash a key to a slot of 1 to 65535; 0 is no slot."""
    return (murmur3_32(key) & 0x7FFFFFFF) % SLOTS or 1


class AutoSplit:
    """A new consumer gets the lower half of the widest range; a removed one leaves its range to a
    neighbour."""

    def __init__(self) -> None:
        self._bounds: list[int] = []
        self._owners: list[Consumer] = []

    slot_of = staticmethod(slot_of)

    def add(self, consumer: "Consumer") -> None:
        bounds = self._bounds
        if not bounds:
            bounds.append(SLOTS)
            self._owners.append(consumer)
            return
        widths = list(map(sub, bounds, chain((0,), bounds)))
        index = widths.index(max(widths))
        bounds.insert(index, bounds[index] - (widths[index] >> 1))
        self._owners.insert(index, consumer)

    def remove(self, consumer: "Consumer") -> None:
        if consumer not in self._owners:
            return
        index = self._owners.index(consumer)
        del self._owners[index]
        # The next higher range grows; where there is none, the next lower one grows to the last bound.
        if index < len(self._owners):
            del self._bounds[index]
        elif index:
            del self._bounds[index - 1]
        else:
            self._bounds.clear()

    def owner(self, slot: int) -> "Consumer | None":
        if not self._bounds:
            return None
        return self._owners[bisect_left(self._bounds, slot)]

    def ranges(self, consumer: "Consumer") -> list[tuple[int, int]]:
        return [
            ((self._bounds[index - 1] + 1 if index else 0), bound if bound < SLOTS else SLOTS - 1)
            for index, bound in enumerate(self._bounds)
            if self._owners[index] is consumer
        ]


class Sticky:
    """Every consumer brings its ranges; a slot in none of them has no consumer."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, Consumer]] = []
        """(start, end, consumer), in order; no two ranges overlap."""
        self._starts: list[int] = []

    slot_of = staticmethod(slot_of)

    def check(self, ranges: list[tuple[int, int]]) -> None:
        """Raises `ConsumerAssignError` for no ranges, ranges out of bounds, and ranges of another
        consumer."""
        if not ranges:
            raise ConsumerAssignError("Ranges for KeyShared policy must not be empty.")
        for start, end in ranges:
            if not 0 <= start <= end < SLOTS:
                raise ConsumerAssignError(f"Ranges must be [0, {SLOTS - 1}], not [{start}, {end}].")
        # Sorted, since there may be as many ranges as slots: a range can only overlap its neighbour.
        taken = sorted([*ranges, *((start, end) for start, end, _ in self._ranges)])
        for (start, end), (next_start, next_end) in pairwise(taken):
            if next_start <= end:
                raise ConsumerAssignError(
                    f"Ranges conflict: [{start}, {end}] with [{next_start}, {next_end}]."
                )

    def add(self, consumer: "Consumer") -> None:
        self._ranges.extend((start, end, consumer) for start, end in consumer.sticky_ranges)
        self._ranges.sort(key=lambda each: each[0])
        self._starts = [each[0] for each in self._ranges]

    def remove(self, consumer: "Consumer") -> None:
        self._ranges = [each for each in self._ranges if each[2] is not consumer]
        self._starts = [each[0] for each in self._ranges]

    def owner(self, slot: int) -> "Consumer | None":
        index = bisect_right(self._starts, slot) - 1
        if index >= 0:
            _, end, consumer = self._ranges[index]
            if slot <= end:
                return consumer
        return None

    def ranges(self, consumer: "Consumer") -> list[tuple[int, int]]:
        return [(start, end) for start, end, owner in self._ranges if owner is consumer]
