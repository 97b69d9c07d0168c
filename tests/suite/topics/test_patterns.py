"""Consumers of all topics that match, and lists of topics: against our broker and a real one."""

import re
from zlib import crc32

import pytest
import trio

from pulsar_sansio import InvalidConfiguration
from pulsar_trio import Client, Consumer, TopicsPattern
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import cut, receive, receive_and_acknowledge, until
from tests.suite.line import Line

NAMESPACE = "public/default"


@pytest.fixture
def topic(topic: str) -> str:
    """A short name: brokers watch patterns of 50 characters and less."""
    return f"persistent://{NAMESPACE}/w{crc32(topic.encode()):08x}"


def pattern_of(topic: str) -> str:
    return f"{topic.rsplit('/', 1)[1]}-.*"


async def has(consumer: Consumer, *names: str) -> None:
    """Wait until the consumer is subscribed to these topics."""

    async def subscribed() -> bool:
        return consumer.topics == sorted(names)

    await until(subscribed)


async def test_topics_that_match_are_consumed_those_that_come_too(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """The broker reports new and deleted topics at once: the consumer does not wait for a minute."""
    await broker.create_topic(f"{topic}-old")
    await broker.create_topic(f"{topic}other")
    pattern = TopicsPattern(f"persistent://{NAMESPACE}/{pattern_of(topic)}")
    async with client.subscribe(pattern, "work", initial_position="earliest") as consumer:
        await has(consumer, f"{topic}-old")
        await broker.create_partitioned_topic(f"{topic}-new", 2)
        parts = [f"{topic}-new-partition-0", f"{topic}-new-partition-1"]
        await has(consumer, *parts, f"{topic}-old")
        for name in (f"{topic}-old", f"{topic}-new", f"{topic}other"):
            async with client.create_producer(name, batching=None) as producer:
                await producer.send_many([b"1", b"2", b"3", b"4"] if name.endswith("new") else [b"1", b"2"])
        messages = await receive_and_acknowledge(consumer, 6)
        assert sorted(message.topic for message in messages) == [
            *sorted(parts * 2),
            f"{topic}-old",
            f"{topic}-old",
        ]
        await consumer.flush()
        await broker.delete_topic(f"{topic}-old")
        await has(consumer, *parts)


async def test_a_broker_that_does_not_say_so_is_asked(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """A pattern of more than 50 characters is not watched, and not applied, by the broker."""
    text = f"{NAMESPACE}/{pattern_of(topic)[:-2]}(x{{0,0}}){{0,3}}(y{{0,0}}){{0,3}}(z{{0,0}}){{0,3}}[a-f]+"
    assert len(text) > 50
    async with client.subscribe(TopicsPattern(text, discovery_interval=0.2), "work") as consumer:
        assert consumer.topics == []
        await broker.create_topic(f"{topic}-abc")
        await broker.create_topic(f"{topic}-xyz")
        await has(consumer, f"{topic}-abc")


async def test_the_topics_of_a_namespace(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    volatile = topic.replace("persistent://", "non-persistent://")
    await broker.create_topic(f"{topic}-plain")
    await broker.create_partitioned_topic(f"{topic}-parted", 2)
    async with client.subscribe(volatile, "work"):
        persistent = [f"{topic}-parted", f"{topic}-plain"]

        async def listed() -> bool:
            return [name for name in await client.topics(NAMESPACE) if name.startswith(topic)] == persistent

        await until(listed)
        assert volatile in await client.topics(NAMESPACE, "non_persistent")
        assert {*persistent, volatile} <= set(await client.topics(NAMESPACE, "all"))


async def test_a_consumer_of_what_is_not_stored_too(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """Non-persistent topics are found by asking."""
    volatile = f"non-persistent://{topic.split('://')[1]}-x"
    pattern = TopicsPattern(f"non-persistent://{NAMESPACE}/{pattern_of(topic)}", discovery_interval=0.2)
    async with (
        client.subscribe(pattern, "work") as consumer,
        client.create_producer(volatile, batching=None) as producer,
    ):
        await has(consumer, volatile)
        await producer.send(b"1")
        (message,) = await receive(consumer, 1)
        assert (message.topic, message.data) == (volatile, b"1")


async def test_a_watch_outlives_its_connection(
    broker: BrokerUnderTest, client_on_line: Client, line: Line, topic: str
) -> None:
    pattern = re.compile(f"persistent://{NAMESPACE}/{pattern_of(topic)}")
    async with client_on_line.subscribe(pattern, "work") as consumer:
        await broker.create_topic(f"{topic}-a")
        await has(consumer, f"{topic}-a")
        await cut(line, topic)
        await broker.create_topic(f"{topic}-b")
        await has(consumer, f"{topic}-a", f"{topic}-b")


@pytest.mark.parametrize("pattern", ["(?=x).*", "(", r"(a)\1", "x" * 1001])
async def test_what_is_no_pattern_is_refused_at_once(client: Client, pattern: str) -> None:
    with pytest.raises(InvalidConfiguration, match="RE2 syntax"):
        async with client.subscribe(TopicsPattern(pattern), "work"):
            raise AssertionError("it is no pattern")
    await trio.lowlevel.checkpoint()
