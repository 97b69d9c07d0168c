"""Entries that have no message for the application: how they end, and how far they reach."""

import pytest

from pulsar_sansio.client.arrival.undelivered_entries import MAX_GUESS, UndeliveredEntries
from pulsar_sansio.wire import proto
from tests.client.broker_script import ConsumerScript, entry_bytes

CORRUPT = proto.CommandAck.ValidationError.DecompressionError


class Scene(ConsumerScript):
    def __init__(self) -> None:
        super().__init__(acknowledgement_group_time=0.0)
        self.accept()
        self.frames()

    @property
    def entries(self) -> UndeliveredEntries:
        return self.machine._arrival.undelivered

    @property
    def returned(self) -> int:
        """The permits that are at the broker, or on their way back to it."""
        return self.machine.permits.at_broker + self.machine.permits.unreported


def test_nothing_was_passed_at_first() -> None:
    assert Scene().entries.reached is None


def test_the_last_entry_that_passed_is_reached() -> None:
    s = Scene()
    for position in ((7, 3), (7, 5), (7, 4)):
        s.entries.passes(position)
    assert s.entries.reached == (7, 5)


def test_a_chunk_without_a_message_is_reached_too() -> None:
    s = Scene()
    s.entries.passes((7, 3))
    s.machine._arrival.counters.last_chunk = (7, 6)
    assert s.entries.reached == (7, 6)
    s.entries.forget()
    assert s.entries.reached is None


def test_a_discarded_entry_is_counted_refused_and_returns_its_permits() -> None:
    s = Scene()
    s.deliver(3, entry_bytes(b"x"), ledger=7)
    before = s.returned
    s.entries.discard((7, 3), 1, CORRUPT)
    assert s.machine.counters.discarded == 1
    assert s.returned == before + 1
    assert s.entries.reached == (7, 3)
    acks = [command for name, command in s.frames() if name == "ACK"]
    assert [ack.validation_error for ack in acks] == [CORRUPT]


def test_a_skipped_message_is_acknowledged_for_a_durable_subscription() -> None:
    s = Scene()
    s.deliver(3, entry_bytes(b"x"), ledger=7)
    before = s.returned
    s.entries.skip((7, 3))
    assert s.machine.counters.before_start == 1
    assert s.returned == before + 1
    acks = [command for name, command in s.frames() if name == "ACK"]
    assert [id_[:2] for ack in acks for id_ in ack.message_ids] == [(7, 3)]


def test_an_entry_that_is_kept_back_is_reported_and_not_acknowledged() -> None:
    s = Scene()
    reports: list[tuple[object, ...]] = []
    s.entries.on_withheld = lambda *report: reports.append(report)
    before = s.returned
    s.entries.keep_back((7, 3), 2, 1, 2)
    assert reports == [((7, 3), 1, range(2))]
    assert s.returned == before + 2
    assert [name for name, _ in s.frames() if name == "ACK"] == []


@pytest.mark.parametrize(("size", "count"), [(None, 1), (3, 3), (2**31 - 1, MAX_GUESS)])
def test_a_size_that_a_producer_made_up_is_not_believed(size: int | None, count: int) -> None:
    s = Scene()
    reports: list[int] = []
    s.entries.on_withheld = lambda _position, _count, indexes: reports.append(len(indexes))
    s.entries.withhold((7, 3), size, 0)
    assert reports == [count]
