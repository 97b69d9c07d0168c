"""Dead letters: what comes too often goes to another topic, and out of the way."""

import trio

from pulsar_trio import BatchingPolicy, Client, DeadLetterPolicy, OutgoingMessage

from .brokers import BrokerUnderTest
from .helpers import payloads, receive, receive_and_acknowledge, rest


async def test_what_comes_too_often_goes_to_the_dead_letters(client: Client, topic: str) -> None:
    """Rules DLQ-03, DLQ-04. Nobody has subscribed to them yet, and nothing is lost."""
    policy = DeadLetterPolicy(2, initial_subscription="kept")
    async with (
        client.subscribe(
            topic, "sub", kind="shared", negative_acknowledgement_delay=0.1, dead_letter=policy
        ) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        poison = OutgoingMessage(b"poison", key="k", event_time=7, properties={"x": "y"})
        message_id = await producer.send(poison)
        for count in range(3):
            message = await consumer.receive()
            assert message.redelivery_count == count
            consumer.negative_acknowledge(message)
        assert await rest(consumer, quiet=1.5) == []
        assert consumer.statistics().undelivered.dead_letters == 1
        full_topic = consumer.topic
    async with client.subscribe(f"{topic}-sub-DLQ", "kept", kind="shared") as dead:
        message = await dead.receive()
        assert (message.data, message.key, message.event_time) == (b"poison", "k", 7)
        assert message.properties == {
            "ORIGIN_MESSAGE_ID": str(message_id),
            "ORIGIN_MESSAGE_IDY_TIME": str(message_id),
            "REAL_SUBSCRIPTION": "sub",
            "REAL_TOPIC": full_topic,
            "x": "y",
        }
        dead.acknowledge(message)
    async with client.subscribe(topic, "sub", kind="shared") as consumer:
        assert await rest(consumer) == []


async def test_a_batch_goes_there_as_a_whole(client: Client, topic: str) -> None:
    """The broker counts entries: all messages of one are copied, each by itself."""
    policy = DeadLetterPolicy(1, topic=f"{topic}-dead", initial_subscription="kept")
    async with (
        client.subscribe(
            topic, "sub", kind="shared", negative_acknowledgement_delay=0.1, dead_letter=policy
        ) as consumer,
        client.create_producer(topic, batching=BatchingPolicy(max_messages=5, max_delay=10.0)) as producer,
    ):
        await producer.send_many(payloads(5))
        for _ in range(2):
            consumer.negative_acknowledge(await receive(consumer, 5))
        assert await rest(consumer, quiet=1.5) == []
    async with client.subscribe(f"{topic}-dead", "kept", kind="shared") as dead:
        copies = await receive_and_acknowledge(dead, 5)
        assert [message.data for message in copies] == payloads(5)


async def test_the_dead_letter_topic_may_have_partitions(
    client: Client, topic: str, broker: BrokerUnderTest
) -> None:
    dead_topic = f"{topic}-dead"
    await broker.create_partitioned_topic(dead_topic, 2)
    policy = DeadLetterPolicy(1, topic=dead_topic, initial_subscription="kept")
    async with (
        client.subscribe(
            topic, "sub", kind="shared", negative_acknowledgement_delay=0.1, dead_letter=policy
        ) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(6))
        for _ in range(2):
            consumer.negative_acknowledge(await receive(consumer, 6))
        assert await rest(consumer, quiet=1.5) == []
    copies = []
    for partition in range(2):
        async with client.subscribe(f"{dead_topic}-partition-{partition}", "kept", kind="shared") as dead:
            copies += await rest(dead)
    assert sorted(message.data for message in copies) == payloads(6)


async def test_later(client: Client, topic: str) -> None:
    """Rules RETRY-01 to RETRY-03: twice, then it is a dead letter."""
    policy = DeadLetterPolicy(2, initial_subscription="kept")
    async with (
        client.subscribe(topic, "sub", kind="shared", retry=True, dead_letter=policy) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"later", key="k", properties={"x": "y"})
        earliest = 0.0
        for count in range(3):
            message = await consumer.receive()
            assert trio.current_time() >= earliest
            assert (message.data, message.key) == (b"later", "k")
            assert message.properties.get("RECONSUMETIMES", "0") == str(count)
            earliest = trio.current_time() + 0.5  # the broker may be early by its tick of 1 s
            await consumer.reconsume_later(message, 1.6, {"why": "busy"})
        assert await rest(consumer, quiet=1.0) == []
    async with client.subscribe(f"{topic}-sub-DLQ", "kept", kind="shared") as dead:
        message = await dead.receive()
        assert message.properties["RECONSUMETIMES"] == "3"
        assert (message.properties["x"], message.properties["why"]) == ("y", "busy")
        dead.acknowledge(message)
    async with client.subscribe(topic, "sub", kind="shared", retry=True, dead_letter=policy) as consumer:
        assert await rest(consumer) == []


async def test_several_later(client: Client, topic: str) -> None:
    """They come again in the order they were put off in."""
    async with (
        client.subscribe(topic, "sub", kind="shared", retry=True) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send_many(payloads(10))
        await consumer.reconsume_later(await receive(consumer, 10), 0.2)
        again = await receive_and_acknowledge(consumer, 10)
        assert [message.data for message in again] == payloads(10)
        assert {message.topic for message in again} == {f"{topic}-sub-RETRY"}
        await consumer.reconsume_later([], 0.2)


async def test_later_of_a_topic_with_partitions(client: Client, topic: str, broker: BrokerUnderTest) -> None:
    await broker.create_partitioned_topic(topic, 3)
    async with (
        client.subscribe(topic, "sub", kind="shared", retry=True) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(6))
        for message in await receive(consumer, 6):
            await consumer.reconsume_later(message, 0.2)
        again = await receive_and_acknowledge(consumer, 6)
        assert sorted(message.data for message in again) == payloads(6)
        assert {message.topic for message in again} == {f"{topic}-sub-RETRY"}
        assert await rest(consumer) == []
