"""`RedeliverySchedule`: entries, each with the moment when it is to be requested again.

Many entries share a moment: callers round moments up, so that one request brings many entries. An entry that
was discarded before its moment costs nothing more. The schedule knows neither the time nor the reason of a
wait.
"""

from collections.abc import Collection
from heapq import heappop, heappush

from ...model.message_id import EntryPosition


class RedeliverySchedule:
    """Entries by moment, in integer nanoseconds."""

    __slots__ = ("_at", "_moments", "_when")

    def __init__(self) -> None:
        self._when: dict[EntryPosition, int] = {}
        self._at: dict[int, dict[EntryPosition, None]] = {}
        """The entries due at each moment; empty when all of them were discarded."""
        self._moments: list[int] = []
        """A heap of the keys of `_at`."""

    def __len__(self) -> int:
        return len(self._when)

    @property
    def positions(self) -> Collection[EntryPosition]:
        """The entries: always the same object, so that per-message code may keep a reference."""
        return self._when.keys()

    def when(self, position: EntryPosition) -> int | None:
        """Return the moment when the entry is due, or None when it is not scheduled."""
        return self._when.get(position)

    def add(self, position: EntryPosition, when: int) -> None:
        """Schedule the entry; the earlier moment counts for an entry that is scheduled already."""
        if self._when.setdefault(position, when) > when:
            self.discard(position)
            self._when[position] = when
        self._insert(position, self._when[position])

    def move(self, position: EntryPosition, when: int) -> None:
        """Schedule the entry, in place of any moment set before (rule UNACK-03)."""
        before = self._when.get(position)
        if before != when:
            if before is not None:
                del self._at[before][position]
            self._when[position] = when
            self._insert(position, when)

    def _insert(self, position: EntryPosition, when: int) -> None:
        at = self._at.get(when)
        if at is None:
            at = self._at[when] = {}
            heappush(self._moments, when)
        at[position] = None

    def discard(self, position: EntryPosition) -> None:
        """Remove the entry from the schedule."""
        when = self._when.pop(position, None)
        if when is not None:
            del self._at[when][position]

    def discard_through(self, last: EntryPosition) -> None:
        """Remove this entry and all before it."""
        for position in [position for position in self._when if position <= last]:
            self.discard(position)

    def next(self) -> int | None:
        """Return the moment when the first entry is due."""
        moments = self._moments
        while moments and not self._at[moments[0]]:
            del self._at[heappop(moments)]
        return moments[0] if moments else None

    def take(self, now: int) -> list[EntryPosition]:
        """Remove and return all entries that are due, the oldest moment first."""
        due: list[EntryPosition] = []
        moments = self._moments
        while moments and moments[0] <= now:
            due += self._at.pop(heappop(moments))
        for position in due:
            del self._when[position]
        return due

    def clear(self) -> None:
        self._when.clear()
        self._at.clear()
        self._moments.clear()
