"""`Consumer.run_transactions` on both brokers: each input has one output, whatever happens in the middle."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
import trio

from pulsar_trio import BatchReceivePolicy, Client, Consumer, Message, Producer, Transaction, open_client
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import rest

from .brittle_line import BrittleLine, brittle_line

pytestmark = pytest.mark.slow

KINDS = ["exclusive", "failover", "shared", "key_shared"]
IN_ORDER = ("exclusive", "failover")

CLIENT: dict[str, Any] = {"transactions": True, "initial_backoff": 0.02, "max_backoff": 0.2}


@pytest.fixture(autouse=True)
def _real_brokers_repeat(request: pytest.FixtureRequest, real_or_none: object) -> None:
    """A real Pulsar may deliver messages that an open transaction acknowledged over an earlier connection,
    and deliver them again after its abort, or after its commit."""
    if real_or_none is not None:
        request.node.add_marker(pytest.mark.breaks("CHECK-67", "NACK-03", why="a real broker repeats"))


class Transform:
    """A handler that sends every message on. Each `failing`th call raises behind its sends."""

    def __init__(self, producer: Producer, failing: int = 0) -> None:
        self._producer = producer
        self._calls = count(1)
        self._failing = failing
        self.sizes: set[int] = set()

    async def __call__(self, messages: Sequence[Message], transaction: Transaction) -> None:
        self.sizes.add(len(messages))
        receipts = [
            await self._producer.enqueue(message.data + b"!", transaction=transaction, key=message.key)
            for message in messages
        ]
        for receipt in receipts:
            await receipt.wait()
        if self._failing and next(self._calls) % self._failing == 0:
            raise ZeroDivisionError("a handler that fails")


@asynccontextmanager
async def worker(
    url: str, topic: str, kind: Any, *, failing: int = 0, **options: Any
) -> AsyncIterator[tuple[Consumer, Transform]]:
    """A client with a consumer of `topic`, and a handler that sends to `topic`-out."""
    async with (
        open_client(url, **CLIENT) as client,
        client.create_producer(f"{topic}-out") as producer,
        client.subscribe(topic, "s", kind, initial_position="earliest", **options) as consumer,
    ):
        yield consumer, Transform(producer, failing)


class Ends:
    """The inputs and outputs of workers, on a client that nothing disturbs."""

    def __init__(self, source: Producer, result: Consumer) -> None:
        self._source = source
        self._result = result
        self.out: list[bytes] = []

    async def send(self, numbers: range) -> None:
        for number in numbers:
            await self._source.enqueue(b"%d" % number, key=str(number % 5))
        await self._source.flush()

    async def until(self, many: int) -> None:
        """Wait for so many outputs."""
        while len(self.out) < many:
            self.out += [message.data for message in await self._result.receive_many()]

    async def check(self, many: int, in_order: bool) -> None:
        """Check that each number from 0 on has one output."""
        await self.until(many)
        self.out += [message.data for message in await rest(self._result)]
        expected = [b"%d!" % number for number in range(many)]
        assert (self.out if in_order else sorted(self.out, key=lambda data: int(data[:-1]))) == expected


@asynccontextmanager
async def ends(client: Client, topic: str, **options: Any) -> AsyncIterator[Ends]:
    async with (
        client.create_producer(topic, **options) as source,
        client.subscribe(f"{topic}-out", "check", "exclusive") as result,
    ):
        yield Ends(source, result)


def breaking(kind: str) -> tuple[int, int]:
    """Return after how many pieces a line breaks: a Failover consumer is active only after a second."""
    return (40, 150) if kind == "failover" else (3, 80)


def breaks(kind: str) -> int:
    """Return how often a line breaks in a test."""
    return 4 if kind == "failover" else 12


@pytest.mark.parametrize("kind", KINDS)
async def test_handlers_that_fail(broker: BrokerUnderTest, client: Client, topic: str, kind: Any) -> None:
    """TXN-02: nothing is delivered of what a failed handler has sent, and its messages are handled again."""
    async with ends(client, topic) as both, worker(broker.url, topic, kind, failing=3) as (consumer, handler):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.run_transactions, handler)
            for start in range(0, 50, 10):
                await both.send(range(start, start + 10))
            await both.check(50, kind in IN_ORDER)
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", KINDS)
async def test_connections_that_break(
    broker: BrokerUnderTest, client: Client, nursery: trio.Nursery, topic: str, kind: Any
) -> None:
    """TXN-02: a lost question or answer repeats a transaction, and neither loses nor repeats messages."""
    line = await brittle_line(broker, nursery)
    async with ends(client, topic) as both, worker(line.url, topic, kind, failing=11) as (consumer, handler):
        async with trio.open_nursery() as running:
            running.start_soon(lambda: consumer.run_transactions(handler, max_messages=15))
            line.break_often(*breaking(kind))
            sent = 0
            while line.breaks < breaks(kind):
                await both.send(range(sent, sent + 10))
                sent += 10
                await both.until(sent - 50)
            await both.until(sent)
            line.break_often(0, 0)
            await both.check(sent, kind in IN_ORDER)
            running.cancel_scope.cancel()


@pytest.mark.parametrize("kind", KINDS)
async def test_workers_that_are_killed(
    broker: BrokerUnderTest, client: Client, nursery: trio.Nursery, topic: str, kind: Any
) -> None:
    """TXN-02: a killed worker leaves its transaction open; the next one continues when it has timed out."""

    async def work(line: BrittleLine, *, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope() as scope:
            task_status.started(scope)
            async with worker(line.url, topic, kind) as (consumer, handler):
                await consumer.run_transactions(handler, max_messages=7, timeout=2.0)

    async with ends(client, topic, batching=None) as both:
        sent = 0
        for pieces in (1, 2, 3, 5, 8):
            line = await brittle_line(broker, nursery)
            async with trio.open_nursery() as running:
                scope = await running.start(work, line)
                await both.send(range(sent, sent + 20))
                sent += 20
                await both.until(sent - 12)
                line.break_often(pieces, pieces)
                if len(both.out) < sent:
                    await line.broke.wait()
                line.die()
                scope.cancel()
        async with worker(broker.url, topic, kind) as (consumer, handler):
            async with trio.open_nursery() as running:
                running.start_soon(consumer.run_transactions, handler)
                await both.check(sent, kind in IN_ORDER)
                running.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["failover", "shared", "key_shared"])
async def test_two_workers(
    broker: BrokerUnderTest, client: Client, nursery: trio.Nursery, topic: str, kind: Any
) -> None:
    """TXN-02: messages that a lost connection brings to the other worker are handled once."""
    lines = [await brittle_line(broker, nursery) for _ in range(2)]
    async with (
        ends(client, topic, batching=None) as both,
        worker(lines[0].url, topic, kind) as (one, handler),
        worker(lines[1].url, topic, kind) as (two, other),
        trio.open_nursery() as running,
    ):
        running.start_soon(lambda: one.run_transactions(handler, max_messages=5))
        running.start_soon(lambda: two.run_transactions(other, max_messages=5))
        for line in lines:
            line.break_often(*breaking(kind))
        sent = 0
        while sum(line.breaks for line in lines) < breaks(kind):
            await both.send(range(sent, sent + 10))
            sent += 10
            await both.until(sent - 50)
        await both.until(sent)
        for line in lines:
            line.break_often(0, 0)
        await both.check(sent, kind == "failover")
        running.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
async def test_partitions(
    broker: BrokerUnderTest, client: Client, nursery: trio.Nursery, topic: str, kind: Any
) -> None:
    """TXN-02: a transaction has messages of several partitions."""
    await broker.create_partitioned_topic(topic, 3)
    line = await brittle_line(broker, nursery)
    many = 150
    async with ends(client, topic) as both, worker(line.url, topic, kind, failing=5) as (consumer, handler):
        async with trio.open_nursery() as running:
            running.start_soon(consumer.run_transactions, handler)
            line.break_often(20, 120)
            for start in range(0, many, 15):
                await both.send(range(start, start + 15))
            await both.until(many)
            line.break_often(0, 0)
            await both.check(many, in_order=False)
            running.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
async def test_batches_of_producers_are_not_divided(
    broker: BrokerUnderTest, client: Client, topic: str, kind: Any
) -> None:
    """TXN-02: a broker may not keep acknowledgements of a part, so a commit would bring the rest again."""
    policy = BatchReceivePolicy(max_messages=4, timeout=0.2)
    async with ends(client, topic) as both:
        async with worker(broker.url, topic, kind, batch_receive=policy) as (consumer, handler):
            async with trio.open_nursery() as running:
                running.start_soon(lambda: consumer.run_transactions(handler, max_messages=2))
                for start in range(0, 60, 10):
                    await both.send(range(start, start + 10))
                await both.until(60)
                running.cancel_scope.cancel()
        async with worker(broker.url, topic, kind) as (consumer, _):
            assert await rest(consumer) == []
        await both.check(60, kind == "exclusive")
        assert handler.sizes == {10}
