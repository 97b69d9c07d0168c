"""The state of a connection after the frames that have passed; rules read this state.

Only `tracking` changes it, after the rules have seen the frame. It holds facts, not judgements.

*Who knows what.* Frames cross: what passed here need not have arrived there. So a rule of the form "nothing
after X", where X came from the other side, needs proof that X had arrived. `read_by_client` and
`read_by_broker` are that proof: the highest frame number that a side has certainly read, because it has sent
something that it could not have sent without.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from ..wire import DEFAULT_MAX_MESSAGE_SIZE
from .commands import EXCLUSIVE, FAILOVER, KEY_SHARED, LOOKUP_KINDS, SHARED
from .entries import Entry
from .findings import Side
from .memory import BoundedDict, ConsumerMemory, Memory, Position, ProducerMemory, Sent

PENDING_LIMIT = 100_000
"""SENDs remembered without an answer; beyond it receipts are no longer missed."""
_OPEN_LIMIT = 65_536
"""Requests, producers, consumers and watchers of one connection."""
_UNACKNOWLEDGED_LIMIT = 100_000
_ACKNOWLEDGED_LIMIT = 8192
_GONE_LIMIT = 512


class Request:
    """A question that waits for its answer."""

    __slots__ = ("acknowledged", "again", "command", "followed", "frame", "kind", "up_to", "waiting")

    def __init__(self, kind: int, command: Any, frame: int) -> None:
        self.kind = kind
        self.command = command
        self.frame = frame
        self.waiting = False
        """A PRODUCER that was told to wait for exclusive access, and gets a second answer."""
        self.again = False
        """A PRODUCER or SUBSCRIBE for an id that is open: a broker confirms what there is."""
        self.followed = 0
        """A LOOKUP: how many redirects led to it."""
        self.acknowledged: list[Position] = []
        """An ACK's entries that it acknowledges completely."""
        self.up_to: Position | None = None


class Producer:
    """A producer on this connection."""

    __slots__ = (
        "abandoned", "closed_by_broker", "closing", "encrypted", "frame", "last_id", "last_sequence", "match",
        "memory", "mode", "name", "open_since", "pending", "persistent", "previous", "producer_id", "resend",
        "resent", "stored_up_to", "topic", "waiting",
    )  # fmt: skip

    def __init__(self, producer_id: int, command: Any, memory: ProducerMemory, frame: int) -> None:
        self.producer_id = producer_id
        self.topic: str = command.topic
        self.persistent = not self.topic.startswith("non-persistent:")
        self.mode: int = command.producer_access_mode
        self.encrypted: bool = command.encrypted
        self.memory = memory
        self.frame = frame
        """The number of the frame with its PRODUCER."""
        self.open_since = -1
        """Frame of the PRODUCER_SUCCESS that opened it; -1 before."""
        self.waiting = False
        self.closing = -1
        """Frame of the client's CLOSE_PRODUCER; -1 before."""
        self.closed_by_broker = -1
        self.previous: Producer | None = None
        """The registration of the same id before this one, while its close is not answered."""
        self.name = ""
        self.stored_up_to = -1
        """The sequence id up to which the broker said that it drops duplicates; -1 when it did not."""
        self.last_sequence: int | None = None
        """The highest id sent in this registration."""
        self.last_id: Position = (-1, -1)
        """The last position a receipt gave."""
        self.pending: deque[Sent] = deque(maxlen=PENDING_LIMIT)
        """Sent and not answered."""
        self.resend: list[Sent] = []
        """SENDs without an answer on earlier connections; the client must send them again first."""
        self.resent = 0
        """The number of SENDs of `resend` that the client has sent again."""
        self.abandoned = False
        """A new message came first: the client has given the old ones up (send timeout)."""
        self.match = -1
        """Index in `resend` of the SEND at hand; -1 when it is none of them."""


class Delivery:
    """An entry at a consumer."""

    __slots__ = ("again", "count", "frame", "redeliveries_used", "redelivery_count")

    def __init__(
        self, frame: int, count: int, redelivery_count: int, redeliveries_used: int, again: bool
    ) -> None:
        self.frame = frame
        self.count = count
        """Messages of the batch; 0 where it is none."""
        self.redelivery_count = redelivery_count
        self.redeliveries_used = redeliveries_used
        """The number of the consumer's requests to redeliver everything this entry has answered or missed."""
        self.again = again
        """The entry may have been delivered before, and the application may still hold its messages."""


