"""Partitioned topics in the reference model: their numbers of partitions, and the partitions of keys.

Owns the history of a topic's growth and hash functions that share no code with the client's. It knows nothing
of logs: each partition is a topic of its own.
"""

from typing import TYPE_CHECKING

from pulsar_sansio.model.config import HashingScheme, OutgoingMessage

if TYPE_CHECKING:
    from .records.topic_record import TopicRecord


class PartitionedTopic:
    """A partitioned topic."""

    gone = -1

    def __init__(self, name: str, deduplication: bool) -> None:
        self.name = name
        self.deduplication = deduplication
        self.counts: list[int] = []
        """The numbers of partitions, in order."""
        self.wrong_counts: list[int] = []
        """Wrong numbers of partitions that a broker has answered."""
        self.partitions: list[TopicRecord] = []

    @property
    def ended(self) -> bool:
        """True when a partition has ended, perhaps."""
        return any(partition.ended for partition in self.partitions)

    @property
    def count(self) -> int:
        return self.counts[-1]

    @property
    def believed(self) -> list[int]:
        """Return the numbers of partitions that a client may believe."""
        return sorted({*self.counts, *self.wrong_counts})

    def index_of(self, topic: "TopicRecord") -> int:
        """Return the index of a partition; -1 for another topic."""
        return self.partitions.index(topic) if topic in self.partitions else -1


def by_size(message: OutgoingMessage, partitions: int) -> int:
    """Route a message by its size, as a function of an application."""
    return len(message.payload or b"") % partitions


def hash_of(scheme: HashingScheme, key: str) -> int:
    """Return 31 bits for an ASCII key, as the Java client computes them (ROUTE-02, ROUTE-08)."""
    data = key.encode("ascii")
    if scheme is HashingScheme.JAVA_STRING:
        total = 0
        for position, byte in enumerate(reversed(data)):
            total += byte * 31**position
        return total % 2**31
    assert scheme is HashingScheme.MURMUR3_32
    return _murmur3(data) % 2**31


def _murmur3(data: bytes) -> int:
    state = 0
    for start in range(0, len(data), 4):
        word = data[start : start + 4]
        mixed = int.from_bytes(word, "little") * 0xCC9E2D51 % 2**32
        state ^= _rotated(mixed, 15) * 0x1B873593 % 2**32
        if len(word) == 4:
            state = (_rotated(state, 13) * 5 + 0xE6546B64) % 2**32
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> shift) * factor % 2**32
    return state ^ state >> 16


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) % 2**32
