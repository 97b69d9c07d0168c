"""This module names, numbers, routes and cuts the rows of a write into entries: exactly once rests on it.

Pure: no Spark, no Arrow, no sockets. A task that is run again computes the same names, the same numbers and
the same cuts from the same rows. So the broker can tell what it has from what it lacks (docs/spark.md,
"Exactly once").

* The producer's name says whose rows they are: the query or write, and the sink's partition.
* The sequence id of a row is the batch's number, then the row's index among those of its task that go to the
  same topic partition. Ids never go back: a later batch's are all higher.
* The broker compares only the lowest sequence id of an entry, and drops the entry as a whole. So the cuts
  depend on the rows alone, never on time. No entry has ids on both sides of what the broker knew when the
  producer was opened.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from pulsar_sansio import HashingScheme, hash_key

INDEX_BITS: Final = 32
"""Bits of a sequence id that number the rows of one task for one topic partition."""

MAX_ROWS: Final = 1 << INDEX_BITS
MAX_BATCH: Final = (1 << 63 - INDEX_BITS) - 1
"""The last batch that there are ids for: one every second for 68 years."""

NO_ID: Final = -1
"""A broker reports this id for a producer name that it does not know."""


def producer_name(prefix: str, owner: str, sink_partition: int) -> str:
    """The name under which one sink partition of a query or of a write sends, on every topic.

    `owner`: a query's id or a `writeId`. One live producer of a name on a topic is what keeps a forgotten
    attempt out.
    """
    return f"{prefix}-{owner}-{sink_partition}"


def first_sequence_id(batch: int) -> int:
    """The id of the first row of batch number `batch`. Raises `OverflowError` beyond `MAX_BATCH`."""
    if not 0 <= batch <= MAX_BATCH:
        raise OverflowError(f"batch {batch}: sequence ids have room for batches 0 to {MAX_BATCH}")
    return batch << INDEX_BITS


def batch_of(sequence_id: int) -> int:
    """The batch that a row with this id belongs to; negative for `NO_ID`."""
    return sequence_id >> INDEX_BITS


def key_partition(key: str, partitions: int) -> int:
    """Where a row with a key goes: the place that the Java client's default gives it."""
    return hash_key(HashingScheme.JAVA_STRING, key) % partitions


def keyless_partition(row: int, partitions: int) -> int:
    """Where the row with index `row` in its task goes when it has no key: one after the other, from 0."""
    return row % partitions


@dataclass
class Cutter:
    """Cut the rows of one task for one topic partition into entries.

    An entry has at most `max_messages` rows and `max_bytes` bytes, unless a single row has more. Besides,
    there is a cut before the row with each index of `extra`. An extra cut takes nothing from the others: they
    stay where they would be without it, so that attempts that know different extra cuts agree on the rest.

    Rows come in any number of portions; where these end makes no difference.
    """

    max_messages: int
    max_bytes: int
    extra: set[int] = field(default_factory=set)
    next_row: int = 0
    """The index of the next row to come."""
    _messages: int = 0
    _bytes: int = 0
    """The bytes of the open entry, as if there were no extra cuts."""

    def cut(self, sizes: Sequence[int]) -> list[int]:
        """Take the next rows, of these sizes in bytes; the offsets among them before which an entry ends.

        An offset of 0 ends what came before, one of `len(sizes)` all of it. What is after the last stays
        open.
        """
        cuts = [row - self.next_row for row in self.extra if 0 <= row - self.next_row <= len(sizes)]
        sums = list(accumulate(sizes, initial=0))
        total = len(sizes)
        position = 0
        while position < total:
            base = sums[position] - self._bytes
            limit = base + self.max_bytes
            end = bisect_left(sums, limit, position + 1)  # the row that fills it, or does not fit any more
            if end > total or sums[end] > limit:
                end -= 1
            end = min(end, position + self.max_messages - self._messages)
            if end == position and not self._messages:
                end += 1  # larger than an entry may be: alone
            self._messages += end - position
            self._bytes = sums[end] - base
            position = end
            if position < total or self._messages >= self.max_messages or self._bytes >= self.max_bytes:
                cuts.append(position)
                self._messages = self._bytes = 0
        self.next_row += total
        if self.next_row > MAX_ROWS:
            raise OverflowError(f"more than {MAX_ROWS} rows of one task for one topic partition")
        return sorted(set(cuts))
