"""The store of a broker: the state that records add up to, and the memory store.

A store is given batches of records and must make each batch durable as a whole, in order. `load()` returns
the sum of all batches written. A running broker reads entries back where the store has a reader, and nothing
else. `MemoryStore` keeps the sum in this process: it survives a `Broker`, not the process. `pulsar_store` has
the store on disk.

Entries are named by topic, ledger and entry id; cursors by offsets, the dense numbering of a topic (see
`managed_ledger`). The first offset of each ledger relates offsets to ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ..policies import Policies
from ..records import (
    AcknowledgedInTransaction,
    BrokerStarted,
    CursorDeleted,
    CursorSaved,
    EntryAdded,
    GrantsSaved,
    LedgerOpened,
    LedgersDeleted,
    MigratedTo,
    NamespaceDeleted,
    PartitionsSaved,
    PendingAcksEnded,
    PoliciesSaved,
    PropertiesSaved,
    Record,
    SchemaDeleted,
    SchemaSaved,
    SequenceSaved,
    TenantDeleted,
    TenantSaved,
    TopicCompacted,
    TopicDeleted,
    TopicSaved,
    TransactionEnded,
    TransactionJoined,
    TransactionOpened,
)

# --- state --------------------------------------------------------------------------------------------


class SpecialEntry(NamedTuple):
    """The part of an `EntryAdded` for which it is treated specially: it is delayed, a chunk, or of a
    transaction. The fields are those of the record."""

    deliver_at: int = -1
    chunk_of: str | None = None
    transaction: tuple[int, int] | None = None
    commits: bool | None = None


def special_of(entry: EntryAdded) -> SpecialEntry | None:
    """Return what is special about an entry; None for an ordinary one."""
    if entry.deliver_at < 0 and entry.chunk_of is None and entry.transaction is None:
        return None
    return SpecialEntry(entry.deliver_at, entry.chunk_of, entry.transaction, entry.commits)


@dataclass(frozen=True, slots=True)
class UnreadEntries:
    """The entries of a ledger that a store has, and did not read. `size`: the bytes of their data."""

    count: int
    size: int
    next_index: int
    """The number of the message after their last one; see `EntryAdded.last_index`."""
    special: tuple[tuple[int, SpecialEntry], ...] = ()
    """Entry id and what is special, for those that are."""


@dataclass(slots=True)
class StoredLedger:
    first_offset: int
    opened_at: int
    entries: list[EntryAdded] = field(default_factory=list)
    """The entries, after those in `unread`."""
    first_index: int = 0
    unread: UnreadEntries | None = None
    """The entries that an `EntryReader` gives; None where `entries` has all."""


@dataclass(slots=True)
class StoredTopic:
    topic_epoch: int | None = None
    terminated_at: int | None = None
    ledgers: dict[int, StoredLedger] = field(default_factory=dict)
    cursors: dict[str, CursorSaved] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)
    migrated_to: MigratedTo | None = None
    compacted: TopicCompacted | None = None
    pending_acks: dict[str, list[AcknowledgedInTransaction]] = field(default_factory=dict)
    """Subscription -> its acknowledgements in open transactions."""


@dataclass(slots=True)
class StoredTransaction:
    opened: TransactionOpened
    joined: list[TransactionJoined] = field(default_factory=list)


@dataclass(slots=True)
class StoredState:
    """The state with which a broker starts. `apply` alone defines the meaning of each record."""

    incarnation: int = 0
    next_ledger_id: int = 0
    tenants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tenant -> the roles of its administrators."""
    policies: dict[str, Policies] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    topics: dict[str, StoredTopic] = field(default_factory=dict)
    schemas: dict[str, list[SchemaSaved]] = field(default_factory=dict)
    """Base name of a topic -> all versions of its schema."""
    properties: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    grants: dict[str, GrantsSaved] = field(default_factory=dict)
    transactions: dict[tuple[int, int], StoredTransaction] = field(default_factory=dict)
    """(coordinator, number) -> the open transaction."""
    next_transactions: dict[int, int] = field(default_factory=dict)
    """Coordinator -> the number of its next transaction."""

    def apply(self, record: Record) -> None:
        """Add one record, in the order in which the broker wrote it."""
        match record:
            case EntryAdded():
                self.topics[record.topic].ledgers[record.ledger_id].entries.append(record)
            case CursorSaved():
                self.topics[record.topic].cursors[record.subscription] = record
            case SequenceSaved():
                sequences = self.topics[record.topic].sequences
                if record.sequence_id is None:
                    sequences.pop(record.producer_name, None)
                else:
                    sequences[record.producer_name] = record.sequence_id
            case LedgerOpened():
                self.topics[record.topic].ledgers[record.ledger_id] = StoredLedger(
                    record.first_offset, record.opened_at, first_index=record.first_index
                )
                self.next_ledger_id = max(self.next_ledger_id, record.ledger_id + 1)
            case LedgersDeleted():
                for ledger_id in record.ledger_ids:
                    self.topics[record.topic].ledgers.pop(ledger_id, None)
            case TopicSaved():
                topic = self.topics.setdefault(record.topic, StoredTopic())
                topic.topic_epoch, topic.terminated_at = record.topic_epoch, record.terminated_at
                topic.migrated_to = record.migrated_to
            case TopicDeleted():
                self.topics.pop(record.topic, None)
                self._discard(record.topic)
            case CursorDeleted():
                self.topics[record.topic].cursors.pop(record.subscription, None)
                self.topics[record.topic].pending_acks.pop(record.subscription, None)
            case AcknowledgedInTransaction():
                pending = self.topics[record.topic].pending_acks
                pending.setdefault(record.subscription, []).append(record)
            case PendingAcksEnded():
                pending = self.topics[record.topic].pending_acks
                left = [
                    each for each in pending[record.subscription] if each.transaction != record.transaction
                ]
                pending[record.subscription] = left
                if not left:
                    del pending[record.subscription]
            case TransactionOpened():
                self.transactions[record.coordinator, record.number] = StoredTransaction(record)
                self.next_transactions[record.coordinator] = record.number + 1
            case TransactionJoined():
                self.transactions[record.coordinator, record.number].joined.append(record)
            case TransactionEnded():
                del self.transactions[record.coordinator, record.number]
            case TopicCompacted():
                self.topics[record.topic].compacted = record
                self.next_ledger_id = max(self.next_ledger_id, record.ledger_id + 1)
            case PartitionsSaved():
                if record.partitions:
                    self.partitions[record.topic] = record.partitions
                else:
                    self.partitions.pop(record.topic, None)
                    self._discard(record.topic)
            case PropertiesSaved():
                self.properties[record.topic] = record.properties
                if not record.properties:
                    del self.properties[record.topic]
            case TenantSaved():
                self.tenants[record.tenant] = record.admin_roles
            case TenantDeleted():
                self.tenants.pop(record.tenant, None)
            case PoliciesSaved():
                self.policies[record.scope] = record.policies
            case GrantsSaved():
                self.grants[record.scope] = record
                if not record.roles and not record.subscriptions:
                    del self.grants[record.scope]
            case NamespaceDeleted():
                self._discard(record.namespace)
            case SchemaSaved():
                self.schemas.setdefault(record.topic, []).append(record)
            case SchemaDeleted():
                self.schemas.pop(record.topic, None)
            case BrokerStarted():
                self.incarnation = record.incarnation

    def _discard(self, scope: str) -> None:
        """Discard all that is kept for a namespace or topic that is deleted."""
        self.policies.pop(scope, None)
        self.properties.pop(scope, None)
        self.grants.pop(scope, None)

    def continue_ids(self, later: "StoredState") -> None:
        """Give no id again that `later` has given: it began as this state, and is abandoned."""
        self.incarnation = max(self.incarnation, later.incarnation)
        self.next_ledger_id = max(self.next_ledger_id, later.next_ledger_id)
        for coordinator, number in later.next_transactions.items():
            self.next_transactions[coordinator] = max(self.next_transactions.get(coordinator, 0), number)
        for topic in self.topics.values():
            if topic.ledgers:
                last = topic.ledgers[max(topic.ledgers)]
                count = len(last.entries)
                index = last.entries[-1].last_index + 1 if count else last.first_index
                opened = StoredLedger(last.first_offset + count, last.opened_at, first_index=index)
                topic.ledgers[self.next_ledger_id] = opened
                self.next_ledger_id += 1

    def copy(self) -> "StoredState":
        """Return a copy that shares immutable records and no container."""
        return StoredState(
            self.incarnation,
            self.next_ledger_id,
            dict(self.tenants),
            dict(self.policies),
            dict(self.partitions),
            {
                name: StoredTopic(
                    topic.topic_epoch,
                    topic.terminated_at,
                    {
                        ledger_id: StoredLedger(
                            ledger.first_offset,
                            ledger.opened_at,
                            list(ledger.entries),
                            ledger.first_index,
                            ledger.unread,
                        )
                        for ledger_id, ledger in topic.ledgers.items()
                    },
                    dict(topic.cursors),
                    dict(topic.sequences),
                    topic.migrated_to,
                    topic.compacted,
                    {name: list(pending) for name, pending in topic.pending_acks.items()},
                )
                for name, topic in self.topics.items()
            },
            {topic: list(versions) for topic, versions in self.schemas.items()},
            dict(self.properties),
            dict(self.grants),
            {
                key: StoredTransaction(transaction.opened, list(transaction.joined))
                for key, transaction in self.transactions.items()
            },
            dict(self.next_transactions),
        )


