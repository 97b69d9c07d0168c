"""Dead letters: what comes too often goes to another topic, and out of the way."""

import pytest
import trio

from pulsar_trio import (
    BatchingPolicy,
    Client,
    DeadLetterPolicy,
    ExclusiveConsumer,
    FailoverConsumer,
    OutgoingMessage,
)
from pulsar_trio.client.options import Kind
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, receive, receive_and_acknowledge, rest


async def test_what_comes_too_often_goes_to_the_dead_letters(client: Client, topic: str) -> None:
    """Rules DLQ-03, DLQ-04. No consumer has subscribed to the dead letters yet, and none is lost."""
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
    """Rules RETRY-01, RETRY-02, RETRY-03: twice, then it is a dead letter."""
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
    """The messages are delivered again in the order in which the application reconsumed them later."""
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


@pytest.mark.parametrize("kind", ["exclusive", "failover"])
async def test_later_where_one_consumer_gets_everything(client: Client, topic: str, kind: Kind) -> None:
    """The copy comes at once, as a broker delays nothing there; the third time it is a dead letter."""
    policy = DeadLetterPolicy(2, initial_subscription="kept")
    async with (
        client.subscribe(topic, "sub", kind=kind, retry=True, dead_letter=policy) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"later")
        for count in range(3):
            message = await consumer.receive()
            assert message.properties.get("RECONSUMETIMES", "0") == str(count)
            await consumer.reconsume_later(message, 60.0)
        assert await rest(consumer) == []
    async with client.subscribe(f"{topic}-sub-DLQ", "kept", kind="shared") as dead:
        assert (await dead.receive()).properties["RECONSUMETIMES"] == "3"
    async with client.subscribe(topic, "sub", kind=kind, retry=True, dead_letter=policy) as consumer:
        assert await rest(consumer) == []


@pytest.mark.parametrize("kind", ["exclusive", "failover"])
@pytest.mark.parametrize("batched", [False, True])
async def test_one_later_and_all_before_it_done(
    client: Client, topic: str, kind: Kind, batched: bool
) -> None:
    """Cumulatively, as far as that message; what is behind it is not touched, in its batch neither."""
    batching = BatchingPolicy(max_messages=4, max_delay=10.0) if batched else None
    async with client.subscribe(
        topic, "sub", kind=kind, retry=True, batch_index_acknowledgement=True
    ) as consumer:
        assert isinstance(consumer, ExclusiveConsumer | FailoverConsumer)
        async with client.create_producer(topic, batching=batching) as producer:
            await producer.send_many(payloads(12))
        messages = await receive(consumer, 12)
        await consumer.reconsume_later_cumulative(messages[6], 0.0, {"why": "busy"})
        again = await consumer.receive()
        assert (again.data, again.topic) == (b"6", f"{topic}-sub-RETRY")
        assert (again.properties["RECONSUMETIMES"], again.properties["why"]) == ("1", "busy")
        await consumer.reconsume_later_cumulative(again, 0.0)
        again = await consumer.receive()
        assert again.properties["RECONSUMETIMES"] == "2"
        consumer.acknowledge_cumulative(again)
        await consumer.flush()
    async with client.subscribe(topic, "sub", kind=kind, retry=True) as consumer:
        assert [message.data for message in await receive(consumer, 5)] == payloads(5, 7)
        assert await rest(consumer) == []


async def test_one_of_a_partition_later(client: Client, topic: str, broker: BrokerUnderTest) -> None:
    """Done is what is before it in its partition; the other is not concerned (ACK-25)."""
    await broker.create_partitioned_topic(topic, 2)
    async with client.subscribe(topic, "sub", kind="failover", retry=True) as consumer:
        assert isinstance(consumer, FailoverConsumer)
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(8))
        messages = await receive(consumer, 8)
        of_one = [message for message in messages if message.topic.endswith("-partition-0")]
        of_other = [message for message in messages if message not in of_one]
        await consumer.reconsume_later_cumulative(of_one[-1], 0.0)
        again = await consumer.receive()
        assert again.data == of_one[-1].data
        consumer.acknowledge(again)
        await consumer.flush()
    async with client.subscribe(topic, "sub", kind="failover", retry=True) as consumer:
        left = await receive(consumer, len(of_other))
        assert [message.data for message in left] == [message.data for message in of_other]
        assert await rest(consumer) == []