class RedeliveryRequests:
    """The requests of a consumer for redelivery, as far as the broker has not carried them out."""

    __slots__ = ("all", "asks_once_more", "entries", "rewinds", "unread")

    def __init__(self) -> None:
        self.entries: BoundedDict[Position, int] = BoundedDict(_UNACKNOWLEDGED_LIMIT)
        """Entry -> how often the client has asked for it again and the broker has not redelivered it."""
        self.all = 0
        """The number of requests to redeliver everything."""
        self.unread: deque[int] = deque(maxlen=1024)
        """Frames of those requests that the broker may not have read.

        The broker may redeliver the entries that it sends before it reads them.
        """
        self.asks_once_more = False
        """The consumer has become active (Failover).

        It may repeat a request that the broker may have ignored before.
        """
        self.rewinds = 0
        """The times the broker may go back to the first unacknowledged entry (Exclusive and Failover)."""


class Consumer:
    """A consumer on this connection."""

    __slots__ = (
        "acknowledged", "active", "closed_by_broker", "closing", "compacted", "confirmed",
        "confirmed_up_to", "consumer_id", "delivered", "ended", "epoch", "first_grant", "frame", "granted",
        "has_epoch", "last", "memory", "open_since", "partition", "permits", "persistent", "previous",
        "redelivery", "seeking", "single_active", "topic", "transactional", "type", "unsubscribing",
    )  # fmt: skip

    def __init__(self, consumer_id: int, command: Any, memory: ConsumerMemory, frame: int) -> None:
        self.consumer_id = consumer_id
        self.topic: str = command.topic
        self.partition = partition_of(self.topic)
        self.persistent = not self.topic.startswith("non-persistent:")
        self.type: int = command.subType
        self.single_active = self.type in (EXCLUSIVE, FAILOVER)
        self.compacted: bool = command.read_compacted
        self.memory = memory
        self.frame = frame
        """The number of the frame with its SUBSCRIBE."""
        self.open_since = -1
        self.closing = -1
        """Frame of the client's CLOSE_CONSUMER or UNSUBSCRIBE; -1 before."""
        self.unsubscribing = False
        """True when that frame is UNSUBSCRIBE."""
        self.previous: Consumer | None = None
        """The registration of the same id before this one, while its close is not answered."""
        self.closed_by_broker = -1
        self.seeking = -1
        """Frame of a SEEK without answer; -1 when there is none."""
        self.granted = False
        """True after the client's first FLOW."""
        self.first_grant = 0
        """The permits of that FLOW; 0 where they say nothing any more."""
        self.permits = 0
        self.has_epoch: bool = command.HasField("consumer_epoch")
        self.epoch = -1
        """The highest epoch of a MESSAGE."""
        self.delivered: BoundedDict[Position, Delivery] = BoundedDict(_UNACKNOWLEDGED_LIMIT)
        """Entries delivered and not acknowledged completely."""
        self.acknowledged: BoundedDict[Position, Delivery] = BoundedDict(_ACKNOWLEDGED_LIMIT)
        """Entries acknowledged completely."""
        self.confirmed: BoundedDict[Position, None] = BoundedDict(_ACKNOWLEDGED_LIMIT)
        """Acknowledged entries that the broker has confirmed one by one."""
        self.confirmed_up_to: Position = (-1, -1)
        """The entry up to which the broker has confirmed cumulative acknowledgements."""
        self.redelivery = RedeliveryRequests()
        self.last: Position = (-1, -1)
        self.active: bool | None = None
        """The value in the last ACTIVE_CONSUMER_CHANGE."""
        self.ended = False
        """REACHED_END_OF_TOPIC has passed."""
        self.transactional = False
        """The consumer has acknowledged in a transaction; an abort redelivers its messages."""

    def known(self, position: Position) -> bool:
        """Tell whether the entry was ever delivered to this consumer; True when that is forgotten."""
        return (
            position in self.delivered
            or position in self.acknowledged
            or position in self.memory.earlier
            or self.acknowledged.overflowed
            or self.delivered.overflowed
            or self.memory.earlier.overflowed
        )


def is_open(thing: Producer | Consumer | None) -> bool:
    """Tell whether the endpoint was opened, and neither side has begun to close it."""
    return thing is not None and thing.open_since >= 0 and thing.closing < 0 and thing.closed_by_broker < 0


