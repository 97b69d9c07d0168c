"""Several topics with the official client on the other end: its consumers of lists, patterns and partitions
at our broker, and ours beside it in one subscription."""

import re
from typing import Any

import pulsar
import trio

from pulsar_trio import TopicsPattern, open_client
from tests.official.client import RECEIVE_TIMEOUT, in_thread, open_official_client
from tests.suite.brokers import OurBroker


def received(consumer: Any, count: int) -> list[tuple[str, bytes]]:
    """Topic and payload, acknowledged."""
    found = []
    for _ in range(count):
        message = consumer.receive(RECEIVE_TIMEOUT)
        found.append((message.topic_name(), message.data()))
        consumer.acknowledge(message)
    return sorted(found)


async def test_its_consumer_of_a_list_and_of_a_pattern(broker: OurBroker, topic: str) -> None:
    """A message that one client acknowledged is not delivered to the other client of the same
    subscription."""
    names = [f"{topic}-{index}" for index in range(3)]
    for name in names:
        await broker.create_topic(name)
    sent = sorted((name, b"%d" % number) for name in names for number in range(4))
    async with open_official_client(broker.url) as official, open_client(broker.url) as client:
        shared = pulsar.ConsumerType.Shared
        of_list = await in_thread(official.subscribe, names, "list", shared)
        of_pattern = await in_thread(official.subscribe, re.compile(f"{topic}-.*"), "pattern", shared)
        for name in names:
            async with client.create_producer(name) as producer:
                await producer.send_many([b"%d" % number for number in range(4)])
        assert await in_thread(received, of_list, 12) == sent
        assert await in_thread(received, of_pattern, 12) == sent
        for consumer in (of_list, of_pattern):
            await in_thread(consumer.close)
        async with client.subscribe(names, "list") as ours:
            with trio.move_on_after(0.2):
                raise AssertionError(f"acknowledged before: {await ours.receive()}")


async def test_ours_and_its_share_the_partitions_of_a_topic(broker: OurBroker, topic: str) -> None:
    """Shared: everything arrives at one of the two."""
    await broker.create_partitioned_topic(topic, 3)
    async with open_official_client(broker.url) as official, open_client(broker.url) as client:
        theirs = await in_thread(official.subscribe, topic, "work", pulsar.ConsumerType.Shared)
        async with client.subscribe(TopicsPattern(f"{topic}.*"), "work") as ours:
            assert len(ours.topics) == 3
            async with client.create_producer(topic, batching=None) as producer:
                await producer.send_many([b"%d" % number for number in range(60)])
            found: set[bytes] = set()
            while len(found) < 60:
                with trio.move_on_after(0.05):
                    messages = await ours.receive_many()
                    ours.acknowledge(messages)
                    found |= {message.data for message in messages}
                try:
                    message = await in_thread(theirs.receive, 50)
                except pulsar.Timeout:
                    continue
                found.add(message.data())
                theirs.acknowledge(message)
            assert found == {b"%d" % number for number in range(60)}


async def test_its_topics_of_a_namespace_are_ours(broker: OurBroker, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 2)
    async with open_official_client(broker.url) as official, open_client(broker.url) as client:
        partitions = await in_thread(official.get_topic_partitions, topic)
        async with client.subscribe(topic, "work") as consumer:
            assert consumer.topics == sorted(partitions)
        assert topic in await client.topics("public/default")
