"""`RecordWriter`: each record as changes of rows.

The writer knows the numbers of topics and ledgers, and the statements. Its caller owns the transaction.

Records of one kind that follow each other are written by few statements: each statement may give the
interpreter to another thread, and takes long to get it back from a busy one.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from pulsar_sansio import broker_records as records

from .tables import ENTRY_BITS, ENTRY_COLUMNS
from .values import bits_to_json, policies_to_json, stored_integer, stored_text, to_json

MOST_ROWS = 1024
"""Rows of one statement, where SQLite allows as many parameters."""

_PLAIN_ENTRY = (
    "INSERT INTO entry (id, bytes_before, messages, publish_time, received_at, last_index, data) VALUES "
)
_CURSOR = "INSERT INTO cursor VALUES "
_CURSOR_MOVED = (
    " ON CONFLICT (topic, subscription) DO UPDATE SET mark_delete = excluded.mark_delete, "
    "acknowledged = excluded.acknowledged, partly = excluded.partly, properties = excluded.properties"
)
_SEQUENCE = "INSERT INTO sequence VALUES "
_SEQUENCE_MOVED = " ON CONFLICT (topic, producer) DO UPDATE SET sequence_id = excluded.sequence_id"

Row = Sequence[object]


def entry_row(entry: records.EntryAdded) -> tuple[object, ...]:
    """Return the values of `ENTRY_COLUMNS`."""
    coordinator, number = entry.transaction or (None, None)
    return (
        entry.messages,
        stored_integer(entry.publish_time),
        entry.received_at,
        entry.last_index,
        None if entry.deliver_at == -1 else stored_integer(entry.deliver_at),
        None if entry.chunk_of is None else stored_text(entry.chunk_of),
        None if coordinator is None else stored_integer(coordinator),
        None if number is None else stored_integer(number),
        entry.commits,
        entry.data,
    )


class RecordWriter:
    """Applies records to an open database, whose topics and ledgers it reads first."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._most_parameters = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
        self._topics: dict[str, int] = {}
        self._ledgers: dict[str, dict[int, int]] = {}
        """Topic -> ledger id -> the number of the ledger's row."""
        self._sizes: dict[int, int] = {}
        """The number of a ledger's row -> the bytes of its entries, for ledgers being written."""
        names = {}
        for number, topic in self._execute("SELECT number, topic FROM topic"):
            names[number] = topic
            self._topics[topic] = number
            self._ledgers[topic] = {}
        for number, topic, ledger_id in self._execute("SELECT number, topic, ledger_id FROM ledger"):
            self._ledgers[names[topic]][ledger_id] = number

    def write(self, batch: Iterable[records.Record]) -> None:
        """Apply records in order."""
        for kind, run in groupby(batch, type):
            many = _RUNS.get(kind)
            if many is not None:
                many(self, run)
                continue
            for record in run:
                _ONE[kind](self, record)

    # --- runs -----------------------------------------------------------------------------------------

    def _insert(self, head: str, width: int, values: list[object], tail: str = "") -> None:
        """Insert rows of `width` values each, given one after the other, by few statements.

        The counts of rows are powers of two, so that SQLite's cache has the statements.
        """
        row = "(" + ",".join("?" * width) + ")"
        count = MOST_ROWS
        while count * width > self._most_parameters:
            count //= 2
        left, position = len(values) // width, 0
        while left:
            while count > left:
                count //= 2
            end = position + count * width
            self._execute(head + ",".join([row] * count) + tail, values[position:end])
            position, left = end, left - count

    def _entries(self, run: Iterable[records.EntryAdded]) -> None:
        values: list[object] = []
        add = values.extend
        ledgers, sizes = self._ledgers, self._sizes
        for entry in run:
            number = ledgers[entry.topic][entry.ledger_id]
            before = sizes.get(number)
            if before is None:
                before = self._size_of(number)
            sizes[number] = before + len(entry.data)
            row = (number << ENTRY_BITS) + entry.entry_id
            if entry.deliver_at != -1 or entry.chunk_of is not None or entry.transaction is not None:
                self._execute(
                    f"INSERT INTO entry (id, bytes_before, {ENTRY_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                    (row, before, *entry_row(entry)),
                )
                continue
            time = entry.publish_time
            add(
                (
                    row,
                    before,
                    entry.messages,
                    time if time < 2**63 else str(time),
                    entry.received_at,
                    entry.last_index,
                    entry.data,
                )
            )
        self._insert(_PLAIN_ENTRY, 7, values)

    def _size_of(self, number: int) -> int:
        """Return the bytes of the entries of a ledger."""
        first = number << ENTRY_BITS
        found = self._execute(
            "SELECT bytes_before + length(data) FROM entry WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1",
            (first, first + (1 << ENTRY_BITS)),
        ).fetchone()
        return found[0] if found is not None else 0

    def _cursors(self, run: Iterable[records.CursorSaved]) -> None:
        values: list[object] = []
        for cursor in run:
            values += (
                self._topics[cursor.topic],
                stored_text(cursor.subscription),
                cursor.mark_delete,
                to_json(cursor.acknowledged),
                bits_to_json(cursor.partly),
                to_json(cursor.properties),
            )
        self._insert(_CURSOR, 6, values, _CURSOR_MOVED)

    def _sequences(self, run: Iterable[records.SequenceSaved]) -> None:
        last = {(each.topic, each.producer_name): each.sequence_id for each in run}
        values: list[object] = []
        for (topic, producer), sequence_id in last.items():
            if sequence_id is None:
                self._execute(
                    "DELETE FROM sequence WHERE topic = ? AND producer = ?",
                    (self._topics[topic], stored_text(producer)),
                )
            else:
                values += (self._topics[topic], stored_text(producer), stored_integer(sequence_id))
        self._insert(_SEQUENCE, 3, values, _SEQUENCE_MOVED)

    # --- topics ---------------------------------------------------------------------------------------

    def _ledger_opened(self, record: records.LedgerOpened) -> None:
        for number in self._ledgers[record.topic].values():
            self._sizes.pop(number, None)
        added = self._execute(
            "INSERT INTO ledger (topic, ledger_id, first_offset, opened_at, first_index) VALUES (?,?,?,?,?)",
            (
                self._topics[record.topic],
                record.ledger_id,
                record.first_offset,
                record.opened_at,
                record.first_index,
            ),
        )
        assert added.lastrowid is not None
        self._ledgers[record.topic][record.ledger_id] = added.lastrowid
        self._ledger_id_used(record.ledger_id)

    def _ledger_id_used(self, ledger_id: int) -> None:
        self._execute("UPDATE broker SET next_ledger_id = max(next_ledger_id, ?)", (ledger_id + 1,))

    def _ledgers_deleted(self, record: records.LedgersDeleted) -> None:
        ledgers = self._ledgers[record.topic]
        for ledger_id in record.ledger_ids:
            number = ledgers.pop(ledger_id, None)
            if number is not None:
                self._delete_ledger(number)

    def _delete_ledger(self, number: int) -> None:
        first = number << ENTRY_BITS
        self._execute("DELETE FROM entry WHERE id >= ? AND id < ?", (first, first + (1 << ENTRY_BITS)))
        self._execute("DELETE FROM ledger WHERE number = ?", (number,))
        self._sizes.pop(number, None)

    def _topic_saved(self, record: records.TopicSaved) -> None:
        migrated = record.migrated_to
        values = (
            None if record.topic_epoch is None else stored_integer(record.topic_epoch),
            record.terminated_at,
            None if migrated is None else to_json([migrated.service_url, migrated.service_url_tls]),
        )
        number = self._topics.get(record.topic)
        if number is not None:
            self._execute(
                "UPDATE topic SET epoch = ?, terminated_at = ?, migrated_to = ? WHERE number = ?",
                (*values, number),
            )
            return
        added = self._execute(
            "INSERT INTO topic (topic, epoch, terminated_at, migrated_to) VALUES (?,?,?,?)",
            (record.topic, *values),
        )
        assert added.lastrowid is not None
        self._topics[record.topic] = added.lastrowid
        self._ledgers[record.topic] = {}

    def _topic_deleted(self, record: records.TopicDeleted) -> None:
        number = self._topics.pop(record.topic, None)
        if number is not None:
            for ledger in self._ledgers.pop(record.topic).values():
                self._delete_ledger(ledger)
            for table in ("cursor", "sequence", "pending_ack", "compacted", "compacted_entry"):
                self._execute(f"DELETE FROM {table} WHERE topic = ?", (number,))
            self._execute("DELETE FROM topic WHERE number = ?", (number,))
        self._discard(record.topic)

    def _discard(self, scope: str) -> None:
        """Delete all that is kept for a namespace or topic that is deleted."""
        for table in ("policies", "properties", "permission"):
            self._execute(f"DELETE FROM {table} WHERE scope = ?", (stored_text(scope),))

    def _topic_compacted(self, record: records.TopicCompacted) -> None:
        topic = self._topics[record.topic]
        self._execute("DELETE FROM compacted_entry WHERE topic = ?", (topic,))
        self._execute("REPLACE INTO compacted VALUES (?,?,?)", (topic, record.ledger_id, record.horizon))
        values: list[object] = []
        for offset, entry in zip(record.offsets, record.entries, strict=True):
            values += (topic, offset, entry.ledger_id, entry.entry_id, *entry_row(entry))
        self._insert("INSERT INTO compacted_entry VALUES ", 14, values)
        self._ledger_id_used(record.ledger_id)

    def _cursor_deleted(self, record: records.CursorDeleted) -> None:
        for table in ("cursor", "pending_ack"):
            self._execute(
                f"DELETE FROM {table} WHERE topic = ? AND subscription = ?",
                (self._topics[record.topic], stored_text(record.subscription)),
            )

    # --- transactions ---------------------------------------------------------------------------------

    def _acknowledged(self, record: records.AcknowledgedInTransaction) -> None:
        cumulative = record.cumulative
        if cumulative is not None:
            offset, bits = cumulative
            kept = to_json([offset, None if bits is None else f"{bits:x}"])
        self._execute(
            "INSERT INTO pending_ack VALUES (?,?,?,?,?,?)",
            (
                self._topics[record.topic],
                stored_text(record.subscription),
                *map(stored_integer, record.transaction),
                bits_to_json(record.individual),
                None if cumulative is None else kept,
            ),
        )

    def _pending_acks_ended(self, record: records.PendingAcksEnded) -> None:
        self._execute(
            "DELETE FROM pending_ack "
            "WHERE topic = ? AND subscription = ? AND coordinator = ? AND transaction_number = ?",
            (
                self._topics[record.topic],
                stored_text(record.subscription),
                *map(stored_integer, record.transaction),
            ),
        )

    def _transaction_opened(self, record: records.TransactionOpened) -> None:
        self._transaction_ended(record)
        coordinator, number = stored_integer(record.coordinator), stored_integer(record.number)
        self._execute(
            "INSERT INTO open_transaction VALUES (?,?,?,?,?)",
            (
                coordinator,
                number,
                stored_text(record.owner),
                stored_integer(record.timeout),
                record.opened_at,
            ),
        )
        self._execute(
            "REPLACE INTO coordinator VALUES (?,?)", (coordinator, stored_integer(record.number + 1))
        )

    def _transaction_joined(self, record: records.TransactionJoined) -> None:
        self._execute(
            "INSERT INTO transaction_part VALUES (?,?,?,?)",
            (
                stored_integer(record.coordinator),
                stored_integer(record.number),
                to_json(record.topics),
                to_json(record.subscriptions),
            ),
        )

    def _transaction_ended(self, record: records.TransactionEnded | records.TransactionOpened) -> None:
        for table in ("open_transaction", "transaction_part"):
            self._execute(
                f"DELETE FROM {table} WHERE coordinator = ? AND transaction_number = ?",
                (stored_integer(record.coordinator), stored_integer(record.number)),
            )

    # --- administration -------------------------------------------------------------------------------

    def _partitions_saved(self, record: records.PartitionsSaved) -> None:
        if record.partitions:
            self._execute(
                "INSERT INTO partitioned_topic VALUES (?,?) "
                "ON CONFLICT (topic) DO UPDATE SET partitions = excluded.partitions",
                (record.topic, record.partitions),
            )
        else:
            self._execute("DELETE FROM partitioned_topic WHERE topic = ?", (record.topic,))
            self._discard(record.topic)

    def _properties_saved(self, record: records.PropertiesSaved) -> None:
        if record.properties:
            self._execute(
                "INSERT INTO properties VALUES (?,?) "
                "ON CONFLICT (scope) DO UPDATE SET properties = excluded.properties",
                (record.topic, to_json(record.properties)),
            )
        else:
            self._execute("DELETE FROM properties WHERE scope = ?", (record.topic,))

    def _tenant_saved(self, record: records.TenantSaved) -> None:
        self._execute(
            "INSERT INTO tenant VALUES (?,?) "
            "ON CONFLICT (tenant) DO UPDATE SET admin_roles = excluded.admin_roles",
            (stored_text(record.tenant), to_json(record.admin_roles)),
        )

    def _tenant_deleted(self, record: records.TenantDeleted) -> None:
        self._execute("DELETE FROM tenant WHERE tenant = ?", (stored_text(record.tenant),))

    def _policies_saved(self, record: records.PoliciesSaved) -> None:
        self._execute(
            "INSERT INTO policies VALUES (?,?) "
            "ON CONFLICT (scope) DO UPDATE SET policies = excluded.policies",
            (stored_text(record.scope), policies_to_json(record.policies)),
        )

    def _grants_saved(self, record: records.GrantsSaved) -> None:
        scope = stored_text(record.scope)
        if record.roles or record.subscriptions:
            self._execute(
                "INSERT INTO permission VALUES (?,?,?) ON CONFLICT (scope) "
                "DO UPDATE SET roles = excluded.roles, subscriptions = excluded.subscriptions",
                (scope, to_json(record.roles), to_json(record.subscriptions)),
            )
        else:
            self._execute("DELETE FROM permission WHERE scope = ?", (scope,))

    def _namespace_deleted(self, record: records.NamespaceDeleted) -> None:
        self._discard(record.namespace)

    def _schema_saved(self, record: records.SchemaSaved) -> None:
        self._execute(
            "INSERT INTO schema_version VALUES (?,?,?,?,?,?,?,?)",
            (
                record.topic,
                record.version,
                record.type,
                stored_text(record.name),
                record.data,
                to_json(record.properties),
                record.timestamp,
                record.deleted,
            ),
        )

    def _schema_deleted(self, record: records.SchemaDeleted) -> None:
        self._execute("DELETE FROM schema_version WHERE topic = ?", (record.topic,))

    def _broker_started(self, record: records.BrokerStarted) -> None:
        self._execute("UPDATE broker SET incarnation = ?", (record.incarnation,))


