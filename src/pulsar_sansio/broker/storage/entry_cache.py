"""`EntryCache`: the pages of entries that a broker has in memory, up to a limit for all topics together.

With a store that reads entries back, the page used least recently is discarded beyond the limit, once all its
entries are durable. Without one every page stays. Ledgers own their pages; the cache knows the order of their
use, and what they take.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from .store import EntryReader
from .stored_bytes import ENTRY_COST, StoredBytes

if TYPE_CHECKING:
    from .ledger import EntryPage

PAGE_ENTRIES = 256
"""Entries of a page, at most."""

PAGE_BYTES = 1024 * 1024
"""Bytes of entries after which a page takes no further entry."""

PAGES_AT_LEAST = 8
"""A page of a small cache is smaller, so that the cache holds several."""

NO_LIMIT = 2**63


class EntryCache:
    """The pages of one broker. `limit`: bytes, each entry with `ENTRY_COST`. `reader`: None where the store
    does not read entries back, and no page is discarded."""

    __slots__ = ("_pages", "limit", "page_bytes", "reader", "stored", "used")

    def __init__(self, stored: StoredBytes, limit: int, reader: EntryReader | None) -> None:
        self.stored = stored
        self.reader = reader
        self.limit = NO_LIMIT if reader is None else limit
        self.page_bytes = min(PAGE_BYTES, max(1, self.limit // PAGES_AT_LEAST))
        self._pages: OrderedDict[EntryPage, None] = OrderedDict()
        """All pages, the one used least recently first."""
        self.used = 0
        """Bytes of the entries in all pages, each with `ENTRY_COST`."""

    def detached(self) -> "EntryCache":
        """Return an empty cache over this store, for a topic whose entries this one counts no more."""
        return EntryCache(StoredBytes(0), self.limit, self.reader)

    def add(self, page: "EntryPage") -> None:
        """Take a page, and count its entries. Entries added later count themselves."""
        self._pages[page] = None
        self._count(page, 1)

    def touch(self, page: "EntryPage") -> None:
        """Make the page the one used last."""
        self._pages.move_to_end(page)

    def discard(self, page: "EntryPage") -> None:
        """Count a page no more: its ledger is removed, or not served any longer."""
        del self._pages[page]
        self._count(page, -1)

    def shrink(self) -> None:
        """Discard pages, as long as more than the limit is used. Pages with entries that are not durable
        stay."""
        for _ in range(len(self._pages)):
            if self.used <= self.limit:
                return
            page, _ = self._pages.popitem(last=False)
            if page.durable:
                page.ledger.drop(page)
                self._count(page, -1)
            else:
                self._pages[page] = None

    def _count(self, page: "EntryPage", sign: int) -> None:
        entries = sign * len(page.entries)
        self.used += sign * page.size + entries * ENTRY_COST
        self.stored.add(entries, sign * page.size)
