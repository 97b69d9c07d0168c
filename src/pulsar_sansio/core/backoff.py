"""`Backoff`: the waits between attempts (rules HAND-07, HAND-08, GAP-05).

Waits begin with `initial` and double every time, up to `maximum`; each is up to 5 % shorter or longer. A
producer whose messages would time out at a known moment makes one attempt just before it: the mandatory stop.
"""

from .rng import Rng

JITTER_PERCENT = 5


class Backoff:
    """Waits in nanoseconds. `mandatory_stop` is counted from the first wait; 0 means there is none."""

    __slots__ = ("_first", "_initial", "_mandatory_stop", "_maximum", "_next", "_rng", "_stop_made")

    def __init__(self, initial: int, maximum: int, rng: Rng, mandatory_stop: int = 0) -> None:
        self._initial = initial
        self._maximum = maximum
        self._rng = rng
        self._mandatory_stop = mandatory_stop
        self.reset()

    def reset(self) -> None:
        """Begin again with the shortest wait, after a success."""
        self._next = self._initial
        self._first: int | None = None
        self._stop_made = self._mandatory_stop == 0

    def next(self, now: int) -> int:
        """Return the wait before the next attempt, in nanoseconds."""
        current = self._next
        self._next = min(current * 2, self._maximum)
        wait = self._rng.around(current, JITTER_PERCENT)
        if self._first is None:
            self._first = now
        if not self._stop_made and now - self._first + wait > self._mandatory_stop:
            self._stop_made = True
            wait = max(self._initial, self._mandatory_stop - (now - self._first))
        return wait
