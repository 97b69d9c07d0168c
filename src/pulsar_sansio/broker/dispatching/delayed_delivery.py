"""Messages of one dispatcher that are to be delivered later (rule DELAY-01).

`Delays` holds offsets until they are due, and then wakes its dispatcher. It holds them in memory only: a
dispatcher that starts to read again, after a restart, an unload or a seek, finds the entries again and holds
them back again. Times are wall time in ms, as producers wrote them into the metadata.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..topics.topic import Topic

LONGEST_SLEEP = 3600 * 1_000_000_000
"""The longest time, in ns, for which the timer is set: a producer may write any date."""

MAX_OVER = 1000
"""The number of times by which the heap may exceed twice the number of waiting entries."""


class Delays:
    """Offsets and their times. `wake` is called when one is due."""

    def __init__(self, topic: "Topic", wake: Callable[[], None]) -> None:
        self._topic = topic
        self._context = topic.context
        self._waiting: dict[int, int] = {}
        """Offset -> the wall time in ms at which the entry is due."""
        self._heap: list[tuple[int, int]] = []
        """(time, offset); it may hold offsets that no longer wait."""
        self._timer = topic.context.deadlines.slot(wake)

    def __len__(self) -> int:
        return len(self._waiting)

    def postpone(self, offset: int, deliver_at: int) -> bool:
        """Hold an entry back until it is due. False when it is due already."""
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
        """The wall time (ms) up to which entries may be delivered now.

        As with the Java broker, it is a tick ahead of the present time, unless delivery is strict.
        """
        services = self._topic.services
        if services.config.delayed_delivery_strict:
            return services.wall_time
        return services.wall_time + round((self._topic.policies.delayed_delivery_tick or 0) * 1000)

    def take_due(self) -> list[int]:
        """Remove and return the offsets that are due, in order of their times."""
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
        """Set the timer to the exact time, not a tick ahead: entries that are due about that time are
        delivered together."""
        if not self._heap:
            self._timer.clear()
            return
        now = self._context.now
        rest = self._heap[0][0] - self._topic.services.wall_time
        self._timer.set(min(now - now % 1_000_000 + rest * 1_000_000, now + LONGEST_SLEEP))

    def discard(self, offset: int) -> None:
        """Discard an entry that was acknowledged."""
        if self._waiting.pop(offset, None) is not None:
            self._tidy()

    def discard_up_to(self, offset: int) -> None:
        """Discard the entries up to this offset: all are acknowledged."""
        for each in [each for each in self._waiting if each <= offset]:
            del self._waiting[each]
        self._tidy()

    def _tidy(self) -> None:
        """Remove times of acknowledged entries from the heap once they outnumber the others."""
        if len(self._heap) > MAX_OVER + 2 * len(self._waiting):
            self._heap = [(when, offset) for offset, when in self._waiting.items()]
            heapify(self._heap)

    def clear(self) -> None:
        """Discard all entries: the dispatcher reads again, or was closed."""
        self._waiting.clear()
        self._heap.clear()
        self._timer.clear()
