"""Handlers of messages, against either broker: failed messages are redelivered, keys stay in order."""

import pytest
import trio

from pulsar_trio import (
    Client,
    Consumer,
    DeadLetter,
    DeadLetterPolicy,
    Kind,
    Message,
    OnFailure,
    OutgoingMessage,
    Raise,
    RetryLater,
)
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import numbers, payloads, receive, receive_and_acknowledge, rest


async def test_what_fails_is_redelivered_and_nothing_is_left(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", negative_acknowledgement_delay=0.1) as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(20))
        failed: set[int] = set()
        handled: list[int] = []
        done = trio.Event()

        async def handle(message: Message) -> None:
            number = int(message.data)
            if number % 3 == 0 and number not in failed:
                failed.add(number)
                raise ValueError(number)
            handled.append(number)
            if len(handled) == 20:
                done.set()

        async def run() -> None:
            await consumer.run(handle, concurrency=4)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await done.wait()
            nursery.cancel_scope.cancel()
        assert sorted(handled) == list(range(20))
        await consumer.flush()
    async with client.subscribe(topic, "sub") as consumer:
        assert len(await rest(consumer)) <= 4  # the ones whose handlers had not ended


async def test_keys_stay_in_order_over_two_consumers(client: Client, topic: str) -> None:
    handled: dict[str, list[int]] = {}
    done = trio.Event()

    async def handle(message: Message) -> None:
        await trio.sleep(0.001 * (int(message.data) % 3))
        handled.setdefault(str(message.key), []).append(int(message.data))
        if sum(map(len, handled.values())) == 60:
            done.set()

    async with (
        client.subscribe(topic, "sub", "key_shared") as one,
        client.subscribe(topic, "sub", "key_shared") as other,
        trio.open_nursery() as nursery,
    ):

        async def run(consumer: Consumer) -> None:
            await consumer.run(handle, concurrency=5)

        nursery.start_soon(run, one)
        nursery.start_soon(run, other)
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(OutgoingMessage(b"%d" % n, key=f"k{n % 6}") for n in range(60))
        await done.wait()
        nursery.cancel_scope.cancel()
    assert handled == {f"k{key}": list(range(key, 60, 6)) for key in range(6)}


async def test_processing_acknowledges(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", "exclusive") as consumer:
        async with client.create_producer(topic) as producer:
            await producer.send_many(payloads(10))
        for _ in range(6):
            message = await consumer.receive()
            async with message.processing():
                pass
    async with client.subscribe(topic, "sub", "exclusive", batch_index_acknowledgement=True) as consumer:
        assert numbers(await rest(consumer))[-4:] == [6, 7, 8, 9]


async def test_a_cancelled_wait_loses_nothing(client: Client, topic: str) -> None:
    """At whichever moment it happens: what he did not get, the next one gets, in order."""
    found: list[int] = []
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.subscribe(topic, "sub", "exclusive", receiver_queue_size=3) as consumer,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.send_many, payloads(60))
            while len(found) < 60:
                with trio.move_on_after(0.002):
                    while True:
                        message = await consumer.receive()
                        found.append(int(message.data))
                        consumer.acknowledge(message)
                with trio.move_on_after(0.002):
                    found += numbers(messages := await consumer.receive_many(2))
                    consumer.acknowledge(messages)
                with trio.move_on_after(0.001):
                    await consumer.flush()
    assert found == list(range(60))


class Handler:
    """Counts what it has handled, and sets an event when there are enough."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.stop = trio.Event()
        self.handled: list[int] = []

    async def handle(self, message: Message) -> None:
        await trio.sleep(0.001)
        self.handled.append(int(message.data))
        if len(self.handled) == self.enough:
            self.stop.set()


@pytest.mark.parametrize("kind", ["shared", "key_shared", "exclusive", "failover"])
async def test_a_stopped_run_leaves_the_rest_as_never_tried(client: Client, topic: str, kind: Kind) -> None:
    """Acknowledgements are confirmed; messages that had arrived are delivered to the next consumer, not
    counted."""
    handler = Handler(10)
    async with client.subscribe(topic, "sub", kind, acknowledgement_group_time=60.0) as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(OutgoingMessage(b"%d" % n, key=f"k{n % 5}") for n in range(50))
        await consumer.run(handler.handle, concurrency=3, stop=handler.stop)
        assert len(handler.handled) >= 10
        with pytest.raises(trio.EndOfChannel):
            await consumer.receive()
    async with client.subscribe(topic, "sub", kind) as consumer:
        again = await receive(consumer, 50 - len(handler.handled))
        assert await rest(consumer) == []
    assert sorted([*handler.handled, *numbers(again)]) == list(range(50))
    assert {message.redelivery_count for message in again} == {0}


async def test_a_drained_consumer_of_partitions_leaves_new_messages_to_others(
    client: Client, topic: str, broker: BrokerUnderTest
) -> None:
    await broker.create_partitioned_topic(topic, 3)
    async with client.subscribe(topic, "sub", receiver_queue_size=1) as drained:
        await drained.drain()
        async with client.subscribe(topic, "sub") as other, client.create_producer(topic) as producer:
            for payload in payloads(30):  # entries of their own: three permits are with the first consumer
                await producer.send(payload)
            received = await receive_and_acknowledge(other, 27)
        assert len(set(numbers(received))) == 27


async def test_failures_go_where_the_application_says(client: Client, topic: str) -> None:
    """Later, to the dead letters at once, or out of `run`."""
    policy = DeadLetterPolicy(3, initial_subscription="kept")
    handled: list[int] = []

    class EndError(Exception):
        pass

    async def handle(message: Message) -> None:
        number = int(message.data)
        if number == 3 or (number == 5 and "RECONSUMETIMES" not in message.properties):
            raise ValueError(number)
        handled.append(number)
        if number == 5:
            raise EndError

    def decide(message: Message, error: Exception) -> OnFailure:
        if isinstance(error, EndError):
            return Raise()
        return DeadLetter({"why": "three"}) if message.data == b"3" else RetryLater(0.1)

    async with client.subscribe(topic, "sub", retry=True, dead_letter=policy) as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(10))
        with pytest.raises(EndError):
            await consumer.run(handle, on_failure=decide)
        full_topic = f"persistent://public/default/{topic}" if "://" not in topic else topic
    assert sorted(handled) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    async with client.subscribe(f"{topic}-sub-DLQ", "kept") as dead:
        (message,) = await receive_and_acknowledge(dead, 1)
        assert (message.data, message.properties["why"]) == (b"3", "three")
        assert message.properties["REAL_TOPIC"] == full_topic
    async with client.subscribe(topic, "sub", retry=True, dead_letter=policy) as consumer:
        assert numbers(await rest(consumer)) == [5]


async def test_a_reader_stops_where_another_goes_on(client: Client, topic: str) -> None:
    handler = Handler(10)
    async with client.create_producer(topic) as producer:
        await producer.send_many(payloads(30))
    async with client.create_reader(topic, "earliest") as reader:
        await reader.run(handler.handle, stop=handler.stop)
        checkpoint = reader.checkpoint()
    assert handler.handled == list(range(10))
    async with client.create_reader(topic, checkpoint) as reader:
        assert numbers([message async for message in reader.until_latest()]) == list(range(10, 30))
