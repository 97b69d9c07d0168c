"""`LookupQueue`: the lookups of one connection or one kind, a limited number at a time (rule CONN-14)."""

from collections import deque
from collections.abc import Callable

from ...model.errors import PulsarError, TooManyRequests

MAX_WAITING_LOOKUPS = 50_000
"""The number of lookups that may wait for their turn in one queue (rule CONN-14)."""


class LookupQueue:
    """A limited number of lookups in flight, the others waiting (rule CONN-14)."""

    __slots__ = ("_in_flight", "_limit", "_waiting")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_flight = 0
        self._waiting: deque[tuple[Callable[[], bool], Callable[[PulsarError], None]]] = deque()

    def submit(self, start: Callable[[], bool], on_failed: Callable[[PulsarError], None]) -> None:
        """Call `start` when the lookup may be sent; call `on_failed` if that never happens.

        `start` returns True when it sent the lookup, and False for a lookup that ended while waiting.
        """
        if self._in_flight < self._limit:
            if start():
                self._in_flight += 1
        elif len(self._waiting) < MAX_WAITING_LOOKUPS:
            self._waiting.append((start, on_failed))
        else:
            on_failed(TooManyRequests(f"{MAX_WAITING_LOOKUPS} lookups wait already on one connection"))

    def answered(self) -> None:
        """A lookup in flight ended with any result: start the next one."""
        while self._waiting:
            start, _ = self._waiting.popleft()
            if start():
                return
        self._in_flight -= 1

    def fail(self, error: PulsarError) -> None:
        """Fail the waiting lookups: their connection died. Lookups in flight fail as requests."""
        waiting, self._waiting = self._waiting, deque()
        for _, on_failed in waiting:
            on_failed(error)
