"""A subscription's position: mark-delete, acknowledged ranges above it, and partly acknowledged batches.

Positions are offsets, the dense numbering of a topic (see `managed_ledger`), so all is arithmetic on
integers. The module knows no consumers, bytes or ids. Its terms are those of rules STORE-04 and STORE-39.
"""

from collections.abc import Iterator

from .ranges import Ranges


class Cursor:
    """The acknowledged entries of a topic, for one subscription."""

    __slots__ = ("mark_delete", "partly", "ranges")

    def __init__(self, mark_delete: int) -> None:
        self.mark_delete = mark_delete
        """Everything up to this offset, itself included, is acknowledged."""
        self.ranges = Ranges()
        """Acknowledged offsets above `mark_delete`; never begins at mark_delete + 1."""
        self.partly: dict[int, int] = {}
        """Offset of a batch -> bits of the messages still to be acknowledged: neither all nor none."""

    def acknowledged(self, offset: int) -> bool:
        return offset <= self.mark_delete or (bool(self.ranges.count) and offset in self.ranges)

    def acknowledge(self, offset: int) -> bool:
        """Acknowledge a whole entry. False when it is acknowledged already."""
        mark = self.mark_delete
        if offset <= mark:
            return False
        if self.partly:
            self.partly.pop(offset, None)
        ranges = self.ranges
        if offset == mark + 1:
            last = ranges.pop_starting_at(offset + 1) if ranges.count else None
            self.mark_delete = offset if last is None else last
            return True
        return ranges.add(offset)

    def acknowledge_partly(self, offset: int, remaining: int, messages: int) -> int:
        """Acknowledge the messages of the batch at `offset` whose bits are not in `remaining`.

        Return the number of messages newly acknowledged, of `messages` in the batch. The entry is
        acknowledged when no message remains.
        """
        if self.acknowledged(offset):
            return 0
        everything = (1 << messages) - 1
        before = self.partly.get(offset, everything)
        after = before & remaining & everything
        if after == 0:
            self.acknowledge(offset)
        elif after != everything:
            self.partly[offset] = after
        return before.bit_count() - after.bit_count()

    def acknowledge_up_to(self, offset: int) -> bool:
        """Acknowledge up to `offset`, itself included. False when that is acknowledged already."""
        if offset <= self.mark_delete:
            return False
        ranges = self.ranges
        if ranges.count:
            ranges.remove_up_to(offset)
            last = ranges.pop_starting_at(offset + 1)
            if last is not None:
                offset = last
        self.mark_delete = offset
        if self.partly:
            for open_offset in [each for each in self.partly if each <= offset]:
                del self.partly[open_offset]
        return True

    def reset(self, mark_delete: int) -> None:
        """Seek: no entry after `mark_delete` is acknowledged any more."""
        self.mark_delete = mark_delete
        self.ranges = Ranges()
        self.partly = {}

    def next_unacknowledged(self, offset: int) -> int:
        """Return the least offset from `offset` on that is not acknowledged."""
        if offset <= self.mark_delete:
            offset = self.mark_delete + 1
        return self.ranges.next_outside(offset) if self.ranges.count else offset

    def unacknowledged(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield runs of offsets that are not acknowledged, from `first` up to `end`, which stays out.

        A run is its first offset and the offset after it.
        """
        first = max(first, self.mark_delete + 1)
        for begin, last in self.ranges:
            if begin >= end:
                break
            if begin > first:
                yield first, begin
            first = max(first, last + 1)
        if first < end:
            yield first, end

    def backlog(self, end: int) -> int:
        """The number of entries below `end` that are not acknowledged."""
        return max(0, end - self.mark_delete - 1 - self.ranges.count)
