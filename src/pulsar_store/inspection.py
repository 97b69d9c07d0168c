"""`describe` lists the contents of a folder, `check` finds faults in them. No broker may use it meanwhile.

Neither function returns payloads, nor the values of properties: applications may have secrets in both.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crc32c import crc32c

from pulsar_sansio import StoredLedger, StoredState, StoredTopic, broker_records

from .database import FILE, check_structure, errors_of, open_database
from .entry_reader import SqliteEntryReader
from .state_reader import load_state
from .tables import ENTRY_BITS, FORMAT

_PAGE, _PAGE_BYTES = 1000, 1024 * 1024
"""The entries, and the bytes, that a check has in memory at a time."""

_CHECKSUM = b"\x0e\x01"
"""The bytes with which a stored entry begins; four bytes of checksum follow."""


@dataclass(frozen=True, slots=True)
class Described:
    """One thing in a store: its kind, its name, and its values, which JSON can hold."""

    kind: str
    name: str
    values: dict[str, Any]


def describe(folder: Path, *, entries: bool = False) -> Iterator[Described]:
    """Yield all that is in the store of a folder; with `entries`, each entry without its payload.

    Raises `StoreError`.
    """
    with errors_of(folder), closing(open_database(folder, create=False)) as connection:
        check_structure(connection, folder, entries=entries)
        state = load_state(connection, folder)
        yield Described("store", str(folder), _figures(connection, folder, state))
        yield from _metadata(state)
        for topic, stored in state.topics.items():
            yield from _topic(connection, topic, stored, entries)


def check(folder: Path) -> tuple[dict[str, int], list[str]]:
    """Return the numbers of topics and entries, and the faults that were found.

    Raises `StoreError` for a store that no broker can start with.
    """
    with errors_of(folder), closing(open_database(folder, create=False)) as connection:
        check_structure(connection, folder, entries=True)
        state = load_state(connection, folder)
        faults = [
            f"{count} rows of {table} belong to no {owner}"
            for table, owner, condition in _ORPHANS
            if (count := connection.execute(f"SELECT count(*) FROM {table} WHERE {condition}").fetchone()[0])
        ]
        (wrong,) = connection.execute(_WRONG_BYTES).fetchone()
        if wrong:
            faults.append(f"{wrong} entries have another number of bytes before them")
        with closing(SqliteEntryReader(folder)) as reader:
            for topic, stored in state.topics.items():
                found = _faults_of(topic, stored, state.next_ledger_id, reader)
                faults += (f"{topic}: {fault}" for fault in found)
    ledgers = [ledger for stored in state.topics.values() for ledger in stored.ledgers.values()]
    return {"topics": len(state.topics), "entries": sum(map(_count, ledgers))}, faults


_ORPHANS = (
    ("entry", "ledger", f"id >> {ENTRY_BITS} NOT IN (SELECT number FROM ledger)"),
    ("compacted_entry", "compacted topic", "topic NOT IN (SELECT topic FROM compacted)"),
)
"""Rows that no load meets: their table, their owner's name, and the condition that finds them."""

_WRONG_BYTES = (
    "SELECT count(*) FROM (SELECT bytes_before, sum(length(data)) OVER (PARTITION BY id >> "
    f"{ENTRY_BITS} ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes FROM entry) "
    "WHERE bytes_before != ifnull(bytes, 0)"
)
"""The number of entries whose bytes before them are not those of their ledger."""


def _count(ledger: StoredLedger) -> int:
    return 0 if ledger.unread is None else ledger.unread.count


def _faults_of(
    topic: str, stored: StoredTopic, next_ledger_id: int, reader: SqliteEntryReader
) -> Iterator[str]:
    end: int | None = None
    for ledger_id, ledger in sorted(stored.ledgers.items()):
        if ledger_id >= next_ledger_id:
            yield f"ledger {ledger_id}: its id will be given again"
        if end is not None and ledger.first_offset != end:
            yield f"ledger {ledger_id}: it begins at offset {ledger.first_offset}, not at {end}"
        count = _count(ledger)
        end = ledger.first_offset + count
        number = 0
        while number < count:
            page = reader.read_entries(topic, ledger_id, number, min(_PAGE, count - number), _PAGE_BYTES)
            for entry in page.entries:
                if not _is_whole(entry):
                    yield f"entry {ledger_id}:{entry.entry_id}: its checksum is wrong"
            number += len(page.entries)
    for subscription, cursor in stored.cursors.items():
        last = max([cursor.mark_delete, *(last for _, last in cursor.acknowledged)])
        if last >= (end or 0):
            yield f"subscription {subscription!r}: it acknowledged {last}, the topic ends at {end or 0}"


