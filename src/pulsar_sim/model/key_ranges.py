"""The keys that Key_Shared consumers own by policy (SUBT-08), in the reference model.

Owns the hash of a key, by a function of the model's own, and whether ranges of hashes hold a hash or overlap.
It knows nothing of consumers.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from pulsar_sansio.model.config import HashingScheme
from pulsar_sansio.wire import proto

from .partitioned_topics import hash_of

Range: TypeAlias = tuple[int, int]
"""The first and last hash, both included."""

HASHES = 65_536


def slot_of(key: str) -> int:
    """Return the hash that assigns an (ASCII) key to a consumer: 1 to 65535."""
    return hash_of(HashingScheme.MURMUR3_32, key) % HASHES or 1


def ranges_of(subscribe: Any) -> tuple[Range, ...]:
    """Return the ranges of a SUBSCRIBE; none when the broker divides the keys."""
    meta = subscribe.keySharedMeta
    if not subscribe.HasField("keySharedMeta") or meta.keySharedMode != proto.KeySharedMode.STICKY:
        return ()
    return tuple((each.start, each.end) for each in meta.hashRanges)


def hold(ranges: Sequence[Range], slot: int) -> bool:
    return any(first <= slot <= last for first, last in ranges)


def overlap(ranges: Sequence[Range], others: Sequence[Range]) -> bool:
    return any(one[0] <= other[1] and other[0] <= one[1] for one in ranges for other in others)
