"""The official client's consumers at our broker: subscription types, acknowledgement, redelivery."""

from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import pulsar
import pytest

from tests.official.client import (
    RECEIVE_TIMEOUT,
    Letter,
    in_thread,
    nothing_comes,
    official_client,
    send_all,
    take,
)
from tests.suite.brokers import NO_TOPIC_CREATION, OurBroker

BATCHES_OF_TEN = {
    "batching_enabled": True,
    "batching_max_messages": 10,
    "batching_max_publish_delay_ms": 1000,
}


def letters(count: int, start: int = 0) -> list[Letter]:
    return [Letter(b"%d" % number) for number in range(start, start + count)]


def numbers(received: list[Letter]) -> list[int]:
    return [int(letter.value or b"-1") for letter in received]


def gather(consumers: Sequence[Any], count: int) -> list[list[Letter]]:
    """The next `count` messages of several consumers together, however they share them, by consumer."""
    received: list[list[Letter]] = [[] for _ in consumers]
    end = monotonic() + RECEIVE_TIMEOUT / 1000
    while sum(map(len, received)) < count:
        assert monotonic() < end, received
        for consumer, mine in zip(consumers, received, strict=True):
            with suppress(pulsar.Timeout):
                message = consumer.receive(20)
                mine.append(Letter(message.data(), message.partition_key() or None))
                consumer.acknowledge(message)
    return received


async def test_exclusive(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Exclusive)
            with pytest.raises(pulsar.ConsumerBusy):
                client.subscribe(topic, "sub", pulsar.ConsumerType.Exclusive)
            send_all(client.create_producer(topic), letters(20))
            assert take(consumer, 20) == letters(20)

    await in_thread(scenario)


async def test_shared(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            one = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared, receiver_queue_size=5)
            other = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared, receiver_queue_size=5)
            send_all(client.create_producer(topic), letters(100))
            first = take(one, 5)  # as many as fit in its queue; the other one got its own
            more, rest = gather([one, other], 95)
            assert sorted(numbers(first + more + rest)) == list(range(100))

    await in_thread(scenario)


async def test_failover(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            one = client.subscribe(topic, "sub", pulsar.ConsumerType.Failover, consumer_name="a")
            other = client.subscribe(topic, "sub", pulsar.ConsumerType.Failover, consumer_name="b")
            producer = client.create_producer(topic)
            producer.send(b"which one is active?")
            of_one, _ = gather([one, other], 1)
            active, waiting = (one, other) if of_one else (other, one)
            send_all(producer, letters(10))
            assert numbers(take(active, 4)) == [0, 1, 2, 3]
            assert nothing_comes(waiting)
            active.close()
            assert numbers(take(waiting, 6)) == [4, 5, 6, 7, 8, 9]

    await in_thread(scenario)


async def test_key_shared(broker: OurBroker, topic: str) -> None:
    keys = [f"key-{number}" for number in range(10)]
    sent = [Letter(b"%d" % number, key=keys[number % 10]) for number in range(100)]

    def scenario() -> None:
        with official_client(broker.url) as client:
            consumers = [client.subscribe(topic, "sub", pulsar.ConsumerType.KeyShared) for _ in range(2)]
            send_all(client.create_producer(topic), sent)
            one, other = gather(consumers, 100)
            assert one, "one consumer got every key"
            assert other, "one consumer got every key"
            assert not {letter.key for letter in one} & {letter.key for letter in other}
            for index, key in enumerate(keys):
                of_key = [letter for letter in one + other if letter.key == key]
                assert numbers(of_key) == list(range(index, 100, 10))

    await in_thread(scenario)


async def test_negative_acknowledgement(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(
                topic, "sub", pulsar.ConsumerType.Shared, negative_ack_redelivery_delay_ms=200
            )
            send_all(client.create_producer(topic), letters(3))
            for _ in range(3):
                message = consumer.receive(5000)
                assert message.redelivery_count() == 0
                if message.data() == b"1":
                    consumer.negative_acknowledge(message)
                else:
                    consumer.acknowledge(message)
            again = consumer.receive(5000)
            assert (again.data(), again.redelivery_count()) == (b"1", 1)
            consumer.acknowledge(again)
            assert nothing_comes(consumer, 500)

    await in_thread(scenario)


async def test_redeliver_unacknowledged(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(topic, "sub")
            send_all(client.create_producer(topic), letters(5))
            for _ in range(3):
                consumer.receive(5000)
            consumer.redeliver_unacknowledged_messages()
            received: list[int] = []  # what it had fetched already may come first
            while set(received) != set(range(5)):
                received += numbers(take(consumer, 1))

    await in_thread(scenario)


async def test_cumulative_acknowledgement(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(topic, "sub")
            send_all(client.create_producer(topic), letters(10))
            messages = [consumer.receive(5000) for _ in range(10)]
            consumer.acknowledge_cumulative(messages[6])
            consumer.close()
            consumer = client.subscribe(topic, "sub")
            assert numbers(take(consumer, 3)) == [7, 8, 9]
            assert nothing_comes(consumer)

    await in_thread(scenario)


async def test_acknowledgement_inside_a_batch(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            options = {"batch_index_ack_enabled": True}
            consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared, **options)
            send_all(client.create_producer(topic, **BATCHES_OF_TEN), letters(10))
            messages = [consumer.receive(5000) for _ in range(10)]
            for index in (0, 2, 9):
                consumer.acknowledge(messages[index])
            consumer.close()
            consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared, **options)
            assert numbers(take(consumer, 7)) == [1, 3, 4, 5, 6, 7, 8]
            assert nothing_comes(consumer)

    await in_thread(scenario)


async def test_unsubscribe(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(topic, "sub")
            producer = client.create_producer(topic)
            producer.send(b"before")
            consumer.unsubscribe()
            consumer = client.subscribe(topic, "sub")
            producer.send(b"after")
            assert take(consumer, 1) == [Letter(b"after")]

    await in_thread(scenario)
    assert await broker.subscriptions(topic) == ["sub"]


async def test_refusals(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            producer = client.create_producer(topic, producer_name="taken")
            with pytest.raises(pulsar.ProducerBusy):
                client.create_producer(topic, producer_name="taken")
            with pytest.raises(pulsar.TopicNotFound):
                client.create_producer(f"persistent://{NO_TOPIC_CREATION}/absent")
            producer.send(b"the connection is as good as before")

    await in_thread(scenario)
