"""A consumer on the broker's side: its permits, its unacknowledged messages, whether it is blocked.

A subscription and a connection own it together. It decides nothing; dispatchers do.
"""

from typing import TYPE_CHECKING

from ...wire import encode_message, pack_broker_entry_metadata, proto
from ..records import EntryAdded
from ..storage.entry import MessageFront, entry_metadata
from .key_hash import Sticky, sticky_key

if TYPE_CHECKING:
    from ..serving.connection import Connection
    from ..topics.nonpersistent import NonPersistentSubscription
    from ..topics.subscription import Subscription

SubType = proto.CommandSubscribe.SubType


JOIN_LIMIT = 16 * 1024
"""Bytes up to which one copy into a single chunk is cheaper than two chunks to write."""


class Consumer:
    """One consumer. `permits` counts messages and may be negative (GAP-27)."""

    __slots__ = (
        "_front",
        "_takes_entry_metadata",
        "acknowledged_at",
        "allow_out_of_order",
        "blocked",
        "bytes_out",
        "closed",
        "connected_at",
        "connection",
        "delivered_at",
        "epoch",
        "flowed",
        "flowed_at",
        "id",
        "kind",
        "messages_out",
        "metadata",
        "name",
        "key_filter",
        "pending",
        "permits",
        "priority",
        "read_compacted",
        "ready",
        "saved_permits",
        "sticky",
        "sticky_ranges",
        "subscription",
        "unacked",
    )

    def __init__(self, connection: "Connection", command: proto.CommandSubscribe, wall_time: int) -> None:
        self.connection = connection
        self.id = command.consumer_id
        self.name = command.consumer_name
        self.kind = command.subType
        self.priority = command.priority_level
        self.epoch = command.consumer_epoch if command.HasField("consumer_epoch") else None
        """The redelivery epoch, repeated in messages of Exclusive and Failover; None for clients without
        epochs."""
        self.read_compacted = command.read_compacted
        self.metadata = [(pair.key, pair.value) for pair in command.metadata]
        key_shared = command.keySharedMeta
        self.sticky = self.kind == SubType.Key_Shared and key_shared.keySharedMode == proto.STICKY
        # Other types do not check their ranges, of which a frame may hold many.
        ranges = key_shared.hashRanges if self.sticky or self.kind == SubType.Exclusive else ()
        self.sticky_ranges = [(each.start, each.end) for each in ranges]
        self.key_filter: Sticky | None = None
        """Exclusive: the hash ranges of the keys that the consumer receives; None is all keys."""
        self.allow_out_of_order = key_shared.allowOutOfOrderDelivery
        self.connected_at = wall_time
        self._front: MessageFront | None = None
        self._takes_entry_metadata = connection.takes_broker_entry_metadata
        self.subscription: Subscription | NonPersistentSubscription = None  # type: ignore[assignment]  # set when it is added to one
        self.permits = 0
        self.flowed = False
        """True after the first FLOW."""
        self.saved_permits = 0
        """Permits granted while the consumer was blocked (rule BROKER-28)."""
        self.unacked = 0
        """The number of messages delivered and not acknowledged."""
        self.pending: dict[int, int] = {}
        """Shared and Key_Shared: offset -> the number of messages of that entry still to be acknowledged."""
        self.blocked = False
        """The consumer has too many unacknowledged messages (rule BROKER-27)."""
        self.ready = False
        """SUCCESS was sent; an earlier FLOW is ignored (rule BROKER-25)."""
        self.closed = False
        self.messages_out = 0
        self.bytes_out = 0
        self.delivered_at = -1
        self.acknowledged_at = -1
        self.flowed_at = -1
        """The moments of the last message, the last acknowledgement and the last FLOW (ns); -1 is never."""

    def set_key_filter(self) -> None:
        """Filter keys by the hash ranges in the SUBSCRIBE. Raises `ConsumerAssignError`."""
        if self.kind == SubType.Exclusive and self.sticky_ranges:
            Sticky().check(self.sticky_ranges)
            self.key_filter = Sticky()
            self.key_filter.add(self)

    def matches_key_filter(self, data: bytes) -> bool:
        """True when the consumer receives this stored entry."""
        key_filter = self.key_filter
        if key_filter is None:
            return True
        metadata = entry_metadata(data, self.connection.metadata_decoder)
        return key_filter.owner(key_filter.slot_of(sticky_key(metadata))) is not None

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in (always 0), messages and bytes out."""
        return 0, 0, self.messages_out, self.bytes_out

    @property
    def _shown_epoch(self) -> int | None:
        """The epoch in messages: Exclusive and Failover have one (REDEL-02), except to read compacted (seen:
        java-table-view)."""
        single = self.kind in (SubType.Exclusive, SubType.Failover)
        return self.epoch if single and not self.read_compacted else None

    @property
    def available(self) -> bool:
        """True when another entry may be dispatched to the consumer now."""
        return self.permits > 0 and not self.blocked and self.connection.writable

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of later deliveries."""
        self.epoch = epoch
        self._front = None

    def deliver(
        self, entry: EntryAdded, messages: int, redelivery_count: int = 0, ack_set: int | None = None
    ) -> None:
        """Send one entry, and charge permits for `messages`."""
        data = entry.data
        if self._takes_entry_metadata and entry.last_index >= 0:
            data = pack_broker_entry_metadata(entry.received_at, entry.last_index) + data
        if redelivery_count or ack_set is not None:
            partition, epoch = self.subscription.topic.partition, self._shown_epoch
            self.connection.write_message(
                encode_message(
                    self.id,
                    entry.ledger_id,
                    entry.entry_id,
                    partition,
                    -1,
                    redelivery_count,
                    ack_set,
                    epoch,
                    data,
                ),
                len(data),
            )
        else:
            front = self._front
            if front is None or front.ledger_id != entry.ledger_id:
                partition = self.subscription.topic.partition
                front = MessageFront(self.id, entry.ledger_id, partition, self._shown_epoch)
                self._front = front
            head = front.frame(entry.entry_id, data)
            if len(data) <= JOIN_LIMIT:
                self.connection.write(head + data)
            else:
                self.connection.write_message((head, data), len(data))
        self.permits -= messages
        self.unacked += messages
        self.messages_out += messages
        self.bytes_out += len(data)
        self.delivered_at = self.connection.context.now
        throttle = self.subscription.throttle
        if throttle is not None:
            throttle.take(messages, len(data))
