"""A subscription's position: mark-delete, acknowledged ranges above it, and partly acknowledged batches.

Positions are offsets, the dense numbering of a topic (see `ledger`), so all is arithmetic on integers. The
module knows no consumers, bytes or ids. Its terms are those of rules STORE-04 and STORE-39.
"""

from bisect import bisect_right


class Ranges:
    """Disjoint, non-adjacent, sorted ranges of integers."""

    __slots__ = ("_first", "_last", "count")

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        self.count = 0
        """The number of integers in all ranges together."""

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._first, number) - 1
        return index >= 0 and number <= self._last[index]

    def __iter__(self) -> "zip[tuple[int, int]]":
        return zip(self._first, self._last, strict=True)

    def __len__(self) -> int:
        return len(self._first)

    def add(self, number: int) -> bool:
        """Add an integer. False when a range holds it already."""
        firsts, lasts = self._first, self._last
        index = bisect_right(firsts, number) - 1
        if index >= 0 and number <= lasts[index]:
            return False
        joins_left = index >= 0 and lasts[index] == number - 1
        joins_right = index + 1 < len(firsts) and firsts[index + 1] == number + 1
        if joins_left and joins_right:
            lasts[index] = lasts[index + 1]
            del firsts[index + 1], lasts[index + 1]
        elif joins_left:
            lasts[index] = number
        elif joins_right:
            firsts[index + 1] = number
        else:
            firsts.insert(index + 1, number)
            lasts.insert(index + 1, number)
        self.count += 1
        return True

    def remove_up_to(self, number: int) -> None:
        """Remove all integers up to `number`, itself included."""
        firsts, lasts = self._first, self._last
        whole = bisect_right(lasts, number)
        for index in range(whole):
            self.count -= lasts[index] - firsts[index] + 1
        del firsts[:whole], lasts[:whole]
        if firsts and firsts[0] <= number:
            self.count -= number - firsts[0] + 1
            firsts[0] = number + 1

    def pop_starting_at(self, number: int) -> int | None:
        """Remove the first range if it starts at `number`, and return its end, else None."""
        if not self._first or self._first[0] != number:
            return None
        last = self._last[0]
        self.count -= last - number + 1
        del self._first[0], self._last[0]
        return last

    def next_outside(self, number: int) -> int:
        """Return the least integer from `number` on that is in no range."""
        index = bisect_right(self._first, number) - 1
        if index >= 0 and number <= self._last[index]:
            return self._last[index] + 1
        return number


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

    def backlog(self, end: int) -> int:
        """The number of entries below `end` that are not acknowledged."""
        return max(0, end - self.mark_delete - 1 - self.ranges.count)
