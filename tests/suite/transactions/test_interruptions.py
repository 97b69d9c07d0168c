"""Brokers, coordinators and clients that go away while a transaction is open, or while it ends.

Whatever the client reports must be so. A commit that returns has taken effect everywhere, and one that was
aborted nowhere. One whose outcome is unknown has taken effect everywhere or nowhere.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import trio

from pulsar_sansio import TransactionNotOpen, TransactionOutcomeUnknown, TransactionTimedOut
from pulsar_trio import Client, Consumer, Producer, open_client
from pulsar_trio.client.transaction import Transaction
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import Interruption, cut, kill_and_start, rest, unload
from tests.suite.line import Line
from tests.suite.transactions.deaf_line import DeafLine

pytestmark = pytest.mark.slow

ASSIGN_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"
"""The topic that stands for the transaction coordinator."""

OUTPUTS = 2
COUNT = 3
"""Messages of a transaction in each output."""


@pytest.fixture
async def line(broker: BrokerUnderTest, nursery: trio.Nursery) -> DeafLine:
    line = await nursery.start(DeafLine(broker).run)
    assert isinstance(line, DeafLine)
    return line


@pytest.fixture
async def client(line: DeafLine) -> AsyncIterator[Client]:
    async with open_client(line.url, transactions=True, max_backoff=0.5, operation_timeout=120) as client:
        yield client


class Pipeline:
    """A consumer of one message and producers of two outputs, whose transaction is interrupted."""

    def __init__(self, client: Client, topic: str, source: Producer, consumer: Consumer) -> None:
        self.client = client
        self.topic = topic
        self.source = source
        self.consumer = consumer
        self.outputs: list[Producer] = []
        self.results: list[Consumer] = []

    async def open_output(self, stack: AsyncExitStack, topic: str) -> None:
        self.results.append(await stack.enter_async_context(self.client.subscribe(topic, "s")))
        producer = self.client.create_producer(topic, batching=None, send_timeout=0)
        self.outputs.append(await stack.enter_async_context(producer))

    async def fill(self, transaction: Transaction) -> None:
        """Acknowledge the input, and send to all outputs, in the transaction."""
        message = await self.consumer.receive()
        assert message.data == b"input"
        self.consumer.acknowledge(message, transaction=transaction)
        for producer in self.outputs:
            for number in range(COUNT):
                await producer.send(b"%d" % number, transaction=transaction)

    async def took_effect(self, count: int = COUNT) -> bool:
        """Return whether the transaction of `count` messages for each output did, everywhere, once it has
        ended; fail where it did in part."""
        found: list[list[bytes]] = []
        for producer, result in zip(self.outputs, self.results, strict=True):
            await producer.send(b"after")
            found.append([])
            while (payload := (await result.receive()).data) != b"after":
                found[-1].append(payload)
        await self.source.send(b"after")
        await self._receive_after()  # Before it, the broker may redeliver the input.
        self.consumer.redeliver_unacknowledged()
        inputs = await self._receive_after()
        inputs |= {message.data for message in await rest(self.consumer, 1.0)}
        committed = [b"%d" % number for number in range(count)]
        outputs = [list(dict.fromkeys(each)) for each in found]
        if b"input" in inputs:
            assert outputs == [[]] * OUTPUTS
            return False
        assert outputs == [committed] * OUTPUTS
        return True

    async def _receive_after(self) -> set[bytes]:
        """Return the inputs up to `after`."""
        inputs: set[bytes] = set()
        while b"after" not in inputs:
            inputs.add((await self.consumer.receive()).data)
        return inputs


@pytest.fixture
async def pipeline(client: Client, topic: str) -> AsyncIterator[Pipeline]:
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(client.create_producer(topic, send_timeout=0))
        consumer = await stack.enter_async_context(client.subscribe(topic, "s", "shared"))
        pipeline = Pipeline(client, topic, source, consumer)
        for number in range(OUTPUTS):
            await pipeline.open_output(stack, f"{topic}-out-{number}")
        await source.send(b"input")
        yield pipeline


async def reported(commit: Callable[[], Awaitable[None]]) -> bool | None:
    """Commit; return whether it took effect as the client says, None for an unknown outcome."""
    try:
        await commit()
    except TransactionTimedOut:
        return False
    except TransactionOutcomeUnknown:
        return None
    return True


async def end_while(pipeline: Pipeline, line: DeafLine, lost: str, interrupt: Interruption) -> None:
    """Commit, and interrupt once END_TXN was sent; the report must be true."""
    async with pipeline.client.transaction() as transaction:
        await pipeline.fill(transaction)
        line.lose(lost)
        outcomes: list[bool | None] = []

        async def commit() -> None:
            outcomes.append(await reported(transaction.commit))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit)
            while not line.has_lost:  # noqa: ASYNC110
                await trio.sleep(0.001)
            await interrupt(line, pipeline.topic)
    [outcome] = outcomes
    effective = await pipeline.took_effect()
    assert outcome in (None, effective)


@pytest.mark.parametrize("lost", ["question", "answer"])
@pytest.mark.parametrize("interrupt", [cut, kill_and_start])
async def test_the_end_is_lost(
    pipeline: Pipeline, line: DeafLine, lost: str, interrupt: Interruption
) -> None:
    """INV-T3: between END_TXN and its answer the connection is lost, or the broker killed and started."""
    await end_while(pipeline, line, lost, interrupt)


@pytest.mark.long
@pytest.mark.parametrize("delay", [0.002, 0.005, 0.01, 0.02, 0.05, 0.1])
async def test_the_broker_is_killed_while_it_commits(
    pipeline: Pipeline, line: DeafLine, delay: float
) -> None:
    """INV-T3: markers and acknowledgements are written in these milliseconds."""

    async def kill_a_little_later(line: Line, topic: str) -> None:
        await trio.sleep(delay)
        await kill_and_start(line, topic)

    await end_while(pipeline, line, "answer", kill_a_little_later)


async def unload_coordinator(line: Line, topic: str) -> None:
    """Unload the coordinator. This project's broker never does; it is started anew."""
    if line.broker.name == "real":
        status, reason = await line.broker.request("PUT", f"{topic_path(ASSIGN_TOPIC)}/unload")
        assert status == 204, reason
    else:
        await kill_and_start(line, topic)


