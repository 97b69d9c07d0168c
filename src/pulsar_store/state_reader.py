"""`load_state`: the sum of all records, from the tables."""

import json
import sqlite3
from pathlib import Path

from pulsar_sansio import (
    PulsarError,
    SpecialEntry,
    StoredLedger,
    StoredState,
    StoredTopic,
    StoredTransaction,
    UnreadEntries,
)
from pulsar_sansio import broker_records as records

from .database import damaged
from .entry_reader import read_entry
from .errors import StoreTooNew
from .tables import ENTRY_BITS, ENTRY_COLUMNS, SPECIAL
from .values import bits_of, nested_pairs_of, pairs_of, policies_of, text_of


def load_state(connection: sqlite3.Connection, folder: Path) -> StoredState:
    """Return the state with which a broker starts; the entries of ledgers are left unread.

    Raises `StoreDamaged` where rows are there that no record made; `StoreTooNew`, and
    `sqlite3.DatabaseError`.
    """
    try:
        return _StateReader(connection).state
    except StoreTooNew as error:
        raise StoreTooNew(f"the store in {folder}: {error}: use a later version of pulsar-trio") from None
    except (ValueError, TypeError, LookupError, AttributeError, PulsarError) as error:
        raise damaged(folder, repr(error)) from error


_LAST = (
    "SELECT id, bytes_before + length(data), last_index FROM entry WHERE id >= ? AND id < ? "
    "ORDER BY id DESC LIMIT 1"
)

_SPECIAL = (
    "SELECT id, deliver_at, chunk_of, coordinator, transaction_number, commits FROM entry "
    f"WHERE {SPECIAL} ORDER BY id"
)


