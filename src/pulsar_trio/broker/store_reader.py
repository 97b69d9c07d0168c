"""`StoreReader`: the reader of a broker's store, whose every error ends the broker as `StoreFailed`.

A page is read in the event loop: the machine needs it at once, and a page takes less than a turn of the loop
under load. The writer's thread does not hold a reader up.
"""

from pulsar_sansio import EntryReader, StoredPage

from ..errors import StoreFailed


class StoreReader:
    """An `EntryReader` over that of a store."""

    def __init__(self, reader: EntryReader) -> None:
        self._reader = reader

    def read_entries(self, topic: str, ledger_id: int, first: int, count: int, size: int) -> StoredPage:
        """Return what the store's reader returns. Raises `StoreFailed`."""
        try:
            return self._reader.read_entries(topic, ledger_id, first, count, size)
        except Exception as error:
            raise StoreFailed(f"the broker's store cannot read: {error}") from error
