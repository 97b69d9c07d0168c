"""The official client produces to our broker and consumes from it: payloads, codecs, batches, partitions."""

from typing import Any

import pulsar
import pytest

from tests.official.client import (
    CODECS,
    Letter,
    consume,
    in_thread,
    official_client,
    produce,
    readable_by_the_official_client,
    take,
)
from tests.suite.brokers import OurBroker

LETTERS = [
    Letter(b"plain"),
    Letter(b""),
    Letter(b"key and properties", key="key-1", properties={"one": "1", "two": "zwei"}),
    Letter(b"time", event_time=1_700_000_000_123),
    Letter(None, key="deleted"),
    *(Letter(b"%d" % number * 50, key=f"k{number % 3}") for number in range(50)),
]

BATCHED: dict[bool, dict[str, Any]] = {
    True: {"batching_enabled": True, "batching_max_messages": 20, "batching_max_publish_delay_ms": 20},
    False: {"batching_enabled": False},
}


@pytest.mark.parametrize("batched", [True, False], ids=["batched", "unbatched"])
@pytest.mark.parametrize("codec", list(CODECS))
async def test_every_message_arrives_as_it_was_sent(
    broker: OurBroker, topic: str, codec: str, batched: bool
) -> None:
    sent = readable_by_the_official_client(LETTERS, codec, batched)
    options = BATCHED[batched] | {"compression_type": CODECS[codec]}
    await in_thread(produce, broker.url, topic, sent, **options)
    assert await in_thread(consume, broker.url, topic, len(sent)) == sent


async def test_another_name_of_the_broker(broker: OurBroker, topic: str) -> None:
    """The client is told to use the service URL as a proxy, and does."""
    await in_thread(produce, broker.url_by_another_name, topic, LETTERS)
    assert await in_thread(consume, broker.url_by_another_name, topic, len(LETTERS)) == LETTERS


async def test_many_messages_over_a_small_queue(broker: OurBroker, topic: str) -> None:
    """The permits keep flowing."""
    letters = [Letter(b"%d" % number) for number in range(2000)]
    await in_thread(produce, broker.url, topic, letters, **BATCHED[True], max_pending_messages=5000)
    assert await in_thread(consume, broker.url, topic, 2000, receiver_queue_size=50) == letters


async def test_the_message_id_of_a_send_is_that_of_the_received_message(
    broker: OurBroker, topic: str
) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(topic, "sub")
            producer = client.create_producer(topic)
            sent = [producer.send(b"%d" % number) for number in range(3)]
            assert [consumer.receive(5000).message_id() for _ in range(3)] == sent
            assert producer.last_sequence_id() == 2

    await in_thread(scenario)


async def test_partitioned_topic(broker: OurBroker, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)

    def scenario() -> None:
        with official_client(broker.url) as client:
            assert len(client.get_topic_partitions(topic)) == 3
            consumer = client.subscribe(topic, "sub", pulsar.ConsumerType.Shared)
            producer = client.create_producer(topic)
            for number in range(30):
                producer.send(b"%d" % number, partition_key=f"key-{number}")
            received = take(consumer, 30)
            assert sorted(int(letter.value or b"-1") for letter in received) == list(range(30))

    await in_thread(scenario)
