"""The store of a broker on disk, for drivers with and without an event loop.

`SqliteStore` is a `Store` as `MemoryStore` is: `load` gives the state with which a broker starts, `write`
makes records durable. Python's own `sqlite3` is all that it needs; nothing here knows trio.
"""

from .errors import (
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreInUse,
    StoreNotWritable,
    StoreTooNew,
)
from .sqlite_store import SYNCS, SqliteStore, Sync

__all__ = [
    "SYNCS",
    "NotAStore",
    "SqliteStore",
    "StoreDamaged",
    "StoreError",
    "StoreFull",
    "StoreInUse",
    "StoreNotWritable",
    "StoreTooNew",
    "Sync",
]
