"""Dispatchers of Exclusive and Failover: one active consumer, in order (rules SUBT-02 to SUBT-05).

A dispatcher decides which entry goes to which consumer and when. It owns the read position and what is known
of deliveries; the cursor (what is acknowledged) belongs to the subscription. Dispatch stops for lack of
permits, of a reader at the other end, or of entries, and is tried again whenever one of these may have
changed.
"""

from bisect import bisect_left, insort
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ...model.errors import ConsumerBusy
from ...wire import proto
from .consumer import Consumer, SubType
from .key_hash import murmur3_32, murmur3_32_all

if TYPE_CHECKING:
    from ..topics.subscription import Subscription

_POINTS = [b"%d" % point for point in range(100)]
"""Names of the points of each consumer on the ring that chooses the active consumer of a topic without
partitions."""

FailoverRank: TypeAlias = tuple[int, int, str, int]
"""Where a consumer stands among those of a Failover subscription: priority, distance on the ring (0 on a
partition), name, and which of the same name came first."""


@lru_cache(1024)
def _distance(topic: str, consumer: str) -> int:
    """From the topic's point on the ring to the next of the consumer's: the least is chosen."""
    mark = murmur3_32(topic.encode("utf-8", "surrogateescape"))
    name = consumer.encode("utf-8", "surrogateescape")
    return min((point - mark) % 2**32 for point in murmur3_32_all(name, _POINTS))


class ConflictingConsumer(ConsumerBusy):
    """Exclusive, and a consumer is connected: the newcomer may try again if that one turns out to be dead."""

    def __init__(self, present: Consumer) -> None:
        super().__init__("Exclusive consumer is already connected")
        self.present = present


class Dispatcher(Protocol):
    """What a subscription needs of its dispatcher."""

    consumers: list[Consumer]

    def check(self, newcomer: Consumer) -> None:
        """Raise the refusal that `newcomer` gets, if any."""

    def add(self, consumer: Consumer) -> None: ...
    def on_subscribed(self, consumer: Consumer) -> None:
        """The consumer was told that it is subscribed."""

    def remove(self, consumer: Consumer) -> None: ...
    def wake(self, consumer: Consumer) -> None:
        """The consumer may have room again: it has got permits, or its connection was read from."""

    def dispatch(self) -> None:
        """Deliver what can be delivered."""

    def acknowledged(self, consumer: Consumer | None, offset: int, messages: int, whole: bool) -> None:
        """`messages` of the entry were acknowledged (by `consumer`); `whole`: nothing of it is left."""

    def acknowledged_up_to(self, offset: int) -> None:
        """Cumulatively acknowledged."""

    def acknowledgements_done(self) -> None:
        """End of one ACK command."""

    def redeliver(self, consumer: Consumer, offsets: list[int] | None, epoch: int | None) -> None:
        """Deliver again: these, or (None) everything the consumer has not acknowledged."""

    def reset(self) -> None:
        """The cursor was moved; there are no consumers."""

    def unacked(self, consumer: Consumer) -> int: ...
    def close(self) -> None:
        """Stop timers."""


