"""`PagedStore`: a store in memory whose entries a broker reads back, as it does those of a store on disk."""

from pulsar_sansio.broker.records import EntryAdded
from pulsar_sansio.broker.storage.store import (
    MemoryStore,
    StoredLedger,
    StoredPage,
    StoredState,
    UnreadEntries,
    special_of,
)


class PagedStore(MemoryStore):
    """A `MemoryStore` that is its own reader. `pages`: the number of pages read.

    Each page is a copy, so a broker that changed an entry in place would be found out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reader = self
        self.pages = 0

    def load_unread(self) -> StoredState:
        """Return the sum of everything written so far, with the entries unread."""
        state = self.load()
        for topic in state.topics.values():
            for ledger in topic.ledgers.values():
                _leave_unread(ledger)
        return state

    def read_entries(self, topic: str, ledger_id: int, first: int, count: int, size: int) -> StoredPage:
        """Return `count` entries from the entry id `first` on, or less where they have `size` bytes."""
        self.pages += 1
        entries = self._state.topics[topic].ledgers[ledger_id].entries
        found: list[EntryAdded] = []
        read = 0
        for entry in entries[first : first + count]:
            assert entry.entry_id == first + len(found)
            found.append(_copy(entry))
            read += len(entry.data)
            if read >= size:
                break
        else:
            assert len(found) == count, "the broker asked for an entry that is not durable"
        return StoredPage(self.bytes_before(topic, ledger_id, first), found)

    def bytes_before(self, topic: str, ledger_id: int, entry_id: int) -> int:
        """Return the bytes of the ledger's entries before this one."""
        entries = self._state.topics[topic].ledgers[ledger_id].entries
        return sum(len(entry.data) for entry in entries[:entry_id])


def _leave_unread(ledger: StoredLedger) -> None:
    entries, ledger.entries = ledger.entries, []
    if entries:
        special = ((entry.entry_id, special_of(entry)) for entry in entries)
        ledger.unread = UnreadEntries(
            len(entries),
            sum(len(entry.data) for entry in entries),
            entries[-1].last_index + 1,
            tuple((entry_id, found) for entry_id, found in special if found is not None),
        )


def _copy(entry: EntryAdded) -> EntryAdded:
    return EntryAdded(
        entry.topic,
        entry.ledger_id,
        entry.entry_id,
        entry.messages,
        entry.publish_time,
        entry.data,
        entry.deliver_at,
        entry.chunk_of,
        entry.last_index,
        entry.received_at,
        entry.transaction,
        entry.commits,
    )
