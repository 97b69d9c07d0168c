"""`SqliteStore`: the durable memory of a broker in a folder, in SQLite with a write-ahead log.

A write is one transaction of SQLite: after a crash all of it is there, or nothing. The store knows no event
loop: `write` waits for the disk, so a driver with an event loop calls it in a thread.
"""

import sqlite3
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Literal

from pulsar_sansio import InvalidConfiguration, StoredState
from pulsar_sansio import broker_records as records

from .database import check_structure, errors_of, open_database
from .entry_reader import SqliteEntryReader
from .errors import StoreError
from .record_writer import RecordWriter
from .state_reader import load_state

Sync = Literal["always", "batch", "none"]

SYNCS: tuple[Sync, ...] = ("always", "batch", "none")

SYNC_INTERVAL = 0.1
"""Seconds between a write and the sync that follows it, with `sync="batch"`."""


class SqliteStore:
    """A `Store` in a folder, which is made if it does not exist. One broker at a time uses a folder.

    `sync` says what a receipt promises:

    * `always`: the message survives a failure of the machine. Every write ends with a sync of the disk.
    * `batch`: the message survives the broker's process. A failure of the machine loses at most what was
      written in the last `SYNC_INTERVAL`, and the time that one sync takes.
    * `none`: the message survives the broker's process. The system decides when the disk has it: a failure of
      the machine loses the last seconds or minutes.

    With each of them the store is whole after a failure, and has the writes in order up to some point. The
    file is opened by the first `load` or `write`, and is locked until `close`. Raises `InvalidConfiguration`;
    `load` and `write` raise `StoreError`. After a write that failed the store takes no more.
    """

    blocking = True

    def __init__(self, folder: str | PathLike[str], *, sync: Sync = "always") -> None:
        if sync not in SYNCS:
            raise InvalidConfiguration(f"sync: one of {', '.join(SYNCS)}, not {sync!r:.100}")
        self.folder = Path(folder)
        self.sync = sync
        self.reader = SqliteEntryReader(self.folder)
        """Reads entries back. A broker calls it from one thread, while another one writes."""
        self._connection: sqlite3.Connection | None = None
        self._writer: RecordWriter | None = None
        self._failure: StoreError | None = None
        self._lock = Lock()
        """Held while the connection is used: the thread that syncs uses it, too."""
        self._written = Event()
        self._closing = Event()
        self._syncing: Thread | None = None

    def load(self) -> StoredState:
        """Return the sum of everything written so far, with the entries unread; the caller owns it.

        The structure of all tables but that of entries is checked, which are met when they are read.
        """
        with self._lock:
            try:
                with errors_of(self.folder):
                    connection = self._opened()
                    check_structure(connection, self.folder, entries=False)
                    return load_state(connection, self.folder)
            except BaseException:
                self._disconnect()
                raise

    def write(self, batch: Sequence[records.Record]) -> None:
        """Make one batch durable as a whole, as far as `sync` promises."""
        with self._lock:
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            try:
                with errors_of(self.folder):
                    connection = self._opened()
                    assert self._writer is not None
                    connection.execute("BEGIN IMMEDIATE")
                    self._writer.write(batch)
                    connection.execute("COMMIT")
            except BaseException as error:
                self._fail(error)
                raise
            if self.sync == "batch":
                self._written.set()
                if self._syncing is None:
                    self._closing.clear()
                    self._syncing = Thread(target=self._sync_now_and_then, name="pulsar store", daemon=True)
                    self._syncing.start()

    def close(self) -> None:
        """Give the file up; `load` opens it again. A second call does nothing."""
        self._closing.set()
        self._written.set()
        if self._syncing is not None:
            self._syncing.join()
            self._syncing = None
        with self._lock:
            self.reader.close()
            self._disconnect()
            self._failure = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_database(self.folder, create=True)
            self._writer = RecordWriter(self._connection)
            if self.sync != "always":
                self._connection.execute("PRAGMA synchronous = NORMAL")
        return self._connection

    def _fail(self, error: BaseException) -> None:
        """Take no more writes: rows and the writer's numbers may differ after a transaction that failed."""
        self._failure = StoreError(f"the store in {self.folder} takes no more, after a failure: {error}")
        self._disconnect()

    def _disconnect(self) -> None:
        """Close the file; SQLite undoes a transaction that is not complete."""
        connection, self._connection, self._writer = self._connection, None, None
        if connection is not None:
            connection.close()

    def _sync_now_and_then(self) -> None:
        """Sync what was written `SYNC_INTERVAL` ago, until the store is closed."""
        while True:
            self._written.wait()
            closing = self._closing.wait(SYNC_INTERVAL)
            self._written.clear()
            with self._lock:
                if self._connection is None:
                    return
                try:
                    with errors_of(self.folder):
                        _sync(self._connection)
                except StoreError as error:
                    self._fail(error)
                    return
            if closing:
                return

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.folder)!r}, sync={self.sync!r})"


def _sync(connection: sqlite3.Connection) -> None:
    """Write a row with a sync, which takes the whole write-ahead log to the disk."""
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("UPDATE broker SET syncs = syncs + 1")
    connection.execute("PRAGMA synchronous = NORMAL")
