"""What survives a broker: records, the state they add up to, and the memory store.

A store is handed batches of records and must make each batch durable as a whole, in order. `load()` gives
the sum of all batches written. The broker never reads anything back while it runs, so a store needs no
queries. `MemoryStore` keeps the sum in this process: it survives a `Broker`, not the process.

Entries are named by topic, ledger and entry id; cursors by offsets, the topic's own dense numbering (see
`ledger`), which the first offset of each ledger ties to ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .policies import Policies

# --- records ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class EntryAdded:
    """One entry: `messages` in it, the publish time in its metadata (ms), and the bytes to deliver."""

    topic: str
    ledger_id: int
    entry_id: int
    messages: int
    publish_time: int
    data: bytes
    deliver_at: int = -1
    """Shared and Key_Shared do not deliver it before (wall time in ms); -1 is at once."""
    chunk_of: str | None = None
    """The uuid of the message of which it is one chunk of several."""
    last_index: int = -1
    """The number of its last message, where the messages of the topic are counted from 0; -1 where they are
    not kept."""
    received_at: int = 0
    """When the broker got it: wall time in ms."""


@dataclass(slots=True)
class LedgerOpened:
    topic: str
    ledger_id: int
    first_offset: int
    opened_at: int
    """Wall time in ms."""
    first_index: int = 0
    """The number of its first message; see `EntryAdded.last_index`."""


@dataclass(slots=True)
class LedgersDeleted:
    topic: str
    ledger_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MigratedTo:
    """The cluster to which a topic has moved: its service URLs, of which one may be None."""

    service_url: str | None
    service_url_tls: str | None


@dataclass(slots=True)
class TopicSaved:
    """A topic came into being, or its epoch or end changed. `topic_epoch` and `terminated_at` may be None."""

    topic: str
    topic_epoch: int | None
    terminated_at: int | None
    """Offset after the last entry, once terminated."""
    migrated_to: MigratedTo | None = None


@dataclass(slots=True)
class TopicDeleted:
    topic: str


@dataclass(slots=True)
class CursorSaved:
    """A durable subscription came into being, or its position changed: the whole position."""

    topic: str
    subscription: str
    mark_delete: int
    """Everything up to this offset, itself included, is acknowledged."""
    acknowledged: tuple[tuple[int, int], ...]
    """Ranges (first, last) of offsets above the mark-delete position."""
    partly: tuple[tuple[int, int], ...]
    """(offset, bits): batches of which the messages of the set bits are still to be acknowledged."""
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class CursorDeleted:
    topic: str
    subscription: str


@dataclass(slots=True)
class SequenceSaved:
    """Deduplication: the highest sequence id stored of a producer name; None forgets the name."""

    topic: str
    producer_name: str
    sequence_id: int | None


@dataclass(slots=True)
class TopicCompacted:
    """What a compaction has left, in place of what the one before had: entries by offset, up to `horizon`."""

    topic: str
    ledger_id: int
    horizon: int
    """Offset of the last entry that was looked at."""
    offsets: tuple[int, ...]
    entries: tuple[EntryAdded, ...]


@dataclass(slots=True)
class PartitionsSaved:
    """Number of partitions of a topic; 0 removes it."""

    topic: str
    partitions: int


@dataclass(slots=True)
class PropertiesSaved:
    """An administrator keeps these with a topic (full or base name) or a namespace; empty removes them."""

    topic: str
    properties: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class TenantSaved:
    tenant: str
    admin_roles: tuple[str, ...] = ()


@dataclass(slots=True)
class TenantDeleted:
    tenant: str


@dataclass(slots=True)
class PoliciesSaved:
    """Policies of a namespace (`tenant/namespace`, which also creates it) or of a topic (full name)."""

    scope: str
    policies: Policies


@dataclass(frozen=True, slots=True)
class GrantsSaved:
    """All permissions on a namespace (`tenant/namespace`) or a topic (full name); empty removes them."""

    scope: str
    roles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Role -> actions."""
    subscriptions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Subscription -> roles; only of a namespace."""


@dataclass(slots=True)
class NamespaceDeleted:
    namespace: str


@dataclass(slots=True)
class SchemaSaved:
    """The schema of a topic (its base name); `version` counts from 0, `timestamp` is wall time in ms.

    `deleted`: a version that says that there is no schema any more; the next one goes on counting.
    """

    topic: str
    version: int
    type: int
    name: str
    data: bytes
    properties: tuple[tuple[str, str], ...]
    timestamp: int = 0
    deleted: bool = False


@dataclass(slots=True)
class SchemaDeleted:
    topic: str


@dataclass(slots=True)
class BrokerStarted:
    """The broker's run number, which makes generated producer names unique over restarts."""

    incarnation: int


