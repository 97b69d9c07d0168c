"""Messages larger than the broker accepts, in chunks, and the official client on the other end."""

from random import Random
from typing import Any

import pytest
import trio

from pulsar_trio import Client, OutgoingMessage
from tests.official.client import Letter, consume, in_thread, produce
from tests.patience import PATIENCE
from tests.suite.brokers import BrokerUnderTest
from tests.suite.consuming.test_unreadable import entry, send_by_hand
from tests.suite.helpers import cut, gather, receive, receive_and_acknowledge, rest
from tests.suite.line import Line

LARGE = Random(7).randbytes(11 * 1024 * 1024 + 5)
"""More than twice what a broker accepts."""

TEXT = b"compressible, but not small enough " * 600_000

CHUNKED: dict[str, Any] = {"batching": None, "chunking": True}

every_codec = pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])


@every_codec
async def test_a_large_message_comes_out_as_it_went_in(client: Client, topic: str, codec: Any) -> None:
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic, compression=codec, **CHUNKED) as producer,
    ):
        sent = await producer.send(OutgoingMessage(LARGE, key="k", properties={"a": "b"}))
        await producer.send(b"small")
        large, small = await receive_and_acknowledge(consumer, 2)
        assert large.data == LARGE
        assert (large.key, large.properties) == ("k", {"a": "b"})
        assert large.message_id == sent
        assert large.message_id.first_chunk == sent.first_chunk is not None
        assert small.data == b"small"
        await consumer.flush()


async def test_acknowledged_as_a_whole_it_is_not_redelivered(client: Client, topic: str) -> None:
    async with client.create_producer(topic, chunk_max_message_size=1000, **CHUNKED) as producer:
        async with client.subscribe(topic, "sub", initial_position="earliest") as consumer:
            for number in range(5):
                await producer.send(b"%d" % number * 2500)
            messages = await receive(consumer, 5)
            consumer.acknowledge(messages[1:3])
            await consumer.flush()
        async with client.subscribe(topic, "sub") as consumer:
            again = await receive_and_acknowledge(consumer, 3)
            assert [message.data[:1] for message in again] == [b"0", b"3", b"4"]


async def test_negatively_acknowledged_it_is_redelivered_whole(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", kind="shared", negative_acknowledgement_delay=0.2) as consumer,
        client.create_producer(topic, chunk_max_message_size=1000, **CHUNKED) as producer,
    ):
        await producer.send(b"x" * 4500)
        [message] = await receive(consumer, 1)
        consumer.negative_acknowledge(message)
        with trio.fail_after(PATIENCE):
            [again] = await receive_and_acknowledge(consumer, 1)
        assert again.data == message.data
        assert again.redelivery_count == 1


async def test_a_cut_in_the_middle_of_many_chunks_loses_nothing(
    client_on_line: Client, line: Line, topic: str
) -> None:
    """Chunks reach a new consumer. The subscription is not Shared: there a real Pulsar now and then goes on
    giving all copies of a message's chunks to the consumer that has gone, and no consumer gets them."""
    client = client_on_line
    async with (
        client.subscribe(topic, "sub", kind="exclusive") as consumer,
        client.create_producer(topic, chunk_max_message_size=100, **CHUNKED) as producer,
    ):
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                await producer.send_many([b"%04d" % number * 500 for number in range(40)])

            nursery.start_soon(send)
            await trio.sleep(0.02)
            await cut(line, topic)
        expected = {b"%04d" % number * 500 for number in range(40)}
        data: set[bytes] = set()
        while data != expected:  # one whose receipts were cut off comes twice
            [message] = await receive_and_acknowledge(consumer, 1)
            assert message.data in expected
            data.add(message.data)


async def test_of_a_shared_subscription_one_consumer_gets_a_message_whole(client: Client, topic: str) -> None:
    """A consumer that leaves without having acknowledged leaves all of the message to the other consumer."""
    payloads = [b"%02d" % number * 2500 for number in range(20)]
    async with (
        client.subscribe(topic, "sub", kind="shared", receiver_queue_size=20) as stays,
        client.create_producer(topic, chunk_max_message_size=1000, **CHUNKED) as producer,
    ):
        async with client.subscribe(topic, "sub", kind="shared", receiver_queue_size=20) as leaves:
            for payload in payloads:
                await producer.send(payload)
            left, kept = await gather([leaves, stays], 20, acknowledge=False)
            assert sorted(message.data for message in left + kept) == payloads
            assert left
            assert kept
        again = await receive_and_acknowledge(stays, len(left))
        assert sorted(message.data for message in again) == sorted(message.data for message in left)
        stays.acknowledge(kept)
        await stays.flush()
        assert await rest(stays) == []


@every_codec
async def test_the_official_client_reads_our_chunks(
    broker: BrokerUnderTest, client: Client, topic: str, codec: Any
) -> None:
    async with client.create_producer(topic, compression=codec, **CHUNKED) as producer:
        for payload in (LARGE, b"small", TEXT):
            await producer.send(payload)
    letters = await in_thread(consume, broker.url, topic, 3)
    assert [letter.value for letter in letters] == [LARGE, b"small", TEXT]


async def test_we_read_the_official_clients_chunks(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.subscribe(topic, "sub") as consumer:
        letters = [Letter(LARGE, key="k"), Letter(b"small"), Letter(TEXT)]
        await in_thread(produce, broker.url, topic, letters, chunking_enabled=True, batching_enabled=False)
        messages = await receive_and_acknowledge(consumer, 3)
        assert [message.data for message in messages] == [LARGE, b"small", TEXT]
        assert messages[0].key == "k"
        await consumer.flush()


def chunk(of: str, index: int, count: int = 2) -> tuple[bytes, int]:
    """One of the chunks of a message of which each holds two bytes."""
    data = entry(
        of.encode() * 2, uuid=of, chunk_id=index, num_chunks_from_msg=count, total_chunk_msg_size=2 * count
    )
    return data, 1


async def test_what_is_never_complete_is_let_go_when_its_time_is_over(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """The good message is acknowledged; nothing waits for the incomplete one meanwhile."""
    good = entry(b"good"), 1
    async with client.subscribe(topic, "sub", "exclusive"):
        pass
    await send_by_hand(broker, topic, [chunk("c", 1), chunk("a", 0), chunk("b", 0), chunk("b", 1), good])
    async with client.subscribe(
        topic, "sub", "exclusive", incomplete_chunked_message_timeout=0.2
    ) as consumer:
        messages = await receive_and_acknowledge(consumer, 2)
        assert [message.data for message in messages] == [b"bbbb", b"good"]
        while not consumer.statistics().undelivered.chunks_expired:  # noqa: ASYNC110
            await trio.sleep(0.02)
        await consumer.flush()
    async with client.subscribe(topic, "sub", "exclusive") as consumer:
        await send_by_hand(broker, topic, [good])
        assert (await consumer.receive()).data == b"good"
        assert consumer.statistics().bytes_received == len(b"good")  # nothing else came before it


async def test_for_one_message_more_than_is_kept_the_oldest_goes(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    """The application decides whether a dropped message is redelivered."""
    everything = [chunk(of, index, 3) for index in range(3) for of in "abc"]
    async with client.subscribe(
        topic, "sub", max_pending_chunked_messages=2, acknowledge_dropped_chunks=True
    ) as consumer:
        await send_by_hand(broker, topic, everything)
        messages = await receive_and_acknowledge(consumer, 2)
        assert [message.data for message in messages] == [b"b" * 6, b"c" * 6]
        await consumer.flush()
    async with client.subscribe(topic, "sub") as consumer:
        assert await rest(consumer) == []
