"""All that a store on disk has, its entries read back by pages."""

from pathlib import Path

from pulsar_sansio import StoredState
from pulsar_sansio.broker.storage.store import special_of
from pulsar_store import SqliteStore

PAGE = 100
"""Entries of one page."""


def whole(store: SqliteStore) -> StoredState:
    """Return the sum of all records, as a `MemoryStore` has it.

    Checks what the store says of unread entries.
    """
    state = store.load()
    for topic, stored in state.topics.items():
        for ledger_id, ledger in stored.ledgers.items():
            unread, ledger.unread = ledger.unread, None
            if unread is None:
                continue
            size = 0
            while (number := len(ledger.entries)) < unread.count:
                count = min(PAGE, unread.count - number)
                page = store.reader.read_entries(topic, ledger_id, number, count, 10_000)
                assert page.bytes_before == size
                ledger.entries += page.entries
                size += sum(len(entry.data) for entry in page.entries)
            assert size == unread.size
            assert unread.next_index == ledger.entries[-1].last_index + 1
            found = ((entry.entry_id, special_of(entry)) for entry in ledger.entries)
            assert list(unread.special) == [each for each in found if each[1] is not None]
    return state


def reloaded(folder: Path) -> StoredState:
    """Open the store of a folder, and return all that it has."""
    store = SqliteStore(folder)
    try:
        return whole(store)
    finally:
        store.close()