class _StateReader:
    """Fills one `StoredState`, table after table, each in the order in which rows were added."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self.state = StoredState()
        self._topics: dict[int, tuple[str, StoredTopic]] = {}
        """The number of a topic's row -> its name and itself."""
        self._read_metadata()
        self._read_schemas()
        self._read_topics()
        self._read_ledgers()
        self._read_compacted()
        self._read_positions()
        self._read_transactions()

    def _read_metadata(self) -> None:
        state = self.state
        (row,) = self._execute("SELECT incarnation, next_ledger_id FROM broker")
        state.incarnation, state.next_ledger_id = row
        for tenant, roles in self._execute("SELECT * FROM tenant ORDER BY rowid"):
            state.tenants[text_of(tenant)] = tuple(json.loads(roles))
        for scope, policies in self._execute("SELECT * FROM policies ORDER BY rowid"):
            state.policies[text_of(scope)] = policies_of(policies)
        for scope, properties in self._execute("SELECT * FROM properties ORDER BY rowid"):
            state.properties[scope] = pairs_of(properties)
        for scope, roles, subscriptions in self._execute("SELECT * FROM permission ORDER BY rowid"):
            state.grants[text_of(scope)] = records.GrantsSaved(
                text_of(scope), nested_pairs_of(roles), nested_pairs_of(subscriptions)
            )
        for topic, partitions in self._execute("SELECT * FROM partitioned_topic ORDER BY rowid"):
            state.partitions[topic] = partitions

    def _read_schemas(self) -> None:
        for topic, version, kind, name, data, properties, timestamp, deleted in self._execute(
            "SELECT * FROM schema_version ORDER BY rowid"
        ):
            self.state.schemas.setdefault(topic, []).append(
                records.SchemaSaved(
                    topic,
                    version,
                    kind,
                    text_of(name),
                    data,
                    pairs_of(properties),
                    timestamp,
                    bool(deleted),
                )
            )

    def _read_topics(self) -> None:
        for number, topic, epoch, terminated_at, migrated_to in self._execute(
            "SELECT * FROM topic ORDER BY number"
        ):
            stored = StoredTopic(None if epoch is None else int(epoch), terminated_at)
            if migrated_to is not None:
                stored.migrated_to = records.MigratedTo(*json.loads(migrated_to))
            self.state.topics[topic] = stored
            self._topics[number] = topic, stored

    def _read_ledgers(self) -> None:
        special = self._special_entries()
        for number, topic_number, ledger_id, first_offset, opened_at, first_index in self._execute(
            "SELECT * FROM ledger ORDER BY number"
        ).fetchall():
            _, stored = self._topics[topic_number]
            ledger = StoredLedger(first_offset, opened_at, first_index=first_index)
            stored.ledgers[ledger_id] = ledger
            first = number << ENTRY_BITS
            last = self._execute(_LAST, (first, first + (1 << ENTRY_BITS))).fetchone()
            if last is not None:
                row, size, last_index = last
                ledger.unread = UnreadEntries(
                    row - first + 1, size, last_index + 1, tuple(special.get(number, ()))
                )

    def _special_entries(self) -> dict[int, list[tuple[int, SpecialEntry]]]:
        """Return the number of each ledger's row -> entry id and what is special, for entries that are."""
        found: dict[int, list[tuple[int, SpecialEntry]]] = {}
        for row, deliver_at, chunk_of, coordinator, number, commits in self._execute(_SPECIAL):
            special = SpecialEntry(
                -1 if deliver_at is None else int(deliver_at),
                None if chunk_of is None else text_of(chunk_of),
                None if coordinator is None else (int(coordinator), int(number)),
                None if commits is None else bool(commits),
            )
            ledger, entry_id = row >> ENTRY_BITS, row & ((1 << ENTRY_BITS) - 1)
            found.setdefault(ledger, []).append((entry_id, special))
        return found

    def _read_compacted(self) -> None:
        for topic_number, ledger_id, horizon in self._execute("SELECT * FROM compacted").fetchall():
            topic, stored = self._topics[topic_number]
            offsets, entries = [], []
            for offset, *rest in self._execute(
                f'SELECT "offset", ledger_id, entry_id, {ENTRY_COLUMNS} FROM compacted_entry '
                "WHERE topic = ? ORDER BY rowid",
                (topic_number,),
            ):
                offsets.append(offset)
                entries.append(read_entry(topic, *rest))
            stored.compacted = records.TopicCompacted(
                topic, ledger_id, horizon, tuple(offsets), tuple(entries)
            )

    def _read_positions(self) -> None:
        """Read cursors, sequence ids and the acknowledgements of open transactions."""
        for number, name, mark_delete, acknowledged, partly, properties in self._execute(
            "SELECT * FROM cursor ORDER BY rowid"
        ):
            topic, stored = self._topics[number]
            subscription = text_of(name)
            stored.cursors[subscription] = records.CursorSaved(
                topic,
                subscription,
                mark_delete,
                pairs_of(acknowledged),
                bits_of(partly),
                pairs_of(properties),
            )
        for number, producer, sequence_id in self._execute("SELECT * FROM sequence ORDER BY rowid"):
            self._topics[number][1].sequences[text_of(producer)] = int(sequence_id)
        for number, name, coordinator, transaction, individual, kept in self._execute(
            "SELECT * FROM pending_ack ORDER BY rowid"
        ):
            topic, stored = self._topics[number]
            subscription = text_of(name)
            cumulative = None
            if kept is not None:
                offset, bits = json.loads(kept)
                cumulative = offset, None if bits is None else int(bits, 16)
            stored.pending_acks.setdefault(subscription, []).append(
                records.AcknowledgedInTransaction(
                    topic,
                    subscription,
                    (int(coordinator), int(transaction)),
                    bits_of(individual),
                    cumulative,
                )
            )

    def _read_transactions(self) -> None:
        state = self.state
        for coordinator, number in self._execute("SELECT * FROM coordinator ORDER BY rowid"):
            state.next_transactions[int(coordinator)] = int(number)
        for coordinator, number, owner, timeout, opened_at in self._execute(
            "SELECT * FROM open_transaction ORDER BY rowid"
        ):
            key = int(coordinator), int(number)
            opened = records.TransactionOpened(*key, text_of(owner), int(timeout), opened_at)
            state.transactions[key] = StoredTransaction(opened)
        for coordinator, number, topics, subscriptions in self._execute(
            "SELECT * FROM transaction_part ORDER BY rowid"
        ):
            key = int(coordinator), int(number)
            state.transactions[key].joined.append(
                records.TransactionJoined(*key, tuple(json.loads(topics)), pairs_of(subscriptions))
            )
