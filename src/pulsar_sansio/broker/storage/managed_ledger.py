"""A topic's entries, in ledgers, of which the last is open for writing.

The module owns the numbering. An entry's *id* is (ledger, entry), as clients see it. Its *offset* is the
topic's own dense number, from 0, never used twice, so that cursors and dispatchers calculate with integers.
Each ledger knows its first offset. Entries below `durable_end` are durable and may be read (rules STORE-01,
STORE-02, STORE-43). The module knows no subscriptions: the caller of `trim` passes how far.

Entries that are not in use may be in the store alone: `entry` reads a page of them, `peek` a single one.
"""

from bisect import bisect_right

from ..records import EntryAdded, LedgerOpened
from .entry_cache import EntryCache
from .ledger import Ledger
from .store import SpecialEntry, StoredLedger, special_of


class ManagedLedger:
    """All ledgers of one topic, at least one. `roll` opens the next one.

    `topic`: its full name. `cache`: counts the pages in memory.
    """

    def __init__(self, topic: str, cache: EntryCache) -> None:
        self.topic = topic
        self.cache = cache
        self.ledgers: list[Ledger] = []
        self._firsts: list[int] = []
        self._ids: list[int] = []
        self.durable_end = 0
        """The offset after the last durable entry: entries below may be read."""
        self.size = 0
        self.entries_added = 0
        self.delayed_or_chunked: dict[int, SpecialEntry] = {}
        """Offset -> delayed entry or chunk: Shared and Key_Shared treat these entries specially."""
        self.transactional: dict[int, SpecialEntry] = {}
        """Offset -> entry of a transaction, or marker that ends one."""
        self._next_index = 0
        """The number of the next message; the messages of the topic are counted from 0."""

    @classmethod
    def restored(cls, topic: str, ledgers: dict[int, StoredLedger], cache: EntryCache) -> "ManagedLedger":
        """Restore the ledgers from a store; all their entries are durable."""
        log = cls(topic, cache)
        for ledger_id in sorted(ledgers):
            kept = ledgers[ledger_id]
            ledger = Ledger(log, ledger_id, kept.first_offset, kept.opened_at)
            log._add(ledger)
            log._next_index = kept.first_index
            if kept.unread is not None:
                ledger.end += kept.unread.count
                ledger.size = kept.unread.size
                log._next_index = kept.unread.next_index
                for entry_id, special in kept.unread.special:
                    log._note(ledger.first + entry_id, special)
            for entry in kept.entries:
                if (found := special_of(entry)) is not None:
                    log._note(ledger.end, found)
                ledger.append(entry)
                log._next_index = entry.last_index + 1
            log.size += ledger.size
            log.durable_end = ledger.end
        return log

    def _add(self, ledger: Ledger) -> None:
        self.ledgers.append(ledger)
        self._firsts.append(ledger.first)
        self._ids.append(ledger.id)

    def _note(self, offset: int, special: SpecialEntry) -> None:
        if special.deliver_at >= 0 or special.chunk_of is not None:
            self.delayed_or_chunked[offset] = special
        if special.transaction is not None:
            self.transactional[offset] = special

    # --- numbering ------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The offset after the last entry, durable or not."""
        return self.ledgers[-1].end if self.ledgers else 0

    @property
    def first(self) -> int:
        """The offset of the oldest entry, or the end."""
        return self.ledgers[0].first if self.ledgers else 0

    def ledger_at(self, offset: int) -> Ledger:
        """Return the ledger that holds `offset`, or the nearest one."""
        last = self.ledgers[-1]
        if offset >= last.first:
            return last
        return self.ledgers[max(0, bisect_right(self._firsts, offset) - 1)]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the id of an offset; the entry id before a ledger's first entry is -1."""
        if not self.ledgers:
            return -1, -1
        ledger = self.ledger_at(offset)
        return ledger.id, max(-1, min(offset, ledger.end) - ledger.first)

    def offset(self, ledger_id: int, entry_id: int) -> int:
        """Return the offset of an id, which need not exist.

        An id after the entries of a ledger, or in a deleted ledger, gives the first offset of the next
        ledger. An id in a ledger that never existed gives the end.
        """
        if not self.ledgers:
            return 0
        ledger = self.ledgers[-1]
        if ledger.id != ledger_id:
            if ledger_id > ledger.id:
                return ledger.end
            index = bisect_right(self._ids, ledger_id) - 1
            if index < 0:
                return self.ledgers[0].first
            ledger = self.ledgers[index]
            if ledger.id != ledger_id:
                return ledger.end
        return min(ledger.first + max(entry_id, 0), ledger.end)

    def exact(self, ledger_id: int, entry_id: int) -> int | None:
        """Return the offset of an entry that exists, else None."""
        if entry_id < 0 or not self.ledgers:
            return None
        ledger = self.ledgers[-1]
        if ledger.id != ledger_id:
            ledger = self.ledgers[bisect_right(self._ids, ledger_id) - 1]
            if ledger.id != ledger_id:
                return None
        offset = ledger.first + entry_id
        return offset if offset < ledger.end else None

    def entry(self, offset: int) -> EntryAdded:
        """Return the entry at an offset, which must exist; its page is read where it is not in memory."""
        return self.ledger_at(offset).entry(offset)

    def peek(self, offset: int) -> EntryAdded:
        """Return the entry at an offset, which must exist; nothing else is read or kept."""
        return self.ledger_at(offset).peek(offset)

    # --- writing and removing -------------------------------------------------------------------------

    def roll(self, ledger_id: int, wall_time: int) -> LedgerOpened:
        """Open the next ledger."""
        ledger = Ledger(self, ledger_id, self.end, wall_time)
        self._add(ledger)
        return LedgerOpened(self.topic, ledger_id, ledger.first, wall_time, self._next_index)

    def append(
        self,
        data: bytes,
        messages: int,
        publish_time: int,
        deliver_at: int | None = None,
        chunk_of: str | None = None,
        received_at: int = 0,
        transaction: tuple[int, int] | None = None,
        commits: bool | None = None,
    ) -> EntryAdded:
        """Add an entry to the open ledger; it may be read once it is durable. `received_at`: wall time in ms.
        The other arguments are those of `EntryAdded`."""
        ledger = self.ledgers[-1]
        entry = EntryAdded(self.topic, ledger.id, ledger.count, messages, publish_time, data)
        self._next_index += messages
        entry.last_index = self._next_index - 1
        entry.received_at = received_at
        if deliver_at is not None or chunk_of is not None or transaction is not None:
            if deliver_at is not None:
                entry.deliver_at = max(deliver_at, 0)
            entry.chunk_of = chunk_of
            entry.transaction = transaction
            entry.commits = commits
            self._note(ledger.end, SpecialEntry(entry.deliver_at, chunk_of, transaction, commits))
        ledger.append(entry)
        self.size += len(data)
        self.entries_added += 1
        return entry

    def made_durable(self, count: int) -> None:
        """The store has `count` more entries."""
        self.durable_end += count
        cache = self.cache
        if cache.used > cache.limit:
            cache.shrink()

    def trim(self, upto: int, keep: "Retention | None", enough: int = -1) -> tuple[int, ...]:
        """Remove closed ledgers whose entries are all below `upto`, as retention allows (rule STORE-33).

        Stop when no more than `enough` bytes are left.
        """
        removed = []
        while len(self.ledgers) > 1 and self.ledgers[0].end <= upto and self.size > enough:
            if keep is not None and keep.keeps(self):
                break
            ledger = self.ledgers.pop(0)
            del self._firsts[0], self._ids[0]
            self.size -= ledger.size
            for page in ledger.pages:
                self.cache.discard(page)
            removed.append(ledger.id)
        if removed:
            self.delayed_or_chunked = self._left_of(self.delayed_or_chunked)
            self.transactional = self._left_of(self.transactional)
        return tuple(removed)

    def discard(self) -> None:
        """Count the entries no more: the broker does not serve the topic any longer."""
        counted, self.cache = self.cache, self.cache.detached()
        for ledger in self.ledgers:
            for page in ledger.pages:
                counted.discard(page)
                self.cache.add(page)

    def _left_of(self, entries: dict[int, SpecialEntry]) -> dict[int, SpecialEntry]:
        """Return those of the entries that were not removed."""
        first = self.first
        return {offset: entry for offset, entry in entries.items() if offset >= first} if entries else entries

    # --- reading --------------------------------------------------------------------------------------

    def size_from(self, first: int) -> int:
        """Return the bytes of all entries from an offset on."""
        size = sum(ledger.size for ledger in self.ledgers if ledger.first >= first)
        within = self.ledger_at(first)
        if within.first < first:
            size += within.size - within.bytes_before(min(first, within.end))
        return size

    def messages(self, first: int, end: int) -> int:
        """Return the number of messages in the entries from offset `first` up to `end`, which stays out.

        Entries know the number of their last message in the topic, so two of them suffice.
        """
        if first >= end:
            return 0
        begin = self.peek(first)
        return self.peek(end - 1).last_index - begin.last_index + begin.messages

    def find_size(self, size: int, low: int) -> int:
        """Return the least durable offset, from `low` on, from which the entries have at most `size` bytes;
        else the durable end."""
        high = self.durable_end
        while low < high:
            middle = (low + high) // 2
            if self.size_from(middle) > size:
                low = middle + 1
            else:
                high = middle
        return low

    def find_publish_time(self, publish_time: int, low: int = 0) -> int:
        """Return the offset of the first durable entry, from `low` on, published at or after `publish_time`
        (ms), else the end.

        The search is binary: as in the Java broker, entries are taken to be in order of time (SEEK-05).
        """
        low, high = max(low, self.first), self.durable_end
        while low < high:
            middle = (low + high) // 2
            if self.peek(middle).publish_time < publish_time:
                low = middle + 1
            else:
                high = middle
        return low

    def find_index(self, index: int) -> int | None:
        """Return the offset of the durable entry that holds the message with this index; None for none."""
        low, high = self.first, self.durable_end
        while low < high:
            middle = (low + high) // 2
            if self.peek(middle).last_index < index:
                low = middle + 1
            else:
                high = middle
        if low >= self.durable_end:
            return None
        entry = self.peek(low)
        return low if entry.last_index - entry.messages < index else None


class Retention:
    """The retention of entries that every subscription acknowledged (rule STORE-31)."""

    def __init__(self, time: float, size: int, wall_time: int) -> None:
        self._time = time
        self._size = size
        self._wall_time = wall_time

    def keeps(self, managed: ManagedLedger) -> bool:
        """True while the oldest ledger is within both limits; -1 is no limit."""
        if self._time == 0 or self._size == 0:
            return False
        closed_at = managed.ledgers[1].opened_at
        in_time = self._time < 0 or self._wall_time - closed_at <= self._time * 1000
        in_size = self._size < 0 or managed.size <= self._size
        return in_time and in_size
