"""The pump by itself: what is due needs no turn of the event loop, and how failures end."""

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import BrokerConfig, MemoryStore, PulsarError, TlsError, broker_outputs
from pulsar_trio import InternalError, open_broker, open_client
from pulsar_trio.broker.server import BrokerDriver
from pulsar_trio.transport.link import Link
from pulsar_trio.transport.pump import Pump


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

    def disconnected(self, now: int, link: int, reason: str | TlsError) -> None:
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


class Failing(Machine):
    """Cannot say what is to be written."""

    def data_to_send(self, link: int) -> Sequence[bytes]:
        raise RuntimeError("planted")

    def handle_deadline(self, now: int) -> None:
        raise AssertionError("the machine has failed")


class Notebook(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Sequence[Any]] = []

    def write(self, records: Sequence[Any]) -> None:
        self.writes.append(records)


async def test_a_machine_that_fails_in_the_loop_is_not_obeyed_any_more() -> None:
    """A last write that fails ends everything: neither what was said before it nor what is due is done."""
    store = Notebook()
    driver = BrokerDriver(BrokerConfig(service_url="pulsar://test"), store, store.load(), 1)
    machine = Failing([], [driver.tick])
    machine.says += [broker_outputs.Disconnect(7, "planted"), broker_outputs.Persist(1, [])]
    driver.machine = machine  # type: ignore[assignment]
    driver.links[7] = Link(driver.buffer, partial(driver.take, 7))
    driver.fact(lambda now: None)
    assert isinstance(driver.failure, InternalError)
    assert store.writes == []
    assert len(machine.says) == 1
    assert driver.take(8) == ()


class Keeping(Listening):
    def _on_crash(self, failure: PulsarError) -> None:
        self.heard.append("crash")


@pytest.mark.parametrize("kind", ["link", "peer", "task"])
async def test_a_task_that_fails_while_the_pump_stops_is_logged_and_nothing_is_raised(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its nursery raises the failure and the cancellation in one group."""
    pump = Keeping(Machine([], []))
    fail = trio.Event()

    async def fails() -> None:
        await fail.wait()
        raise RuntimeError("planted")

    async def task() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)
            await trio.sleep_forever()
        return ""

    async def without_result() -> None:
        await task()

    async with trio.open_nursery() as nursery:
        await nursery.start(pump.run)
        match kind:
            case "link":
                pump.start_link(1, Link(pump.buffer, tuple), task, "it")
            case "peer":
                pump.start_peer(without_result, "it")
            case _:
                pump.start_task(without_result, "it")
        await trio.testing.wait_all_tasks_blocked()
        fail.set()
        pump.stop()
    assert pump.heard == (["crash"] if kind == "task" else [])
    (logged,) = caplog.records
    assert logged.exc_info is not None
    assert isinstance(logged.exc_info[1], ExceptionGroup)
    assert repr(logged.exc_info[1].exceptions[0]) == "RuntimeError('planted')"


@pytest.mark.parametrize("of", ["broker", "client"])
async def test_a_command_raises_what_fails_while_it_is_written(
    of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link keeps the failure to itself; the command's caller must not think that all is well."""

    def fail(link: int) -> Sequence[bytes]:
        raise RuntimeError("planted")

    with pytest.raises(InternalError, match="planted"):
        async with open_broker() as broker, open_client(broker.url) as client:
            await client.partitions("t")
            driver: Any = broker._driver if of == "broker" else client._driver
            monkeypatch.setattr(driver.machine, "data_to_send", fail)
            driver.unwritten += driver.links.values()
            with pytest.raises(InternalError, match="planted"):
                driver.command(lambda now: None)
