"""Producers of partitioned topics: where keys go, and what holds while partitions come and go."""

from collections import defaultdict
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import pytest
import trio

from pulsar_trio import Client, MessageId, OutgoingMessage, open_client
from tests.official.client import Letter, in_thread, produce
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import first_occurrences, gather, numbers, receive, receive_and_acknowledge

KEYS = [f"key-{number}" for number in range(9)] + ["ключ", "a longer key of more than sixteen bytes"]

PARTITIONS_OF_KEYS = {
    "java_string": [2, 0, 1, 2, 0, 1, 2, 0, 1],
    "murmur3_32": [2, 1, 1, 2, 1, 1, 1, 2, 1],
    "boost": [0, 0, 1, 2, 1, 1, 0, 2, 2],
}
"""The partitions of `key-0` to `key-8` among 3. Recorded clients put boost and the first six of java_string
so."""


Stored: TypeAlias = dict[int, list[tuple[str | None, bytes | None]]]


async def stored(client: Client, topic: str, partitions: int, count: int) -> Stored:
    """Partition -> key and value of what is in it; `count` messages in all."""
    async with AsyncExitStack() as stack:
        consumers = [
            await stack.enter_async_context(
                client.subscribe(f"{topic}-partition-{index}", "reading", initial_position="earliest")
            )
            for index in range(partitions)
        ]
        found = await gather(consumers, count)
    return {
        index: [(message.key, message.value) for message in messages] for index, messages in enumerate(found)
    }


@pytest.mark.parametrize("hashing", list(PARTITIONS_OF_KEYS))
async def test_keys_go_where_their_hash_says(
    broker: BrokerUnderTest, client: Client, topic: str, hashing: Any
) -> None:
    await broker.create_partitioned_topic(topic, 3)
    messages = [OutgoingMessage(b"%d" % number, key=f"key-{number}") for number in range(9)]
    async with client.create_producer(topic, hashing=hashing) as producer:
        message_ids = await producer.send_many(messages)
        assert producer.partitions == 3
    assert [message_id.partition for message_id in message_ids] == PARTITIONS_OF_KEYS[hashing]
    found = await stored(client, topic, 3, 9)
    for number, partition in enumerate(PARTITIONS_OF_KEYS[hashing]):
        assert (f"key-{number}", b"%d" % number) in found[partition]


