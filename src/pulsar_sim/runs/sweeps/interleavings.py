"""Sweep of interleavings: another event than the earliest happens first."""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop

from ...engine.clock import MILLISECOND, Clock
from ...engine.failures import Outcome
from ...world.world import SeedReport
from ..scenarios import Scenario, ScenarioWorld

WINDOW = 20 * MILLISECOND
"""Nanoseconds after the earliest event within which any other due event could as well happen first."""

DEPTH = 60
"""Choices of one run that are varied; what comes later happens in order."""

DEVIATIONS = 2
"""Choices of one run that are not the earliest event."""


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
