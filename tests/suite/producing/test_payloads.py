"""A consumer receives exactly what was sent, both ways: codecs, batches and everything around a payload."""

from typing import Any

import pytest

from pulsar_sansio import MessageTooLarge
from pulsar_trio import BatchingPolicy, Client, OutgoingMessage
from tests.official.client import (
    CODECS,
    Letter,
    consume,
    in_thread,
    produce,
    readable_by_the_official_client,
)
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive_and_acknowledge

EVENT_TIME = 1_700_000_000_123

LETTERS = [
    Letter(b"plain"),
    Letter(b"", properties={"empty": ""}),
    Letter(b"with a key", key="key-1"),
    Letter(b"with properties", properties={"one": "1", "zwei": "zwei \N{GREEK SMALL LETTER BETA}"}),
    Letter(b"with a time", event_time=EVENT_TIME),
    Letter(b"with all", key="ключ", properties={"a": "b"}, event_time=EVENT_TIME + 1),
    Letter(b"compressible " * 1000),
    Letter(bytes(range(256)) * 4),
    Letter(None, key="deleted"),
]
"""A null value is not an empty one, and a key is not always there."""

BATCHED: dict[bool, dict[str, Any]] = {
    True: {"batching_enabled": True, "batching_max_messages": 1000, "batching_max_publish_delay_ms": 20},
    False: {"batching_enabled": False},
}

batched_or_not = pytest.mark.parametrize("batched", [True, False], ids=["batched", "unbatched"])
every_codec = pytest.mark.parametrize("codec", list(CODECS))


def outgoing(letter: Letter) -> OutgoingMessage:
    return OutgoingMessage(
        letter.value, key=letter.key, properties=letter.properties, event_time=letter.event_time
    )


async def send(client: Client, topic: str, letters: list[Letter], codec: Any, batched: bool) -> None:
    batching = BatchingPolicy(max_delay=0.02) if batched else None
    async with client.create_producer(topic, compression=codec, batching=batching) as producer:
        message_ids = await producer.send_many(map(outgoing, letters))
        assert len({message_id[:2] for message_id in message_ids}) == (1 if batched else len(letters))


async def receive_letters(client: Client, topic: str) -> list[Letter]:
    async with client.subscribe(topic, "ours", initial_position="earliest") as consumer:
        return [
            Letter(message.value, message.key, message.properties, message.event_time)
            for message in await receive_and_acknowledge(consumer, len(LETTERS))
        ]


@every_codec
@batched_or_not
async def test_our_messages_arrive_with_us(client: Client, topic: str, codec: Any, batched: bool) -> None:
    await send(client, topic, LETTERS, codec, batched)
    assert await receive_letters(client, topic) == LETTERS


@every_codec
@batched_or_not
async def test_our_messages_arrive_with_the_official_client(
    broker: BrokerUnderTest, client: Client, topic: str, codec: Any, batched: bool
) -> None:
    letters = readable_by_the_official_client(LETTERS, codec, batched)
    await send(client, topic, letters, codec, batched)
    assert await in_thread(consume, broker.url, topic, len(letters)) == letters


@every_codec
@batched_or_not
async def test_the_official_client_s_messages_arrive_with_us(
    broker: BrokerUnderTest, client: Client, topic: str, codec: Any, batched: bool
) -> None:
    await in_thread(produce, broker.url, topic, LETTERS, compression_type=CODECS[codec], **BATCHED[batched])
    assert await receive_letters(client, topic) == LETTERS


async def test_thousands_of_messages_keep_their_order(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic, compression="lz4") as producer,
    ):
        await producer.send_many(b"%d" % number for number in range(5000))
        received = await receive_and_acknowledge(consumer, 5000)
        assert [int(message.data) for message in received] == list(range(5000))
        assert [message.sequence_id for message in received] == list(range(5000))
        ids = [message.message_id for message in received]
        assert ids == sorted(ids)
        assert len(set(ids)) == 5000


async def test_a_message_of_the_largest_size(client: Client, topic: str) -> None:
    """A larger message is refused before it is sent; the producer goes on."""
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send(b"x" * (5 * 1024 * 1024 - 1024))
        with pytest.raises(MessageTooLarge):
            await producer.send(b"x" * (5 * 1024 * 1024 + 1))
        await producer.send(b"after")
        sizes = [len(message.data) for message in await receive_and_acknowledge(consumer, 2)]
        assert sizes == [5 * 1024 * 1024 - 1024, 5]


async def test_what_stands_on_a_received_message(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic, name="a-name", initial_sequence_id=41) as producer,
    ):
        message_id = await producer.send(b"x", key="k", ordering_key=b"order")
        message = await consumer.receive()
        assert message.message_id == message_id
        assert message.producer_name == "a-name"
        assert message.sequence_id == 42
        assert message.key == "k"
        assert message.ordering_key == b"order"
        assert message.topic == topic
        assert message.publish_time > EVENT_TIME
        assert message.redelivery_count == 0
