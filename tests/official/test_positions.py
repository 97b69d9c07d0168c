"""The official client's readers, seeks and table views at our broker, and what our client makes of them."""

from typing import Any

import pulsar
import pytest

from pulsar_trio import open_client
from tests.official.client import RECEIVE_TIMEOUT, Letter, in_thread, official_client, send_all
from tests.suite.brokers import OurBroker
from tests.suite.topics.test_compaction import compact

BATCHES = {"batching_enabled": True, "batching_max_messages": 4, "batching_max_publish_delay_ms": 1000}
SINGLES = {"batching_enabled": False}
both = pytest.mark.parametrize("options", [SINGLES, BATCHES], ids=["singles", "batches"])


def letters(count: int, start: int = 0) -> list[Letter]:
    return [Letter(b"%d" % number) for number in range(start, start + count)]


def read_all(reader: Any) -> list[int]:
    read = []
    while reader.has_message_available():
        read.append(int(reader.read_next(RECEIVE_TIMEOUT).data()))
    return read


@both
async def test_reader(broker: OurBroker, topic: str, options: dict[str, Any]) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            reader = client.create_reader(topic, pulsar.MessageId.earliest)
            assert read_all(reader) == []
            producer = client.create_producer(topic, **options)
            send_all(producer, letters(8))
            assert read_all(reader) == list(range(8))
            reader.seek(pulsar.MessageId.earliest)
            assert read_all(reader) == list(range(8))
            late = client.create_reader(topic, pulsar.MessageId.latest)
            assert not late.has_message_available()
            send_all(producer, letters(4, start=8))
            assert read_all(late) == read_all(reader) == [8, 9, 10, 11]

    await in_thread(scenario)


@both
async def test_reader_from_a_message(broker: OurBroker, topic: str, options: dict[str, Any]) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            send_all(client.create_producer(topic, **options), letters(8))
            reader = client.create_reader(topic, pulsar.MessageId.earliest)
            ids = [reader.read_next(RECEIVE_TIMEOUT).message_id() for _ in range(8)]
            for start in (0, 2, 5, 7):
                after = client.create_reader(topic, ids[start])
                assert read_all(after) == list(range(start + 1, 8))
                there = client.create_reader(topic, ids[start], start_message_id_inclusive=True)
                assert read_all(there) == list(range(start, 8))

    await in_thread(scenario)


@both
async def test_seek(broker: OurBroker, topic: str, options: dict[str, Any]) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            consumer = client.subscribe(topic, "sub", initial_position=pulsar.InitialPosition.Earliest)
            send_all(client.create_producer(topic, **options), letters(8))
            messages = [consumer.receive(RECEIVE_TIMEOUT) for _ in range(8)]
            for target, first in (
                (messages[2].message_id(), 3),
                (pulsar.MessageId.earliest, 0),
                (messages[0].publish_timestamp() - 1000, 0),
                (messages[5].message_id(), 6),
            ):
                consumer.seek(target)
                received = [int(consumer.receive(RECEIVE_TIMEOUT).data()) for _ in range(8 - first)]
                assert received == list(range(first, 8))

    await in_thread(scenario)


@both
async def test_compacted(broker: OurBroker, topic: str, options: dict[str, Any]) -> None:
    """The official client shows the messages that compaction took out of a rewritten batch, as empty ones."""

    def fill() -> None:
        with official_client(broker.url) as client:
            keyed = [Letter(b"%d" % number, key=f"k{number % 3}") for number in range(12)]
            send_all(client.create_producer(topic, **options), keyed)

    def read() -> None:
        with official_client(broker.url) as client:
            reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
            messages = [reader.read_next(RECEIVE_TIMEOUT)]
            while reader.has_message_available():
                messages.append(reader.read_next(RECEIVE_TIMEOUT))
            assert [each.data() for each in messages if each.data()] == [b"9", b"10", b"11"]

    await in_thread(fill)
    await compact(broker, topic)
    await in_thread(read)


async def test_table_view(broker: OurBroker, topic: str) -> None:
    def scenario() -> None:
        with official_client(broker.url) as client:
            producer = client.create_producer(topic)
            send_all(producer, [Letter(b"%d" % number, key=f"k{number % 3}") for number in range(12)])
            view = client.create_table_view(topic)
            assert {key: view.get(key) for key in ("k0", "k1", "k2")} == {
                "k0": b"9",
                "k1": b"10",
                "k2": b"11",
            }
            view.close()

    await in_thread(scenario)


@both
async def test_our_positions_of_its_batches(broker: OurBroker, topic: str, options: dict[str, Any]) -> None:
    def fill() -> None:
        with official_client(broker.url) as official:
            send_all(official.create_producer(topic, **options), letters(8))

    await in_thread(fill)
    async with open_client(broker.url) as client, client.create_reader(topic, "earliest") as reader:
        messages = [message async for message in reader.until_latest()]
        assert [int(message.data) for message in messages] == list(range(8))
        for number in (0, 3, 6):
            await reader.seek(messages[number])
            left = [int(message.data) async for message in reader.until_latest()]
            assert left == list(range(number + 1, 8))
