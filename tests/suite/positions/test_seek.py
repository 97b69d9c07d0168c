"""Seeks by message, by time and to the ends of the topic; the last message, and whether there is more."""

from datetime import UTC, datetime, timedelta

import pytest
import trio

from pulsar_sansio import LocalProtocolError
from pulsar_trio import BatchingPolicy, Client, MessageId
from pulsar_trio.client.options import Kind
from tests.suite.helpers import (
    Interruption,
    cut,
    numbers,
    payloads,
    receive,
    receive_and_acknowledge,
    rest,
    unload,
)
from tests.suite.line import Line

KINDS = ["exclusive", "shared", "failover", "key_shared"]


@pytest.mark.parametrize("kind", KINDS)
async def test_to_the_ends_of_the_topic(client: Client, topic: str, kind: Kind) -> None:
    async with (
        client.subscribe(topic, "sub", kind, initial_position="earliest") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(6))
        await receive_and_acknowledge(consumer, 4)
        await consumer.seek("earliest")
        assert numbers(await receive_and_acknowledge(consumer, 6)) == list(range(6))
        await consumer.seek("earliest")
        await consumer.seek("latest")
        await producer.send(b"6")
        assert numbers(await receive_and_acknowledge(consumer, 1)) == [6]


@pytest.mark.parametrize(("inclusive", "first"), [(False, 3), (True, 2)])
@pytest.mark.parametrize("batched", [False, True], ids=["singles", "a batch"])
async def test_to_a_message(client: Client, topic: str, inclusive: bool, first: int, batched: bool) -> None:
    batching = BatchingPolicy(max_messages=5, max_delay=1.0) if batched else None
    async with (
        client.subscribe(topic, "sub", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(topic, batching=batching) as producer,
    ):
        ids = await producer.send_many(payloads(5))
        await receive_and_acknowledge(consumer, 5)
        await consumer.flush()
        await consumer.seek(ids[2], inclusive=inclusive)
        expected = list(range(first, 5))
        assert numbers(await receive_and_acknowledge(consumer, len(expected))) == expected
        assert await rest(consumer) == []
    # What was left out is done with.
    async with client.subscribe(topic, "sub", "exclusive") as consumer:
        assert await rest(consumer) == []


async def test_to_a_time(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(3))
        await trio.sleep(0.05)
        await producer.send_many(payloads(3, start=3))
        messages = await receive_and_acknowledge(consumer, 6)
        await consumer.seek(messages[3].publish_time)
        assert numbers(await receive_and_acknowledge(consumer, 3)) == [3, 4, 5]
        await consumer.seek(datetime.now(UTC) - timedelta(hours=1))
        assert numbers(await receive_and_acknowledge(consumer, 6)) == list(range(6))
        await consumer.seek(lambda name: datetime.now(UTC) + timedelta(hours=1))
        assert not await consumer.has_message_available()
        assert await rest(consumer) == []


async def test_what_was_received_before_is_not_received_after(client: Client, topic: str) -> None:
    """Messages are under way all the time."""
    async with (
        client.subscribe(topic, "sub", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(300))
        for target in (250, 0, 100, 299):
            position = await consumer.last_message_id()
            await consumer.seek(MessageId(position.ledger_id, target), inclusive=True)
            expected = list(range(target, min(target + 5, 300)))
            assert numbers(await receive(consumer, len(expected))) == expected


@pytest.mark.parametrize("interrupt", [cut, unload])
async def test_while_the_connection_is_lost(
    client_on_line: Client, line: Line, topic: str, interrupt: Interruption
) -> None:
    async with (
        client_on_line.subscribe(topic, "sub", "exclusive", initial_position="earliest") as consumer,
        client_on_line.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(10))
        await receive_and_acknowledge(consumer, 10)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.seek, "earliest")
            await interrupt(line, topic)
        assert numbers(await receive_and_acknowledge(consumer, 10)) == list(range(10))


async def test_all_consumers_of_the_subscription_are_moved(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "failover", initial_position="earliest") as one,
        client.subscribe(topic, "sub", "failover") as other,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(3))
        await trio.sleep(0.2)
        await other.seek("earliest")
        received: list[int] = []
        for consumer in (one, other):
            received += numbers(await rest(consumer, quiet=2.0))
        assert sorted(received)[-1] == 2
        assert {0, 1, 2} <= set(received)


async def test_a_message_of_another_topic(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "exclusive") as consumer,
        client.subscribe(f"{topic}-other", "sub", "exclusive") as other,
        client.create_producer(f"{topic}-other") as producer,
        client.create_producer(topic) as own,
    ):
        await producer.send(b"0")
        await own.send(b"1")
        with pytest.raises(LocalProtocolError, match="other"):
            await consumer.seek(await other.receive())
        assert numbers(await receive_and_acknowledge(consumer, 1)) == [1]


async def test_the_last_message(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(topic, batching=BatchingPolicy(max_messages=4, max_delay=1.0)) as producer,
    ):
        assert (await consumer.last_message_id())[:2] == (-1, -1)
        assert not await consumer.has_message_available()
        ids = await producer.send_many(payloads(4))
        assert await consumer.last_message_id() == ids[-1]
        assert await consumer.has_message_available()
        await receive(consumer, 3)
        assert await consumer.has_message_available()
        await receive(consumer, 1)
        assert not await consumer.has_message_available()


async def test_whether_there_is_more_after_a_seek(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "exclusive", initial_position="earliest") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        ids = await producer.send_many(payloads(3))
        await receive_and_acknowledge(consumer, 3)
        for target, inclusive, expected in (
            ("earliest", False, True),
            ("latest", False, False),
            (ids[2], False, False),
            (ids[2], True, True),
            (ids[1], False, True),
        ):
            await consumer.seek(target, inclusive=inclusive)
            assert await consumer.has_message_available() is expected
            if expected:
                await receive(consumer, 1)
