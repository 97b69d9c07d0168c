"""`ConsistentHash`: consumers of a Key_Shared subscription on a ring.

It is Pulsar's default since 4.0 (`subscriptionKeySharedUseConsistentHashing=true`). Every consumer has points
on the ring, and a slot belongs to the next point. A consumer that is added or removed moves few keys, from or
to all others. The ring has slots of its own; clients see them only in statistics.
"""

from bisect import bisect_left, insort
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from .key_hash import SLOTS, AutoSplit, Sticky, murmur3_32, murmur3_32_all

if TYPE_CHECKING:
    from ..config import BrokerConfig
    from .consumer import Consumer

POINTS = [b"%d" % point for point in range(100)]
"""The names of the points of each consumer."""


def _slot(murmur3: int) -> int:
    """Map a hash to a slot of 1 to 65535."""
    return (murmur3 & 0x7FFFFFFF) % (SLOTS - 1) + 1


class _Namesakes:
    """The running numbers of the consumers of one name."""

    def __init__(self) -> None:
        self._free: list[int] = []
        """Heap of the free numbers below `_end`."""
        self._end = 0

    def take(self) -> int:
        """Take the least free number."""
        if self._free:
            return heappop(self._free)
        self._end += 1
        return self._end - 1

    def release(self, number: int) -> bool:
        """Free a number. True when all numbers are free."""
        heappush(self._free, number)
        return len(self._free) == self._end


class ConsistentHash:
    """A ring of slots."""

    def __init__(self) -> None:
        self._ring: dict[int, Consumer] = {}
        self._points: list[int] = []
        """The points on the ring, in order."""
        self._points_of: dict[Consumer, list[int]] = {}
        self._numbers: dict[Consumer, int] = {}
        """Consumer -> the number that distinguishes it from others of its name: the least that was free."""
        self._namesakes: dict[str, _Namesakes] = {}

    def slot_of(self, key: bytes) -> int:
        return _slot(murmur3_32(key))

    def add(self, consumer: "Consumer") -> None:
        """Add the consumer's points; a point that another consumer has stays with that consumer."""
        number = self._namesakes.setdefault(consumer.name, _Namesakes()).take()
        self._numbers[consumer] = number
        points = self._points_of[consumer] = []
        front = f"{consumer.name}\0{number}\0".encode("utf-8", "surrogateescape")
        for murmur3 in murmur3_32_all(front, POINTS):
            point = _slot(murmur3)
            if point not in self._ring:
                self._ring[point] = consumer
                points.append(point)
                insort(self._points, point)

    def remove(self, consumer: "Consumer") -> None:
        for point in self._points_of.pop(consumer, ()):
            del self._ring[point]
            del self._points[bisect_left(self._points, point)]
        number = self._numbers.pop(consumer, None)
        if number is not None and self._namesakes[consumer.name].release(number):
            del self._namesakes[consumer.name]

    def owner(self, slot: int) -> "Consumer | None":
        points = self._points
        return self._ring[points[bisect_left(points, slot) % len(points)]] if points else None

    def ranges(self, consumer: "Consumer") -> list[tuple[int, int]]:
        """Adjacent ranges are joined. Slots above the last point belong to the first point's consumer."""
        ends = [*self._points, SLOTS - 1] if self._points else []
        found: list[tuple[int, int]] = []
        for before, end in pairwise([0, *ends]):
            if end > before and self.owner(end) is consumer:
                if found and found[-1][1] == before:
                    found[-1] = found[-1][0], end
                else:
                    found.append((before + 1, end))
        return found


def automatic(config: "BrokerConfig") -> AutoSplit | ConsistentHash:
    """Return a selector for subscriptions whose consumers ask for no ranges."""
    return ConsistentHash() if config.key_shared_consistent_hashing else AutoSplit()


Selector = AutoSplit | ConsistentHash | Sticky