def _is_whole(entry: broker_records.EntryAdded) -> bool:
    data = entry.data
    return data[:2] == _CHECKSUM and crc32c(data[6:]) == int.from_bytes(data[2:6], "big")


def _figures(connection: sqlite3.Connection, folder: Path, state: StoredState) -> dict[str, Any]:
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    return {
        "format": FORMAT,
        "bytes": (folder / FILE).stat().st_size,
        "free_bytes": free * page,
        "starts": state.incarnation,
        "next_ledger": state.next_ledger_id,
        "topics": len(state.topics),
    }


def _metadata(state: StoredState) -> Iterator[Described]:
    for tenant, roles in state.tenants.items():
        yield Described("tenant", tenant, {"admin_roles": list(roles)})
    for scope, policies in state.policies.items():
        given = {name: value for name, value in asdict(policies).items() if value is not None}
        yield Described("policies", scope, given)
    for scope, grants in state.grants.items():
        given = {
            "roles": {role: list(actions) for role, actions in grants.roles},
            "subscriptions": {name: list(roles) for name, roles in grants.subscriptions},
        }
        yield Described("permissions", scope, given)
    for scope, properties in state.properties.items():
        yield Described("properties", scope, {"names": [name for name, _ in properties]})
    for topic, partitions in state.partitions.items():
        yield Described("partitioned topic", topic, {"partitions": partitions})
    for topic, versions in state.schemas.items():
        for each in versions:
            values = {
                "version": each.version,
                "type": each.type,
                "schema": each.name,
                "bytes": len(each.data),
            }
            yield Described("schema", topic, {**values, "timestamp": each.timestamp, "deleted": each.deleted})
    for (coordinator, number), transaction in state.transactions.items():
        topics = [topic for joined in transaction.joined for topic in joined.topics]
        subscriptions_of = [list(pair) for joined in transaction.joined for pair in joined.subscriptions]
        opened = transaction.opened
        yield Described(
            "transaction",
            f"{coordinator}:{number}",
            {
                "owner": opened.owner,
                "opened_at": opened.opened_at,
                "timeout": opened.timeout,
                "topics": topics,
                "subscriptions": subscriptions_of,
            },
        )


def _topic(
    connection: sqlite3.Connection, topic: str, stored: StoredTopic, entries: bool
) -> Iterator[Described]:
    migrated = stored.migrated_to
    yield Described(
        "topic",
        topic,
        {
            "epoch": stored.topic_epoch,
            "terminated_at": stored.terminated_at,
            "migrated_to": None if migrated is None else [migrated.service_url, migrated.service_url_tls],
            "producers": stored.sequences,
        },
    )
    for ledger_id, ledger in stored.ledgers.items():
        (number,) = connection.execute(
            "SELECT ledger.number FROM ledger JOIN topic ON topic.number = ledger.topic "
            "WHERE topic.topic = ? AND ledger_id = ?",
            (topic, ledger_id),
        ).fetchone()
        first = number << ENTRY_BITS
        bounds = first, first + (1 << ENTRY_BITS)
        count, size = connection.execute(
            "SELECT count(*), coalesce(sum(length(data)), 0) FROM entry WHERE id >= ? AND id < ?", bounds
        ).fetchone()
        values = {"ledger": ledger_id, "entries": count, "bytes": size, "first_offset": ledger.first_offset}
        yield Described("ledger", topic, {**values, "opened_at": ledger.opened_at})
        if entries:
            for row, messages, publish_time, size in connection.execute(
                "SELECT id, messages, publish_time, length(data) FROM entry "
                "WHERE id >= ? AND id < ? ORDER BY id",
                bounds,
            ):
                found = {"ledger": ledger_id, "entry": row - first, "messages": messages, "bytes": size}
                yield Described("entry", topic, {**found, "publish_time": int(publish_time)})
    for subscription, cursor in stored.cursors.items():
        position: dict[str, Any] = {
            "subscription": subscription,
            "acknowledged_up_to": cursor.mark_delete,
            "acknowledged": [list(pair) for pair in cursor.acknowledged],
            "in_part": [offset for offset, _ in cursor.partly],
            "in_transactions": len(stored.pending_acks.get(subscription, ())),
        }
        yield Described("subscription", topic, position)
    if stored.compacted is not None:
        compacted = stored.compacted
        kept = {"entries": len(compacted.entries), "up_to_offset": compacted.horizon}
        yield Described("compacted", topic, {"ledger": compacted.ledger_id, **kept})
