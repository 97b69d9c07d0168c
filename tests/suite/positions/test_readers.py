"""Readers: where they begin, how far they read, and where another one goes on."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest
import trio

from pulsar_sansio import InvalidConfiguration, LocalProtocolError
from pulsar_trio import BatchingPolicy, Client, OutgoingMessage
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import Interruption, cut, grow, numbers, payloads, unload, until
from tests.suite.line import Line


@pytest.mark.parametrize("size", [1, 5], ids=["singles", "batches"])
async def test_until_latest(client: Client, topic: str, size: int) -> None:
    """Rule READER-04."""
    batching = BatchingPolicy(max_messages=size, max_delay=1.0) if size > 1 else None
    async with (
        client.create_producer(topic, batching=batching) as producer,
        client.create_reader(topic, "earliest") as reader,
    ):
        assert [message async for message in reader.until_latest()] == []
        await producer.send_many(payloads(20))
        assert numbers([message async for message in reader.until_latest()]) == list(range(20))
        assert not await reader.has_message_available()
        await producer.send_many(payloads(size, start=20))
        assert numbers([message async for message in reader.until_latest()]) == list(range(20, 20 + size))


async def test_part_of_the_keys(client: Client, topic: str) -> None:
    """Each reader has the keys whose hash is in its ranges; together they have all messages once."""
    keys = [f"key-{number}" for number in range(20)]
    async with client.create_producer(topic, batching=BatchingPolicy(by_key=True)) as producer:
        for number in range(100):
            await producer.enqueue(OutgoingMessage(b"%d" % number, key=keys[number % 20]))
        await producer.flush()
    seen: dict[str, int] = {}
    read: list[int] = []
    parts = [((0, 20_000),), ((20_001, 30_000), (50_001, 65_535)), ((30_001, 50_000),)]
    async with AsyncExitStack() as readers:
        opened = [
            await readers.enter_async_context(client.create_reader(topic, "earliest", key_hash_ranges=part))
            for part in parts
        ]

        async def follow(place: int) -> None:
            async for message in opened[place]:
                assert message.key is not None
                assert seen.setdefault(message.key, place) == place
                read.append(int(message.data))

        with pytest.raises(LocalProtocolError, match="until_latest"):
            await anext(opened[0].until_latest())
        async with trio.open_nursery() as nursery:
            for place in range(3):
                nursery.start_soon(follow, place)

            async def all_there() -> bool:
                return len(read) >= 100

            await until(all_there)
            nursery.cancel_scope.cancel()
    assert sorted(read) == list(range(100))
    for place in range(3):
        assert [key for key in seen if seen[key] == place]


@pytest.mark.parametrize("size", [1, 4], ids=["singles", "batches"])
async def test_from_a_message(client: Client, topic: str, size: int) -> None:
    batching = BatchingPolicy(max_messages=size, max_delay=1.0) if size > 1 else None
    async with client.create_producer(topic, batching=batching) as producer:
        ids = await producer.send_many(payloads(8))
        for start in (0, 3, 5, 7):
            for inclusive in (False, True):
                async with client.create_reader(topic, ids[start], start_inclusive=inclusive) as reader:
                    read = numbers([message async for message in reader.until_latest()])
                    assert read == list(range(start + (not inclusive), 8))


async def test_from_the_end(client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send_many(payloads(3))
        async with (
            client.create_reader(topic, "latest") as reader,
            client.create_reader(topic, "latest", start_inclusive=True) as with_the_last,
        ):
            assert not await reader.has_message_available()
            assert numbers([await with_the_last.receive()]) == [2]
            await producer.send(b"3")
            assert numbers([await reader.receive()]) == [3]
            assert numbers([await with_the_last.receive()]) == [3]


async def test_from_a_time(client: Client, topic: str) -> None:
    async with client.create_producer(topic, batching=None) as producer:
        await producer.send_many(payloads(3))
        await trio.sleep(2.5)
        between = datetime.now(UTC) - timedelta(seconds=1)
        await producer.send_many(payloads(3, start=3))
        ways: list[Callable[[], datetime | timedelta | int]] = [
            lambda: between,
            lambda: datetime.now(UTC) - between,
            lambda: int(between.timestamp() * 1000),
        ]
        for start in ways:
            async with client.create_reader(topic, start()) as reader:
                assert numbers([message async for message in reader.until_latest()]) == [3, 4, 5]
        async with client.create_reader(topic, timedelta(hours=1)) as reader:
            assert numbers([message async for message in reader.until_latest()]) == list(range(6))


@pytest.mark.parametrize("size", [1, 4], ids=["singles", "batches"])
async def test_a_checkpoint_is_where_another_reader_goes_on(client: Client, topic: str, size: int) -> None:
    batching = BatchingPolicy(max_messages=size, max_delay=1.0) if size > 1 else None
    async with client.create_producer(topic, batching=batching) as producer:
        await producer.send_many(payloads(12))
        read: list[int] = []
        checkpoint: object = "earliest"
        while len(read) < 12:
            assert isinstance(checkpoint, str | bytes)
            async with client.create_reader(topic, checkpoint) as reader:
                read += numbers([await reader.receive() for _ in range(3)])
                checkpoint = reader.checkpoint()
        assert read == list(range(12))


async def test_seek(client: Client, topic: str) -> None:
    async with (
        client.create_producer(topic, batching=None) as producer,
        client.create_reader(topic, "earliest") as reader,
    ):
        ids = await producer.send_many(payloads(5))
        for target, first in ((ids[2], 3), ("earliest", 0), (ids[0], 1)):
            await reader.seek(target)
            assert numbers([message async for message in reader.until_latest()]) == list(range(first, 5))
        await reader.seek("latest")
        assert not await reader.has_message_available()


@pytest.mark.parametrize("interrupt", [cut, unload])
async def test_nothing_is_read_twice_or_passed_over(
    client_on_line: Client, line: Line, topic: str, interrupt: Interruption
) -> None:
    """A reader has no cursor: after each interruption it says where it goes on."""
    policy = BatchingPolicy(max_messages=7, max_delay=0.01)
    async with (
        client_on_line.create_producer(topic, batching=policy) as producer,
        client_on_line.create_reader(topic, "latest") as reader,
    ):
        read: list[int] = []
        await interrupt(line, topic)  # before the first message
        for part in range(4):
            await producer.send_many(payloads(20, start=20 * part))
            read += numbers([await reader.receive() for _ in range(15)])
            await interrupt(line, topic)
        read += numbers([await reader.receive() for _ in range(20)])
        assert read == list(range(80))


async def test_of_partitions_and_several_topics(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)
    other = f"{topic}-other"
    async with client.create_producer(topic) as producer, client.create_producer(other) as more:
        await producer.send_many([OutgoingMessage(b"%d" % number, key=f"{number}") for number in range(30)])
        await more.send_many(payloads(10, start=30))
        async with client.create_reader([topic, other], "earliest") as reader:
            read = numbers([message async for message in reader.until_latest()])
            assert sorted(read) == list(range(40))
            assert not await reader.has_message_available()
            await reader.seek("earliest")
            read = numbers([await reader.receive() for _ in range(25)])
            checkpoint = reader.checkpoint()
        async with client.create_reader([topic, other], checkpoint) as reader:
            read += numbers([message async for message in reader.until_latest()])
            assert sorted(read) == list(range(40))


@pytest.mark.parametrize("start", ["earliest", "latest"])
async def test_partitions_that_come_are_read_from_their_beginning(
    broker: BrokerUnderTest, client: Client, topic: str, start: str
) -> None:
    """Wherever it began: what is in them was sent after that."""
    await broker.create_partitioned_topic(topic, 1)
    async with client.create_reader(topic, start, partitions_update_interval=0.3) as reader:
        await grow(broker, topic, 3)
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(9))
        messages = [await reader.receive() for _ in range(9)]
        assert sorted(numbers(messages)) == list(range(9))
        assert {message.message_id.partition for message in messages} == {0, 1, 2}
        assert len(reader.positions()) == 3


async def test_an_id_belongs_to_one_of_them(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 2)
    async with client.create_producer(topic) as producer:
        message_id = await producer.send(b"0")
    with pytest.raises(InvalidConfiguration, match="a mapping of names"):
        async with client.create_reader(topic, message_id):
            pass
    name = f"{topic}-partition-{message_id.partition}"
    async with client.create_reader(topic, {name: message_id}) as reader:
        assert [message async for message in reader.until_latest()] == []
    async with client.create_reader(name, message_id, start_inclusive=True) as reader:
        assert numbers([message async for message in reader.until_latest()]) == [0]


async def test_the_end_of_a_terminated_topic(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    """The consumer learns of the end when all is acknowledged, which a reader does by itself, and once more
    after a seek."""
    async with client.create_producer(topic) as producer:
        await producer.send_many(payloads(5))
    await broker.terminate(topic)
    async with client.create_reader(topic, "earliest") as reader:
        assert numbers([message async for message in reader]) == list(range(5))
        await reader.seek("earliest")
        assert numbers([message async for message in reader]) == list(range(5))
