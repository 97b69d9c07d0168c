"""The dispatcher of Exclusive and Failover: one active consumer, in order (rule SUBT-02).

A dispatcher chooses the consumer of each entry. It owns the read position and the state of deliveries; the
subscription owns the cursor. Dispatch stops for lack of permits, of room in the connection or of entries, and
resumes when one of these may have changed.
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
"""The names of each consumer's points on the ring that chooses the active consumer of a topic without
partitions."""

FailoverRank: TypeAlias = tuple[int, int, str, int]
"""The order of a consumer in a Failover subscription.

Priority, distance on the ring (0 on a partition), name, and number of arrival.
"""


@lru_cache(1024)
def _distance(topic: str, consumer: str) -> int:
    """The distance from the topic's point on the ring to the consumer's next point; the least is chosen."""
    mark = murmur3_32(topic.encode("utf-8", "surrogateescape"))
    name = consumer.encode("utf-8", "surrogateescape")
    # The ring has 2^31 places: the Java broker leaves out the highest bit of a hash.
    return min((point - mark) % 2**31 for point in murmur3_32_all(name, _POINTS))


class ConflictingConsumer(ConsumerBusy):
    """An Exclusive consumer is connected; the new consumer may retry if that one is dead."""

    def __init__(self, present: Consumer) -> None:
        super().__init__("Exclusive consumer is already connected")
        self.present = present


class Dispatcher(Protocol):
    """The methods that a subscription calls."""

    consumers: list[Consumer]

    def check(self, newcomer: Consumer) -> None:
        """Raise the refusal that `newcomer` gets, if any."""

    def add(self, consumer: Consumer) -> None: ...
    def on_subscribed(self, consumer: Consumer) -> None:
        """The consumer was told that it is subscribed."""

    def remove(self, consumer: Consumer) -> None: ...
    def wake(self, consumer: Consumer) -> None:
        """The consumer may be available again: it has permits, or its peer read."""

    def dispatch(self) -> None:
        """Deliver what can be delivered."""

    def acknowledged(self, consumer: Consumer | None, offset: int, messages: int, whole: bool) -> None:
        """`messages` of the entry were acknowledged by `consumer`; `whole`: none is left."""

    def acknowledged_up_to(self, offset: int) -> None:
        """All entries up to this offset were acknowledged."""

    def acknowledged_in_transaction(
        self, consumer: Consumer | None, offset: int, messages: int, whole: bool
    ) -> None:
        """`messages` of the entry were acknowledged by `consumer` in a transaction, which may be aborted;
        `whole`: none is left."""

    def returned(self, offsets: list[int]) -> None:
        """A transaction was aborted that had acknowledged these entries, or messages of them."""

    def acknowledgements_done(self) -> None:
        """One ACK command ends."""

    def redeliver(self, consumer: Consumer, offsets: list[int] | None, epoch: int | None) -> None:
        """Redeliver these entries, or all unacknowledged entries of the consumer for None."""

    def reset(self) -> None:
        """The cursor was moved, and no consumer is attached."""

    def unacked(self, consumer: Consumer) -> int: ...
    def close(self) -> None:
        """Stop timers."""


class SingleActive:
    """The dispatcher of Exclusive and Failover subscriptions."""

    def __init__(self, subscription: "Subscription") -> None:
        self.subscription = subscription
        self.consumers: list[Consumer] = []
        self.active: Consumer | None = None
        self.read = subscription.cursor.mark_delete + 1
        self.failover = subscription.kind == SubType.Failover
        self._ranks: dict[Consumer, FailoverRank] = {}
        """Consumer -> its rank; Failover only."""
        self._order: list[tuple[FailoverRank, Consumer]] = []
        """Consumers by rank, so that adding or removing one of thousands does not look at all of them."""
        self._arrivals = count()
        self._change = subscription.context.deadlines.slot(self._change_due)

    # --- consumers ------------------------------------------------------------------------------------

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
            self._announce(consumer)

    def remove(self, consumer: Consumer) -> None:
        self.consumers.remove(consumer)
        if not self.failover:
            self.active = None
            self.rewind()
            return
        del self._order[bisect_left(self._order, self._ranks.pop(consumer), key=lambda each: each[0])]
        self._choose()

    def wake(self, consumer: Consumer) -> None:
        """Do nothing: dispatch looks at the active consumer."""

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
        """Choose among the consumers of the best priority (SUBT-04).

        On a partition the choice goes by name and partition number, otherwise by the ring.
        """
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
        """The distance is cached by name: with many consumers it would dominate the broker's work."""
        return _distance(self.subscription.topic.name, consumer.name)

    def _change_due(self) -> None:
        self.rewind()
        for consumer in list(self.consumers):
            self._announce(consumer)
        self.dispatch()

    def _announce(self, consumer: Consumer) -> None:
        connection = consumer.connection
        if connection.protocol_version >= 12:
            connection.send(
                proto.BaseCommand.ACTIVE_CONSUMER_CHANGE,
                proto.CommandActiveConsumerChange(consumer_id=consumer.id, is_active=consumer is self.active),
            )

    def disconnect_active(self) -> None:
        """Send CLOSE_CONSUMER to the active consumer; the others have received nothing."""
        if self.active is not None:
            self.active.connection.close_consumer(self.active)

    # --- dispatch -------------------------------------------------------------------------------------

    def rewind(self) -> None:
        """Redeliver every entry that is not acknowledged."""
        self.read = self.subscription.cursor.mark_delete + 1

    def dispatch(self) -> None:
        consumer = self.active
        subscription = self.subscription
        if consumer is None or self._change.when is not None or not consumer.available or subscription.fenced:
            return
        throttle = subscription.throttle
        if throttle is not None and not throttle.admits():
            return
        view = subscription.topic.compaction.view
        if consumer.read_compacted and view is not None and self.read <= view.horizon:
            view.dispatch(self, consumer)
            if not consumer.available or (throttle is not None and throttle.exhausted):
                return
        log = subscription.topic.log
        transactions = subscription.topic.transactions
        end, hidden, taken = transactions.read_end, transactions.hidden, subscription.pending_acks.taken
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
            if hidden and offset in hidden:
                subscription.skip_hidden(offset)
                offset += 1
                continue
            if offset >= ledger.end or offset < ledger.first:
                ledger = log.ledger_at(offset)
            entry = ledger.entry(offset)
            messages = entry.messages
            ack_set = None
            if (cursor.partly or taken) and (bits := subscription.deliverable(offset, messages)) is not None:
                ack_set = bits
                messages = bits.bit_count()
            offset += 1
            if not messages:  # An open transaction has acknowledged all of them.
                continue
            if filters_keys and not consumer.matches_key_filter(entry.data):
                continue
            consumer.deliver(entry, messages, 0, ack_set)
            if consumer.permits <= 0 or not connection.writable:
                break
            if throttle is not None and throttle.exhausted:
                break
        self.read = offset

    def acknowledged(self, consumer: Consumer | None, offset: int, messages: int, whole: bool) -> None:
        """Do nothing: cursor and read position tell which entries are unacknowledged."""

    def acknowledged_up_to(self, offset: int) -> None:
        """Do nothing: cursor and read position tell which entries are unacknowledged."""

    def acknowledged_in_transaction(
        self, consumer: Consumer | None, offset: int, messages: int, whole: bool
    ) -> None:
        """Do nothing: cursor and read position tell which entries are unacknowledged."""

    def returned(self, offsets: list[int]) -> None:
        """Deliver every unacknowledged entry again: order matters here."""
        self.rewind()
        self.dispatch()

    def acknowledgements_done(self) -> None:
        """Do nothing: acknowledgements unblock nothing here."""

    def redeliver(self, consumer: Consumer, offsets: list[int] | None, epoch: int | None) -> None:
        """Rewind if the consumer is the active one; ids are ignored (SUBT-05)."""
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
        return self.subscription.messages_of(cursor.unacknowledged(log.first, self.read))

    def close(self) -> None:
        self._change.clear()
