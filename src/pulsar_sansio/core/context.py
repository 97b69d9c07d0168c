"""`Context`: what every machine under one root shares.

The moment of the input being handled, the queue of outputs, the timers, the randomness and the counter that
ids come from. The root sets `now` at every input; nobody else does.
"""

from collections import deque
from typing import Generic, TypeVar

from .deadlines import Deadlines
from .rng import Rng

OutputT = TypeVar("OutputT")


class Context(Generic[OutputT]):
    """`now` is integer nanoseconds on a monotonic clock."""

    __slots__ = ("_next_id", "_next_link", "deadlines", "emit", "now", "outputs", "rng")

    def __init__(self, now: int, seed: int) -> None:
        self.now = now
        self.rng = Rng(seed)
        self.deadlines = Deadlines()
        self.outputs: deque[OutputT] = deque()
        self.emit = self.outputs.append
        """Say something, after everything said before."""
        self._next_id = 0
        self._next_link = 0

    def new_id(self) -> int:
        """An id for a producer, a consumer or a request: from 1, never used again."""
        self._next_id += 1
        return self._next_id

    def was_given(self, identifier: int) -> bool:
        """Whether `new_id` ever gave this number."""
        return 0 < identifier <= self._next_id

    def new_link(self) -> int:
        """An id for one attempt to connect: from 1, never used again."""
        self._next_link += 1
        return self._next_link
