"""A trio whose every choice comes from a seed, and cancellation at an exact step of a task.

Trio has no public way to fix its scheduler; the two private names it takes are checked before they are used.
"""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio
import trio.testing
from trio._core import _run

from pulsar_sim.engine.randomness import Stream

T = TypeVar("T")

MAX_STEPS = 150_000
"""Steps of tasks in one run. More is a loop that virtual time does not get out of."""


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    assert hasattr(_run, "_ALLOW_DETERMINISTIC_SCHEDULING"), "trio has another way to be deterministic now"
    assert hasattr(_run, "_r"), "trio's scheduler draws from another generator now"
    switch, state = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate()
    _run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    _run._r.seed(seed)
    try:
        yield
    finally:
        _run._ALLOW_DETERMINISTIC_SCHEDULING = switch  # type: ignore[misc]
        _run._r.setstate(state)


def run(seed: int, main: Callable[[], Coroutine[Any, Any, T]], *instruments: trio.abc.Instrument) -> T:
    """`trio.run` in virtual time, the same for the same seed."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    with _seeded(seed):
        return trio.run(main, clock=clock, instruments=instruments)


class _Armed:
    """A scope to cancel when a task comes to its n-th step."""

    __slots__ = ("left", "scope", "when_scheduled")

    def __init__(self, scope: trio.CancelScope, left: int, when_scheduled: bool) -> None:
        self.scope = scope
        self.left = left
        self.when_scheduled = when_scheduled


class Canceller(trio.abc.Instrument):
    """Cancels at awaits. A task that waits may be cancelled while it waits, or when what it waited for has
    come but it has not run yet: the two moments in which messages and wake-ups get lost.

    `on_idle` is called when nothing can run before time goes on.
    """

    def __init__(self, on_idle: Callable[[], None], on_busy_loop: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self._on_busy_loop = on_busy_loop
        self._armed: dict[trio.lowlevel.Task, list[_Armed]] = {}
        self._alarm: tuple[int, Callable[[], None]] | None = None
        self.steps = 0
        self.cancelled = 0
        """Scopes cancelled at a step or a moment, before they were left."""

    @contextmanager
    def at_step(self, step: int, when_scheduled: bool = False) -> Iterator[trio.CancelScope]:
        """Cancel the block at the step-th time that this task waits, or is woken."""
        task = trio.lowlevel.current_task()
        stack = self._armed.setdefault(task, [])
        with trio.CancelScope() as scope:
            armed = _Armed(scope, step, when_scheduled)
            stack.append(armed)
            try:
                yield scope
            finally:
                stack.remove(armed)
                if not stack:
                    del self._armed[task]
                self.cancelled += scope.cancel_called

    def after_steps(self, steps: int, call: Callable[[], None]) -> None:
        """Call when so many more steps of any tasks are done; it must not wait."""
        self._alarm = self.steps + steps, call

    @contextmanager
    def sometimes(self, stream: Stream, permille: int, steps: int, seconds: float) -> Iterator[bool]:
        """Cancel the block, so many times in a thousand, at one of the first `steps` awaits or within some
        seconds."""
        if not stream.chance(permille):
            yield False
            return
        kind = stream.below(5)
        if kind < 4:
            with self.at_step(stream.between(1, steps), when_scheduled=kind < 2):
                yield True
        else:
            with trio.move_on_after(stream.below(1000) * seconds / 1000) as scope:
                yield True
            self.cancelled += scope.cancel_called

    # --- called by trio -------------------------------------------------------------------------------

    def _count(self, task: trio.lowlevel.Task, scheduled: bool) -> None:
        for armed in self._armed.get(task, ()):
            if armed.when_scheduled is scheduled:
                armed.left -= 1
                if armed.left == 0:
                    armed.scope.cancel()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        self._count(task, True)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._count(task, False)
        self.steps += 1
        if self._alarm is not None and self.steps == self._alarm[0]:
            self._alarm[1]()
        if self.steps == MAX_STEPS:
            self._on_busy_loop()

    def before_io_wait(self, timeout: float) -> None:
        if not _run.GLOBAL_RUN_CONTEXT.runner.runq and _nothing_is_due():
            self._on_idle()


def _nothing_is_due() -> bool:
    """No scope is about to be cancelled because its deadline has come."""
    return trio.lowlevel.current_statistics().seconds_to_next_deadline > 0
