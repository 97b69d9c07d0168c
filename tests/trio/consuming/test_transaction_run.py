"""`consumer.run_transactions`: what becomes of each batch, and how a run ends."""

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import chain, pairwise
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import InvalidConfiguration, LocalProtocolError
from pulsar_trio import (
    BatchReceivePolicy,
    Client,
    Consumer,
    EmbeddedBroker,
    Message,
    NotSupported,
    ResourceClosed,
    Transaction,
    open_broker,
    open_client,
)
from tests.patience import PATIENCE
from tests.trio.consuming.stopping_script import in_background
from tests.trio.waiting import until

Handled = Sequence[Message]


@pytest.fixture
async def client(broker: EmbeddedBroker) -> AsyncIterator[Client]:
    async with open_client(broker.url, seed=1, transactions=True) as client:
        yield client


async def fill(client: Client, *numbers: int) -> None:
    async with client.create_producer("t", batching=None) as producer:
        await producer.send_many([b"%d" % number for number in numbers])


def filled(client: Client, kind: Any = "shared", **options: Any) -> Any:
    return client.subscribe("t", "s", kind, initial_position="earliest", **options)


def numbers(messages: Handled) -> list[int]:
    return [int(message.data) for message in messages]


async def left(client: Client, kind: Any = "shared") -> list[int]:
    """Return the messages that the subscription still has."""
    found: list[int] = []
    async with filled(client, kind) as consumer:
        with trio.move_on_after(0.1):
            async for message in consumer:
                found.append(int(message.data))
    return sorted(found)


class Recorder:
    """A handler that records the batches, and stops at the last of `many` messages."""

    def __init__(self, many: int) -> None:
        self.batches: list[list[int]] = []
        self.stop = trio.Event()
        self._left = many

    async def __call__(self, messages: Handled, transaction: Transaction) -> None:
        self.batches.append(numbers(messages))
        self._left -= len(messages)
        if self._left <= 0:
            self.stop.set()


@pytest.mark.parametrize("kind", ["shared", "key_shared", "exclusive", "failover"])
async def test_batches_are_acknowledged(client: Client, kind: Any) -> None:
    """TXN-02"""
    async with filled(client, kind) as consumer:
        await fill(client, *range(7))
        await until(lambda: consumer.statistics().available == 7)
        handle = Recorder(7)
        await consumer.run_transactions(handle, max_messages=3, stop=handle.stop)
    assert handle.batches == [[0, 1, 2], [3, 4, 5], [6]]
    assert await left(client, kind) == []


