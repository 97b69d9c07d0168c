"""Values, times and names as applications write them, at both brokers."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import trio

from pulsar_trio import Client, Message, OutgoingMessage, open_client, serve
from tests.patience import give_up
from tests.real_pulsar import RealPulsar
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, receive, values

STAMPING = {
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "brokerEntryMetadataInterceptors": ",".join(
        f"org.apache.pulsar.common.intercept.Append{what}MetadataInterceptor"
        for what in ("BrokerTimestamp", "Index")
    ),
}
"""The settings that make a Pulsar tell clients of index and broker publish time."""


@pytest.mark.parametrize("batching", [True, False], ids=["batched", "unbatched"])
async def test_payloads_of_every_kind(client: Client, topic: str, batching: bool) -> None:
    """Rule SCHEMA-01."""
    options = {} if batching else {"batching": None}
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic, **options) as producer,  # type: ignore[call-overload]
    ):
        buffer = bytearray(b"buffer")
        receipt = await producer.enqueue(buffer)
        buffer[:] = b"------"
        await receipt.wait()
        await producer.send_many([memoryview(b"a view")[2:], None, OutgoingMessage(bytearray(b"array")), b""])
        await producer.send(None, key="k")
        messages = await receive(consumer, 6)
        assert values(messages) == [b"buffer", b"view", None, b"array", b"", None]
        assert messages[-1].key == "k"


async def test_times_are_datetimes(client: Client, topic: str) -> None:
    when = datetime(2026, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)
    before = datetime.now(UTC) - timedelta(minutes=5)
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"1", event_time=when)
        await producer.send(b"2", deliver_at=datetime.now(UTC) + timedelta(seconds=1))
        await producer.send(b"3", deliver_after=timedelta(milliseconds=10))
        messages = await receive(consumer, 3)
        assert {message.value for message in messages} == {b"1", b"2", b"3"}
        assert messages[0].event_datetime == when
        assert all(before < message.publish_datetime for message in messages)
        await consumer.seek(before)
        assert sorted(map(bytes, values(await receive(consumer, 3)))) == [b"1", b"2", b"3"]  # type: ignore[arg-type]
    async with client.create_reader(topic, before) as reader:
        assert (await reader.receive()).value == b"1"


async def test_partitions_have_names(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)
    names = await client.partitions(topic)
    assert names == [f"{topic}-partition-{index}" for index in range(3)]
    async with client.create_producer(names[2]) as producer, client.subscribe(topic, "sub") as consumer:
        await producer.send(b"there")
        assert consumer.topics == names
    async with client.create_reader(names[2], "earliest") as reader:
        assert (await reader.receive()).value == b"there"


async def test_the_last_sequence_id_is_that_of_what_is_confirmed(client: Client, topic: str) -> None:
    async with client.create_producer(topic) as producer:
        assert producer.last_sequence_id == -1
        await producer.send(b"0")
        assert producer.last_sequence_id == 0
        await producer.send_many(payloads(99))
        assert producer.last_sequence_id == 99
    assert producer.last_sequence_id == 99


async def test_the_service_url_may_change(broker: BrokerUnderTest, topic: str) -> None:
    """To another name of the same broker: producer and consumer go on."""
    async with (
        open_client(broker.url, initial_backoff=0.01) as client,
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"before")
        client.update_service_url(broker.url_by_another_name)
        await producer.send(b"after")
        received = [message.value async for message in _until(consumer, b"after")]
        assert received[0] == b"before"


async def _until(consumer: trio.abc.ReceiveChannel[Message], last: bytes) -> AsyncIterator[Message]:
    async for message in consumer:
        yield message
        if message.value == last:
            return


@pytest.fixture(scope="module")
def stamping_pulsar() -> Iterator[RealPulsar]:
    with RealPulsar(STAMPING) as pulsar:
        yield pulsar


@pytest.fixture(params=["ours", pytest.param("real", marks=pytest.mark.real)])
async def stamping_url(request: pytest.FixtureRequest, nursery: trio.Nursery) -> str:
    nursery.start_soon(give_up)
    if request.param == "real":
        url: str = request.getfixturevalue("stamping_pulsar").url
        return url
    broker = await nursery.start(partial(serve, 0, broker_entry_metadata=True))
    return str(broker.url)


async def test_index_and_time_of_the_broker(stamping_url: str, topic: str) -> None:
    """Singles, batches, and messages in chunks; again what is delivered again; as a reader has them."""
    before = datetime.now(UTC) - timedelta(minutes=5)
    async with open_client(stamping_url) as client:
        async with client.subscribe(topic, "sub", negative_acknowledgement_delay=0.1) as consumer:
            async with client.create_producer(topic) as producer:
                await producer.send(b"0")
                await producer.send_many(payloads(50, start=1))
            async with client.create_producer(topic, batching=None) as producer:
                await producer.send(b"51")
            messages = await receive(consumer, 52)
            assert values(messages) == payloads(52)
            assert [message.index for message in messages] == list(range(52))
            for message in messages:
                assert message.broker_publish_datetime is not None
                assert before < message.broker_publish_datetime < datetime.now(UTC) + timedelta(minutes=5)
            consumer.negative_acknowledge(messages[-1])
            again = (await receive(consumer, 1))[0]
            assert (again.index, again.broker_publish_time) == (51, messages[-1].broker_publish_time)
        in_chunks = client.create_producer(topic, batching=None, chunking=True, chunk_max_message_size=10)
        async with in_chunks as producer:
            await producer.send(bytes(25))
            await producer.send(b"end")
        async with client.create_reader(topic, "earliest") as reader:
            indexes = [(await reader.receive()).index for _ in range(54)]
        assert indexes == [*range(52), 54, 55], "each of three chunks is counted"