class StoredPage(NamedTuple):
    """Consecutive entries of a ledger. `bytes_before`: bytes of the ledger's entries before them."""

    bytes_before: int
    entries: list[EntryAdded]


class EntryReader(Protocol):
    """Reads stored entries back, so that a broker needs not keep them in memory.

    The calls wait for the disk, so they are short.
    """

    def read_entries(self, topic: str, ledger_id: int, first: int, count: int, size: int) -> StoredPage:
        """Return the entries from the entry id `first` on: `count` of them, or less where they have `size`
        bytes before; at least one.

        They are durable and not deleted. A store that has not all of them, or cannot read, raises: the broker
        must stop.
        """
        ...

    def bytes_before(self, topic: str, ledger_id: int, entry_id: int) -> int:
        """Return the bytes of the ledger's entries before this one, which is durable and not deleted. Raises
        as `read_entries`."""
        ...


class Store(Protocol):
    """The durable memory of a broker: takes records in batches, and returns their sum at the next start.

    A driver calls `load` once, `write` for every `Persist`, and `close` at last.
    """

    @property
    def blocking(self) -> bool:
        """True where the calls wait for a disk: a driver with an event loop makes them in a thread, one at a
        time."""
        ...

    @property
    def reader(self) -> EntryReader | None:
        """The reader of the entries that `load` left unread; None for a store whose `load` gives all entries.
        A driver calls the reader in its own thread, between `load` and `close`."""
        ...

    def load(self) -> StoredState:
        """Return the sum of everything written so far; the caller owns it."""
        ...

    def write(self, records: Sequence[Record]) -> None:
        """Make one batch durable as a whole. A store that cannot must not return: the broker must stop."""
        ...

    def close(self) -> None:
        """Give up what the store holds of the system. It may be loaded again."""
        ...


class MemoryStore:
    """The sum in memory: it survives a `Broker`, not the process."""

    blocking = False
    reader: EntryReader | None = None

    def __init__(self) -> None:
        self._state = StoredState()

    def load(self) -> StoredState:
        """Return a copy of the sum of everything written so far."""
        return self._state.copy()

    def restore(self, state: StoredState) -> None:
        """Replace the sum by a copy of a state that `load` returned earlier. No broker may be running on it.

        Ids that were given since then are not given again: clients may still know them.
        """
        restored = state.copy()
        restored.continue_ids(self._state)
        self._state = restored

    def write(self, records: Sequence[Record]) -> None:
        """Add one batch of records to the sum."""
        apply = self._state.apply
        for record in records:
            apply(record)

    def close(self) -> None:
        """Do nothing: the sum stays."""
