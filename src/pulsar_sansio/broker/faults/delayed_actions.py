"""`DelayedActions`: actions that a delay holds back, in the order of what they belong to."""

from collections.abc import Callable, Hashable
from heapq import heappop, heappush

from ...core.context import Context
from ..outputs import Output


class DelayedActions:
    """Actions with their moments. Those of one key keep their order: a later one waits for an earlier one.

    Actions with the key None have no order among themselves.
    """

    def __init__(self, context: Context[Output]) -> None:
        self._context = context
        self._timer = context.deadlines.slot(self._run_due)
        self._heap: list[tuple[int, int, Hashable, Callable[[], None]]] = []
        self._order = 0
        self._queues: dict[Hashable, tuple[int, int]] = {}
        """Key -> the moment of its latest action, and the number of its actions."""

    def holds(self, key: Hashable) -> bool:
        """Return True while an action of this key waits."""
        return key in self._queues

    def hold(self, key: Hashable, delay: int, action: Callable[[], None]) -> None:
        """Run the action after the delay (ns), or after the one before it of its key if that is later."""
        moment = self._context.now + delay
        if key is not None:
            latest, count = self._queues.get(key, (moment, 0))
            moment = max(moment, latest)
            self._queues[key] = moment, count + 1
        self._order += 1
        heappush(self._heap, (moment, self._order, key, action))
        self._timer.set(self._heap[0][0])

    def release(self) -> None:
        """Run all actions now."""
        while self._heap:
            self._run_first()
        self._timer.clear()

    def discard(self) -> None:
        """Drop all actions: the connection has ended."""
        self._heap.clear()
        self._queues.clear()
        self._timer.clear()

    def _run_due(self) -> None:
        while self._heap and self._heap[0][0] <= self._context.now:
            self._run_first()
        if self._heap:
            self._timer.set(self._heap[0][0])

    def _run_first(self) -> None:
        _, _, key, action = heappop(self._heap)
        if key is not None:
            latest, count = self._queues[key]
            if count == 1:
                del self._queues[key]
            else:
                self._queues[key] = latest, count - 1
        action()