class SingleActive:
    """Exclusive and Failover."""

    def __init__(self, subscription: "Subscription") -> None:
        self.subscription = subscription
        self.consumers: list[Consumer] = []
        self.active: Consumer | None = None
        self.read = subscription.cursor.mark_delete + 1
        self.failover = subscription.kind == SubType.Failover
        self._ranks: dict[Consumer, FailoverRank] = {}
        """Failover only."""
        self._order: list[tuple[FailoverRank, Consumer]] = []
        """By rank, so that one more or less of thousands does not mean to look at all of them."""
        self._arrivals = count()
        self._change = subscription.context.deadlines.slot(self._change_due)

    # --- who ------------------------------------------------------------------------------------------

    def check(self, newcomer: Consumer) -> None:
        if not self.failover and self.consumers:
            raise ConflictingConsumer(self.consumers[0])

    def add(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        if not self.failover:
            self.active = consumer
            self.rewind()
            return
        partitioned = self.subscription.topic.partition >= 0
        distance = 0 if partitioned else self._distance(consumer)
        rank = consumer.priority, distance, consumer.name, next(self._arrivals)
        self._ranks[consumer] = rank
        insort(self._order, (rank, consumer), key=lambda each: each[0])
        self._choose()

    def on_subscribed(self, consumer: Consumer) -> None:
        if self.failover and self._change.when is None:
            self._tell(consumer)

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        if not self.failover:
            self.active = None
            self.rewind()
            return
        del self._order[bisect_left(self._order, self._ranks.pop(consumer), key=lambda each: each[0])]
        self._choose()

    def wake(self, consumer: Consumer) -> None:
        """Nothing to keep: the active consumer is looked at each time."""

    def _choose(self) -> None:
        """Choose the active consumer of a Failover subscription.

        Nothing is delivered until the change is announced, `failover_delay` later (SUBT-05).
        """
        before, self.active = self.active, self._choice()
        if self.active is before:
            return
        if self.active is None:
            self._change.clear()
            self.rewind()
        elif self._change.when is None:
            context = self.subscription.context
            self._change.set(context.now + self.subscription.topic.services.failover_delay)

    def _choice(self) -> Consumer | None:
        """Of those with the best priority: on a partition the one whose turn it is by name, else the next on
        the ring (SUBT-04)."""
        order = self._order
        if not order:
            return None
        partition = self.subscription.topic.partition
        if partition < 0:
            return order[0][1]
        best = order[0][0][0]
        candidates = bisect_left(order, best + 1, key=lambda each: each[0][0])
        return order[partition % candidates][1]

    def _distance(self, consumer: Consumer) -> int:
        """Found once for each consumer; with many of them it would otherwise be the broker's whole day."""
        return _distance(self.subscription.topic.name, consumer.name)

    def _change_due(self) -> None:
        self.rewind()
        for consumer in list(self.consumers):
            self._tell(consumer)
        self.dispatch()

    def _tell(self, consumer: Consumer) -> None:
        connection = consumer.connection
        if connection.protocol_version >= 12:
            connection.send(
                proto.BaseCommand.ACTIVE_CONSUMER_CHANGE,
                proto.CommandActiveConsumerChange(consumer_id=consumer.id, is_active=consumer is self.active),
            )

    def disconnect_active(self) -> None:
        """Tell the active consumer to reconnect; the others have nothing that could be outdated."""
        if self.active is not None:
            self.active.connection.close_consumer(self.active)

    # --- what -----------------------------------------------------------------------------------------

    def rewind(self) -> None:
        """Everything not acknowledged is to be delivered again."""
        self.read = self.subscription.cursor.mark_delete + 1

    def dispatch(self) -> None:
        consumer = self.active
        subscription = self.subscription
        if consumer is None or self._change.when is not None or not consumer.available or subscription.fenced:
            return
        view = subscription.topic.compaction.view
        if consumer.read_compacted and view is not None and self.read <= view.horizon:
            view.dispatch(self, consumer)
            if not consumer.available:
                return
        log = subscription.topic.log
        end = log.durable_end
        offset = self.read
        if offset >= end:
            subscription.check_end_of_topic()
            return
        cursor = subscription.cursor
        connection = consumer.connection
        ledger = log.ledger_at(offset)
        filters_keys = consumer.key_filter is not None
        while True:
            if cursor.ranges.count or offset <= cursor.mark_delete:
                offset = cursor.next_unacknowledged(offset)
            offset = max(offset, log.first)
            if offset >= end:
                break
            if offset >= ledger.end or offset < ledger.first:
                ledger = log.ledger_at(offset)
            entry = ledger.entries[offset - ledger.first]
            messages = entry.messages
            ack_set = None
            if cursor.partly and (bits := cursor.partly.get(offset)) is not None:
                ack_set = bits
                messages = bits.bit_count()
            offset += 1
            if filters_keys and not consumer.matches_key_filter(entry.data):
                continue
            consumer.deliver(entry, messages, 0, ack_set)
            if consumer.permits <= 0 or not connection.writable:
                break
        self.read = offset

    def acknowledged(self, consumer: Consumer | None, offset: int, messages: int, whole: bool) -> None:
        """Nothing to keep: what is delivered and unacknowledged follows from cursor and read position."""

    def acknowledged_up_to(self, offset: int) -> None:
        """As `acknowledged`."""

    def acknowledgements_done(self) -> None:
        """Acknowledgements open nothing here."""

    def redeliver(self, consumer: Consumer, offsets: list[int] | None, epoch: int | None) -> None:
        """Ids are ignored: the cursor rewinds, if the consumer is the active one (SUBT-05)."""
        if consumer is not self.active or self._change.when is not None:
            return
        if epoch is not None and (consumer.epoch is None or epoch > consumer.epoch):
            consumer.set_epoch(epoch)
        self.rewind()
        self.dispatch()

    def reset(self) -> None:
        self.rewind()

    def unacked(self, consumer: Consumer) -> int:
        if consumer is not self.active:
            return 0
        cursor, log = self.subscription.cursor, self.subscription.topic.log
        total = 0
        offset = cursor.next_unacknowledged(max(cursor.mark_delete + 1, log.first))
        while offset < self.read:
            messages = log.entry(offset).messages
            total += cursor.partly[offset].bit_count() if offset in cursor.partly else messages
            offset = cursor.next_unacknowledged(offset + 1)
        return total

    def close(self) -> None:
        self._change.clear()