_RUNS: dict[type, Callable[[RecordWriter, Iterable[Any]], None]] = {
    records.EntryAdded: RecordWriter._entries,
    records.CursorSaved: RecordWriter._cursors,
    records.SequenceSaved: RecordWriter._sequences,
}
"""Kinds of records of which many follow each other."""

_ONE: dict[type, Callable[[RecordWriter, Any], None]] = {
    records.LedgerOpened: RecordWriter._ledger_opened,
    records.LedgersDeleted: RecordWriter._ledgers_deleted,
    records.TopicSaved: RecordWriter._topic_saved,
    records.TopicDeleted: RecordWriter._topic_deleted,
    records.TopicCompacted: RecordWriter._topic_compacted,
    records.CursorDeleted: RecordWriter._cursor_deleted,
    records.AcknowledgedInTransaction: RecordWriter._acknowledged,
    records.PendingAcksEnded: RecordWriter._pending_acks_ended,
    records.TransactionOpened: RecordWriter._transaction_opened,
    records.TransactionJoined: RecordWriter._transaction_joined,
    records.TransactionEnded: RecordWriter._transaction_ended,
    records.PartitionsSaved: RecordWriter._partitions_saved,
    records.PropertiesSaved: RecordWriter._properties_saved,
    records.TenantSaved: RecordWriter._tenant_saved,
    records.TenantDeleted: RecordWriter._tenant_deleted,
    records.PoliciesSaved: RecordWriter._policies_saved,
    records.GrantsSaved: RecordWriter._grants_saved,
    records.NamespaceDeleted: RecordWriter._namespace_deleted,
    records.SchemaSaved: RecordWriter._schema_saved,
    records.SchemaDeleted: RecordWriter._schema_deleted,
    records.BrokerStarted: RecordWriter._broker_started,
}
