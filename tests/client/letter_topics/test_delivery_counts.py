"""The number of times an application received a message."""

import pytest

from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.delivery.ack_records import EntryAcknowledgement
from pulsar_sansio.client.delivery.received_entries import ReceivedBatch, ReceivedSingles
from pulsar_sansio.client.letter_topics import delivery_counts as tries_module
from pulsar_sansio.client.letter_topics.delivery_counts import DeliveryCounts
from pulsar_sansio.model.message import Entry, Message, Source
from pulsar_sansio.wire import MessageMetadata, MetadataDecoder

SOURCE = Source("persistent://public/default/t", -1)
HEADER = MessageMetadata("p", 0, 0)


def entry(number: int, count: int) -> Entry:
    return Entry(SOURCE, (1, number), HEADER, count, None, None, 8)


def batch(number: int, count: int, *indexes: int) -> ReceivedBatch:
    return ReceivedBatch(entry(number, count), [b""] * len(indexes), indexes)


def test_the_brokers_count_where_nothing_was_taken_back() -> None:
    assert DeliveryCounts().of(entry(0, 3), 1) == 3


def test_each_message_counts_by_itself() -> None:
    tries = DeliveryCounts()
    tries.taken_back([batch(0, 0, 1, 2), batch(0, 1, 2)])
    assert [tries.of(entry(0, 2), index) for index in range(3)] == [2, 1, 0]
    assert tries.of(entry(1, 2), 2) == 2


def test_taken_back_twice_of_deliveries_that_the_broker_counts_once() -> None:
    tries = DeliveryCounts()
    tries.taken_back([batch(0, 1, 0)])
    tries.taken_back([batch(0, 1, 0)])
    assert tries.of(entry(0, 2), 0) == 1


@pytest.mark.parametrize("count", [1, 2])
def test_the_broker_has_forgotten_its_counts(count: int) -> None:
    tries = DeliveryCounts()
    tries.taken_back([batch(0, 0, 0), batch(0, 2, 0), batch(1, 2, 0)])
    tries.arrived((1, 0), count)
    tries.arrived((1, 7), count)
    assert tries.of(entry(0, 3), 0) == 2
    assert tries.of(entry(1, 3), 0) == 2
    tries.arrived((1, 0), 0)
    assert tries.of(entry(0, 3), 0) == 3


def test_entries_of_one_message() -> None:
    tries = DeliveryCounts()
    record = EntryAcknowledgement(AckTracker(False).deliveries, 0)
    tries.taken_back(
        [
            ReceivedSingles(
                SOURCE, [(1, 0), (1, 1)], [HEADER, HEADER], 0, record, [b"", b""], MetadataDecoder()
            ),
            [Message.of(b"", entry(1, 1), -1)],
        ]
    )
    assert [tries.of(entry(number, 2), -1) for number in range(3)] == [1, 0, 2]


def test_forgotten() -> None:
    tries = DeliveryCounts()
    tries.taken_back([batch(0, 0, 0), batch(1, 0, 0)])
    tries.discard((1, 0))
    tries.discard((1, 7))
    assert [tries.of(entry(number, 1), 0) for number in range(2)] == [1, 0]
    tries.clear()
    assert tries.of(entry(1, 1), 0) == 1


def test_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tries_module, "MAX_UNTRIED", 4)
    tries = DeliveryCounts()
    tries.taken_back([batch(number, 0, 0, 1) for number in range(3)])
    assert tries.forgotten == 1
    assert [tries.of(entry(number, 1), 0) for number in range(3)] == [1, 0, 0]
    tries.discard((1, 1))
    tries.taken_back([batch(3, 0, 0, 1)])
    assert tries.forgotten == 1
    tries.taken_back([batch(4, 0, *range(8))])  # one that is larger than the room there is stays by itself
    assert tries.forgotten == 3
    assert tries.of(entry(4, 1), 7) == 0
