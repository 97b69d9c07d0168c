"""`CountingClock`: the clock of a sweep that disturbs a scenario after a chosen event."""

from collections.abc import Callable

from ...engine.clock import Clock

COUNTED = ("run", "heal", "drain", "close")
"""The phases of a world whose events are steps of the scenario."""


class CountingClock(Clock):
    """Numbers the events of a scenario, from 0 on. `after_step(step)` is called after each."""

    __slots__ = ("active", "after_step", "steps")

    def __init__(self, start: int, after_step: Callable[[int], None]) -> None:
        super().__init__(start)
        self.after_step = after_step
        self.active = False
        """True in a phase whose events are counted."""
        self.steps = 0

    def step(self) -> bool:
        found = super().step()
        if self.active:
            self.after_step(self.steps)
            self.steps += 1
        return found
