"""`Context`: the state that every machine under one root shares.

It holds the moment of the input being handled, the queue of outputs, the timers, the randomness and the
counter that ids come from. Only the root sets `now`, at every input.

A machine that has machines of its own, and does not want the application to get their outputs, gives them an
`InnerContext`.
"""

from collections import deque
from collections.abc import Callable
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
        """Append an output, after all earlier outputs."""
        self._next_id = 0
        self._next_link = 0

    def new_id(self) -> int:
        """An id for a producer, a consumer or a request: from 1, never used again."""
        self._next_id += 1
        return self._next_id

    def was_given(self, identifier: int) -> bool:
        """Return True if `new_id` ever gave this number."""
        return 0 < identifier <= self._next_id

    def new_link(self) -> int:
        """An id for one attempt to connect: from 1, never used again."""
        self._next_link += 1
        return self._next_link


class InnerContext(Context[OutputT]):
    """The context of machines within another machine: it shares everything of the outer context but the
    outputs.

    Outputs of the inner machines go to `on_output`, at the same moment and in order. A timer that is due at
    once calls `on_output`, so never in the middle of the call that made the output.
    """

    __slots__ = ("_closed", "_on_output", "_outer", "_slot")

    def __init__(self, outer: Context[OutputT], on_output: Callable[[OutputT], None]) -> None:
        self._outer = outer
        self._on_output = on_output
        self._closed = False
        self._slot = outer.deadlines.slot(self._deliver)
        self.rng = outer.rng
        self.deadlines = outer.deadlines
        self.outputs = deque()
        self.emit = self._emit

    @property
    def now(self) -> int:
        """The moment of the root's context."""
        return self._outer.now

    @now.setter
    def now(self, now: int) -> None:
        self._outer.now = now

    def new_id(self) -> int:
        return self._outer.new_id()

    def was_given(self, identifier: int) -> bool:
        return self._outer.was_given(identifier)

    def new_link(self) -> int:
        return self._outer.new_link()

    def close(self) -> None:
        """Drop all outputs of the inner machines that `on_output` has not got yet, and all later ones."""
        self._closed = True
        self._slot.clear()

    def _emit(self, output: OutputT) -> None:
        if not self._closed:
            self.outputs.append(output)
            self._slot.set(self._outer.now)

    def _deliver(self) -> None:
        while self.outputs:
            self._on_output(self.outputs.popleft())
