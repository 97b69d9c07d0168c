"""The checker's memory beyond one connection: a client's producers, consumers, lookups and transactions, and
the entries of topics.

All of it is bounded. Where the checker has forgotten a fact, it is lenient: it reports no false violation.
"""

from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, TypeVar

from .entries import Entries

K = TypeVar("K")
V = TypeVar("V")

_set = dict.__setitem__

Position = tuple[int, int]
"""Ledger and entry."""


class BoundedDict(dict[K, V], Generic[K, V]):
    """A dictionary that forgets the oldest item when it is full."""

    __slots__ = ("limit", "overflowed")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.overflowed = False
        """True when an item was ever discarded."""

    def __setitem__(self, key: K, value: V) -> None:
        _set(self, key, value)
        if len(self) > self.limit:
            self.overflowed = True
            del self[next(iter(self))]


class TransactionMemory:
    """A transaction of a client."""

    __slots__ = ("action", "partitions", "subscriptions", "unconfirmed")

    def __init__(self) -> None:
        self.partitions: BoundedDict[str, None] = BoundedDict(4096)
        self.subscriptions: BoundedDict[tuple[str, str], None] = BoundedDict(4096)
        self.unconfirmed: BoundedDict[Hashable, str] = BoundedDict(4096)
        """Messages and acknowledgements that no answer has confirmed, with their descriptions. Empty after
        END_TXN."""
        self.action: int | None = None
        """The action of the first END_TXN; None before."""


class UnansweredSend(NamedTuple):
    """A SEND that passed and has no answer yet."""

    sequence_id: int
    highest_sequence_id: int | None
    chunk: int
    """Number of the chunk; -1 for a message that is not chunked."""
    digest: int
    frame: int
    not_above: bool
    """Its sequence id was not above the one before: right only if the broker calls it a duplicate."""
    transaction: TransactionMemory | None

    @property
    def key(self) -> tuple[int, int]:
        return self.sequence_id, self.chunk


class ProducerMemory:
    """A producer of a client, over all of its connections."""

    __slots__ = (
        "chunk", "chunk_bytes", "chunk_version", "confirmed", "epoch", "fresh_names", "name", "name_proved",
        "nonces", "refused", "registration", "topic", "topic_epochs",
    )  # fmt: skip

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.confirmed = -1
        """The highest sequence id that a receipt has confirmed."""
        self.epoch: int | None = None
        """The epoch of the latest PRODUCER."""
        self.name = ""
        """The latest one, the client's or the broker's."""
        self.fresh_names: set[str] = set()
        """Names the broker gave; several only where an answer was lost."""
        self.name_proved = False
        """The client has sent something that it could not have without knowing its name."""
        self.topic_epochs: set[int] = set()
        self.registration: Any = None
        """The producer's state on the connection where it was registered last; there lies what was not
        answered."""
        self.chunk: tuple[str, int, int, int] | None = None
        """The chunked message under way: uuid, number of the last chunk sent, how many there are, total
        size."""
        self.chunk_bytes = 0
        """Payload bytes of its chunks so far; -1 when some of them were not seen."""
        self.chunk_version = b""
        """The schema version of its first chunk."""
        self.refused: BoundedDict[int, int] = BoundedDict(64)
        """Sequence id of a message -> its first chunk that the broker refused and the client has not resent.

        The client may resend this chunk without those before it, which the broker confirmed.
        """
        self.nonces: BoundedDict[tuple[bytes, bytes], int] = BoundedDict(4096)
        """Wrapped key and nonce -> digest of the one payload they were used for."""


class ConsumerMemory:
    """A consumer of a client, over all of its connections."""

    __slots__ = ("earlier", "epoch", "highest", "name", "registration", "subscription", "topic")

    def __init__(self, topic: str, subscription: str, name: str) -> None:
        self.topic = topic
        self.subscription = subscription
        self.name = name
        self.epoch = -1
        """The highest consumer epoch the client has sent."""
        self.earlier: BoundedDict[Position, int] = BoundedDict(20_000)
        """Entries delivered to earlier registrations."""
        self.highest: Position = (-1, -1)
        """The last of all entries ever delivered to it."""
        self.registration: Any = None


class TopicMemory:
    """The entries of topics, as receipts and deliveries showed them. May be shared by the sessions of many
    clients."""

    __slots__ = ("digests", "entries", "fenced", "schema_versions", "transactional")

    def __init__(self, limit: int = 50_000) -> None:
        self.digests: BoundedDict[tuple[str, int, int], int] = BoundedDict(limit)
        """Topic, ledger, entry -> digest of what is stored there."""
        self.schema_versions: BoundedDict[str, set[bytes]] = BoundedDict(1024)
        """Topic -> the versions that brokers gave."""
        self.fenced: BoundedDict[str, None] = BoundedDict(1024)
        """Topics whose producers may have been fenced out, of which no frame tells."""
        self.transactional: BoundedDict[tuple[str, str], None] = BoundedDict(1024)
        """Topics with subscriptions on which clients acknowledge in transactions. An abort redelivers the
        messages, perhaps to other consumers."""
        self.entries = Entries()
        """Entries that were read lately."""


class Memory:
    """One client's memory."""

    __slots__ = ("consumers", "coordinators", "producers", "redirects", "topics", "transactions")

    def __init__(self, topics: TopicMemory | None = None) -> None:
        self.topics = topics or TopicMemory()
        self.producers: BoundedDict[int, ProducerMemory] = BoundedDict(2048)
        self.consumers: BoundedDict[int, ConsumerMemory] = BoundedDict(2048)
        self.redirects: BoundedDict[str, list[int]] = BoundedDict(256)
        """Topic -> how long the chains of redirects are that may now be followed with authority."""
        self.coordinators: int | None = None
        """The highest number of transaction coordinators that a broker gave; None before."""
        self.transactions: BoundedDict[tuple[int, int], TransactionMemory] = BoundedDict(4096)
