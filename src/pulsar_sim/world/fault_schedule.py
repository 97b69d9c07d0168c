"""The schedule of faults: when each strikes.

Owns the draws while faults last; `faults` owns what each does.
"""

from typing import TYPE_CHECKING

from ..engine.clock import MILLISECOND
from ..engine.randomness import Stream
from ..faults.catalogue import FAULTS

if TYPE_CHECKING:
    from ..apps.consumer_app import ConsumerApp
    from ..apps.producer_app import ProducerApp
    from .world import World


class FaultSchedule:
    """Draws faults until it is stopped."""

    def __init__(self, world: "World", stream: Stream, kinds: list[str], gap: int) -> None:
        self._world = world
        self._stream = stream
        self._kinds = kinds
        self._gap = gap
        self._deck: list[str] = []
        """Kinds still to strike in this round: none strikes twice before all have struck."""
        self._abandon_stream = world.streams.stream("second thoughts")
        self._active = False
        self.abandon_next = 0
        """The number of next openings that are abandoned at once."""
        self.nack_next = 0
        """The number of next takes whose messages are all negatively acknowledged."""

    def start(self) -> None:
        if self._kinds and self._gap:
            self._active = True
            self._schedule()

    def stop(self) -> None:
        self._active = False
        self.abandon_next = self.nack_next = 0

    def refuses(self) -> bool:
        """True when the application that has just taken messages must negatively acknowledge all of them."""
        if not self.nack_next:
            return False
        self.nack_next -= 1
        self._world.count_fault("nack_everything")
        return True

    def opened(self, app: "ProducerApp | ConsumerApp") -> None:
        """An application has begun to open a handle, and may abandon it."""
        if self.abandon_next:
            self.abandon_next -= 1
            soon = self._abandon_stream.below(8 * self._world.network.conditions.latency + 2 * MILLISECOND)
            self._world.clock.after(soon, self._give_up, app, app.handle)

    def _give_up(self, app: "ProducerApp | ConsumerApp", handle: int) -> None:
        if app.handle == handle and app.state == "opening" and app.abandon_and_reopen():
            self._world.count_fault("opening_abandoned")

    def _schedule(self) -> None:
        self._world.clock.after(self._stream.between(self._gap // 10, 2 * self._gap), self._strike)

    def _strike(self) -> None:
        if not self._active:
            return
        if not self._deck:
            self._deck = list(self._kinds)
            self._stream.shuffle(self._deck)
        self.strike(self._deck.pop(), self._stream)
        self._schedule()

    def strike(self, name: str, stream: Stream) -> None:
        """Let one fault happen; the shrinker records and repeats these."""
        if FAULTS[name](self._world, stream):
            self._world.count_fault(name)
            self._world.trace.add(self._world.clock.now, "fault", name)
