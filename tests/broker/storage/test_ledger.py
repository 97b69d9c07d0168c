"""The entries of a topic, some of them in memory: each is found wherever it is, and memory has a bound."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pulsar_sansio.broker.records import EntryAdded, LedgersDeleted, TopicSaved
from pulsar_sansio.broker.storage.entry_cache import PAGE_BYTES, PAGE_ENTRIES, EntryCache
from pulsar_sansio.broker.storage.managed_ledger import ManagedLedger
from pulsar_sansio.broker.storage.stored_bytes import ENTRY_COST, StoredBytes
from pulsar_sim.engine.paged_store import PagedStore

TOPIC = "persistent://public/default/t"


class Paged:
    """A topic's log over a store that reads entries back. `limit`: bytes of its cache."""

    def __init__(self, limit: int) -> None:
        self.store = PagedStore()
        self.store.write([TopicSaved(TOPIC, None, None)])
        self.cache = EntryCache(StoredBytes(0), limit, self.store)
        self.log = ManagedLedger(TOPIC, self.cache)
        self.entries: dict[int, EntryAdded] = {}
        """Offset -> entry, for all that the log has."""
        self.unwritten: list[EntryAdded] = []
        self.ledgers = 0
        self.roll()

    def roll(self) -> None:
        self.store.write([self.log.roll(self.ledgers, 0)])
        self.ledgers += 1

    def append(self, data: bytes, messages: int = 1, **options: Any) -> None:
        entry = self.log.append(data, messages, self.log.end, **options)
        self.entries[self.log.end - 1] = entry
        self.unwritten.append(entry)

    def write(self) -> None:
        written, self.unwritten = self.unwritten, []
        self.store.write(written)
        self.log.made_durable(len(written))

    def fill(self, count: int, size: int = 100) -> None:
        for _ in range(count):
            self.append(b"x" * size)
        self.write()


