"""Opening the file of a store: whose it is, its version, its lock, and the errors of SQLite in our words.

The lock is that of a second file, which SQLite holds while the first one is open; the system gives it up with
the process. Several connections of the owner share the first file, which none of them locks for itself.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import (
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreInUse,
    StoreNotWritable,
    StoreTooNew,
)
from .migration import migrate
from .tables import APPLICATION_ID, FORMAT, TABLES

FILE = "broker.db"
"""The file of a store in its folder. SQLite keeps `broker.db-wal` and `broker.db-shm` beside it."""

LOCK = "broker.lock"
"""The file by which a process owns the folder. It is empty."""

CACHE_KILOBYTES = 16 * 1024

CHECKPOINT_PAGES = 4_000
"""Pages of 4 KiB in the write-ahead log after which SQLite copies them into the file."""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def damaged(folder: Path, why: object) -> StoreDamaged:
    return StoreDamaged(
        f"the store in {folder} is damaged ({why}): restore {FILE} from a copy, or give an empty folder"
    )


@contextmanager
def errors_of(folder: Path) -> Iterator[None]:
    """Raise the errors that SQLite, or the system, raises in the block as `StoreError` with the folder."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None:
            raise
        raise _translated(folder, code & 0xFF, error) from error
    except OSError as error:
        raise StoreNotWritable(f"the folder {folder} cannot be used as a store: {error.strerror}") from error


def _translated(folder: Path, code: int, error: sqlite3.DatabaseError) -> StoreError:
    if code in _BUSY:
        return StoreInUse(f"the store in {folder} is in use by another broker or command: end that one first")
    if code in _DAMAGED:
        return damaged(folder, error)
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"the disk of the store in {folder} is full: make room, then start the broker again")
    if code in _NOT_WRITABLE:
        return _not_writable(folder, error)
    return StoreError(f"the store in {folder} failed: {error} ({error.sqlite_errorname}): check the disk")


def _not_writable(folder: Path, why: object) -> StoreNotWritable:
    return StoreNotWritable(
        f"the store in {folder} cannot be written ({why}): give this user the right to write there"
    )


class _Owned(sqlite3.Connection):
    """A connection that has the lock of its folder until it is closed."""

    lock: sqlite3.Connection | None = None

    def close(self) -> None:
        super().close()
        if self.lock is not None:
            self.lock.close()


def open_database(folder: Path, *, create: bool) -> sqlite3.Connection:
    """Open the store of a folder, for this process alone. `create`: make what does not exist.

    Raises `StoreError`.
    """
    path = folder / FILE
    with errors_of(folder):
        if create:
            _make_folder(folder)
        elif not path.exists():
            raise NotAStore(f"{folder} has no store: it has no file {FILE}")
        for needed in (folder, path):
            if needed.exists() and not os.access(needed, os.W_OK):
                raise _not_writable(folder, f"no right to write to {needed}")
        connection = sqlite3.connect(
            path,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=_Owned,
        )
        try:
            connection.lock = _locked(folder)
            _prepare(connection, folder, create)
        except BaseException:
            connection.close()
            raise
    return connection


def open_reader(folder: Path) -> sqlite3.Connection:
    """Open one more connection to a store that this process has open, to read. Raises `StoreError`."""
    with errors_of(folder):
        connection = sqlite3.connect(folder / FILE, timeout=0, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA query_only = ON")
    return connection


def _locked(folder: Path) -> sqlite3.Connection:
    lock = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except BaseException:
        lock.close()
        raise
    return lock


def _make_folder(folder: Path) -> None:
    """Make the folder, and write its own entry in the folder above to the disk."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    if os.name == "posix":
        above = os.open(folder.parent, os.O_RDONLY)
        try:
            os.fsync(above)
        finally:
            os.close(above)


def _prepare(connection: sqlite3.Connection, folder: Path, create: bool) -> None:
    application = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    new = application == version == tables == 0
    if application != APPLICATION_ID and not (new and create):
        raise NotAStore(f"{folder / FILE} is not a store of pulsar-trio: give another folder")
    if version > FORMAT:
        raise StoreTooNew(
            f"the store in {folder} has format {version}, this version reads up to {FORMAT}: "
            "use the version of pulsar-trio that wrote it, or a later one"
        )
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise StoreNotWritable(f"the file system of {folder} has no write-ahead log: give another folder")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("BEGIN IMMEDIATE")
    if new:
        for statement in TABLES.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    elif version < FORMAT:
        migrate(connection, version)
    connection.execute("COMMIT")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def check_structure(connection: sqlite3.Connection, folder: Path, *, entries: bool) -> None:
    """Raises `StoreDamaged` where SQLite finds a fault in the structure of the file.

    `entries`: look at the entries, too, which takes half a second of the processor for a million of them.
    """
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'entry' ORDER BY name"
    checks = (
        ["quick_check(1)"] if entries else [f"quick_check({name})" for (name,) in connection.execute(tables)]
    )
    for check in checks:
        (found,) = connection.execute(f"PRAGMA {check}").fetchone()
        if found != "ok":
            raise damaged(folder, " ".join(str(found).split()))
