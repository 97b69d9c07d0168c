"""Sweep of timers: after a chosen event every machine is woken too early, or too late."""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush

from ...engine.clock import MILLISECOND, SECOND
from ...engine.nodes.client_node import Timer
from ..scenarios import Scenario, ScenarioWorld, must_pass
from .counting_clock import COUNTED, CountingClock

EARLY = "early"

LATE = {"1ms": MILLISECOND, "30ms": 30 * MILLISECOND, "400ms": 400 * MILLISECOND, "3s": 3 * SECOND}

WHOSE = ("all", "clients", "brokers")


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


class NudgingClock(CountingClock):
    """Holds wake-ups back."""

    __slots__ = ("held_until", "nudge")

    def __init__(self, start: int, nudge: Nudge | None, after_step: Callable[[int], None]) -> None:
        super().__init__(start, after_step)
        self.nudge = nudge
        self.held_until = 0

    def step(self) -> bool:
        heap = self._heap
        while heap and heap[0][0] < self.held_until and self._is_held(heap[0][2]):
            _, number, action, arguments = heappop(heap)
            heappush(heap, (self.held_until, number, action, arguments))
        return super().step()

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
        self.nudging = NudgingClock(self.clock.now, nudge, self._after_step)
        self.clock = self.network.clock = self.nudging

    def _set_phase(self, phase: str) -> None:
        super()._set_phase(phase)
        self.nudging.active = phase in COUNTED

    def _after_step(self, step: int) -> None:
        nudge = self.nudging.nudge
        if nudge is not None and step == nudge.step:
            self._nudge(nudge)

    def _nudge(self, nudge: Nudge) -> None:
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
