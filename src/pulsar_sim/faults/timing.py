"""The timing that the environment imposes on every machine: late and early timers, slow disks, wall clocks
that are set."""

from typing import TYPE_CHECKING

from ..engine.clock import MILLISECOND, SECOND
from ..engine.randomness import Stream

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings


class Timing:
    """The timing of one world."""

    __slots__ = (
        "_store_delay",
        "slow_store_until",
        "stale_permille",
        "stream",
        "timers_early_permille",
        "timers_late_permille",
        "wall_offset",
        "world",
    )

    def __init__(self, world: "Surroundings", stream: Stream, store_delay: int) -> None:
        self.world = world
        self.stream = stream
        self.timers_late_permille = 0
        self.timers_early_permille = 0
        self.stale_permille = 0
        self.wall_offset = 0
        """Milliseconds by which the wall clock was set; the monotonic clock is not affected."""
        self.slow_store_until = 0
        self._store_delay = store_delay

    def store_delay(self) -> int:
        """Return the nanoseconds until the store has made a batch durable."""
        delay = self._store_delay // 2 + self.stream.below(self._store_delay)
        if self.world.clock.now < self.slow_store_until:
            delay += self.stream.between(100 * MILLISECOND, 3 * SECOND)
        return delay

    def wakes_at(self, deadline: int) -> int:
        """Return the time at which a machine that asks for `deadline` is woken."""
        if self.timers_late_permille and self.stream.chance(self.timers_late_permille):
            self.world.count_fault("timer_late")
            return deadline + self.stream.spread(MILLISECOND, 500 * MILLISECOND)
        return deadline

    def wakes_for_nothing(self) -> bool:
        """True when a machine is to be woken although it has nothing to do."""
        if self.timers_early_permille and self.stream.chance(self.timers_early_permille):
            self.world.count_fault("timer_early")
            return True
        return False

    def heal(self) -> None:
        self.timers_late_permille = self.timers_early_permille = self.stale_permille = 0
        self.slow_store_until = 0
