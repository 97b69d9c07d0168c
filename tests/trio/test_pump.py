"""The pump by itself: what is due when the machine is listened to needs no turn of the event loop."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from pulsar_sansio import PulsarError
from pulsar_trio.pump import Pump


class Machine:
    """Says what is in `says`, then has a deadline for each of `deadlines`, and says which one it was."""

    def __init__(self, says: list[str], deadlines: list[int]) -> None:
        self.says: deque[Any] = deque(says)
        self.deadlines = deadlines

    @property
    def has_output(self) -> bool:
        return bool(self.says)

    def receive_data(self, now: int, link: int, data: bytes) -> None:
        raise AssertionError

    def receive_eof(self, now: int, link: int) -> None:
        raise AssertionError

    def disconnected(self, now: int, link: int, reason: str) -> None:
        raise AssertionError

    def handle_deadline(self, now: int) -> None:
        self.says.append(f"due at {self.deadlines.pop(0)}")

    def next_output(self) -> Any:
        return self.says.popleft() if self.says else None

    def data_to_send(self, link: int) -> Sequence[bytes]:
        raise AssertionError

    def next_deadline(self) -> int | None:
        return self.deadlines[0] if self.deadlines else None


class Listening(Pump):
    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine
        self.heard: list[str] = []
        self.actions = {str: self.heard.append}

    def _on_crash(self, failure: PulsarError) -> None:
        raise AssertionError


async def test_what_is_due_is_done_at_once_and_the_rest_in_its_time() -> None:
    machine = Machine(["first"], [])
    pump = Listening(machine)
    now = pump.tick
    machine.deadlines += [now - 1, now, now + 1]
    pump.pump()
    assert pump.heard == ["first", f"due at {now - 1}", f"due at {now}"]
    assert machine.next_deadline() == now + 1
