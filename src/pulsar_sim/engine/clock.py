"""Virtual time: one heap of events, one integer clock in nanoseconds.

Owns the order of all events in a world. Two events due at one instant run in the order in which they were
scheduled, so a run is a function of its seed. The clock knows nothing of the events.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
MICROSECOND = 1_000

Action = Callable[..., None]


class Clock:
    """The clock and its heap. `now` begins at a large arbitrary offset, so that it cannot be confused with
    another time."""

    __slots__ = ("_count", "_heap", "events", "now", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.now = start
        self.events = 0
        """The number of events run so far."""
        self._heap: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self._count = 0

    def at(self, when: int, action: Action, *arguments: Any) -> None:
        """Run `action(*arguments)` at `when`; a moment in the past means now."""
        self._count += 1
        heappush(self._heap, (when if when > self.now else self.now, self._count, action, arguments))

    def after(self, delay: int, action: Action, *arguments: Any) -> None:
        self._count += 1
        heappush(self._heap, (self.now + delay, self._count, action, arguments))

    def next_time(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def step(self) -> bool:
        """Run the next event; False when there is none."""
        if not self._heap:
            return False
        when, _, action, arguments = heappop(self._heap)
        self.now = when
        self.events += 1
        action(*arguments)
        return True

    def run_until(self, moment: int, most: int) -> None:
        """Run the events due up to `moment`, and set the clock to it; stop after `most` events in total."""
        heap = self._heap
        while heap and heap[0][0] <= moment:
            self.step()
            if self.events > most:
                return
        self.now = max(self.now, moment)

    @property
    def elapsed(self) -> int:
        """Virtual nanoseconds since the world began."""
        return self.now - self.start
