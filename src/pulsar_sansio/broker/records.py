"""Records: facts that must outlive a broker. A store adds each to the sum of all earlier ones.

Entries are named by topic, ledger and entry id; cursors by offsets, the dense numbering of a topic (see
`storage.managed_ledger`). The first offset of each ledger relates offsets to ids.
"""

from dataclasses import dataclass

from .policies import Policies


@dataclass(slots=True)
class EntryAdded:
    """One entry: the number of `messages` in it, the publish time in its metadata (ms), and the bytes to
    deliver."""

    topic: str
    ledger_id: int
    entry_id: int
    messages: int
    publish_time: int
    data: bytes
    deliver_at: int = -1
    """The wall time (ms) before which Shared and Key_Shared do not deliver the entry; -1 is at once."""
    chunk_of: str | None = None
    """The uuid of the message, if the entry is one of several chunks."""
    last_index: int = -1
    """The number of the entry's last message; the messages of the topic are counted from 0. It is -1 where
    they are not counted."""
    received_at: int = 0
    """The wall time (ms) at which the broker received the entry."""
    transaction: tuple[int, int] | None = None
    """The transaction to which the entry belongs: the numbers of its coordinator and of itself."""
    commits: bool | None = None
    """This is None for messages. A marker commits (True) or aborts (False) its transaction."""


@dataclass(slots=True)
class LedgerOpened:
    topic: str
    ledger_id: int
    first_offset: int
    opened_at: int
    """Wall time in ms."""
    first_index: int = 0
    """The number of the ledger's first message; see `EntryAdded.last_index`."""


@dataclass(slots=True)
class LedgersDeleted:
    topic: str
    ledger_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MigratedTo:
    """The service URLs of the cluster to which a topic migrated; one of them may be None."""

    service_url: str | None
    service_url_tls: str | None


@dataclass(slots=True)
class TopicSaved:
    """A topic was created, or its epoch or end changed. `topic_epoch` and `terminated_at` may be None."""

    topic: str
    topic_epoch: int | None
    terminated_at: int | None
    """The offset after the last entry of a terminated topic."""
    migrated_to: MigratedTo | None = None


@dataclass(slots=True)
class TopicDeleted:
    topic: str


@dataclass(slots=True)
class CursorSaved:
    """A durable subscription was created, or its position changed: the whole position."""

    topic: str
    subscription: str
    mark_delete: int
    """Everything up to this offset, itself included, is acknowledged."""
    acknowledged: tuple[tuple[int, int], ...]
    """Ranges (first, last) of offsets above the mark-delete position."""
    partly: tuple[tuple[int, int], ...]
    """(offset of a batch, bits of the messages still to be acknowledged)."""
    properties: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class CursorDeleted:
    topic: str
    subscription: str


@dataclass(slots=True)
class AcknowledgedInTransaction:
    """Acknowledgements that wait for the end of their transaction."""

    topic: str
    subscription: str
    transaction: tuple[int, int]
    individual: tuple[tuple[int, int], ...]
    """(offset, bits of the acknowledged messages)."""
    cumulative: tuple[int, int | None] | None = None
    """(offset, bits of its messages that are not acknowledged) of a cumulative acknowledgement."""


@dataclass(slots=True)
class PendingAcksEnded:
    """The transaction has no acknowledgements on the subscription any more."""

    topic: str
    subscription: str
    transaction: tuple[int, int]


@dataclass(slots=True)
class SequenceSaved:
    """Deduplication: the highest sequence id stored for a producer name; None discards the name."""

    topic: str
    producer_name: str
    sequence_id: int | None


@dataclass(slots=True)
class TopicCompacted:
    """The entries that a compaction kept, by offset, up to `horizon`; they replace those of the last
    compaction."""

    topic: str
    ledger_id: int
    horizon: int
    """The offset of the last entry that compaction read."""
    offsets: tuple[int, ...]
    entries: tuple[EntryAdded, ...]


@dataclass(slots=True)
class PartitionsSaved:
    """The number of partitions of a topic; 0 removes it."""

    topic: str
    partitions: int


@dataclass(slots=True)
class PropertiesSaved:
    """The properties of a topic (full or base name) or a namespace; empty removes them."""

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
    """The policies of a namespace (`tenant/namespace`, which it also creates) or a topic (full name)."""

    scope: str
    policies: Policies


@dataclass(frozen=True, slots=True)
class GrantsSaved:
    """All permissions on a namespace (`tenant/namespace`) or a topic (full name); empty removes them."""

    scope: str
    roles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Role -> actions."""
    subscriptions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Subscription -> roles; namespaces only."""


@dataclass(slots=True)
class NamespaceDeleted:
    namespace: str


@dataclass(slots=True)
class SchemaSaved:
    """The schema of a topic (its base name); `version` counts from 0, `timestamp` is wall time in ms.

    `deleted`: this version marks the schema as deleted; the next schema gets the next number.
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
class TransactionOpened:
    """A coordinator gave this number to a new transaction.

    `timeout`: milliseconds. `opened_at`: wall time in ms.
    """

    coordinator: int
    number: int
    owner: str
    timeout: int
    opened_at: int


@dataclass(slots=True)
class TransactionJoined:
    """Topics and subscriptions, as (topic, subscription), take part in a transaction."""

    coordinator: int
    number: int
    topics: tuple[str, ...] = ()
    subscriptions: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class TransactionEnded:
    """The transaction was committed or aborted everywhere."""

    coordinator: int
    number: int


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
    | AcknowledgedInTransaction
    | PendingAcksEnded
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
    | TransactionOpened
    | TransactionJoined
    | TransactionEnded
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
    AcknowledgedInTransaction,
    PendingAcksEnded,
    SequenceSaved,
    TopicCompacted,
)
"""Records that only the broker that serves their topic may write."""
