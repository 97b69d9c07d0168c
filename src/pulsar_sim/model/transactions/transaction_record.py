"""`TransactionRecord`: one transaction, as its application and the frames of both ends know it."""

from enum import Enum, auto

from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sansio.wire import unpack_payload

from ..records.message_position import MessagePosition


class TransactionOutcome(Enum):
    """The state of a transaction, as its application knows it."""

    OPEN = auto()
    COMMITTING = auto()
    """The application has asked for the commit."""
    ABORTING = auto()
    """The application has asked for the abort."""
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()
    """The commit was asked for, and its answer may be lost."""


class SentMessage:
    """One message of the application. `payload` is unique."""

    __slots__ = (
        "chunk_size",
        "is_output",
        "key",
        "number",
        "outcome",
        "payload",
        "position",
        "producer",
        "topic",
        "transaction",
    )

    def __init__(
        self,
        payload: bytes,
        number: int,
        topic: str,
        producer: int,
        key: str | None,
        transaction: "TransactionRecord | None",
        chunk_size: int = 0,
    ) -> None:
        self.payload = payload
        self.number = number
        """Messages are numbered in the order in which they were sent, over all topics."""
        self.topic = topic
        """The topic; the partition, once a receipt, a delivery or the log has named it."""
        self.producer = producer
        """The number of the producer, over all processes."""
        self.key = key
        self.transaction = transaction
        self.chunk_size = chunk_size
        """Payload bytes of one chunk; 0 for a message that is not divided."""
        self.is_output = False
        """A loop sent the message for one that it had taken."""
        self.outcome = "pending"
        """"pending", "confirmed" or "failed"."""
        self.position: MessagePosition | None = None
        """The place in the topic, when a receipt has named it."""

    @property
    def chunks(self) -> int:
        """The number of entries that have the message."""
        return -(-len(self.payload) // self.chunk_size) if self.chunk_size else 1

    def chunk_of(self, data: bytes) -> int:
        """Return the number of the chunk that an entry has."""
        return unpack_payload(data).metadata.chunk_id or 0 if self.chunks > 1 else 0

    @property
    def is_sent_once(self) -> bool:
        """True when the message is not sent again after a lost connection: a copy would be one too many."""
        return self.transaction is not None and self.transaction.exactly_once

    def __repr__(self) -> str:
        inside = "" if self.transaction is None else f" of {self.transaction}"
        return f"message {self.number}{inside}"


class TransactionRecord:
    """One transaction. `opened_at`: when the application asked for it. `timeout`: nanoseconds, in the whole
    milliseconds that the coordinator is told. `exactly_once`: the application opened it so."""

    __slots__ = (
        "acks",
        "answered",
        "commit_received",
        "cumulative",
        "ended_with",
        "exactly_once",
        "handled",
        "id",
        "messages",
        "opened_at",
        "outcome",
        "repeats",
        "sent_acks",
        "timeout",
        "unanswered_acks",
        "unconfirmed",
        "written",
    )

    def __init__(self, id_: TransactionId, opened_at: int, timeout: int, exactly_once: bool = False) -> None:
        self.id = id_
        self.opened_at = opened_at
        self.timeout = timeout
        self.exactly_once = exactly_once
        self.outcome = TransactionOutcome.OPEN
        self.messages: list[SentMessage] = []
        self.handled: list[tuple[str, MessagePosition]] = []
        """Messages that a loop has taken, and whose outputs it has sent, each with its subscription."""
        self.acks: dict[str, set[MessagePosition]] = {}
        """Subscription -> the messages that the application acknowledged in the transaction."""
        self.cumulative: dict[str, dict[str, MessagePosition]] = {}
        """Subscription -> name of a consumer -> the last message that it acknowledged cumulatively."""
        self.repeats = False
        """The application acknowledged a message in the transaction, received it again, and did so again."""
        self.unconfirmed: set[tuple[str, int, int]] = set()
        """SENDs of the transaction whose receipts the client has not read: client process, producer id,
        sequence id."""
        self.written: set[tuple[int, int]] = set()
        """Numbers of messages that SENDs have, each with the number of a chunk."""
        self.sent_acks: dict[str, set[MessagePosition]] = {}
        """Subscription -> the messages that ACKs of the transaction acknowledged one by one."""
        self.unanswered_acks: set[tuple[int, int]] = set()
        """ACKs of the transaction that the client has not read an answer to, or that were refused: wire,
        request id."""
        self.ended_with: bool | None = None
        """The client has written END_TXN: True to commit, False to abort."""
        self.commit_received = False
        """The broker has received END_TXN to commit."""
        self.answered: bool | None = None
        """The broker has answered END_TXN without an error: True for a commit, False for an abort."""

    def acknowledges_through(self, subscription: str, consumer: str, last: MessagePosition) -> None:
        """A consumer acknowledges cumulatively; what it acknowledged before may reach further."""
        consumers = self.cumulative.setdefault(subscription, {})
        consumers[consumer] = max(consumers.get(consumer, last), last)

    def is_over(self, now: int) -> bool:
        """True when the timeout is over."""
        return now >= self.opened_at + self.timeout

    def __repr__(self) -> str:
        return f"transaction {self.id}"
