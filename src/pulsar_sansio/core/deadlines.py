"""`Deadlines`: the actions that are due, each at its moment.

A machine asks for a slot once, with the action, and sets or clears its moment as often as it likes. The heap
is lazy: a slot keeps at most one entry in it, and an entry whose slot has moved on is put right when it
surfaces. Setting a timer later again and again (a keepalive, a batch delay) therefore costs no heap work.

`Deadlines` owns no clock; moments are integer nanoseconds that the caller of the root machine supplies.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

FEW = 1000
"""Timers may be cleared so often before the heap is searched for their entries."""


class Slot:
    """One timer: an action, and the moment it is due (`when`), or None."""

    __slots__ = ("_deadlines", "_order", "_queued", "action", "when")

    def __init__(self, deadlines: "Deadlines", action: Callable[[], None]) -> None:
        self._deadlines = deadlines
        self._order = 0
        self._queued: int | None = None  # the moment of this slot's earliest entry in the heap
        self.action = action
        self.when: int | None = None

    def set(self, when: int) -> None:
        """Make the timer due at `when`, in place of its former moment."""
        deadlines = self._deadlines
        deadlines._order = order = deadlines._order + 1
        self.when = when
        self._order = order
        if self._queued is None or when < self._queued:
            self._queued = when
            heappush(deadlines._heap, (when, order, self))

    def clear(self) -> None:
        """Stop the timer: it is not due any more."""
        self.when = None
        self._deadlines._count_cleared()


class Deadlines:
    """All timers of one root machine."""

    __slots__ = ("_cleared", "_heap", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Slot]] = []
        self._order = 0
        self._cleared = 0
        """The number of clearings since the heap was last searched for entries of cleared timers."""

    def slot(self, action: Callable[[], None]) -> Slot:
        """Return a timer for `action`, not set yet."""
        return Slot(self, action)

    def next(self) -> int | None:
        """Return the earliest moment at which a timer is due; None where no timer is set."""
        heap = self._heap
        if heap:
            when, order, slot = heap[0]
            if (slot._order == order and slot.when == when) or self._settle():
                return heap[0][0]
        return None

    def run(self, now: int) -> None:
        """Run every action due at `now`, in the order of (moment, setting).

        A timer that an action sets anew for a moment that has passed waits for the next call, so that one
        call always ends.
        """
        last = self._order
        later: list[Slot] = []
        while self._settle():
            when, order, slot = self._heap[0]
            if when > now:
                break
            heappop(self._heap)
            slot._queued = None
            if order > last:
                later.append(slot)
                continue
            slot.when = None
            slot.action()
        for slot in later:
            if slot.when is not None and slot._queued is None:
                slot._queued = slot.when
                heappush(self._heap, (slot.when, slot._order, slot))

    def _count_cleared(self) -> None:
        """Remove the entries of cleared timers now and then.

        An entry keeps its timer's owner in memory, and one that lies far ahead, as the expiry of a token,
        may not surface for a year. One search costs at most two steps for each clearing since the last one.
        """
        self._cleared += 1
        heap = self._heap
        if self._cleared <= FEW + len(heap) // 2:
            return
        self._cleared = 0
        kept = []
        for entry in heap:
            slot = entry[2]
            if slot.when is None:
                slot._queued = None
            else:
                kept.append(entry)
        heap[:] = kept
        heapify(heap)

    def _settle(self) -> bool:
        """Correct entries until the first one is true; return True if there is one."""
        heap = self._heap
        while heap:
            when, order, slot = heap[0]
            if slot._order == order and slot.when == when:
                return True
            heappop(heap)
            if slot._queued != when:
                continue  # a nearer entry of this slot surfaced before
            if slot.when is None:
                slot._queued = None
            else:
                slot._queued = slot.when
                heappush(heap, (slot.when, slot._order, slot))
        return False
