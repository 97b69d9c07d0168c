"""Messages of one dispatcher that wait for their time (rule DELAY-01).

`Delays` holds offsets until they are due and wakes its dispatcher then. It is only memory: whatever was not
acknowledged comes by again when a dispatcher begins to read anew (a restart, an unload, a seek), and is held
back again. Times are those that producers wrote into the metadata, milliseconds of wall time. What holds an
entry back beyond that, and what an entry is, is not known here.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..topics.topic import Topic

LONGEST_SLEEP = 3600 * 1_000_000_000
"""Nanoseconds after which we look again: a producer may write any date, a timer need not know it."""

MAX_OVER = 1000
"""Times of entries that are acknowledged already and kept; from here on at most as many as are not."""


class Delays:
    """Offsets and their times. `wake` is called when one is due."""

    def __init__(self, topic: "Topic", wake: Callable[[], None]) -> None:
        self._topic = topic
        self._context = topic.context
        self._waiting: dict[int, int] = {}
        """Offset -> when it is due (wall time, ms)."""
        self._heap: list[tuple[int, int]] = []
        """(when, offset), also of offsets that are not waiting any more."""
        self._timer = topic.context.deadlines.slot(wake)

    def __len__(self) -> int:
        return len(self._waiting)

    def postpone(self, offset: int, deliver_at: int) -> bool:
        """Whether an entry has to wait; if so, it is kept here until it is due."""
        topic = self._topic
        if not topic.policies.delayed_delivery or deliver_at <= self._reach():
            return False
        if offset not in self._waiting:
            self._waiting[offset] = deliver_at
            heappush(self._heap, (deliver_at, offset))
            if self._heap[0][1] == offset:
                self._set_timer()
        return True

    def _reach(self) -> int:
        """What is due at this moment of wall time (ms) may be delivered now.

        As the Java broker has it, a tick ahead of the time unless it is to be strict.
        """
        services = self._topic.services
        if services.config.delayed_delivery_strict:
            return services.wall_time
        return services.wall_time + round((self._topic.policies.delayed_delivery_tick or 0) * 1000)

    def take_due(self) -> list[int]:
        """The offsets that are due, in order of their times; they are not kept any longer."""
        heap, waiting = self._heap, self._waiting
        reach = self._reach()
        due = []
        while heap and (heap[0][0] <= reach or heap[0][1] not in waiting):
            _, offset = heappop(heap)
            if waiting.pop(offset, None) is not None:
                due.append(offset)
        self._set_timer()
        return due

    def _set_timer(self) -> None:
        """At the moment itself, not a tick ahead: many that are due about the same time go together."""
        if not self._heap:
            self._timer.clear()
            return
        now = self._context.now
        rest = self._heap[0][0] - self._topic.services.wall_time
        self._timer.set(min(now - now % 1_000_000 + rest * 1_000_000, now + LONGEST_SLEEP))

    def discard(self, offset: int) -> None:
        """It was acknowledged."""
        if self._waiting.pop(offset, None) is not None:
            self._tidy()

    def discard_up_to(self, offset: int) -> None:
        """Everything up to there was acknowledged."""
        for each in [each for each in self._waiting if each <= offset]:
            del self._waiting[each]
        self._tidy()

    def _tidy(self) -> None:
        """What was acknowledged before its time, which may be far away, is not kept until then."""
        if len(self._heap) > MAX_OVER + 2 * len(self._waiting):
            self._heap = [(when, offset) for offset, when in self._waiting.items()]
            heapify(self._heap)

    def clear(self) -> None:
        """The dispatcher reads anew, or is not needed any more."""
        self._waiting.clear()
        self._heap.clear()
        self._timer.clear()
