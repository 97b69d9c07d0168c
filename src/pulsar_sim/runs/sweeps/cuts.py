"""Sweep of cuts: a wire ends when a chosen number of bytes has arrived in a chosen direction.

It ends by a reset, in silence, or in good order.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ...engine.network import Listener, Network, NetworkEndpoint, Pipe, Wire
from ..scenarios import Scenario, ScenarioWorld, must_pass

ENDINGS: dict[str, Callable[[Pipe], None]] = {}
"""The ways in which a wire may end, by name."""


def _ending(function: Callable[[Pipe], None]) -> Callable[[Pipe], None]:
    ENDINGS[function.__name__.replace("_", "-")] = function
    return function


@_ending
def reset(pipe: Pipe) -> None:
    """Both ends are told, and what was under way is lost."""
    pipe.wire.reset()


@_ending
def half_open(pipe: Pipe) -> None:
    """Nothing arrives any more, and neither end is told."""
    pipe.wire.half_open(to_broker=True, to_client=True)


@_ending
def clean_end(pipe: Pipe) -> None:
    """Both halves end in good order; of the other direction everything written arrives before."""
    pipe.queue.clear()
    pipe.wire.clean_end()


@dataclass(frozen=True, slots=True)
class Cut:
    """`wire` (by number) ends when `byte` bytes have arrived in one direction."""

    wire: int
    to_broker: bool
    byte: int
    ending: str

    def __str__(self) -> str:
        return f"wire {self.wire} {'to' if self.to_broker else 'from'} broker byte {self.byte} {self.ending}"

    @classmethod
    def parse(cls, text: str) -> "Cut":
        """Raises `ValueError` where the text is not that of a point."""
        words = text.split()
        if len(words) != 7 or words[2] not in ("to", "from") or words[6] not in ENDINGS:
            raise ValueError(f"no point of a cut: {text!r}")
        return cls(int(words[1]), words[2] == "to", int(words[5]), words[6])


class CutPipe(Pipe):
    """Delivers so many bytes; then the wire ends."""

    __slots__ = ("_cut",)

    def __init__(self, wire: Wire, cut: Cut) -> None:
        super().__init__(wire, cut.to_broker)
        self._cut: Cut | None = cut

    def _hand_over(self, data: bytes) -> None:
        cut = self._cut
        if cut is None or self.arrived + len(data) < cut.byte:
            super()._hand_over(data)
            return
        self._cut = None
        if keep := cut.byte - self.arrived:
            super()._hand_over(data[:keep])
        trace = self.wire.network.trace
        trace.add(self.wire.network.clock.now, "fault", f"cut at {cut}")
        self.lost = True
        ENDINGS[cut.ending](self)


class CutWorld(ScenarioWorld):
    """A scenario in which one wire is cut; None cuts nothing. Remembers how much arrived on each wire."""

    def __init__(self, scenario: Scenario, cut: Cut | None, keep_trace: bool = False) -> None:
        super().__init__(scenario, keep_trace)
        self._cut = cut
        self.wires: list[Wire] = []
        """All there ever were."""
        self.network.make_wire = self._make_wire

    def _make_wire(
        self, network: Network, number: int, client: NetworkEndpoint, link: int, broker: Listener
    ) -> Wire:
        wire = Wire(network, number, client, link, broker)
        cut = self._cut
        if cut is not None and cut.wire == number:
            if cut.to_broker:
                wire.to_broker = CutPipe(wire, cut)
            else:
                wire.to_client = CutPipe(wire, cut)
        self.wires.append(wire)
        return wire


def cuts(scenario: Scenario) -> list[Cut]:
    """Every byte of every wire of the applications, both directions, every ending."""
    world = CutWorld(scenario, None)
    must_pass(world.run(), scenario)
    return [
        Cut(wire.number, pipe.to_broker, byte, ending)
        for ending in ENDINGS
        for wire in world.wires
        if not wire.client.name.startswith("auditor")
        for pipe in (wire.to_broker, wire.to_client)
        for byte in range(pipe.arrived + 1)
    ]