class Handshake:
    """The offers of client and broker until CONNECTED, and the challenges."""

    __slots__ = (
        "broker_flags", "challenge_rounds", "challenges", "client_flags", "client_version", "connect_seen",
    )  # fmt: skip

    def __init__(self) -> None:
        self.connect_seen = False
        self.client_version = 0
        self.client_flags: Any = None
        self.broker_flags: Any = None
        self.challenges = 0
        """AUTH_CHALLENGEs without response."""
        self.challenge_rounds = 0
        """AUTH_CHALLENGEs before CONNECTED."""


class KeepAlive:
    """The PINGs of both sides and their PONGs."""

    __slots__ = ("last_of_client", "of_broker", "of_client", "quiet")

    def __init__(self) -> None:
        self.of_client: deque[int] = deque()
        """Frames of the client's PINGs that have no PONG yet."""
        self.of_broker: deque[int] = deque()
        """Frames of the broker's PINGs that have no PONG yet."""
        self.last_of_client = -1
        """The frame of the client's last PING; where one was sent, a request may have timed out."""
        self.quiet = False
        """The broker has sent no frame since the client's last PING."""


class State:
    """Everything about one connection."""

    __slots__ = (
        "answered", "before", "cancelled", "connected", "consumer", "consumers", "entry", "frame",
        "general", "gone_consumers", "gone_producers", "handshake", "keepalive", "kind", "lookups",
        "max_message_size", "memory", "position", "producer", "producers", "read_by_broker",
        "read_by_client", "request", "sent_at", "side", "version", "watchers",
    )  # fmt: skip

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.frame = -1
        """Number of the frame at hand."""
        self.side = Side.CLIENT
        """The sender of the frame at hand."""
        self.kind = 0
        """The command of the frame at hand."""
        self.handshake = Handshake()
        self.connected = False
        self.version = 0
        """The negotiated protocol version; before CONNECTED the client's."""
        self.max_message_size = DEFAULT_MAX_MESSAGE_SIZE
        self.keepalive = KeepAlive()
        self.read_by_client = -1
        self.read_by_broker = -1
        # requests
        self.general: BoundedDict[int, Request] = BoundedDict(_OPEN_LIMIT)
        self.lookups: BoundedDict[int, Request] = BoundedDict(_OPEN_LIMIT)
        self.answered: BoundedDict[tuple[bool, int], int] = BoundedDict(1024)
        """(of a lookup, request id) -> kind of the answered question."""
        self.cancelled: BoundedDict[tuple[bool, int], None] = BoundedDict(1024)
        """Questions whose answer may come or not: their producer or consumer was closed meanwhile."""
        # producers, consumers, watchers
        self.producers: BoundedDict[int, Producer] = BoundedDict(_OPEN_LIMIT)
        self.consumers: BoundedDict[int, Consumer] = BoundedDict(_OPEN_LIMIT)
        self.gone_producers: BoundedDict[int, str] = BoundedDict(_GONE_LIMIT)
        """Ids that are not in use any more -> how they ended."""
        self.gone_consumers: BoundedDict[int, str] = BoundedDict(_GONE_LIMIT)
        self.watchers: BoundedDict[int, bool] = BoundedDict(_OPEN_LIMIT)
        """Watcher id -> whether it is open (else asked for)."""
        # what the frame at hand is about, found once for all rules
        self.producer: Producer | None = None
        self.consumer: Consumer | None = None
        self.request: Request | None = None
        self.entry: Entry = NO_ENTRY
        self.position: Position = (-1, -1)
        """Ledger and entry of a MESSAGE."""
        self.before: Delivery | None = None
        """The earlier delivery of its entry to its consumer, where the client has not acknowledged that."""
        self.sent_at = -1
        """The index, in its producer's queue, of the SEND that a SEND_RECEIPT answers; -1 for none."""

    def requests_of(self, kind: int) -> BoundedDict[int, Request]:
        """The number space of a kind of request."""
        return self.lookups if kind in LOOKUP_KINDS else self.general


NO_ENTRY = Entry(b"")


def partition_of(topic: str) -> int:
    """The index of a partition's topic; -1 for any other name (TOPIC-03)."""
    head, separator, digits = topic.rpartition("-partition-")
    if not separator or not head or not digits.isascii() or not digits.isdigit():
        return -1
    return int(digits) if digits == str(int(digits)) else -1


SHARED_TYPES = (SHARED, KEY_SHARED)

Step = Callable[[State, Any], None]
"""A change of the state by a frame's command."""
