"""One consumer of several topics and of partitioned ones: against our broker and a real one."""

from collections import defaultdict

import pytest
import trio

from pulsar_trio import Client, Message, MessageId, TopicMessageId
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import grow, receive, receive_and_acknowledge, rest


def by_topic(messages: list[Message]) -> dict[str, list[bytes | None]]:
    found = defaultdict(list)
    for message in messages:
        found[message.topic].append(message.value)
    return dict(found)


async def test_a_partitioned_topic_is_one_consumer(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """Every message is delivered, in order within a partition, with an id that says which. Acknowledged
    messages are not redelivered."""
    await broker.create_partitioned_topic(topic, 3)
    async with client.subscribe(topic, "work", "exclusive") as consumer:
        assert consumer.topics == [f"{topic}-partition-{index}" for index in range(3)]
        async with client.create_producer(topic, batching=None) as producer:
            sent = dict(zip(await producer.send_many([b"%d" % n for n in range(60)]), range(60), strict=True))
        messages = await receive(consumer, 60)
        assert {message.message_id: int(message.data) for message in messages} == sent
        for index in range(3):
            of_one = [message for message in messages if message.message_id.partition == index]
            assert [message.message_id for message in of_one] == sorted(m.message_id for m in of_one)
            consumer.acknowledge_cumulative(of_one[9])
        consumer.acknowledge([message.message_id for message in messages[::2]])
        await consumer.flush()
        remaining = {
            message.data
            for index in range(3)
            for message in [m for m in messages if m.message_id.partition == index][10:]
        } - {message.data for message in messages[::2]}
    async with client.subscribe(topic, "work", "exclusive") as consumer:
        assert {message.data for message in await rest(consumer)} == remaining


async def test_several_topics_of_which_one_has_partitions(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    other = f"{topic}-other"
    await broker.create_partitioned_topic(topic, 2)
    async with client.subscribe([topic, other], "work", acknowledgement_receipts=True) as consumer:
        async with client.create_producer(topic, routing="round_robin", batching=None) as producer:
            await producer.send_many([b"1", b"2"])
        async with client.create_producer(other) as producer:
            await producer.send(b"3")
        messages = await receive(consumer, 3)
        assert sorted(by_topic(messages)) == sorted([other, f"{topic}-partition-0", f"{topic}-partition-1"])
        consumer.acknowledge([TopicMessageId(message.topic, message.message_id) for message in messages[:2]])
        consumer.negative_acknowledge(messages[2])
        await consumer.flush()
        consumer.redeliver_unacknowledged()
        (again,) = await receive(consumer, 1)
        assert (again.topic, again.data) == (messages[2].topic, messages[2].data)
        await consumer.unsubscribe()
    assert await broker.subscriptions(other) == []
    assert await broker.subscriptions(f"{topic}-partition-1") == []


async def test_new_partitions_are_consumed_from_their_beginning(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """A subscription exists in new partitions as soon as they do: nothing sent to them before the consumer
    finds them is lost."""
    await broker.create_partitioned_topic(topic, 1)
    async with client.subscribe(topic, "work", partitions_update_interval=0.2) as consumer:
        await grow(broker, topic, 3)
        async with client.create_producer(topic, batching=None) as producer:
            assert producer.partitions == 3
            await producer.send_many([b"%d" % number for number in range(9)])
        messages = await receive_and_acknowledge(consumer, 9)
        assert sorted(message.data for message in messages) == [b"%d" % number for number in range(9)]
        assert {message.message_id.partition for message in messages} == {0, 1, 2}


async def test_a_topic_that_cannot_be_subscribed_closes_the_others(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """The exclusive consumer of the other topic finds its place free."""
    other = f"{topic}-other"
    async with client.subscribe(other, "work", "exclusive"):
        with pytest.raises(Exception, match=r"[Ee]xclusive"):
            async with client.subscribe([topic, other], "work", "exclusive"):
                raise AssertionError("it is taken")
    async with client.subscribe(topic, "work", "exclusive"):
        await trio.lowlevel.checkpoint()


async def test_unloading_topics_loses_nothing(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 2)
    async with (
        client.subscribe(topic, "work", "exclusive") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many([b"%d" % number for number in range(20)])
        first = await receive_and_acknowledge(consumer, 5)
        await consumer.flush()
        for index in range(2):
            await broker.unload(f"{topic}-partition-{index}")
        await producer.send_many([b"%d" % number for number in range(20, 40)])
        received = {message.data for message in first}
        while len(received) < 40:  # what was on its way comes twice
            (message,) = await receive_and_acknowledge(consumer, 1)
            received.add(message.data)
        assert received == {b"%d" % number for number in range(40)}


async def test_an_id_says_which_topic(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with client.subscribe([topic, f"{topic}-other"], "work") as consumer:
        with pytest.raises(Exception, match="TopicMessageId"):
            consumer.acknowledge(MessageId(1, 1))


async def test_seeking_moves_all_topics_or_the_one_that_is_said(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """MULTI-26; and `last_message_ids` of each."""
    await broker.create_partitioned_topic(topic, 2)
    async with (
        client.subscribe(topic, "work", "exclusive") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        sent = await producer.send_many([b"%d" % number for number in range(6)])
        messages = await receive_and_acknowledge(consumer, 6)
        assert not await consumer.has_message_available()
        await consumer.seek("earliest")
        again = await receive_and_acknowledge(consumer, 6)
        assert sorted(message.data for message in again) == sorted(message.data for message in messages)
        of_first = [message for message in messages if message.message_id.partition == 0]
        await consumer.seek(of_first[1])
        assert [message.data for message in await rest(consumer)] == [of_first[2].data]
        await consumer.seek(lambda name: "latest" if name.endswith("-0") else "earliest")
        assert {message.message_id.partition for message in await rest(consumer)} == {1}
        last = await consumer.last_message_ids()
        assert [message_id for _, message_id in last] == [
            max(message_id for message_id in sent if message_id.partition == index) for index in range(2)
        ]
        assert [name for name, _ in last] == consumer.topics
        with pytest.raises(Exception, match="last_message_ids gives all"):
            await consumer.last_message_id()
