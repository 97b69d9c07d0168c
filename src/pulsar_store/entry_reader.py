"""`SqliteEntryReader`: reads entries back, a page at a time, by a connection of its own.

With a write-ahead log a reader waits for no writer, and sees every transaction that has ended. Each page is
one read transaction, which ends with the call: a checkpoint waits for no reader.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from pulsar_sansio import StoredPage
from pulsar_sansio import broker_records as records

from .database import damaged, errors_of, open_reader
from .tables import ENTRY_BITS, ENTRY_COLUMNS
from .values import text_of

_LEDGER = (
    "SELECT ledger.number FROM ledger JOIN topic ON topic.number = ledger.topic "
    "WHERE topic.topic = ? AND ledger_id = ?"
)

_ENTRIES = (
    f"SELECT bytes_before, id - ?, {ENTRY_COLUMNS} FROM entry WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
)


class SqliteEntryReader:
    """An `EntryReader` over the store of a folder, which its owner has open. One thread at a time reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection: sqlite3.Connection | None = None
        """This is None before the first page, and after `close`."""

    def read_entries(self, topic: str, ledger_id: int, first: int, count: int, size: int) -> StoredPage:
        """Return `count` entries from the entry id `first` on, or less where they have `size` bytes before.

        Raises `StoreDamaged` where one is missing, and `StoreError`.
        """
        with errors_of(self._folder):
            begin = self._first_row(topic, ledger_id)
            bounds = begin, begin + first, begin + first + count, count
            with closing(self._execute(_ENTRIES, bounds)) as rows:
                return self._page(rows, topic, ledger_id, first, count, size)

    def bytes_before(self, topic: str, ledger_id: int, entry_id: int) -> int:
        """Return the bytes of the ledger's entries before this one. Raises as `read_entries`."""
        with errors_of(self._folder):
            row = self._first_row(topic, ledger_id) + entry_id
            found = self._execute("SELECT bytes_before FROM entry WHERE id = ?", (row,)).fetchone()
            if found is None:
                raise damaged(self._folder, f"entry {entry_id} of ledger {ledger_id} is missing in {topic}")
            return int(found[0])

    def close(self) -> None:
        """Close the file; the next page opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _execute(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        if self._connection is None:
            self._connection = open_reader(self._folder)
        return self._connection.execute(statement, values)

    def _first_row(self, topic: str, ledger_id: int) -> int:
        """Return the id of the row that the ledger's first entry has."""
        found = self._execute(_LEDGER, (topic, ledger_id)).fetchone()
        if found is None:
            raise damaged(self._folder, f"ledger {ledger_id} of {topic} is missing")
        return int(found[0]) << ENTRY_BITS

    def _page(
        self, rows: Iterator[Any], topic: str, ledger_id: int, first: int, count: int, size: int
    ) -> StoredPage:
        bytes_before = 0
        entries: list[records.EntryAdded] = []
        for before, *values in rows:
            try:
                entry = read_entry(topic, ledger_id, *values)
            except (ValueError, TypeError) as error:
                what = f"entry {first + len(entries)} of ledger {ledger_id} in {topic}: {error!r:.200}"
                raise damaged(self._folder, what) from error
            if not entries:
                bytes_before = before
            if entry.entry_id != first + len(entries):
                break
            entries.append(entry)
            if before + len(entry.data) - bytes_before >= size or len(entries) == count:
                return StoredPage(bytes_before, entries)
        missing = first + len(entries)
        raise damaged(self._folder, f"entry {missing} of ledger {ledger_id} is missing in {topic}")


def read_entry(
    topic: str,
    ledger_id: int,
    entry_id: int,
    messages: int,
    publish_time: Any,
    received_at: int,
    last_index: int,
    deliver_at: Any,
    chunk_of: str | bytes | None,
    coordinator: Any,
    number: Any,
    commits: int | None,
    data: bytes,
) -> records.EntryAdded:
    """Return the entry of a row: its ids, and `ENTRY_COLUMNS`."""
    return records.EntryAdded(
        topic,
        ledger_id,
        entry_id,
        messages,
        int(publish_time),
        data,
        -1 if deliver_at is None else int(deliver_at),
        None if chunk_of is None else text_of(chunk_of),
        last_index,
        received_at,
        None if coordinator is None else (int(coordinator), int(number)),
        None if commits is None else bool(commits),
    )
