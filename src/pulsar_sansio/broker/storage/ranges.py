"""Disjoint ranges of integers: what a cursor has acknowledged above its mark-delete position."""

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
