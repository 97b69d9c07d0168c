"""`StoreReader`: the reader of a broker's store, whose every error ends the broker as `StoreFailed`.

A page is read in the event loop: the machine needs it at once, and a page takes less than a turn of the loop
under load. The writer's thread does not hold a reader up.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pulsar_sansio import EntryReader, StoredPage

from ..errors import StoreFailed


class StoreReader:
    """An `EntryReader` over that of a store. `failed` is called with the first error and every later one, by
    whichever call of the machine the entry was wanted."""

    def __init__(self, reader: EntryReader, failed: Callable[[StoreFailed], object]) -> None:
        self._reader = reader
        self._failed = failed

    def read_entries(self, topic: str, ledger_id: int, first: int, count: int, size: int) -> StoredPage:
        """Return what the store's reader returns. Raises `StoreFailed`."""
        with self._failure():
            return self._reader.read_entries(topic, ledger_id, first, count, size)

    def bytes_before(self, topic: str, ledger_id: int, entry_id: int) -> int:
        """Return what the store's reader returns. Raises `StoreFailed`."""
        with self._failure():
            return self._reader.bytes_before(topic, ledger_id, entry_id)

    @contextmanager
    def _failure(self) -> Iterator[None]:
        """Report what the block raises, and raise it as `StoreFailed`."""
        try:
            yield
        except Exception as error:
            failure = StoreFailed(f"the broker's store cannot read: {error}")
            failure.__cause__ = error
            self._failed(failure)
            raise failure from error
