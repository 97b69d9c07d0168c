"""A consumer as the broker knows it: permits, what it holds unacknowledged, whether it is blocked.

Owned by a subscription and a connection together. It decides nothing; dispatchers do.
"""

from typing import TYPE_CHECKING

from ...wire import encode_message, pack_broker_entry_metadata, proto
from ..dispatching.key_hash import Sticky, sticky_key
from ..records import EntryAdded
from ..storage.entry import MessageFront, entry_metadata

if TYPE_CHECKING:
    from ..serving.connection import Connection
    from ..topics.nonpersistent import NonPersistentSubscription
    from ..topics.subscription import Subscription

SubType = proto.CommandSubscribe.SubType


JOIN_LIMIT = 16 * 1024
"""Bytes up to which one copy into a single chunk is cheaper than handing on two chunks."""


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
        """Redelivery epoch, echoed in messages of Exclusive and Failover; None for clients without."""
        self.read_compacted = command.read_compacted
        self.metadata = [(pair.key, pair.value) for pair in command.metadata]
        key_shared = command.keySharedMeta
        self.sticky = self.kind == SubType.Key_Shared and key_shared.keySharedMode == proto.STICKY
        # Only those that are checked: others may be as many as a frame holds.
        ranges = key_shared.hashRanges if self.sticky or self.kind == SubType.Exclusive else ()
        self.sticky_ranges = [(each.start, each.end) for each in ranges]
        self.key_filter: Sticky | None = None
        """Exclusive: of which keys it gets entries; None is all of them."""
        self.allow_out_of_order = key_shared.allowOutOfOrderDelivery
        self.connected_at = wall_time
        self._front: MessageFront | None = None
        self._takes_entry_metadata = connection.takes_broker_entry_metadata
        self.subscription: Subscription | NonPersistentSubscription = None  # type: ignore[assignment]  # set when it is added to one
        self.permits = 0
        self.flowed = False
        """Whether a FLOW came yet."""
        self.saved_permits = 0
        """Granted while blocked (rule BROKER-28)."""
        self.unacked = 0
        """Messages delivered and not acknowledged."""
        self.pending: dict[int, int] = {}
        """Shared and Key_Shared: offset -> messages of it still to be acknowledged."""
        self.blocked = False
        """Too many unacknowledged messages (rule BROKER-27)."""
        self.ready = False
        """SUCCESS was sent; FLOW before it is ignored (rule BROKER-25)."""
        self.closed = False
        self.messages_out = 0
        self.bytes_out = 0
        self.delivered_at = -1
        self.acknowledged_at = -1
        self.flowed_at = -1
        """When a message, an acknowledgement and a FLOW passed last (ns); -1 is never."""

    def set_key_filter(self) -> None:
        """Who reads part of the keys says which. Raises `ConsumerAssignError`."""
        if self.kind == SubType.Exclusive and self.sticky_ranges:
            Sticky().check(self.sticky_ranges)
            self.key_filter = Sticky()
            self.key_filter.add(self)

    def matches_key_filter(self, data: bytes) -> bool:
        """Whether a stored entry is of its part of the keys, where it has but a part."""
        key_filter = self.key_filter
        return (
            key_filter is None
            or key_filter.owner(key_filter.slot_of(sticky_key(entry_metadata(data)))) is not None
        )

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in (none), messages and bytes out."""
        return 0, 0, self.messages_out, self.bytes_out

    @property
    def _shown_epoch(self) -> int | None:
        """Only Exclusive and Failover have an epoch in their messages (REDEL-02), and not where they read
        compacted (seen: java-table-view)."""
        single = self.kind in (SubType.Exclusive, SubType.Failover)
        return self.epoch if single and not self.read_compacted else None

    @property
    def available(self) -> bool:
        """Whether another entry may be dispatched to it now."""
        return self.permits > 0 and not self.blocked and self.connection.writable

    def set_epoch(self, epoch: int) -> None:
        """Following deliveries carry it."""
        self.epoch = epoch
        self._front = None

    def deliver(
        self, entry: EntryAdded, messages: int, redelivery_count: int = 0, ack_set: int | None = None
    ) -> None:
        """Send one entry; `messages` of it are charged."""
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
