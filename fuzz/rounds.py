"""A round of hostile peers, for both sides that they attack.

A `Round` has one machine. It gives it one input after the other, and checks that the outputs and the
processor time of each are bounded. It lets time pass, and draws the frames of an attack. The two sides
(`client_side`, `broker_side`) play the peers of the links and act on the machine's outputs.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from fuzz.draws import Draws
from fuzz.mischief import Mischief
from fuzz.reports import Report, Violation
from pulsar_sansio.wire import proto

SECOND = 1_000_000_000
WALL = 1_700_000_000_000

MAX_OUTPUTS = 60
"""Outputs that one input may bring, besides `OUTPUTS_PER_FRAME` for each frame in it."""

OUTPUTS_PER_FRAME = 3

SLOW = 5.0
"""Seconds of processor time that no input may take, on any machine."""


class Machine(Protocol):
    """The methods of both client and broker that a round needs."""

    def handle_deadline(self, now: int) -> None: ...
    def next_deadline(self) -> int | None: ...


class Attack(NamedTuple):
    """One to three frames, whole or in pieces."""

    label: str
    frames: int
    pieces: list[bytes]

    def frames_in(self, piece: bytes) -> int:
        """The most frames that a piece may hold. A wrong length may turn its rest into further frames."""
        return self.frames + len(piece) // 12


class Round(ABC):
    """One machine under attack."""

    side: ClassVar[str]
    frames_when_due: ClassVar[int]
    """The number of frames whose outputs one deadline may bring."""
    mischief: Mischief

    def __init__(self, draws: Draws, report: Report) -> None:
        self.draws = draws
        self.report = report
        self.now = 1_000 * SECOND
        self.label = "opening"

    @property
    @abstractmethod
    def machine(self) -> Machine:
        """The root that is attacked."""

    @abstractmethod
    def _drain(self) -> Sequence[object]:
        """Take all outputs there are; what is taken counts as brought by the input before."""

    @abstractmethod
    def _follow(self, outputs: Sequence[Any], frames: int) -> None:
        """Do what the outputs lead to, as far as it is no part of the input."""

    def _step(self, label: str, act: Callable[..., object], *arguments: Any, frames: int = 0) -> None:
        """One input of so many frames, checked; then what its outputs lead to."""
        self.label = label
        before = time.process_time()
        act(*arguments)
        outputs = self._drain()
        took = time.process_time() - before
        self.report.took(took, label)
        if took > SLOW:
            raise Violation(f"{label}: one input took {took:.1f} s")
        self.report.outputs = max(self.report.outputs, len(outputs))
        if len(outputs) > MAX_OUTPUTS + OUTPUTS_PER_FRAME * frames:
            raise Violation(f"{label}: one input of {frames} frames brought {len(outputs)} outputs")
        self._follow(outputs, frames)

    def _draw_attack(self) -> Attack:
        draws, report = self.draws, self.report
        count = 1 if draws.chance(80) else 3
        made = [self.mischief.next() for _ in range(count)]
        data = b"".join(hostile.data for hostile in made)
        report.frames += count
        report.bytes += len(data)
        pieces = [data]
        if draws.chance(15) and len(data) > 1:
            place = draws.below(len(data))
            pieces = [data[:place], data[place:]]
        return Attack(" + ".join(hostile.label for hostile in made), count, pieces)

    def _advance(self, seconds: float) -> None:
        end = self.now + round(seconds * SECOND)
        while (due := self.machine.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self._tick()
        self.now = end

    def _tick(self) -> None:
        """Handle the deadlines that are due now. They may bring more at once, but not without end."""
        for _ in range(20):
            self._step("time", self.machine.handle_deadline, self.now, frames=self.frames_when_due)
            due = self.machine.next_deadline()
            if due is None or due > self.now:
                return
        raise Violation(f"the {self.side} is due again and again without time passing")

    def _count_round(self) -> None:
        """A round is over and nothing was wrong."""
        self.report.kinds += self.mischief.kinds
        self.report.cases += self.mischief.cases
        self.report.rounds += 1


def name_of(kind: int) -> str:
    """A command's name in the protocol."""
    return proto.BaseCommand.Type.Name(proto.BaseCommand.Type.ValueType(kind))
