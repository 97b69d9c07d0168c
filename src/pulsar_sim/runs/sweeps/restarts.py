"""Sweep of restarts: after a chosen event a broker is killed, and starts again over what its store holds.

Owns the points and their worlds. The coordinators of transactions live in a broker, and die with it. Further
points disturb a part of a broker. All topics are unloaded while the coordinators go on. Or a frame of a
coordinator is lost, late, cut off, or answered by a broker that is no coordinator.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from ...engine.clock import MILLISECOND, SECOND
from ...engine.network import Wire
from ...engine.profile import Profile
from ...faults.broker_misbehaviour import TO_BROKER, TO_CLIENT
from ...faults.catalogue import COORDINATOR_FAULTS
from ..scenarios import Scenario, ScenarioWorld, must_pass
from .counting_clock import COUNTED, CountingClock

STORED = {"lost": False, "kept": True}
"""The fate of the write in progress."""

TOLD = {"told": False, "untold": True}
"""The fate of the connections: the clients are told by a reset, or not told because the machine is lost."""

AWAY = {"0ms": 0, "300ms": 300 * MILLISECOND, "3s": 3 * SECOND, "6s": 6 * SECOND}
"""The time until the broker is back: before the first attempt of a client to connect again; after it;
after the operation timeout; and after the timeout of a transaction."""

FRAMES = {
    kind: faults
    for table in (TO_BROKER, TO_CLIENT)
    for kind, misdeeds in table.items()
    if (faults := [each.fault for each in misdeeds if each.fault in COORDINATOR_FAULTS])
}
"""The types of questions to coordinators and of their answers, each with the faults that may strike it."""

OFTEN = (1, 3)
"""The number of frames of coordinators that suffer one after the other."""


@dataclass(frozen=True, slots=True)
class Restart:
    """After the `step`th event a broker is killed. `stored`, `told` and `away` are names of the tables
    above."""

    step: int
    broker: str
    stored: str
    told: str
    away: str

    def __str__(self) -> str:
        return f"restart step {self.step} {self.broker} {self.stored} {self.told} {self.away}"


@dataclass(frozen=True, slots=True)
class Unloading:
    """After the `step`th event all topics are unloaded."""

    step: int

    def __str__(self) -> str:
        return f"unload step {self.step}"


@dataclass(frozen=True, slots=True)
class CoordinatorFault:
    """The `frame`th question to a coordinator, or answer of one, is the first of `times` that a fault
    strikes. Frames are numbered from 1 on; a fault strikes only questions, or only answers."""

    frame: int
    fault: str
    times: int

    def __str__(self) -> str:
        return f"coordinator frame {self.frame} {self.fault} {self.times}"


RestartPoint: TypeAlias = Restart | Unloading | CoordinatorFault

WORDS = ("restart", "unload", "coordinator")
"""The first words of these points."""


def parse(text: str) -> RestartPoint:
    """Raises `ValueError` where the text is not that of a point."""
    match text.split():
        case ["restart", "step", step, broker, stored, told, away] if (
            stored in STORED and told in TOLD and away in AWAY
        ):
            return Restart(int(step), broker, stored, told, away)
        case ["unload", "step", step]:
            return Unloading(int(step))
        case ["coordinator", "frame", frame, fault, times] if fault in COORDINATOR_FAULTS:
            return CoordinatorFault(int(frame), fault, int(times))
    raise ValueError(f"no point of a restart: {text!r}")


class RestartWorld(ScenarioWorld):
    """A scenario with one restart, or what else is a point of this sweep; None changes nothing.

    Raises `ValueError` for a broker that the scenario does not have.
    """

    def __init__(self, scenario: Scenario, point: RestartPoint | None, keep_trace: bool = False) -> None:
        super().__init__(replace(scenario, profile=partial(_with_faults, scenario)), keep_trace)
        self._point = point
        self._by_name = {each.name: each for each in self.brokers}
        if isinstance(point, Restart) and point.broker not in self._by_name:
            raise ValueError(f"{scenario.name} has no broker {point.broker!r}")
        self.counting = CountingClock(self.clock.now, self._after_step)
        self.clock = self.network.clock = self.counting
        self.running: list[list[tuple[str, bool]]] = []
        """Step by step: the brokers that run, each with whether a write is in progress."""
        self.frames: list[int] = []
        """The types of the frames of coordinators, from frame 1 on."""

    def _set_phase(self, phase: str) -> None:
        if phase in ("heal", "check"):
            self._wait_for_brokers()
        super()._set_phase(phase)
        self.counting.active = phase in COUNTED

    def _wait_for_brokers(self) -> None:
        """Healing would start a broker before its time, and the checks need it."""
        longest = max(AWAY.values())
        self._until(lambda: all(each.up for each in self.brokers), 2 * longest, "a broker stays away")

    def _after_step(self, step: int) -> None:
        point = self._point
        if point is None:
            self.running.append([(each.name, each.is_writing) for each in self.brokers if each.up])
        elif isinstance(point, CoordinatorFault) or point.step != step:
            return
        elif isinstance(point, Unloading):
            self._unload_all(point)
        else:
            self._restart(point)

    def _unload_all(self, point: Unloading) -> None:
        self.trace.add(self.clock.now, "fault", str(point))
        for cluster in self.clusters:
            for topic in cluster.owners:
                cluster.unload(topic)

    def _restart(self, point: Restart) -> None:
        self.trace.add(self.clock.now, "fault", str(point))
        broker = self._by_name[point.broker]
        broker.cluster.restart(broker, STORED[point.stored], TOLD[point.told], AWAY[point.away])

    def _suffers(self, point: CoordinatorFault, kind: int) -> bool:
        """True when the fault strikes the frame that is being written."""
        struck = self.faults.get(point.fault, 0)
        return len(self.frames) >= point.frame and struck < point.times and point.fault in FRAMES[kind]

    def _wrote(self, wire: Wire, to_broker: bool, kind: int, command: Any) -> bytes | None:
        if kind in FRAMES:
            self.frames.append(kind)
            point = self._point
            if isinstance(point, CoordinatorFault) and self._suffers(point, kind):
                self.misbehaviour.arm(point.fault, 1)
        return super()._wrote(wire, to_broker, kind, command)


def _with_faults(scenario: Scenario) -> Profile:
    """Name the faults, so that the application with transactions does not count on good weather. None of
    them strikes by itself."""
    profile = scenario.profile()
    profile.faults = ["broker_killed"]
    return profile


def restarts(scenario: Scenario) -> list[RestartPoint]:
    """Every step with every kind of restart of every broker that runs, every step with all topics unloaded,
    and every frame of a coordinator with every fault that may strike it.

    Where no write is in progress, none can be kept.
    """
    world = RestartWorld(scenario, None)
    must_pass(world.run(), scenario)
    return [*_kills(world), *map(Unloading, range(len(world.running))), *_coordinator_faults(world)]


def _kills(world: RestartWorld) -> Iterator[Restart]:
    for told in TOLD:
        for away in AWAY:
            for stored, keeps in STORED.items():
                for step, brokers in enumerate(world.running):
                    for name, writes in brokers:
                        if writes or not keeps:
                            yield Restart(step, name, stored, told, away)


def _coordinator_faults(world: RestartWorld) -> Iterator[CoordinatorFault]:
    for times in OFTEN:
        for frame, kind in enumerate(world.frames, 1):
            for fault in FRAMES[kind]:
                yield CoordinatorFault(frame, fault, times)
