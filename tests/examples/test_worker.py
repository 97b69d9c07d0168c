"""The worker of the examples, as a process of its own that gets real signals."""

import os
import signal
import sys
from pathlib import Path

import pytest
import trio

from pulsar_trio import Client, EmbeddedBroker, open_broker, open_client
from tests.patience import PATIENCE
from tests.trio.waiting import until

WORKER = Path(__file__).parent.parent.parent / "examples" / "worker.py"
COUNT = 300


class Process:
    """A worker; `begun` and `handled` grow while it runs."""

    def __init__(self, broker: EmbeddedBroker, *options: str) -> None:
        arguments = ["--url", broker.url, "--topic", "orders", "--subscription", "s", *options]
        self.command = [sys.executable, "-X", "dev", str(WORKER), *arguments]
        self.begun: list[int] = []
        self.handled: list[int] = []
        self.ready = trio.Event()
        self.errors = b""
        self.process: trio.Process
        self.code: int | None = None

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        self.process = await trio.lowlevel.open_process(self.command, stdout=-1, stderr=-1)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read_errors)
                nursery.start_soon(self._read)
                await self.ready.wait()
                task_status.started()
                self.code = await self.process.wait()
        finally:
            if self.process.returncode is None:
                self.process.kill()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        async for data in self.process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line == b"ready":
                    self.ready.set()
                else:
                    what, number = line.split()
                    {b"begin": self.begun, b"handled": self.handled}[what].append(int(number))

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        async for data in self.process.stderr:
            self.errors += data


async def produce(client: Client, *more: bytes) -> None:
    async with client.create_producer("orders") as producer:  # in batches
        await producer.send_many([*(b"%d" % number for number in range(COUNT)), *more])


async def left(client: Client, topic: str = "orders") -> list[bytes]:
    """Return what the subscription delivers to a new consumer, before anything newer."""
    async with client.subscribe(topic, "s") as consumer, client.create_producer(topic) as producer:
        end = await producer.send(b"end")
        found = []
        async for message in consumer:
            if message.message_id == end:
                break
            found.append(message.data)
        return found


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_well(number: signal.Signals) -> None:
    """Every message whose handler ended before the stop is acknowledged, none is lost, and a second worker
    handles none of them again."""
    with trio.fail_after(PATIENCE):
        async with open_broker() as broker, open_client(broker.url) as client:
            async with trio.open_nursery() as nursery:
                first = Process(broker, "--concurrency", "7", "--work", "0.01")
                await nursery.start(first.run)
                await produce(client)
                await until(lambda: len(first.handled) >= 50)
                first.process.send_signal(number)
            assert (first.code, first.errors) == (0, f"{number.name}: stopping\n".encode())
            assert 50 <= len(first.handled) < COUNT
            assert sorted(first.begun) == sorted(first.handled)
            async with trio.open_nursery() as nursery:
                second = Process(broker, "--work", "0")
                await nursery.start(second.run)
                await until(lambda: len(second.handled) >= COUNT - len(first.handled))
                second.process.send_signal(number)
            assert second.code == 0
            assert sorted(first.handled + second.handled) == list(range(COUNT))
            assert await left(client) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("how", ["the time is over", "a second signal"])
async def test_handlers_that_do_not_end_are_cancelled(how: str) -> None:
    grace = "0.1" if how == "the time is over" else "1000"
    with trio.fail_after(PATIENCE):
        async with open_broker() as broker, open_client(broker.url) as client:
            async with trio.open_nursery() as nursery:
                worker = Process(broker, "--work", "1000", "--grace", grace)
                await nursery.start(worker.run)
                await produce(client)
                await until(lambda: len(worker.begun) == 10)
                worker.process.send_signal(signal.SIGTERM)
                if how == "a second signal":
                    await until(lambda: b"stopping" in worker.errors)
                    worker.process.send_signal(signal.SIGTERM)
            assert worker.code == 1
            assert b"delivered again" in worker.errors
            assert worker.handled == []
            assert len(await left(client)) == COUNT


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
async def test_a_message_of_no_use_is_a_dead_letter() -> None:
    with trio.fail_after(PATIENCE):
        async with open_broker() as broker, open_client(broker.url) as client:
            async with client.subscribe("orders-s-DLQ", "s") as dead, trio.open_nursery() as nursery:
                worker = Process(broker, "--work", "0")
                await nursery.start(worker.run)
                await produce(client, b"nonsense")
                message = await dead.receive()
                assert (message.data, message.properties["error"]) == (b"nonsense", "ValueError")
                await until(lambda: len(worker.handled) >= COUNT)
                worker.process.send_signal(signal.SIGTERM)
            assert worker.code == 0
            assert await left(client) == []
