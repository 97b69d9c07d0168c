"""Ranges of a topic as record batches: where they end, what they leave out, what they survive."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from pulsar_sansio import MessageId
from pulsar_spark.link import Link
from pulsar_spark.offsets import NOTHING, Position, Range
from pulsar_spark.range_reader import read_range

from .brokers import SparkBroker
from .sending import Sender, send

pytestmark = pytest.mark.spark

VALUES = pa.schema([("value", pa.binary())])


@pytest.fixture
def link(broker: SparkBroker) -> Iterator[Link]:
    link = Link(broker.url)
    yield link
    link.close()


def values(link: Link, topic: str, start: Position, end: Position, **options: Any) -> list[bytes]:
    options.setdefault("timeout_s", 20.0)
    batches = read_range(link, Range(topic, start, end), VALUES, **options)
    return [value for batch in batches for value in batch.column(0).to_pylist()]


def places(ids: list[MessageId]) -> list[Position]:
    return sorted({each[:2] for each in ids})


def test_ranges_cover_the_topic_without_overlap(broker: SparkBroker, link: Link, topic: str) -> None:
    sender = Sender(broker.url, topic)
    ids = [
        each
        for first in range(0, 50, 10)
        for each in sender.send([b"%d" % n for n in range(first, first + 10)])
    ]
    sender.close()
    entries = places(ids)
    assert len(entries) == 5
    assert link.last_position(topic) == entries[-1]
    assert values(link, topic, NOTHING, entries[1]) == [b"%d" % n for n in range(20)]
    assert values(link, topic, entries[1], entries[3]) == [b"%d" % n for n in range(20, 40)]
    assert values(link, topic, entries[3], entries[4]) == [b"%d" % n for n in range(40, 50)]
    assert values(link, topic, entries[4], entries[4]) == []


def test_messages_that_are_entries_by_themselves(broker: SparkBroker, link: Link, topic: str) -> None:
    ids = send(broker.url, topic, [b"%d" % n for n in range(300)], batching=None)
    entries = places(ids)
    assert len(entries) == 300
    assert values(link, topic, entries[9], entries[199]) == [b"%d" % n for n in range(10, 200)]


def test_a_range_whose_end_holds_no_message_is_over_when_the_broker_says_so(
    broker: SparkBroker, link: Link, topic: str
) -> None:
    ids = send(broker.url, topic, [b"%d" % n for n in range(10)])
    ledger, entry = ids[-1][:2]
    assert values(link, topic, NOTHING, (ledger, entry + 5)) == [b"%d" % n for n in range(10)]
    assert values(link, topic, (ledger, entry), (ledger, entry + 5)) == []
