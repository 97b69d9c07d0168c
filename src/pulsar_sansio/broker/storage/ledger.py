"""A ledger: an append-only run of entries, some of them in memory, in pages.

A page is a run of consecutive entries. It begins where the first of them was needed, and ends where the next
page begins, or when it is large enough. What is in no page is in the store: `entry` reads the page that
begins there.
"""

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from ..records import EntryAdded
from .entry_cache import PAGE_ENTRIES
from .store import EntryReader, StoredPage
from .stored_bytes import ENTRY_COST

if TYPE_CHECKING:
    from .managed_ledger import ManagedLedger


class EntryPage:
    """Consecutive entries of one ledger, from the entry id `first` on."""

    __slots__ = ("before", "entries", "first", "ledger", "size")

    def __init__(self, ledger: "Ledger", first: int, stored: StoredPage) -> None:
        self.ledger = ledger
        self.first = first
        self.before = stored.bytes_before
        """Bytes of the ledger's entries before the page."""
        self.entries = stored.entries
        self.size = sum(len(entry.data) for entry in stored.entries)
        """Bytes of the entries."""

    @property
    def durable(self) -> bool:
        """True when the store has all entries."""
        ledger = self.ledger
        return ledger.first + self.first + len(self.entries) <= ledger.log.durable_end


class Ledger:
    """One ledger of `log`. `opened_at`: the wall time of its creation, in ms."""

    __slots__ = ("_firsts", "_open", "_page", "end", "first", "id", "log", "opened_at", "pages", "size")

    def __init__(self, log: "ManagedLedger", ledger_id: int, first: int, opened_at: int) -> None:
        self.log = log
        self.id = ledger_id
        self.first = first
        """The offset of its first entry."""
        self.end = first
        """The offset after its last entry."""
        self.opened_at = opened_at
        self.size = 0
        """Bytes of all entries."""
        self.pages: list[EntryPage] = []
        """The pages in memory, in order; the cache counts them."""
        self._firsts: list[int] = []
        """The first entry ids of the pages."""
        self._page: EntryPage | None = None
        """The page used last; None where that is gone."""
        self._open: EntryPage | None = None
        """The page that takes the next entry; None where that one needs a new page."""

    @property
    def count(self) -> int:
        """The number of entries."""
        return self.end - self.first

    def append(self, entry: EntryAdded) -> None:
        page, cache = self._open, self.log.cache
        if page is None or len(page.entries) >= PAGE_ENTRIES or page.size >= cache.page_bytes:
            page = self._open = EntryPage(self, self.count, StoredPage(self.size, []))
            self._insert(len(self.pages), page)
        size = len(entry.data)
        page.entries.append(entry)
        page.size += size
        self.size += size
        self.end += 1
        cache.used += size + ENTRY_COST
        cache.stored.used += size + ENTRY_COST

    def entry(self, offset: int) -> EntryAdded:
        """Return the entry at an offset, which must exist. Reads its page where that is not in memory."""
        number = offset - self.first
        page = self._page
        if page is not None and 0 <= (index := number - page.first) < len(page.entries):
            return page.entries[index]
        found = self._page_of(number)
        if found is None:
            return self._load(number)
        self.log.cache.touch(found)
        self._page = found
        return found.entries[number - found.first]

    def peek(self, offset: int) -> EntryAdded:
        """Return the entry at an offset, which must exist. Reads no other entry, and keeps none."""
        number = offset - self.first
        page = self._page_of(number)
        return self._read(number, 1).entries[0] if page is None else page.entries[number - page.first]

    def bytes_before(self, offset: int) -> int:
        """Return the bytes of the entries below an offset of the ledger, or its end."""
        if offset == self.end:
            return self.size
        number = offset - self.first
        page = self._page_of(number)
        if page is None:
            return self._reader.bytes_before(self.log.topic, self.id, number)
        return page.before + sum(len(entry.data) for entry in page.entries[: number - page.first])

    def drop(self, page: EntryPage) -> None:
        """Discard a page, which the store has."""
        index = bisect_left(self._firsts, page.first)
        del self.pages[index], self._firsts[index]
        if self._page is page:
            self._page = None
        if self._open is page:
            self._open = None

    def _page_of(self, number: int) -> EntryPage | None:
        """Return the page with an entry id, if it is in memory."""
        index = bisect_right(self._firsts, number) - 1
        if index < 0:
            return None
        page = self.pages[index]
        return page if number < page.first + len(page.entries) else None

    def _load(self, number: int) -> EntryAdded:
        """Read the page that begins with an entry id, which no page has, and return its first entry."""
        index = bisect_right(self._firsts, number)
        end = self._firsts[index] if index < len(self._firsts) else self.count
        page = EntryPage(self, number, self._read(number, min(PAGE_ENTRIES, end - number)))
        self._insert(index, page)
        self._page = page
        found = page.entries[0]
        cache = self.log.cache
        if cache.used > cache.limit:
            cache.shrink()
        return found

    def _read(self, number: int, count: int) -> StoredPage:
        size = self.log.cache.page_bytes
        return self._reader.read_entries(self.log.topic, self.id, number, count, size)

    @property
    def _reader(self) -> EntryReader:
        reader = self.log.cache.reader
        assert reader is not None, "a store that reads no entry back gives all of them"
        return reader

    def _insert(self, index: int, page: EntryPage) -> None:
        self.pages.insert(index, page)
        self._firsts.insert(index, page.first)
        self.log.cache.add(page)
