"""The broker goes away in the middle: nothing that was confirmed is lost, and the order is kept."""

import pytest
import trio

from pulsar_trio import Client, Consumer, Producer
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import (
    Interruption,
    cut,
    first_occurrences,
    kill_and_start,
    numbers,
    payloads,
    receive,
    receive_and_acknowledge,
    rest,
    unload,
    values,
)
from tests.suite.line import Line

COUNT = 3000


@pytest.mark.parametrize("interrupt", [cut, unload, kill_and_start])
async def test_a_stream_of_messages_survives(
    line: Line, client_on_line: Client, topic: str, interrupt: Interruption
) -> None:
    """While one task sends and another receives, the topic goes away and comes back.

    What was sent and not confirmed is sent again by itself, so every send succeeds. A message may come twice
    (there is no deduplication here); without what came before, the order is that of sending.
    """
    received: list[int] = []
    under_way, all_there = trio.Event(), trio.Event()

    async def take(consumer: Consumer) -> None:
        async for message in consumer:
            received.append(int(message.data))
            consumer.acknowledge(message)
            if received[-1] == COUNT // 10:
                under_way.set()
            if received[-1] == COUNT - 1:
                all_there.set()

    async def send(producer: Producer) -> None:
        for number in range(COUNT):
            await producer.enqueue(b"%d" % number)
            if number % 20 == 19:
                await trio.sleep(0.002)

    client = client_on_line
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic, send_timeout=0) as producer,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(take, consumer)
        async with trio.open_nursery() as sending:
            sending.start_soon(send, producer)
            await under_way.wait()
            await interrupt(line, topic)
        await all_there.wait()
        nursery.cancel_scope.cancel()
    assert first_occurrences(received) == list(range(COUNT))


async def test_what_was_confirmed_before_a_kill_is_there_after_it(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """Producer and consumer attach again by themselves, and what waited meanwhile is sent.

    A Pulsar that is killed may forget the last acknowledgements: it does not write each at once. It also
    redelivers what the consumer had fetched before, once the consumer is attached.
    """
    async with (
        client.subscribe(topic, "sub", kind="shared", acknowledgement_receipts=True) as consumer,
        client.create_producer(topic, batching=None, send_timeout=0) as producer,
    ):
        before = await producer.send_many(payloads(20))
        first = await receive_and_acknowledge(consumer, 5)
        await consumer.flush()
        await broker.kill()
        waiting = await producer.enqueue(b"20")
        await broker.start()
        after = await waiting.wait()
        assert after > max(before)
        again: list[int] = []
        while not set(range(5, 21)) <= set(again):
            again += numbers(await receive_and_acknowledge(consumer, 1))
        assert sorted(set(numbers(first) + again)) == list(range(21))


async def test_a_message_enqueued_while_the_broker_is_away_is_sent_later(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"0")
        await broker.unload(topic)
        receipts = [await producer.enqueue(payload) for payload in payloads(100, start=1)]
        for receipt in receipts:
            await receipt.wait()
        received: list[int] = []  # what was there before may come twice: it is not acknowledged
        while len(set(received)) < 101:
            received += numbers(await receive(consumer, 1))
        assert first_occurrences(received) == list(range(101))


async def test_a_deleted_topic_begins_anew(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """Deleting by force closes producers and consumers; attaching again creates an empty topic."""
    async with client.create_producer(topic) as producer:
        await producer.send(b"old")
        await broker.delete_topic(topic)
        await producer.send(b"new")
        async with client.subscribe(topic, "sub", initial_position="earliest") as consumer:
            assert values(await receive(consumer, 1)) == [b"new"]
            assert await rest(consumer) == []