async def unload_output(line: Line, topic: str) -> None:
    await line.broker.unload(f"{topic}-out-0")


@pytest.mark.parametrize("interrupt", [cut, unload, unload_output, unload_coordinator, kill_and_start])
async def test_an_open_transaction_outlives_interruptions(
    pipeline: Pipeline, line: DeafLine, interrupt: Interruption
) -> None:
    """The transaction has what was confirmed before, and what follows."""
    async with pipeline.client.transaction(timeout=200) as transaction:
        await pipeline.fill(transaction)
        await interrupt(line, pipeline.topic)
        for producer in pipeline.outputs:
            await producer.send(b"%d" % COUNT, transaction=transaction)
        assert [await rest(result) for result in pipeline.results] == [[]] * OUTPUTS
    assert await pipeline.took_effect(COUNT + 1)


@pytest.mark.parametrize("interrupt", [cut, unload, unload_output, unload_coordinator, kill_and_start])
async def test_an_interrupted_transaction_can_be_aborted(
    pipeline: Pipeline, line: DeafLine, interrupt: Interruption
) -> None:
    async with pipeline.client.transaction(timeout=200) as transaction:
        await pipeline.fill(transaction)
        await interrupt(line, pipeline.topic)
        await transaction.abort()
    assert not await pipeline.took_effect()


async def test_commits_race_with_their_timeouts(broker: BrokerUnderTest, topic: str) -> None:
    """The report is true whichever comes first."""
    timeout = 1.0
    reports: dict[bytes, bool | None] = {}

    async def race(client: Client, producer: Producer, number: int) -> None:
        payload = b"%d" % number
        async with client.transaction(timeout=timeout) as transaction:
            began = trio.current_time()
            await producer.send(payload, transaction=transaction)
            await trio.sleep_until(began + timeout - 0.05 + 0.005 * number)
            try:
                reports[payload] = await reported(transaction.commit)
            except TransactionNotOpen:
                reports[payload] = False

    async with (
        open_client(broker.url, transactions=True) as client,
        client.create_producer(topic, batching=None) as producer,
        client.subscribe(topic, "s") as consumer,
    ):
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(race, client, producer, number)
        await producer.send(b"after")
        found: list[bytes] = []
        while (payload := (await consumer.receive()).data) != b"after":
            found.append(payload)
    assert len(reports) == 20
    known = {payload: report for payload, report in reports.items() if report is not None}
    assert known == {payload: payload in found for payload in known}


async def test_a_client_that_is_gone_leaves_its_transaction_to_the_timeout(
    line: DeafLine, broker: BrokerUnderTest, topic: str
) -> None:
    with trio.CancelScope() as scope:
        async with (
            open_client(line.url, transactions=True) as gone,
            gone.create_producer(topic) as producer,
            gone.transaction(timeout=3.0) as transaction,
        ):
            await producer.send(b"never", transaction=transaction)
            began = trio.current_time()
            line.lose("question")
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert line.has_lost
    async with (
        open_client(broker.url) as client,
        client.create_producer(topic) as producer,
        client.subscribe(topic, "s", initial_position="earliest") as consumer,
    ):
        await producer.send(b"after")
        assert (await consumer.receive()).data == b"after"
        assert trio.current_time() - began > 2.0
