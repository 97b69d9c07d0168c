"""Compaction: asked for over HTTP, read by readers and by consumers that want it."""

import pytest
import trio

from pulsar_sansio import InvalidConfiguration
from pulsar_trio import BatchingPolicy, Client, OutgoingMessage
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive, rest


def keyed(key: str | None, payload: bytes | None) -> OutgoingMessage:
    return OutgoingMessage(payload, key=key)


async def compact(broker: BrokerUnderTest, topic: str) -> None:
    path = f"{topic_path(topic)}/compaction"
    assert await broker.request("PUT", path) == (204, None)
    while (answer := await broker.request("GET", path)) != (200, {"status": "SUCCESS", "lastError": ""}):
        assert answer[0] == 200
        assert answer[1]["status"] == "RUNNING"
        await trio.sleep(0.05)


async def read(client: Client, topic: str, compacted: bool = True) -> list[tuple[str | None, bytes]]:
    async with client.create_reader(topic, "earliest", read_compacted=compacted) as reader:
        return [(message.key, message.data) async for message in reader.until_latest()]


@pytest.mark.parametrize("batched", [False, True], ids=["singles", "batches"])
async def test_the_last_message_of_every_key(
    broker: BrokerUnderTest, client: Client, topic: str, batched: bool
) -> None:
    """Rule MSG-08."""
    batching = BatchingPolicy(max_messages=4, max_delay=1.0) if batched else None
    async with client.create_producer(topic, batching=batching) as producer:
        sent = [
            ("a", b"1"),
            ("b", b"1"),
            ("c", b"1"),
            (None, b"1"),
            ("a", b"2"),
            ("b", None),
            ("d", b"1"),
            ("d", b"2"),
        ]
        await producer.send_many([keyed(key, payload) for key, payload in sent])
        await compact(broker, topic)
        assert await read(client, topic) == [("c", b"1"), ("a", b"2"), ("d", b"2")]
        assert len(await read(client, topic, compacted=False)) == 8
        await producer.send_many([keyed("a", b"3"), keyed("c", None), keyed("e", b"1"), keyed("e", b"2")])
        assert await read(client, topic) == [
            ("c", b"1"),
            ("a", b"2"),
            ("d", b"2"),
            ("a", b"3"),
            ("c", b""),
            ("e", b"1"),
            ("e", b"2"),
        ]
        await compact(broker, topic)
        assert await read(client, topic) == [("d", b"2"), ("a", b"3"), ("e", b"2")]


async def test_the_last_messages_are_gone(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """A reader that reads to the end does not wait for a message that compaction has removed."""
    async with client.create_producer(
        topic, batching=BatchingPolicy(max_messages=3, max_delay=1.0)
    ) as producer:
        await producer.send_many([keyed("a", b"1"), keyed("b", b"1"), keyed("b", None)])
        await compact(broker, topic)
        assert await read(client, topic) == [("a", b"1")]
        await producer.send_many([keyed("a", None), keyed("b", None), keyed("c", None)])
        await compact(broker, topic)
        assert await read(client, topic) == []


async def test_a_durable_subscription(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send_many([keyed(f"k{number % 3}", b"%d" % number) for number in range(9)])
        await compact(broker, topic)
        async with client.subscribe(
            topic, "sub", "exclusive", initial_position="earliest", read_compacted=True
        ) as consumer:
            first = await receive(consumer, 2)
            assert [message.data for message in first] == [b"6", b"7"]
            consumer.acknowledge_cumulative(first[-1])
            await consumer.flush()
        async with client.subscribe(topic, "sub", "exclusive", read_compacted=True) as consumer:
            assert [message.data for message in await rest(consumer, quiet=1.0)] == [b"8"]


async def test_shared_subscriptions_cannot(client: Client, topic: str) -> None:
    with pytest.raises(InvalidConfiguration, match="read_compacted"):
        async with client.subscribe(topic, "sub", "shared", read_compacted=True):
            pass


async def test_over_http(broker: BrokerUnderTest, topic: str) -> None:
    path = f"{topic_path(topic)}/compaction"
    assert (await broker.request("PUT", path))[0] == 404
    assert (await broker.request("GET", path))[0] == 404
    await broker.create_topic(topic)
    assert await broker.request("GET", path) == (200, {"status": "NOT_RUN", "lastError": ""})
    await compact(broker, topic)
    _, stats = await broker.request("GET", f"{topic_path(topic)}/stats")
    assert stats["compaction"]["lastCompactionSucceedTimestamp"] > 0
    assert "__compaction" in stats["subscriptions"]