async def test_a_key_goes_where_the_official_client_puts_it(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """Its hash is Boost's."""
    await broker.create_partitioned_topic(topic, 5)
    letters = [Letter(b"theirs", key=key) for key in KEYS]
    await in_thread(produce, broker.url, topic, letters)
    async with client.create_producer(topic, hashing="boost") as producer:
        await producer.send_many([OutgoingMessage(b"ours", key=key) for key in KEYS])
    where: dict[str | None, list[tuple[int, bytes | None]]] = defaultdict(list)
    for partition, messages in (await stored(client, topic, 5, 2 * len(KEYS))).items():
        for key, value in messages:
            where[key].append((partition, value))
    assert sorted(filter(None, where)) == sorted(KEYS)
    for both in where.values():
        (theirs, first), (ours, second) = both
        assert (theirs, first, second) == (ours, b"theirs", b"ours")


async def test_a_key_of_bytes_arrives_as_bytes_where_its_text_goes(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    await broker.create_partitioned_topic(topic, 4)
    async with client.create_producer(topic, hashing="murmur3_32") as producer:
        message_id = await producer.send(b"", key=b"\x00\xff")
        assert (await producer.send(b"", key="AP8=")).partition == message_id.partition
    async with client.subscribe(
        f"{topic}-partition-{message_id.partition}", "reading", initial_position="earliest"
    ) as consumer:
        as_bytes, as_text = await receive_and_acknowledge(consumer, 2)
    assert (as_bytes.key, as_bytes.has_base64_key, as_bytes.key_bytes) == ("AP8=", True, b"\x00\xff")
    assert (as_text.key, as_text.has_base64_key, as_text.key_bytes) == ("AP8=", False, b"AP8=")


async def test_what_is_sent_arrives_in_order_with_the_ids_that_were_told(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """Round robin spreads it, a custom function puts it where it says; order holds in each partition. Rule
    PART-15."""
    await broker.create_partitioned_topic(topic, 4)
    sent: dict[int, list[tuple[MessageId, bytes]]] = defaultdict(list)
    for routing in ("round_robin", lambda message, count: int(message.payload) % count):
        async with client.create_producer(topic, routing=routing, batching=None) as producer:
            payloads = [b"%d" % number for number in range(40)]
            for message_id, payload in zip(await producer.send_many(payloads), payloads, strict=True):
                sent[message_id.partition].append((message_id, payload))
    assert [len(messages) for messages in sent.values()] == [20] * 4
    for index in range(4):
        name = f"{topic}-partition-{index}"
        async with client.subscribe(name, "reading", initial_position="earliest") as consumer:
            received = await receive_and_acknowledge(consumer, 20)
            assert [(message.message_id, message.value) for message in received] == sent[index]
            if index == 1:
                assert [payload for _, payload in sent[index][10:]] == [b"%d" % n for n in range(1, 40, 4)]


async def test_unloading_partitions_loses_and_reorders_nothing(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    await broker.create_partitioned_topic(topic, 3)
    async with AsyncExitStack() as stack:
        consumers = [
            await stack.enter_async_context(client.subscribe(f"{topic}-partition-{index}", "reading"))
            for index in range(3)
        ]
        producer = await stack.enter_async_context(client.create_producer(topic))
        receipts = []
        for number in range(300):
            receipts.append(await producer.enqueue(b"%d" % number, key=f"k{number % 7}"))
            if number % 100 == 50:
                await broker.unload(f"{topic}-partition-{number // 100}")
            await trio.sleep(0.001)
        message_ids = [await receipt.wait() for receipt in receipts]
        assert len(set(message_ids)) == 300
        for index, consumer in enumerate(consumers):
            expected = [number for number, found in enumerate(message_ids) if found.partition == index]
            values: list[int] = []
            while not set(expected) <= set(values):
                values += numbers(await receive(consumer, 1))
            assert first_occurrences(values) == expected


async def test_new_partitions_are_found_and_used(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 1)
    async with client.create_producer(topic, partitions_update_interval=0.1, batching=None) as producer:
        assert (await producer.send(b"0")).partition == 0
        assert (await broker.request("POST", f"{topic_path(topic)}/partitions", 3))[0] == 204
        while producer.partitions < 3:  # noqa: ASYNC110
            await trio.sleep(0.02)
        message_ids = await producer.send_many([b"%d" % number for number in range(1, 7)])
        assert sorted(message_id.partition for message_id in message_ids) == [0, 0, 1, 1, 2, 2]
        statistics = producer.partition_statistics()
        assert [(each.connected, each.confirmed) for each in statistics] == [(True, 3), (True, 2), (True, 2)]


async def test_lazily_opened_by_the_first_message(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    await broker.create_partitioned_topic(topic, 3)
    async with client.create_producer(topic, lazy_start=True, routing="single_partition") as producer:
        assert sorted(each.connected for each in producer.partition_statistics()) == [False, False, True]
        for number in range(9):
            await producer.send(b"%d" % number, key=f"key-{number}")
        assert all(each.connected for each in producer.partition_statistics())


async def test_a_producer_name_is_every_partitions_and_cannot_be_taken_twice(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """The refusal of one partition closes what was opened; then it can be taken again."""
    await broker.create_partitioned_topic(topic, 2)
    async with client.create_producer(f"{topic}-partition-1", name="mine"):
        with pytest.raises(Exception, match="mine"):
            async with client.create_producer(topic, name="mine"):
                pass
    async with client.create_producer(topic, name="mine") as producer, open_client(broker.url) as other:
        assert producer.name == "mine"
        with pytest.raises(Exception, match="mine"):
            async with other.create_producer(topic, name="mine"):
                pass
        await producer.send(b"still here")
