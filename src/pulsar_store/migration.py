"""Bringing the tables of an earlier format to the present one, when a store is opened."""

import sqlite3

from .tables import ENTRIES, ENTRY_BITS, ENTRY_COLUMNS, FORMAT


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring the tables of format `version` to the present one, within the caller's transaction.

    Raises `sqlite3.DatabaseError`.
    """
    if version < 2:
        _count_bytes(connection)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _count_bytes(connection: sqlite3.Connection) -> None:
    """Write every entry anew, with the bytes of its ledger before it. Entries of no ledger are left out."""
    execute = connection.execute
    execute("ALTER TABLE entry RENAME TO entry_1")
    for statement in ENTRIES:
        execute(statement)
    for (number,) in execute("SELECT number FROM ledger").fetchall():
        first = number << ENTRY_BITS
        execute(
            f"INSERT INTO entry (id, bytes_before, {ENTRY_COLUMNS}) SELECT id, coalesce(sum(length(data)) "
            f"OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0), {ENTRY_COLUMNS} "
            "FROM entry_1 WHERE id >= ? AND id < ?",
            (first, first + (1 << ENTRY_BITS)),
        )
    execute("DROP TABLE entry_1")
