"""An application's mistakes with a consumer: each is one clear error, at once, and nothing is lost."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from pulsar_trio import (
    Client,
    KeySharedPolicy,
    MessageId,
    PulsarError,
    SharedConsumer,
    TopicMessageId,
)
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import numbers, payloads, receive, receive_and_acknowledge, rest


async def test_of_one_topic(client: Client, topic: str) -> None:
    """Everything is there afterwards: none of it was acknowledged, negatively acknowledged or passed over."""
    async with (
        client.subscribe(topic, "sub", kind="shared") as consumer,
        client.subscribe(f"{topic}-other", "sub") as other,
        client.create_producer(topic) as producer,
        client.create_producer(f"{topic}-other") as elsewhere,
    ):
        await producer.send_many(payloads(5))
        await elsewhere.send(b"foreign")
        messages = await receive(consumer, 5)
        foreign = await other.receive()
        mistakes: list[tuple[Callable[..., Any], Any, str]] = [
            (consumer.acknowledge, foreign, "-other"),
            (consumer.acknowledge, [*messages, foreign], "-other"),
            (consumer.acknowledge, [*messages, 7], "not int"),
            (consumer.acknowledge, "1:2", "not str"),
            (consumer.acknowledge, TopicMessageId(f"{topic}-other", messages[0].message_id), "-other"),
            (consumer.acknowledge, MessageId(0, 0, 3), "partition 3"),
            (consumer.negative_acknowledge, foreign, "-other"),
            (consumer.negative_acknowledge, [*messages, None], "not NoneType"),
        ]
        for call, what, words in mistakes:
            with pytest.raises(PulsarError, match=words):
                call(what)
        assert isinstance(consumer, SharedConsumer)
        assert not hasattr(consumer, "acknowledge_cumulative")
        places: list[tuple[Any, str]] = [
            (foreign, "-other"),
            (TopicMessageId(f"{topic}-other", messages[0].message_id), "-other"),
            ("yesterday", "'earliest' or 'latest'"),
            (-1, "-1"),
            (lambda name: None, "None"),
        ]
        for target, words in places:
            with pytest.raises(PulsarError, match=words):
                await consumer.seek(target)
        for delay in (-1.0, float("nan")):
            with pytest.raises(PulsarError, match=r"delay|retry=True"):
                await consumer.reconsume_later(messages[0], delay)
        await consumer.flush()
    for call, what, _ in mistakes:
        with pytest.raises(PulsarError, match="closed"):
            call(what)
    with pytest.raises(PulsarError, match="closed"):
        consumer.acknowledge(messages)
    async with client.subscribe(topic, "sub", kind="shared") as consumer:
        assert sorted(numbers(await receive_and_acknowledge(consumer, 5))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("topics", "options", "words"),
    [
        (["a", "b"], {"receiver_queue_size": 0}, "receiver_queue_size"),
        (["a", "a"], {}, "twice"),
        ([], {}, "topic"),
        (re.compile("persistent://public/default/(?=x)x"), {}, "pattern"),
        (re.compile("(a+)+$"), {"receiver_queue_size": 0}, "receiver_queue_size"),
        ("a", {"negative_acknowledgement_delay": -1.0}, "negative_acknowledgement_delay"),
        ("a", {"acknowledgement_group_time": -0.1}, "acknowledgement_group_time"),
        ("a", {"acknowledgement_timeout": -5.0}, "acknowledgement_timeout"),
        ("a", {"kind": "shared", "read_compacted": True}, "read_compacted"),
        ("a", {"kind": "exclusive", "key_shared": KeySharedPolicy()}, "key_shared"),
        ("a", {"durable": True, "start_message_id": MessageId(1, 1)}, "start_message_id"),
    ],
)
async def test_when_subscribing(client: Client, topics: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PulsarError, match=words):
        async with client.subscribe(topics, "sub", **{"kind": "shared", **options}):
            raise AssertionError("it is not possible")


async def test_a_partitioned_topic_and_a_queue_of_size_0(
    client: Client, topic: str, broker: BrokerUnderTest
) -> None:
    """Only the broker knows that it has partitions. What the subscription has is still there."""
    await broker.create_partitioned_topic(topic, 2)
    async with client.subscribe(topic, "sub") as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(4))
        with pytest.raises(PulsarError, match="receiver_queue_size"):
            async with client.subscribe(topic, "sub", receiver_queue_size=0):
                raise AssertionError("it is not possible")
        assert sorted(numbers(await receive_and_acknowledge(consumer, 4))) == [0, 1, 2, 3]
        assert await rest(consumer) == []
