"""Sweeps: the same short conversation again and again, each time with one thing different.

Owns the points at which something can be different, and the worlds in which it is. *Cut*: a wire ends when a
chosen number of bytes has arrived in a chosen direction, by a reset, in silence, or in good order. *Timers*:
after a chosen event every machine is woken too early, or too late. *Credentials*: those of a connection
expire when a chosen number of bytes has arrived (`expiries`). *Interleavings*: of all that could happen next,
something else than the earliest does. Everything is checked as in any world, so a point passes or names
the invariant that is broken; its text is enough to run it again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from ..engine.client_node import Timer
from ..engine.clock import MILLISECOND, SECOND, Clock
from ..engine.failures import Outcome
from ..engine.network import Endpoint, Listener, Network, Pipe, Wire
from ..world.world import SeedReport
from .expiries import ExpiringWorld, Expiry, expiries
from .scenarios import SCENARIOS, Scenario, ScenarioWorld, must_pass

KINDS = ("cut", "timers", "credentials", "interleavings")

ENDINGS: dict[str, Callable[[Pipe], None]] = {}
"""The ways in which a wire may end, by name."""

EARLY = "early"

LATE = {"1ms": MILLISECOND, "30ms": 30 * MILLISECOND, "400ms": 400 * MILLISECOND, "3s": 3 * SECOND}

WHOSE = ("all", "clients", "brokers")

WINDOW = 20 * MILLISECOND
"""Nanoseconds after the earliest event within which any other due event could as well happen first."""

DEPTH = 60
"""Choices of one run that are varied; what comes later happens in order."""

DEVIATIONS = 2
"""Choices of one run that are not the earliest event."""


@dataclass(slots=True)
class SweepReport:
    """The results of one scenario under one kind of sweep."""

    scenario: str
    kind: str
    points: int = 0
    """The number of points that the scenario has."""
    runs: int = 0
    """The number of points that the sweep tried."""
    complete: bool = False
    """True when the sweep tried all points."""
    failures: list[tuple[str, SeedReport]] = field(default_factory=list)
    """Points, as text, and what happened."""
    _traces: set[str] = field(default_factory=set)

    @property
    def distinct(self) -> int:
        """The number of different runs: some orders differ only in events that do nothing."""
        return len(self._traces)

    @property
    def outcome(self) -> Outcome:
        return min((report.outcome for _, report in self.failures), default=Outcome.PASSED)

    def as_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "kind": self.kind,
            "points": self.points,
            "runs": self.runs,
            "distinct": self.distinct,
            "complete": self.complete,
            "failures": [
                {
                    "point": point,
                    "outcome": report.outcome.name.lower(),
                    "phase": report.phase,
                    "rule": report.rule,
                    "text": report.text,
                }
                for point, report in self.failures
            ],
        }


# --- cut ------------------------------------------------------------------------------------------------


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
        self, network: Network, number: int, client: Endpoint, link: int, broker: Listener
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


# --- timers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nudge:
    """After the `step`th event machines are woken, whatever they wait for; or those that have to be woken
    next are left asleep for too long. `whose`: the timers of clients, of brokers, or of all."""

    step: int
    whose: str
    moment: str

    def __str__(self) -> str:
        return f"step {self.step} timers of {self.whose} {self.moment}"

    @classmethod
    def parse(cls, text: str) -> "Nudge":
        """Raises `ValueError` where the text is not that of a point."""
        words = text.split()
        if len(words) != 6 or words[4] not in WHOSE or words[5] not in (EARLY, *LATE):
            raise ValueError(f"no point of the timers: {text!r}")
        return cls(int(words[1]), words[4], words[5])


class NudgingClock(Clock):
    """Counts the steps of a scenario, and holds wake-ups back."""

    __slots__ = ("active", "held_until", "nudge", "steps", "when_reached")

    def __init__(self, start: int, nudge: Nudge | None, when_reached: Callable[[], None]) -> None:
        super().__init__(start)
        self.nudge = nudge
        self.when_reached = when_reached
        self.active = False
        self.steps = 0
        self.held_until = 0

    def step(self) -> bool:
        heap = self._heap
        while heap and heap[0][0] < self.held_until and self._is_held(heap[0][2]):
            _, number, action, arguments = heappop(heap)
            heappush(heap, (self.held_until, number, action, arguments))
        found = super().step()
        if self.active:
            if self.nudge is not None and self.steps == self.nudge.step:
                self.when_reached()
            self.steps += 1
        return found

    def _is_held(self, action: Callable[..., None]) -> bool:
        timer = getattr(action, "__self__", None)
        assert self.nudge is not None
        return isinstance(timer, Timer) and _concerns(self.nudge, timer.name)


def _concerns(nudge: Nudge, name: str) -> bool:
    """Tell whether a machine of that name is meant."""
    return nudge.whose == "all" or name.startswith("broker") is (nudge.whose == "brokers")


class NudgedWorld(ScenarioWorld):
    """A scenario in which timers fire too early or too late once; None changes nothing."""

    def __init__(self, scenario: Scenario, nudge: Nudge | None, keep_trace: bool = False) -> None:
        super().__init__(scenario, keep_trace)
        self.nudging = NudgingClock(self.clock.now, nudge, self._nudge)
        self.clock = self.network.clock = self.nudging

    def _set_phase(self, phase: str) -> None:
        super()._set_phase(phase)
        self.nudging.active = phase in ("run", "heal", "drain", "close")

    def _nudge(self) -> None:
        nudge = self.nudging.nudge
        assert nudge is not None
        now = self.clock.now
        self.trace.add(now, "fault", f"timers of {nudge.whose} {nudge.moment}")
        if nudge.moment in LATE:
            self.nudging.held_until = now + LATE[nudge.moment]
            return
        for broker in self.brokers:
            if broker.broker is not None and _concerns(nudge, broker.name):
                broker.wake()
        for host in self.hosts:
            if host.node.alive and _concerns(nudge, host.node.name):
                host.node.wake()


def nudges(scenario: Scenario) -> list[Nudge]:
    """Every step, with all timers fired early or held back; on time is the scenario itself."""
    world = NudgedWorld(scenario, None)
    must_pass(world.run(), scenario)
    return [
        Nudge(step, whose, moment)
        for moment in (EARLY, *LATE)
        for whose in WHOSE
        for step in range(world.nudging.steps)
    ]


# --- interleavings ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """The choices of a run at which another event than the earliest happens next."""

    choices: tuple[tuple[int, int], ...] = ()
    """(number of the choice, which event: 1 is the second earliest)."""

    def __str__(self) -> str:
        return "order " + (",".join(f"{number}:{which}" for number, which in self.choices) or "of time")

    @classmethod
    def parse(cls, text: str) -> "Order":
        """Raises `ValueError` where the text is not that of a point."""
        if text == "order of time":
            return cls()
        word, _, rest = text.partition(" ")
        if word != "order":
            raise ValueError(f"no order: {text!r}")
        pairs = (pair.split(":") for pair in rest.split(","))
        return cls(tuple((int(number), int(which)) for number, which in pairs))


class ChoosingClock(Clock):
    """A clock whose order may choose another event than the earliest of those due within the window.

    No event happens before its time: the clock goes on to the chosen one, and events passed over are late.
    """

    __slots__ = ("_order", "active", "branches", "depth")

    def __init__(self, start: int, order: Order, depth: int) -> None:
        super().__init__(start)
        self._order = dict(order.choices)
        self.active = False
        self.depth = depth
        self.branches: list[int] = []
        """The number of events to choose from, choice by choice."""

    def step(self) -> bool:
        if not self.active or len(self.branches) >= self.depth or len(self._heap) < 2:
            return self._do(0)
        limit = self._heap[0][0] + WINDOW
        at_hand = sorted(entry[:2] for entry in self._heap if entry[0] <= limit)
        if len(at_hand) < 2:
            return self._do(0)
        which = min(self._order.get(len(self.branches), 0), len(at_hand) - 1)
        self.branches.append(len(at_hand))
        return self._do(which and at_hand[which][1])

    def _do(self, count: int) -> bool:
        """Run the event with this number of scheduling; 0 the earliest."""
        if not self._heap:
            return False
        if count:
            index = next(at for at, entry in enumerate(self._heap) if entry[1] == count)
            when, _, action, arguments = self._heap.pop(index)
            heapify(self._heap)
        else:
            when, _, action, arguments = heappop(self._heap)
        self.now = max(self.now, when)
        self.events += 1
        action(*arguments)
        return True


class OrderWorld(ScenarioWorld):
    """A scenario whose events happen in a chosen order, from the moment the applications begin."""

    def __init__(
        self, scenario: Scenario, order: Order, depth: int = DEPTH, keep_trace: bool = False
    ) -> None:
        super().__init__(scenario, keep_trace)
        self.chooser = ChoosingClock(self.clock.now, order, depth)
        self.clock = self.network.clock = self.chooser

    def _set_phase(self, phase: str) -> None:
        super()._set_phase(phase)
        self.chooser.active = phase == "run"


class Orders:
    """All orders of a scenario with so many deviations among the first choices, each once."""

    def __init__(self, scenario: Scenario, depth: int = DEPTH, deviations: int = DEVIATIONS) -> None:
        self._scenario = scenario
        self._depth = depth
        self._deviations = deviations
        self._todo = [Order()]

    @property
    def waiting(self) -> int:
        """Orders that are known and were not run yet."""
        return len(self._todo)

    def __iter__(self) -> Iterator[tuple[Order, SeedReport]]:
        """Runs each order. Deviations behind the last one of an order make the orders that follow from it;
        one that fails is not followed."""
        todo = self._todo
        while todo:
            order = todo.pop()
            world = OrderWorld(self._scenario, order, self._depth)
            report = world.run()
            if len(order.choices) < self._deviations and report.outcome is Outcome.PASSED:
                first = order.choices[-1][0] + 1 if order.choices else 0
                branches = world.chooser.branches
                todo += [
                    Order((*order.choices, (number, which)))
                    for number in range(len(branches) - 1, first - 1, -1)
                    for which in range(1, branches[number])
                ]
            yield order, report


# --- all together -------------------------------------------------------------------------------------------


def find(name: str) -> Scenario:
    """Raises `ValueError` where there is no such scenario."""
    found = SCENARIOS.get(name)
    if found is None:
        raise ValueError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return found


def run_point(scenario: Scenario, point: str, keep_trace: bool = False) -> SeedReport:
    """One point again, by its text. Raises `ValueError` for a text that names none."""
    word = point.partition(" ")[0]
    if word == "wire":
        return CutWorld(scenario, Cut.parse(point), keep_trace).run()
    if word == "expiry":
        return ExpiringWorld(scenario, Expiry.parse(point), keep_trace).run()
    if word == "step":
        return NudgedWorld(scenario, Nudge.parse(point), keep_trace).run()
    if word == "order":
        return OrderWorld(scenario, Order.parse(point), keep_trace=keep_trace).run()
    raise ValueError(f"no point: {point!r}")


def sweep(
    scenario: Scenario,
    kind: str,
    every: int = 1,
    first: int = 0,
    enough: Callable[[], bool] = lambda: False,
    depth: int = DEPTH,
    deviations: int = DEVIATIONS,
    watch: Callable[[SweepReport, int], None] = lambda report, chosen: None,
) -> SweepReport:
    """Sweep one scenario in one way: every `every`th point from `first` on, until it is enough.

    For interleavings it runs all orders with at most `deviations` among the first `depth` choices. Then
    `points` is the number of orders found so far, since each run shows more of them.

    It calls `watch` after each point, with the number of points to run, as far as that is known.
    """
    report = SweepReport(scenario.name, kind)
    if kind == "interleavings":
        orders = Orders(scenario, depth, deviations)
        for order, result in orders:
            report.points = report.runs + 1 + orders.waiting
            _count(report, str(order), result)
            watch(report, report.points)
            if orders.waiting and enough():
                return report
    else:
        points = POINTS[kind](scenario)
        report.points = len(points)
        chosen = points[first::every]
        for point in chosen:
            if enough():
                return report
            _count(report, str(point), run_point(scenario, str(point)))
            watch(report, len(chosen))
    report.complete = report.runs == report.points
    return report


POINTS: dict[str, Callable[[Scenario], Sequence[object]]] = {
    "cut": cuts,
    "timers": nudges,
    "credentials": expiries,
}
"""The points of each kind of sweep; those of interleavings are found one by one."""


def _count(report: SweepReport, point: str, result: SeedReport) -> None:
    report.runs += 1
    report._traces.add(result.trace_hash)
    if result.outcome is not Outcome.PASSED:
        report.failures.append((point, result))