Record = (
    EntryAdded
    | LedgerOpened
    | LedgersDeleted
    | TopicSaved
    | TopicDeleted
    | CursorSaved
    | CursorDeleted
    | SequenceSaved
    | TopicCompacted
    | PartitionsSaved
    | PropertiesSaved
    | TenantSaved
    | TenantDeleted
    | PoliciesSaved
    | GrantsSaved
    | NamespaceDeleted
    | SchemaSaved
    | SchemaDeleted
    | BrokerStarted
)

OF_ITS_OWNER = (
    EntryAdded,
    LedgerOpened,
    LedgersDeleted,
    TopicSaved,
    TopicDeleted,
    CursorSaved,
    CursorDeleted,
    SequenceSaved,
    TopicCompacted,
)
"""Records that only the broker may write that serves the topic they name."""

# --- the sum ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class StoredLedger:
    first_offset: int
    opened_at: int
    entries: list[EntryAdded] = field(default_factory=list)
    first_index: int = 0


@dataclass(slots=True)
class StoredTopic:
    topic_epoch: int | None = None
    terminated_at: int | None = None
    ledgers: dict[int, StoredLedger] = field(default_factory=dict)
    cursors: dict[str, CursorSaved] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)
    migrated_to: MigratedTo | None = None
    compacted: TopicCompacted | None = None


@dataclass(slots=True)
class StoredState:
    """Everything a new broker begins with. `apply` is the one definition of what each record means."""

    incarnation: int = 0
    next_ledger_id: int = 0
    tenants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Tenant -> the roles of its administrators."""
    policies: dict[str, Policies] = field(default_factory=dict)
    partitions: dict[str, int] = field(default_factory=dict)
    topics: dict[str, StoredTopic] = field(default_factory=dict)
    schemas: dict[str, SchemaSaved] = field(default_factory=dict)
    properties: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    grants: dict[str, GrantsSaved] = field(default_factory=dict)

    def apply(self, record: Record) -> None:
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
                self._forget(record.topic)
            case CursorDeleted():
                self.topics[record.topic].cursors.pop(record.subscription, None)
            case TopicCompacted():
                self.topics[record.topic].compacted = record
                self.next_ledger_id = max(self.next_ledger_id, record.ledger_id + 1)
            case PartitionsSaved():
                if record.partitions:
                    self.partitions[record.topic] = record.partitions
                else:
                    self.partitions.pop(record.topic, None)
                    self._forget(record.topic)
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
                self._forget(record.namespace)
            case SchemaSaved():
                self.schemas[record.topic] = record
            case SchemaDeleted():
                self.schemas.pop(record.topic, None)
            case BrokerStarted():
                self.incarnation = record.incarnation

    def _forget(self, scope: str) -> None:
        """A namespace or topic is deleted."""
        self.policies.pop(scope, None)
        self.properties.pop(scope, None)
        self.grants.pop(scope, None)

    def copy(self) -> "StoredState":
        """A state that shares records (which nobody changes) but no container."""
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
                            ledger.first_offset, ledger.opened_at, list(ledger.entries), ledger.first_index
                        )
                        for ledger_id, ledger in topic.ledgers.items()
                    },
                    dict(topic.cursors),
                    dict(topic.sequences),
                    topic.migrated_to,
                    topic.compacted,
                )
                for name, topic in self.topics.items()
            },
            dict(self.schemas),
            dict(self.properties),
            dict(self.grants),
        )


class Store(Protocol):
    """Where records become durable."""

    def load(self) -> StoredState:
        """The sum of everything written so far; the caller owns it."""
        ...

    def write(self, records: Sequence[Record]) -> None:
        """Make one batch durable, as a whole. A store that cannot must not return: the broker has to die."""
        ...


class MemoryStore:
    """The sum, kept in memory: outlives a `Broker`, not the process."""

    def __init__(self) -> None:
        self._state = StoredState()

    def load(self) -> StoredState:
        return self._state.copy()

    def write(self, records: Sequence[Record]) -> None:
        apply = self._state.apply
        for record in records:
            apply(record)
