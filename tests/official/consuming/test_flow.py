"""The official client at our broker: queue sizes, pausing, batch receive, ranges of keys, and both clients
side by side in one subscription."""

import time
from collections.abc import Callable
from typing import Any

import pulsar
import pytest
import trio

from pulsar_trio import KeySharedPolicy, open_client
from tests.official.client import (
    Letter,
    in_thread,
    official_client,
    open_official_client,
    send_all,
    take,
)
from tests.patience import PATIENCE
from tests.suite.brokers import OurBroker


def letters(count: int) -> list[Letter]:
    return [Letter(b"%d" % number) for number in range(count)]


def received(consumer: Any) -> bytes:
    """The next message, acknowledged. Its client has no timeout at a queue of size 0."""
    message = consumer.receive()
    consumer.acknowledge(message)
    return bytes(message.data())


@pytest.mark.parametrize("size", [0, 1, 2, 1000])
async def test_queue_sizes(broker: OurBroker, topic: str, size: int) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared, receiver_queue_size=size)
            send_all(client.create_producer(topic, batching_enabled=False), letters(20))
            assert [received(consumer) for _ in range(20)] == [letter.value for letter in letters(20)]

    await in_thread(scenario)


async def test_pausing(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            got: list[bytes] = []

            def listen(consumer: Any, message: Any) -> None:
                got.append(message.data())
                consumer.acknowledge(message)

            consumer = client.subscribe(topic, "sub", message_listener=listen, receiver_queue_size=2)
            producer = client.create_producer(topic, batching_enabled=False)
            consumer.pause_message_listener()
            send_all(producer, letters(5))
            wait(lambda: len(got) > 2, 0.3)
            assert len(got) <= 2  # what it had asked for before
            consumer.resume_message_listener()
            wait(lambda: len(got) == 5, 10)
            assert got == [b"0", b"1", b"2", b"3", b"4"]

    await in_thread(scenario)


def wait(condition: Callable[[], bool], seconds: float) -> None:
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        time.sleep(0.02)


async def test_batch_receive(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            policy = pulsar.ConsumerBatchReceivePolicy(5, 0, 500)
            consumer = client.subscribe(topic, "sub", batch_receive_policy=policy)
            send_all(client.create_producer(topic), letters(10))
            for _ in range(2):
                messages = consumer.batch_receive()
                assert len(messages) == 5
                for message in messages:
                    consumer.acknowledge(message)

    await in_thread(scenario)


async def test_ranges_of_keys_beside_our_client(broker: OurBroker, topic: str) -> None:
    """Each key goes to the consumer of its range, from any client. Overlapping ranges are refused."""
    sticky = pulsar.ConsumerKeySharedPolicy(
        key_shared_mode=pulsar.KeySharedMode.Sticky, sticky_ranges=[(0, 32767)]
    )
    async with (
        open_official_client(broker.url) as official,
        open_client(broker.url) as ours,
        ours.subscribe(topic, "sub", "key_shared", key_shared=KeySharedPolicy(((32768, 65535),))) as consumer,
    ):
        other = await in_thread(
            lambda: official.subscribe(topic, "sub", pulsar.ConsumerType.KeyShared, key_shared_policy=sticky)
        )
        with pytest.raises(pulsar.ConsumerAssignError):
            await in_thread(
                lambda: official.subscribe(
                    topic, "sub", pulsar.ConsumerType.KeyShared, key_shared_policy=sticky
                )
            )
        async with ours.create_producer(topic, batching=None) as producer:
            for key in ("key-1", "hello"):  # hashes 5536 and 64071
                await producer.send(key.encode(), key=key)
        with trio.fail_after(PATIENCE):
            assert (await consumer.receive()).data == b"hello"
        assert (await in_thread(lambda: take(other, 1)))[0].value == b"key-1"


async def test_a_subscription_that_is_ours_and_theirs(broker: OurBroker, topic: str) -> None:
    """With nothing fetched in advance each gets what it asks for."""
    async with (
        open_official_client(broker.url) as official,
        open_client(broker.url) as ours,
        ours.subscribe(topic, "sub", "shared", receiver_queue_size=0) as consumer,
    ):
        other = await in_thread(
            lambda: official.subscribe(topic, "sub", pulsar.ConsumerType.Shared, receiver_queue_size=0)
        )
        async with ours.create_producer(topic, batching=None) as producer:
            await producer.send_many([b"0", b"1", b"2", b"3"])
        got = [(await consumer.receive()).data]
        got += [await in_thread(lambda: received(other)) for _ in range(2)]
        got.append((await consumer.receive()).data)
        assert got == [b"0", b"1", b"2", b"3"]


async def test_partitions_share_a_queue(broker: OurBroker, topic: str) -> None:
    """The consumer asks no partition for more than its share, and gets everything."""
    await broker.create_partitioned_topic(topic, 4)

    def held(partition: int) -> Any:
        return broker.admin.stats(f"{topic}-partition-{partition}")["subscriptions"]["sub"]["unackedMessages"]

    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(
                topic, "sub", pulsar.ConsumerType.Shared, max_total_receiver_queue_size_across_partitions=8
            )
            producer = client.create_producer(topic, batching_enabled=False)
            send_all(producer, letters(40))
            wait(lambda: sum(map(held, range(4))) >= 8, 10)
            assert list(map(held, range(4))) == [2, 2, 2, 2]
            assert {letter.value for letter in take(consumer, 40)} == {b"%d" % each for each in range(40)}

    await in_thread(scenario)
