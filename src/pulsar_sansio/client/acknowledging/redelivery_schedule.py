"""`RedeliverySchedule`: entries, each with the moment when it is to be asked for again.

Many share a moment: moments are rounded up by whoever adds, so that one request brings many entries. What is
taken out before its moment costs nothing more. Knows neither the time nor why an entry waits.
"""

from collections.abc import Collection
from heapq import heappop, heappush

from ...model.message_id import EntryPosition


class RedeliverySchedule:
    """Places by moment, in integer nanoseconds."""

    __slots__ = ("_at", "_moments", "_when")

    def __init__(self) -> None:
        self._when: dict[EntryPosition, int] = {}
        self._at: dict[int, dict[EntryPosition, None]] = {}
        """What is due at each moment; empty where all of it was taken out."""
        self._moments: list[int] = []
        """A heap of the keys of that."""

    def __len__(self) -> int:
        return len(self._when)

    @property
    def places(self) -> Collection[EntryPosition]:
        """The entries: always the same object, so that who looks at every message may keep it."""
        return self._when.keys()

    def when(self, place: EntryPosition) -> int | None:
        """The moment when the entry is due, None where it is not here."""
        return self._when.get(place)

    def add(self, place: EntryPosition, when: int) -> None:
        """The entry is due then. One that waits already: the earlier moment counts."""
        if self._when.setdefault(place, when) > when:
            self.discard(place)
            self._when[place] = when
        self._insert(place, self._when[place])

    def move(self, place: EntryPosition, when: int) -> None:
        """The entry is due then, whenever it was due before (rule UNACK-03)."""
        before = self._when.get(place)
        if before != when:
            if before is not None:
                del self._at[before][place]
            self._when[place] = when
            self._insert(place, when)

    def _insert(self, place: EntryPosition, when: int) -> None:
        at = self._at.get(when)
        if at is None:
            at = self._at[when] = {}
            heappush(self._moments, when)
        at[place] = None

    def discard(self, place: EntryPosition) -> None:
        """The entry is not to be asked for any more."""
        when = self._when.pop(place, None)
        if when is not None:
            del self._at[when][place]

    def discard_through(self, last: EntryPosition) -> None:
        """Neither is this one, nor all before it."""
        for place in [place for place in self._when if place <= last]:
            self.discard(place)

    def next(self) -> int | None:
        """The moment when the first is due."""
        moments = self._moments
        while moments and not self._at[moments[0]]:
            del self._at[heappop(moments)]
        return moments[0] if moments else None

    def take(self, now: int) -> list[EntryPosition]:
        """Everything that is due, the oldest moment first."""
        due: list[EntryPosition] = []
        moments = self._moments
        while moments and moments[0] <= now:
            due += self._at.pop(heappop(moments))
        for place in due:
            del self._when[place]
        return due

    def clear(self) -> None:
        self._when.clear()
        self._at.clear()
        self._moments.clear()