async def test_a_failed_batch_is_redelivered_one_by_one(
    client: Client, caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    """TXN-02: so that one bad message does not spoil the others, and their redelivery counts."""
    batches: list[list[int]] = []
    stop = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        batches.append(numbers(messages))
        if batches[-1] == [3]:
            stop.set()
        if len(batches) == 1:
            raise ZeroDivisionError("secret")

    async with filled(client, "exclusive") as consumer:
        await fill(client, *range(4))
        await until(lambda: consumer.statistics().available == 4)
        await consumer.run_transactions(handle, timeout=timedelta(seconds=5), stop=stop)
    assert batches == [[0, 1, 2, 3], [0], [1], [2], [3]]
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "the handler of transaction (0,0) of 4 messages failed" in record.getMessage()
    assert record.exc_info is not None


async def test_a_lasting_failure_is_repeated_ever_more_slowly(
    client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    times: list[float] = []
    stop = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        times.append(trio.current_time())
        if len(times) == 10:
            stop.set()
        raise ZeroDivisionError

    async with filled(client) as consumer:
        await fill(client, 1)
        await consumer.run_transactions(handle, stop=stop)
        pauses = [later - earlier for earlier, later in pairwise(times)]
        expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
        assert pauses == pytest.approx(expected)


@pytest.mark.breaks("INV-C4", why="the other consumer acknowledges by ids that a reader has found")
async def test_a_message_that_is_acknowledged_meanwhile_is_not_handled(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """TXN-02: a conflict drops the message, and the others are redelivered."""
    handled: list[int] = []
    stop = trio.Event()
    async with filled(client) as consumer:
        await fill(client, *range(6))
        await until(lambda: consumer.statistics().available == 6)
        async with client.create_reader("t", "earliest") as reader:
            ids = [(await reader.receive()).message_id for _ in range(6)]
        async with filled(client) as other, client.transaction() as transaction:
            other.acknowledge([ids[1], ids[4]], transaction=transaction)

        async def handle(messages: Handled, transaction: Transaction) -> None:
            handled.extend(numbers(messages))
            if len(handled) == 4:
                stop.set()

        with trio.fail_after(PATIENCE):
            await consumer.run_transactions(handle, stop=stop)
    assert sorted(handled) == [0, 2, 3, 5]
    assert "acknowledged already" in caplog.text
    assert await left(client) == []


async def test_a_message_of_an_open_transaction_waits_for_its_end(client: Client) -> None:
    """TXN-02: as after the end of a worker that had begun with it, the order stays."""
    handled: list[int] = []
    stop = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        handled.extend(numbers(messages))
        if 3 in handled:
            stop.set()

    await fill(client, *range(4))
    async with filled(client, "exclusive") as consumer:
        first = [await consumer.receive() for _ in range(2)]
        opened = client.transaction(timeout=1.0)
        transaction = await opened.__aenter__()
        consumer.acknowledge_cumulative(first[1], transaction=transaction)
        await transaction.flush()
        consumer.redeliver_unacknowledged()
        async with in_background(lambda: consumer.run_transactions(handle, max_messages=2, stop=stop)):
            await until(lambda: "rests for" in consumer.explain())
            assert "TransactionConflict" in consumer.explain()
            assert handled == []
    assert handled == [0, 1, 2, 3]
    await opened.__aexit__(ZeroDivisionError, ZeroDivisionError(), None)


async def test_a_handler_that_is_too_slow_is_cancelled(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """TXN-02: nothing that it does after the timeout could take effect."""
    calls: list[int] = []
    stop = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        calls.append(len(messages))
        if len(calls) == 1:
            await trio.sleep_forever()
        stop.set()

    async with filled(client) as consumer:
        await fill(client, 1)
        with trio.fail_after(PATIENCE):
            await consumer.run_transactions(handle, timeout=0.3, stop=stop)
    assert calls == [1, 1]
    assert "did not return within 0.3 s" in caplog.text
    assert await left(client) == []


async def test_a_handler_may_end_the_transaction(client: Client) -> None:
    handled: list[int] = []

    async def handle(messages: Handled, transaction: Transaction) -> None:
        handled.extend(numbers(messages))
        await (transaction.commit() if len(handled) > 1 else transaction.abort())
        if len(handled) == 2:
            stop.set()

    stop = trio.Event()
    async with filled(client) as consumer:
        await fill(client, 1)
        with trio.fail_after(PATIENCE):
            await consumer.run_transactions(handle, stop=stop)
    assert handled == [1, 1]
    assert await left(client) == []


async def test_messages_come_together_again_behind_those_of_a_failure(client: Client) -> None:
    """The handler has ended the transactions of the messages that failed."""
    batches: list[list[int]] = []

    async def handle(messages: Handled, transaction: Transaction) -> None:
        batches.append(numbers(messages))
        if len(batches) == 1:
            raise ZeroDivisionError
        if len(batches) == 3:
            await fill(client, 3, 4, 5)
            await until(lambda: consumer.statistics().available == 3)
        if len(batches) == 4:
            stop.set()
        await transaction.commit()

    stop = trio.Event()
    async with filled(client) as consumer:
        await fill(client, 1, 2)
        await until(lambda: consumer.statistics().available == 2)
        with trio.fail_after(PATIENCE):
            await consumer.run_transactions(handle, stop=stop)
    assert batches == [[1, 2], [1], [2], [3, 4, 5]]


async def test_a_handler_that_always_aborts_is_repeated_ever_more_slowly(
    client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    """Its first repetition has no pause: the run cannot know that the handler did not commit."""
    times: list[float] = []
    stop = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        times.append(trio.current_time())
        if len(times) == 5:
            stop.set()
        await transaction.abort()

    async with filled(client) as consumer:
        await fill(client, 1)
        await consumer.run_transactions(handle, stop=stop)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == pytest.approx([0.0, 0.1, 0.2, 0.4], abs=0.01)


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
async def test_a_cancelled_run_aborts(client: Client, kind: Any) -> None:
    """TXN-02: the messages are received again, by the same consumer too."""
    began = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        await producer.send(b"never", transaction=transaction)
        began.set()
        await trio.sleep_forever()

    async with (
        client.create_producer("out") as producer,
        client.subscribe("out", "s", initial_position="earliest") as result,
        filled(client, kind) as consumer,
    ):
        await fill(client, *range(3))
        await until(lambda: consumer.statistics().available == 3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.run_transactions, handle)
            await began.wait()
            nursery.cancel_scope.cancel()
        again = Recorder(3)
        with trio.fail_after(PATIENCE):
            await consumer.run_transactions(again, stop=again.stop)
        assert [*chain(*again.batches)] == [0, 1, 2]
        await producer.send(b"after")
        assert (await result.receive()).data == b"after"


async def test_a_run_that_stops_finishes_its_transaction(client: Client) -> None:
    """The messages behind are not begun, and go back when the consumer closes."""
    stop, may_end = trio.Event(), trio.Event()
    begun: list[int] = []

    async def handle(messages: Handled, transaction: Transaction) -> None:
        begun.extend(numbers(messages))
        await may_end.wait()

    async with filled(client) as consumer:
        await fill(client, *range(5))
        await until(lambda: consumer.statistics().available == 5)
        async with in_background(
            lambda: consumer.run_transactions(handle, max_messages=2, stop=stop)
        ) as over:
            await until(lambda: begun)
            stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert not over.is_set()
            may_end.set()
            await over.wait()
        assert begun == [0, 1]
        await consumer.run_transactions(handle)
    assert await left(client) == [2, 3, 4]


async def test_draining_stops_a_run(client: Client) -> None:
    handle = Recorder(3)
    async with filled(client) as consumer:
        await fill(client, *range(3))
        async with in_background(lambda: consumer.run_transactions(handle)) as over:
            await handle.stop.wait()
            await consumer.drain()
            await over.wait()
    assert await left(client) == []


async def test_a_run_that_rests_stops_at_once(client: Client) -> None:
    stop = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        raise ZeroDivisionError

    async with filled(client) as consumer:
        await fill(client, 1)
        async with in_background(lambda: consumer.run_transactions(handle, stop=stop)):
            await until(lambda: "rests for 0.4 s after ZeroDivisionError" in consumer.explain())
            stop.set()
    assert await left(client) == [1]


async def test_the_end_of_the_topic_ends_a_run(broker: EmbeddedBroker, client: Client) -> None:
    async with filled(client) as consumer:
        await fill(client, *range(3))
        broker.terminate("t")
        handle = Recorder(99)
        with trio.fail_after(PATIENCE):
            await consumer.run_transactions(handle)
    assert [*chain(*handle.batches)] == [0, 1, 2]


async def test_a_policy_says_how_many_are_enough(client: Client) -> None:
    policy = BatchReceivePolicy(max_messages=4, timeout=60)
    async with filled(client, batch_receive=policy) as consumer:
        handle = Recorder(4)
        async with in_background(lambda: consumer.run_transactions(handle, stop=handle.stop)):
            await fill(client, 0, 1)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert handle.batches == []
            await fill(client, 2, 3)
    assert handle.batches == [[0, 1, 2, 3]]


async def test_a_queue_of_no_messages(client: Client) -> None:
    async with filled(client, receiver_queue_size=0) as consumer:
        handle = Recorder(3)
        await fill(client, *range(3))
        with trio.fail_after(PATIENCE):
            await consumer.run_transactions(handle, stop=handle.stop)
    assert handle.batches == [[0], [1], [2]]


async def test_it_says_what_it_waits_for(client: Client) -> None:
    went_on = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        await went_on.wait()
        handled.set()

    handled = trio.Event()
    async with filled(client) as consumer, trio.open_nursery() as nursery:
        nursery.start_soon(consumer.run_transactions, handle)
        await until(lambda: "run_transactions waits for messages" in consumer.explain())
        await fill(client, 1)
        await until(lambda: "waits for the handler of transaction (0,0) of 1 messages" in consumer.explain())
        with pytest.raises(InvalidConfiguration, match="receive is not possible"):
            await consumer.receive()
        went_on.set()
        await handled.wait()
        nursery.cancel_scope.cancel()
    assert "run_transactions" not in consumer.explain()


async def test_a_consumer_that_closes_ends_a_run(client: Client) -> None:
    async with trio.open_nursery() as nursery, filled(client) as consumer:

        async def run() -> None:
            with pytest.raises(ResourceClosed):
                await consumer.run_transactions(Recorder(1))

        nursery.start_soon(run)
        await until(lambda: "waits for messages" in consumer.explain())
        await consumer.aclose()


async def test_a_consumer_that_closes_under_a_handler(client: Client) -> None:
    """Its messages are acknowledged in the transaction already, so the commit is possible."""

    async def handle(messages: Handled, transaction: Transaction) -> None:
        await consumer.aclose()

    async with filled(client) as consumer:
        await fill(client, 1)
        with pytest.raises(ResourceClosed):
            await consumer.run_transactions(handle)
    assert await left(client) == []


@pytest.mark.parametrize(
    "options",
    [
        {"max_messages": 0},
        {"max_messages": 1.5},
        {"max_messages": True},
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": "1"},
        {"stop": "now"},
    ],
)
async def test_wrong_options(client: Client, options: dict[str, Any]) -> None:
    async with filled(client) as consumer:
        with pytest.raises(InvalidConfiguration):
            await consumer.run_transactions(Recorder(1), **options)


async def test_no_handler(client: Client) -> None:
    async with filled(client) as consumer:
        with pytest.raises(InvalidConfiguration, match="handler"):
            await consumer.run_transactions(None)


async def test_a_client_without_transactions(broker: EmbeddedBroker) -> None:
    async with open_client(broker.url) as client, filled(client) as consumer:
        await fill(client, 1)
        with pytest.raises(LocalProtocolError, match="transactions=True"):
            await consumer.run_transactions(Recorder(1))


async def test_a_cluster_without_transactions() -> None:
    async with (
        open_broker(transaction_coordinators=0) as broker,
        open_client(broker.url, transactions=True) as client,
        filled(client) as consumer,
    ):
        await fill(client, 1)
        with pytest.raises(NotSupported):
            await consumer.run_transactions(Recorder(1))


async def test_a_task_that_receives_is_in_the_way(client: Client) -> None:
    async with filled(client) as consumer, trio.open_nursery() as nursery:
        nursery.start_soon(consumer.receive)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(InvalidConfiguration, match="receive"):
            await consumer.run_transactions(Recorder(1))
        nursery.cancel_scope.cancel()


async def test_a_handler_cannot_wait_for_its_own_end(client: Client) -> None:
    errors: list[InvalidConfiguration] = []
    stop = trio.Event()

    async def handle(messages: Handled, transaction: Transaction) -> None:
        try:
            await consumer.drain()
        except InvalidConfiguration as error:
            errors.append(error)
        stop.set()

    consumer: Consumer
    async with filled(client) as consumer:
        await fill(client, 1)
        await consumer.run_transactions(handle, stop=stop)
    assert len(errors) == 1
