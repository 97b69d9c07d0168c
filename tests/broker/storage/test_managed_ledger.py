"""Ids and offsets; ledgers that are opened and removed."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker.records import EntryAdded
from pulsar_sansio.broker.storage.entry_cache import EntryCache
from pulsar_sansio.broker.storage.managed_ledger import ManagedLedger, Retention
from pulsar_sansio.broker.storage.store import StoredLedger
from pulsar_sansio.broker.storage.stored_bytes import StoredBytes


def in_memory() -> EntryCache:
    return EntryCache(StoredBytes(0), 0, None)


def filled(*counts: int) -> ManagedLedger:
    """Ledgers 10, 20, … of so many entries, published at 0, 1, 2, … ms, one byte each."""
    log = ManagedLedger("t", in_memory())
    for place, count in enumerate(counts, 1):
        log.roll(place * 10, wall_time=place * 1000)
        for _ in range(count):
            log.append(b"x", 1, log.end)
    log.durable_end = log.end
    return log


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_every_entry_has_one_id_and_one_offset(counts: list[int]) -> None:
    """Rules STORE-01, STORE-03 and GAP-23."""
    log = filled(*counts)
    ids = [(place * 10, entry) for place, count in enumerate(counts, 1) for entry in range(count)]
    assert [log.position(offset) for offset in range(log.end)] == ids
    assert [log.offset(*each) for each in ids] == list(range(len(ids)))
    assert [log.exact(*each) for each in ids] == list(range(len(ids)))


def test_ids_that_do_not_exist_lead_to_the_nearest_place() -> None:
    """A seek to a removed entry is valid."""
    log = filled(3, 0, 2)
    assert log.offset(-1, -1) == 0, "earliest"
    assert log.offset(2**63 - 1, 2**63 - 1) == 5, "latest"
    assert log.offset(10, 7) == 3, "beyond a ledger is the next one's beginning"
    assert log.offset(10, -1) == 0
    assert log.offset(15, 0) == 3, "a ledger that never was"
    assert log.offset(30, 99) == 5
    assert log.exact(10, 3) is None
    assert log.exact(15, 0) is None
    assert log.exact(10, -1) is None
    log.trim(3, None)
    assert log.offset(10, 1) == 3, "trimmed"


def test_the_place_before_a_ledger() -> None:
    log = filled(2)
    assert log.position(-1) == (10, -1)


def test_whole_ledgers_go_and_the_open_one_stays() -> None:
    """STORE-02, STORE-33. Rule STORE-13."""
    log = filled(2, 2, 2)
    assert log.trim(3, None) == (10,), "one entry of the second is still needed"
    assert log.trim(6, None) == (20,)
    assert [ledger.id for ledger in log.ledgers] == [30]
    assert log.size == 2
    assert log.first == 4


def test_a_ledger_stops_going_when_little_is_left() -> None:
    log = filled(2, 2, 2, 2)
    assert log.trim(8, None, enough=4) == (10, 20)


def test_retention_by_time_and_by_size() -> None:
    """STORE-31: a ledger within both limits is kept."""
    closed_at = 2000
    assert Retention(10, -1, closed_at + 10_000).keeps(filled(1, 1))
    assert not Retention(10, -1, closed_at + 10_001).keeps(filled(1, 1))
    assert Retention(-1, 2, 10**9).keeps(filled(1, 1))
    assert not Retention(-1, 1, 10**9).keeps(filled(1, 1))
    assert not Retention(0, -1, 0).keeps(filled(1, 1))
    assert not Retention(-1, 0, 0).keeps(filled(1, 1))


def test_time_is_found_by_halving() -> None:
    log = filled(3, 4)
    assert [log.find_publish_time(time) for time in (-5, 0, 3, 6, 7)] == [0, 0, 3, 6, 7]


def test_a_restored_log_is_the_same() -> None:
    entries = [EntryAdded("t", 4, number, 1, number, b"abc") for number in range(3)]
    ledgers = {9: StoredLedger(10, 5, []), 4: StoredLedger(7, 0, entries)}
    log = ManagedLedger.restored("t", ledgers, in_memory())
    assert (log.first, log.durable_end, log.end, log.size) == (7, 10, 10, 9)
    assert log.position(9) == (4, 2)
    log.append(b"d", 1, 9)
    assert log.position(10) == (9, 0)


def test_messages_are_counted_over_ledgers_and_restarts() -> None:
    """Counting goes on where the only ledger left has no entry: its record has the number of its first
    message."""
    log = ManagedLedger("t", in_memory())
    log.roll(10, wall_time=0)
    assert [log.append(b"x", messages, 0).last_index for messages in (3, 1)] == [2, 3]
    opened = log.roll(20, wall_time=0)
    assert opened.first_index == 4
    empty = StoredLedger(opened.first_offset, 0, first_index=opened.first_index)
    again = ManagedLedger.restored("t", {20: empty}, in_memory())
    assert again.append(b"x", 2, 0).last_index == 5
    once_more = ManagedLedger.restored("t", {20: empty, 30: stored_ledger(again)}, in_memory())
    assert once_more.append(b"x", 1, 0).last_index == 6


def stored_ledger(log: ManagedLedger) -> StoredLedger:
    """The newest ledger as a store has it."""
    ledger = log.ledgers[-1]
    entries = [ledger.entry(offset) for offset in range(ledger.first, ledger.end)]
    return StoredLedger(ledger.first, ledger.opened_at, entries)