@pytest.mark.parametrize("count", [1, PAGE_ENTRIES - 1, PAGE_ENTRIES, PAGE_ENTRIES + 1, 3 * PAGE_ENTRIES + 7])
def test_entries_that_are_not_in_memory_are_read_a_page_at_a_time(count: int) -> None:
    paged = Paged(0)
    paged.cache.page_bytes = PAGE_BYTES
    paged.fill(count)
    assert paged.cache.used == paged.cache.stored.used == 0
    paged.cache.limit = 2**40
    assert [paged.log.entry(offset) for offset in range(count)] == list(paged.entries.values())
    assert paged.store.pages == -(-count // PAGE_ENTRIES)
    assert paged.cache.used == count * (100 + ENTRY_COST)
    assert [paged.log.entry(offset) for offset in range(count)] == list(paged.entries.values())
    assert paged.store.pages == -(-count // PAGE_ENTRIES), "they are in memory now"


def test_a_page_of_large_entries_is_no_larger_than_it_must_be() -> None:
    paged = Paged(10_000)
    paged.fill(20, 3_000)
    assert paged.cache.used <= 10_000
    for offset in range(20):
        assert paged.log.entry(offset).data == b"x" * 3_000
        assert paged.cache.used <= 10_000
    paged.fill(1, 50_000)
    assert paged.log.entry(20).data == b"x" * 50_000, "one that the cache has no room for"
    assert paged.cache.used == 0


def test_what_was_used_least_recently_goes_first() -> None:
    paged = Paged(8 * (100 + ENTRY_COST))
    paged.cache.page_bytes = 1
    paged.fill(8)
    assert paged.store.pages == 0
    paged.log.entry(0)
    paged.fill(1)
    pages = paged.store.pages
    paged.log.entry(0)
    assert paged.store.pages == pages
    paged.log.entry(1)
    assert paged.store.pages == pages + 1


def test_entries_that_are_not_durable_stay() -> None:
    paged = Paged(0)
    for number in range(10):
        paged.append(b"%d" % number)
    paged.cache.shrink()
    assert [paged.log.entry(offset).data for offset in range(10)] == [b"%d" % number for number in range(10)]
    assert paged.store.pages == 0
    paged.write()
    assert paged.cache.used == 0


def test_a_look_at_one_entry_reads_no_other_and_keeps_none() -> None:
    paged = Paged(0)
    paged.fill(300)
    assert paged.log.peek(200) == paged.entries[200]
    assert paged.log.size_from(200) == 100 * 100
    assert paged.log.find_publish_time(77) == 77
    assert paged.cache.used == 0
    assert paged.store.pages < 15


def test_a_topic_that_is_served_no_more_counts_nothing() -> None:
    paged = Paged(10_000)
    paged.fill(20)
    assert paged.cache.used > 0
    paged.log.discard()
    assert paged.cache.used == paged.cache.stored.used == 0
    assert [paged.log.entry(offset) for offset in range(20)] == list(paged.entries.values())
    paged.fill(20)
    assert paged.cache.used == paged.cache.stored.used == 0


class Reading(RuleBasedStateMachine):
    """Any order of appending, writing, reading, removing and restarting gives the entries of a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.paged = Paged(4 * (50 + ENTRY_COST))

    @rule(sizes=st.lists(st.integers(0, 300), max_size=12), messages=st.integers(1, 3))
    def append(self, sizes: list[int], messages: int) -> None:
        for size in sizes:
            self.paged.append(b"x" * size, messages)

    @rule(deliver_at=st.one_of(st.none(), st.integers(0, 9)), chunk_of=st.sampled_from([None, "u"]))
    def append_special(self, deliver_at: int | None, chunk_of: str | None) -> None:
        self.paged.append(b"s", deliver_at=deliver_at, chunk_of=chunk_of, transaction=(0, 1))

    @rule()
    def write(self) -> None:
        self.paged.write()
        assert self.paged.cache.used <= self.paged.cache.limit

    @rule()
    def roll(self) -> None:
        self.paged.write()
        self.paged.roll()

    @precondition(lambda self: self.paged.entries)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        log, entries = self.paged.log, self.paged.entries
        offset = data.draw(st.sampled_from(sorted(entries)))
        end = data.draw(st.integers(offset, log.end))
        run = [entries[each] for each in range(offset, end)]
        assert log.peek(offset) == entries[offset]
        assert [log.entry(each) for each in range(offset, end)] == run
        assert log.messages(offset, end) == sum(entry.messages for entry in run)
        rest = [len(entries[each].data) for each in range(offset, log.end)]
        assert log.size_from(offset) == sum(rest)
        if offset >= log.durable_end:
            return
        found = log.find_size(sum(rest) // 2, offset)
        assert found == log.durable_end or log.size_from(found) <= sum(rest) // 2
        assert found in (offset, log.durable_end) or log.size_from(found - 1) > sum(rest) // 2

    @rule()
    def remove_the_first_ledger(self) -> None:
        removed = self.paged.log.trim(self.paged.log.ledgers[0].end, None)
        if removed:
            self.paged.write()
            self.paged.store.write([LedgersDeleted(TOPIC, removed)])
            first = self.paged.log.first
            self.paged.entries = {each: found for each, found in self.paged.entries.items() if each >= first}

    @rule()
    def restart(self) -> None:
        paged = self.paged
        paged.write()
        before = paged.log
        paged.cache = EntryCache(StoredBytes(0), paged.cache.limit, paged.store)
        stored = paged.store.load_unread().topics[TOPIC].ledgers
        paged.log = log = ManagedLedger.restored(TOPIC, stored, paged.cache)
        assert paged.cache.used == 0
        for name in ("end", "first", "size", "delayed_or_chunked", "transactional"):
            assert getattr(log, name) == getattr(before, name), name
        assert log.durable_end == log.end

    @invariant()
    def counts(self) -> None:
        paged = self.paged
        pages = [page for ledger in paged.log.ledgers for page in ledger.pages]
        used = sum(len(entry.data) + ENTRY_COST for page in pages for entry in page.entries)
        assert paged.cache.used == paged.cache.stored.used == used
        assert set(paged.cache._pages) == set(pages)


TestReading = Reading.TestCase
TestReading.settings = settings(max_examples=40, stateful_step_count=25)
