"""Partitioned topics shared with the official client: it finds what our producer spread where the key
belongs, and puts its own there."""

from typing import Any

import pulsar
import pytest

from pulsar_trio import OutgoingMessage, open_client
from tests.official.client import RECEIVE_TIMEOUT, in_thread, official_client, open_official_client
from tests.suite.brokers import OurBroker

KEYS = [f"key-{number}" for number in range(20)]


@pytest.mark.parametrize("hashing", ["java_string", "murmur3_32", "boost"])
async def test_its_consumer_finds_every_key_in_our_producers_partition(
    broker: OurBroker, topic: str, hashing: Any
) -> None:
    await broker.create_partitioned_topic(topic, 4)
    async with open_official_client(broker.url) as official:
        consumer = await in_thread(official.subscribe, topic, "sub", pulsar.ConsumerType.Shared)
        async with open_client(broker.url) as client, client.create_producer(topic, hashing=hashing) as ours:
            message_ids = await ours.send_many([OutgoingMessage(key.encode(), key=key) for key in KEYS])
        told = {key: message_id.partition for key, message_id in zip(KEYS, message_ids, strict=True)}

        def receive() -> dict[str, int]:
            found = {}
            for _ in KEYS:
                message = consumer.receive(RECEIVE_TIMEOUT)
                assert message.topic_name().endswith(f"-partition-{message.message_id().partition()}")
                found[message.partition_key()] = message.message_id().partition()
                consumer.acknowledge(message)
            return found

        assert await in_thread(receive) == told
    assert len(set(told.values())) == 4


async def test_its_producer_puts_a_key_where_ours_does(broker: OurBroker, topic: str) -> None:
    """The official client's default hashing is `boost` here."""
    await broker.create_partitioned_topic(topic, 7)

    def theirs() -> dict[str, int]:
        with official_client(broker.url) as client:
            producer = client.create_producer(topic)
            return {key: producer.send(b"theirs", partition_key=key).partition() for key in KEYS}

    expected = await in_thread(theirs)
    async with open_client(broker.url) as client, client.create_producer(topic, hashing="boost") as ours:
        found = {key: (await ours.send(b"ours", key=key)).partition for key in KEYS}
    assert found == expected
    assert len(set(found.values())) > 1, "the keys are spread"
