"""`ObservedConsumer`: a consumer as its frames show it."""

from typing import Any

from ..commands import EXCLUSIVE, FAILOVER
from ..memory import BoundedDict, ConsumerMemory, Position
from .delivery import UNACKNOWLEDGED_LIMIT, Delivery, RedeliveryRequests

_ACKNOWLEDGED_LIMIT = 8192


class ObservedConsumer:
    """A consumer on this connection."""

    __slots__ = (
        "acknowledged", "active", "closed_by_broker", "closing", "compacted", "confirmed",
        "confirmed_up_to", "consumer_id", "delivered", "ended", "epoch", "first_grant", "frame", "granted",
        "has_epoch", "last", "memory", "open_since", "partition", "permits", "persistent", "previous",
        "redelivery", "seeking", "single_active", "topic", "type", "unsubscribing",
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
        self.previous: ObservedConsumer | None = None
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
        self.delivered: BoundedDict[Position, Delivery] = BoundedDict(UNACKNOWLEDGED_LIMIT)
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


def partition_of(topic: str) -> int:
    """The index of a partition's topic; -1 for any other name (TOPIC-03)."""
    head, separator, digits = topic.rpartition("-partition-")
    if not separator or not head or not digits.isascii() or not digits.isdigit():
        return -1
    return int(digits) if digits == str(int(digits)) else -1
