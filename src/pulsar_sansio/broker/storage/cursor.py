"""A subscription's position: mark-delete, acknowledged ranges above it, and partly acknowledged batches.

Positions are offsets, a topic's own dense numbering (see `ledger`), so the whole is arithmetic on integers.
Nothing here knows consumers, bytes or ids. Terms as in rules STORE-04 and STORE-39.
"""

from bisect import bisect_right


class Ranges:
    """Disjoint, non-adjacent, sorted ranges of integers."""

    __slots__ = ("_first", "_last", "count")

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        self.count = 0
        """Integers in all ranges together."""

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._first, number) - 1
        return index >= 0 and number <= self._last[index]

    def __iter__(self) -> "zip[tuple[int, int]]":
        return zip(self._first, self._last, strict=True)

    def __len__(self) -> int:
        return len(self._first)

    def add(self, number: int) -> bool:
        """Whether it was not there before."""
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
        """Everything at or below `number` goes."""
        firsts, lasts = self._first, self._last
        whole = bisect_right(lasts, number)
        for index in range(whole):
            self.count -= lasts[index] - firsts[index] + 1
        del firsts[:whole], lasts[:whole]
        if firsts and firsts[0] <= number:
            self.count -= number - firsts[0] + 1
            firsts[0] = number + 1

    def pop_starting_at(self, number: int) -> int | None:
        """Removes the first range if it starts at `number`; its end."""
        if not self._first or self._first[0] != number:
            return None
        last = self._last[0]
        self.count -= last - number + 1
        del self._first[0], self._last[0]
        return last

    def next_outside(self, number: int) -> int:
        """The least integer not below `number` that is in no range."""
        index = bisect_right(self._first, number) - 1
        if index >= 0 and number <= self._last[index]:
            return self._last[index] + 1
        return number


class Cursor:
    """What of a topic a subscription has acknowledged."""

    __slots__ = ("mark_delete", "partly", "ranges")

    def __init__(self, mark_delete: int) -> None:
        self.mark_delete = mark_delete
        """Everything up to this offset, itself included, is acknowledged."""
        self.ranges = Ranges()
        """Acknowledged offsets above it; never begins at mark_delete + 1."""
        self.partly: dict[int, int] = {}
        """offset -> bits: messages of a batch that are still to be acknowledged, never all and never none."""

    def acknowledged(self, offset: int) -> bool:
        return offset <= self.mark_delete or (bool(self.ranges.count) and offset in self.ranges)

    def acknowledge(self, offset: int) -> bool:
        """Acknowledge a whole entry. Whether that is news."""
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
        """Of the batch at `offset` only the bits of `remaining` may stay open (state AND given).

        Returns how many of its `messages` are newly acknowledged; the entry is acknowledged when none
        stays open.
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
        """Cumulative: everything up to `offset`, itself included. Whether that is news."""
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
        """Seek: everything after `mark_delete` is unacknowledged again."""
        self.mark_delete = mark_delete
        self.ranges = Ranges()
        self.partly = {}

    def next_unacknowledged(self, offset: int) -> int:
        """The least offset not below `offset` that is not acknowledged."""
        if offset <= self.mark_delete:
            offset = self.mark_delete + 1
        return self.ranges.next_outside(offset) if self.ranges.count else offset

    def backlog(self, end: int) -> int:
        """Entries below `end` that are not acknowledged."""
        return max(0, end - self.mark_delete - 1 - self.ranges.count)
