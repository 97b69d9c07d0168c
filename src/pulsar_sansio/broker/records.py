"""Records: what must outlive a broker, each a fact that a store adds to the sum of all before it.

Entries are named by topic, ledger and entry id; cursors by offsets, the topic's own dense numbering (see
`storage.ledger`), which the first offset of each ledger ties to ids.
"""

from dataclasses import dataclass

from .policies import Policies


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
