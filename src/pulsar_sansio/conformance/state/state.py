"""The state of a connection after the frames that have passed; rules read this state.

Only `tracking` changes it, after the rules have seen the frame. It holds facts, not judgements.

*Knowledge of each side.* Frames cross: what passed here need not have arrived there. So a rule of the form
"nothing after X", where X came from the other side, needs proof that X had arrived. `read_by_client` and
`read_by_broker` are that proof: the highest frame number that a side has certainly read, because it has sent
something that it could not have sent without.
"""

from collections.abc import Callable
from typing import Any

from ...wire import DEFAULT_MAX_MESSAGE_SIZE
from ..commands import LOOKUP_KINDS
from ..entries import ObservedEntry
from ..findings import Side
from ..memory import BoundedDict, Memory, Position
from .consumer import ObservedConsumer
from .delivery import Delivery
from .handshake import Handshake
from .keep_alive import ObservedKeepAlive
from .producer import ObservedProducer
from .request import ObservedRequest

_OPEN_LIMIT = 65_536
"""Requests, producers, consumers and watchers of one connection."""
_GONE_LIMIT = 512


class State:
    """Everything about one connection."""

    __slots__ = (
        "answered", "before", "cancelled", "connected", "consumer", "consumers", "coordinators", "entry",
        "frame", "general", "gone_consumers", "gone_producers", "handshake", "keepalive", "kind",
        "lookups", "max_message_size", "memory", "position", "producer", "producers", "read_by_broker",
        "read_by_client", "request", "sent_at", "side", "transactions", "version", "watchers",
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
        self.keepalive = ObservedKeepAlive()
        self.read_by_client = -1
        self.read_by_broker = -1
        # requests
        self.general: BoundedDict[int, ObservedRequest] = BoundedDict(_OPEN_LIMIT)
        self.lookups: BoundedDict[int, ObservedRequest] = BoundedDict(_OPEN_LIMIT)
        self.answered: BoundedDict[tuple[bool, int], int] = BoundedDict(1024)
        """(of a lookup, request id) -> kind of the answered question."""
        self.cancelled: BoundedDict[tuple[bool, int], None] = BoundedDict(1024)
        """Questions whose answer may come or not: their producer or consumer was closed meanwhile."""
        # producers, consumers, watchers
        self.producers: BoundedDict[int, ObservedProducer] = BoundedDict(_OPEN_LIMIT)
        self.consumers: BoundedDict[int, ObservedConsumer] = BoundedDict(_OPEN_LIMIT)
        self.gone_producers: BoundedDict[int, str] = BoundedDict(_GONE_LIMIT)
        """Ids that are not in use any more -> how they ended."""
        self.gone_consumers: BoundedDict[int, str] = BoundedDict(_GONE_LIMIT)
        self.watchers: BoundedDict[int, bool] = BoundedDict(_OPEN_LIMIT)
        """Watcher id -> whether it is open (else asked for)."""
        # transactions
        self.coordinators: BoundedDict[int, None] = BoundedDict(1024)
        """The coordinators that have answered TC_CLIENT_CONNECT_REQUEST on this connection."""
        self.transactions: BoundedDict[tuple[int, int], None] = BoundedDict(4096)
        """The transactions that were opened on this connection."""
        # what the frame at hand is about, found once for all rules
        self.producer: ObservedProducer | None = None
        self.consumer: ObservedConsumer | None = None
        self.request: ObservedRequest | None = None
        self.entry: ObservedEntry = NO_ENTRY
        self.position: Position = (-1, -1)
        """Ledger and entry of a MESSAGE."""
        self.before: Delivery | None = None
        """The earlier delivery of its entry to its consumer, where the client has not acknowledged that."""
        self.sent_at = -1
        """The index, in its producer's queue, of the SEND that a SEND_RECEIPT answers; -1 for none."""

    def requests_of(self, kind: int) -> BoundedDict[int, ObservedRequest]:
        """The number space of a kind of request."""
        return self.lookups if kind in LOOKUP_KINDS else self.general


def is_open(thing: ObservedProducer | ObservedConsumer | None) -> bool:
    """Tell whether the endpoint was opened, and neither side has begun to close it."""
    return thing is not None and thing.open_since >= 0 and thing.closing < 0 and thing.closed_by_broker < 0


NO_ENTRY = ObservedEntry(b"")

Step = Callable[[State, Any], None]
"""A change of the state by a frame's command."""
