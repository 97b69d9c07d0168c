"""A subscription of a persistent topic: a cursor, a dispatcher, and the requests of its consumers.

It carries out acknowledgements, seeks and unsubscribes. The dispatcher chooses the consumer of each entry.
The pending ack handle has the acknowledgements of open transactions.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...model.errors import ConsumerBusy, MetadataError, NotAllowed, ServiceNotReady
from ...wire import proto
from ..dispatching.consumer import Consumer, SubType
from ..dispatching.key_shared import KeyShared
from ..dispatching.shared import Shared
from ..dispatching.single_active import Dispatcher, SingleActive
from ..records import AcknowledgedInTransaction, CursorDeleted, CursorSaved
from ..storage.cursor import Cursor
from ..throttling.dispatch_throttle import DispatchThrottle
from ..throttling.rate_limiter import RateLimiter
from ..throttling.topic_rates import limiter_for
from .transactions.pending_ack_handle import PendingAckHandle
from .transactions.pending_acks import PendingAcks

if TYPE_CHECKING:
    from ..owner import OtherBroker
    from ..records import MigratedTo
    from .topic import Topic

NO_LIMITERS = None, None, None

NO_REQUEST = 2**64 - 1
"""The request_id of frames that the broker sends as notices."""


class Subscription:
    """One subscription. `kind`: the type of its first consumer; it may change while no consumer is
    attached."""

    persistent = True

    def __init__(
        self,
        topic: "Topic",
        name: str,
        cursor: Cursor,
        durable: bool,
        properties: tuple[tuple[str, str], ...] = (),
        pending_acks: Iterable[AcknowledgedInTransaction] = (),
    ) -> None:
        self.topic = topic
        self.context = topic.context
        self.name = name
        self.cursor = cursor
        self.durable = durable
        self.properties = properties
        self.pending_acks = PendingAcks(pending_acks)
        self.pending_ack_handle = PendingAckHandle(self, self.pending_acks)
        self.kind: int | None = None
        self.dispatcher: Dispatcher | None = None
        self.fenced = False
        """A seek, unload or delete is running: nothing is delivered, and new consumers get ServiceNotReady.
        """
        self.max_unacked_per_consumer = 0
        self.max_unacked = 0
        self._limiters: tuple[RateLimiter | None, ...] = NO_LIMITERS
        """The broker's, the topic's and the subscription's own."""
        self.throttle: DispatchThrottle | None = None
        """This is None where no dispatch rate is set."""
        self.expired = 0
        """The number of entries that their time to live acknowledged."""
        self._out_before = (0, 0)
        """Messages and bytes delivered to consumers that have been removed."""
        self.flowed_at = -1
        self.advanced_at = -1
        self.expired_at = -1
        """The moments of the last FLOW, the last move of the mark-delete position and the last look for
        expired entries (ns); -1 is never."""
        self.orphaned_at = self.context.now
        """The moment the last consumer was removed. Non-durable: the moment a seek disconnected it; it is
        expected back."""
        self._unaware_of_end: dict[Consumer, None] = {}
        """Consumers that are still to be told of the end of the topic, each once."""
        self.read_limits()

    def read_limits(self) -> None:
        """Take the limits from the policies.

        A non-durable subscription has no limit of unacknowledged messages (rule BROKER-18).
        """
        policies = self.topic.policies
        if self.durable:
            self.max_unacked_per_consumer = policies.max_unacked_messages_per_consumer or 0
            self.max_unacked = policies.max_unacked_messages_per_subscription or 0
        rates = self.topic.rates
        rate = policies.dispatch_rate_of(self.name)
        own = limiter_for(self.context, rate, self._limiters[-1], rates.published)
        limiters = self.topic.services.dispatch_limiter, rates.dispatching, own
        if limiters != self._limiters:
            self._limiters = limiters
            self._throttle(tuple(each for each in limiters if each is not None))

    def publish_rate_measured(self) -> None:
        """The topic measured how much its producers publish: a relative rate changes."""
        own = self._limiters[-1]
        if own is not None:
            own.follow(self.topic.rates.published)

    def _throttle(self, limiters: tuple[RateLimiter, ...]) -> None:
        if self.throttle is not None:
            self.throttle.close()
        self.throttle = DispatchThrottle(limiters, self._dispatch) if limiters else None
        self._dispatch()

    def _dispatch(self) -> None:
        if self.dispatcher is not None:
            self.dispatcher.dispatch()

    @property
    def consumers(self) -> list[Consumer]:
        return self.dispatcher.consumers if self.dispatcher is not None else []

    # --- consumers ------------------------------------------------------------------------------------

    def check(self, newcomer: Consumer, durable: bool) -> None:
        """Raise the refusal `newcomer` gets, in order (BROKER-24)."""
        if durable != self.durable:
            present, wanted = ("durable", "non-durable") if self.durable else ("non-durable", "durable")
            raise NotAllowed(f"Subscription {self.name} is {present}, a {wanted} consumer cannot use it")
        if self.fenced:
            raise ServiceNotReady(f"Subscription {self.name} is fenced")
        if self.consumers and newcomer.kind != self.kind:
            raise ConsumerBusy("Subscription is of different type")
        if self.consumers and self.dispatcher is not None:
            self.dispatcher.check(newcomer)
        elif newcomer.kind == SubType.Key_Shared:
            KeyShared(self, newcomer.sticky, newcomer.allow_out_of_order).check(newcomer)
        limit = self.topic.policies.max_consumers_per_subscription
        if limit and len(self.consumers) >= limit:
            raise ConsumerBusy("Subscription reached max consumers limit")

    def add(self, consumer: Consumer) -> None:
        """Attach a consumer that passed `check`."""
        if not self.consumers:
            self._dispatcher_for(consumer)
        consumer.subscription = self
        assert self.dispatcher is not None
        self.dispatcher.add(consumer)
        self._unaware_of_end[consumer] = None
        self.topic.served[self] = None

    def _dispatcher_for(self, first: Consumer) -> None:
        """Install a dispatcher of the consumer's type; a present one of that type stays, with its state."""
        old = self.dispatcher
        self.kind = first.kind
        if first.kind == SubType.Shared:
            if type(old) is not Shared:
                self._replace(Shared(self))
        elif first.kind == SubType.Key_Shared:
            if not (
                isinstance(old, KeyShared)
                and old.sticky == first.sticky
                and old.allow_out_of_order == first.allow_out_of_order
            ):
                self._replace(KeyShared(self, first.sticky, first.allow_out_of_order))
        elif not (isinstance(old, SingleActive) and old.failover == (first.kind == SubType.Failover)):
            self._replace(SingleActive(self))

    def _replace(self, dispatcher: Dispatcher) -> None:
        if self.dispatcher is not None:
            self.dispatcher.close()
        self.dispatcher = dispatcher

    def remove(self, consumer: Consumer) -> None:
        """Remove a consumer; its unacknowledged entries are redelivered to others.

        A non-durable subscription is deleted with its last consumer.
        """
        consumer.closed = True
        if self.dispatcher is None or consumer not in self.dispatcher.consumers:
            return
        self._unaware_of_end.pop(consumer, None)
        self.dispatcher.remove(consumer)
        messages, size = self._out_before
        self._out_before = messages + consumer.messages_out, size + consumer.bytes_out
        if self.dispatcher.consumers:
            return
        self.topic.served.pop(self, None)
        self.orphaned_at = self.context.now
        if not self.durable and not self.fenced:
            self.delete()

    def disconnect_all(self, moved_to: "OtherBroker | None" = None) -> None:
        """Send CLOSE_CONSUMER to every consumer, with an address if one is known."""
        for consumer in list(self.consumers):
            consumer.connection.close_consumer(consumer, moved_to)

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in (always 0), messages and bytes out."""
        messages, size = self._out_before
        for consumer in self.consumers:
            messages, size = messages + consumer.messages_out, size + consumer.bytes_out
        return 0, 0, messages, size

    # --- permits --------------------------------------------------------------------------------------

    def grant(self, consumer: Consumer, permits: int) -> None:
        """Add the permits of a FLOW (rule BROKER-28)."""
        consumer.flowed = True
        consumer.flowed_at = self.flowed_at = self.context.now
        if consumer.blocked:
            consumer.saved_permits += permits
        else:
            consumer.permits += permits
            assert self.dispatcher is not None
            self.dispatcher.wake(consumer)
            self.dispatcher.dispatch()

    # --- acknowledgements -----------------------------------------------------------------------------

    def acknowledge(self, consumer: Consumer, ids: list[tuple[int, int, int | None]]) -> None:
        """Acknowledge individually. Ids of absent or acknowledged entries change nothing."""
        cursor = self.cursor
        log = self.topic.log
        dispatcher = self.dispatcher
        assert dispatcher is not None
        consumer.acknowledged_at = self.context.now
        before = cursor.mark_delete
        changed = False
        for ledger_id, entry_id, ack_set in ids:
            offset = log.exact(ledger_id, entry_id)
            if offset is None or offset >= log.durable_end:
                continue
            if ack_set is None:
                if cursor.acknowledge(offset):
                    changed = True
                    dispatcher.acknowledged(consumer, offset, 0, True)
            elif self._keeps_messages_of(offset):
                messages = log.peek(offset).messages
                taken = self.deliverable(offset, messages) if self.pending_acks.taken else None
                fresh = cursor.acknowledge_partly(offset, ack_set, messages)
                if fresh:
                    changed = True
                    whole = cursor.acknowledged(offset)
                    if taken is not None:  # Messages that transactions have are settled already.
                        fresh = (taken & ~ack_set).bit_count()
                        if not whole and not taken & ack_set:
                            dispatcher.acknowledged_in_transaction(consumer, offset, fresh, True)
                            continue
                    dispatcher.acknowledged(consumer, offset, fresh, whole)
        if changed:
            self.moved(before)
        dispatcher.acknowledgements_done()

    def acknowledge_cumulative(
        self, consumer: Consumer, ledger_id: int, entry_id: int, ack_set: int | None
    ) -> None:
        """Acknowledge up to the entry; with `ack_set`, up to the entry before it and the cleared bits of the
        entry.

        The position before a ledger's first entry is legal. Shared and Key_Shared ignore the command.
        """
        if self.kind in (SubType.Shared, SubType.Key_Shared):
            return
        consumer.acknowledged_at = self.context.now
        log = self.topic.log
        offset = log.exact(ledger_id, entry_id)
        if offset is None and entry_id < 0 and 0 <= ledger_id <= log.ledgers[-1].id:
            offset = log.offset(ledger_id, 0) - 1
            ack_set = None
        if offset is None or offset >= log.durable_end:
            return
        cursor = self.cursor
        before = cursor.mark_delete
        if ack_set is None:
            changed = cursor.acknowledge_up_to(offset)
        else:
            changed = cursor.acknowledge_up_to(offset - 1)
            if self._keeps_messages_of(offset):
                fresh = cursor.acknowledge_partly(offset, ack_set, log.peek(offset).messages)
                changed = changed or fresh > 0
        if changed:
            self.moved(before)

    def _keeps_messages_of(self, offset: int) -> bool:
        """True where single messages of a batch are acknowledged. Where a transaction acknowledges some, the
        client acknowledges the others in this way, whatever the broker's option."""
        return (
            self.topic.services.config.batch_index_acknowledgement
            or offset in self.cursor.partly
            or offset in self.pending_acks.taken
        )

    # --- entries that need no acknowledgement ---------------------------------------------------------

    def skip_hidden(self, offset: int) -> None:
        """Acknowledge a marker, or an entry of an aborted transaction, which no consumer receives."""
        before = self.cursor.mark_delete
        if self.cursor.acknowledge(offset):
            self.moved(before)

    def deliverable(self, offset: int, messages: int) -> int | None:
        """Return the bits of the messages of an entry that may be delivered now; None is all of them.

        `messages`: the number of messages in the entry.
        """
        bits = self.cursor.partly.get(offset)
        taken = self.pending_acks.taken.get(offset)
        if taken is None:
            return bits
        return ((1 << messages) - 1 if bits is None else bits) & ~taken

    def skip_up_to(self, offset: int) -> bool:
        """Acknowledge on the consumers' behalf, for expiry or to clear a backlog. True when anything
        changed."""
        before = self.cursor.mark_delete
        if self.dispatcher is not None:
            self.dispatcher.acknowledged_up_to(offset)
        if not self.cursor.acknowledge_up_to(offset):
            return False
        self.moved(before)
        if self.dispatcher is not None:
            self.dispatcher.acknowledgements_done()
        return True

    def expire_up_to(self, offset: int) -> bool:
        """Expire entries. False where nothing was to be done: no backlog, or connected consumers and no entry
        that is old enough."""
        backlog = self.backlog
        if self.skip_up_to(offset) and self.dispatcher is not None:
            self.dispatcher.dispatch()
        expired = backlog - self.backlog
        self.expired += expired
        self.expired_at = self.context.now
        return expired > 0 or (backlog > 0 and not self.consumers)

    def moved(self, before: int) -> None:
        """Record that the cursor has changed; `before` was its mark-delete position."""
        if self.durable:
            self.topic.journal.cursor_moved(self)
        mark = self.cursor.mark_delete
        if mark != before:
            self.advanced_at = self.context.now
            self.topic.mark_delete_moved(before, mark)
            if mark + 1 >= self.topic.log.durable_end:
                self.check_end_of_topic()

    def cursor_record(self) -> CursorSaved:
        cursor = self.cursor
        return CursorSaved(
            self.topic.name,
            self.name,
            cursor.mark_delete,
            tuple(cursor.ranges),
            tuple(cursor.partly.items()),
            self.properties,
        )

    def confirm(self, effect: Callable[[], None]) -> None:
        """Run `effect` once the present mark-delete position is durable."""
        if self.durable:
            self.topic.journal.confirm_cursors(effect)
        else:
            self.topic.journal.confirm(effect)

    @property
    def backlog(self) -> int:
        """The number of entries that are not acknowledged."""
        return self.cursor.backlog(self.topic.log.durable_end)

    def messages_of(self, runs: Iterable[tuple[int, int]]) -> int:
        """Return the number of messages that are not acknowledged in runs of offsets, each with its first
        offset and the offset after it."""
        log, runs = self.topic.log, list(runs)
        total = sum(log.messages(first, end) for first, end in runs)
        for offset, bits in self.cursor.partly.items():
            if runs and runs[0][0] <= offset < runs[-1][1]:
                total -= log.peek(offset).messages - bits.bit_count()
        return total

    def redeliver(self, consumer: Consumer, ids: list[tuple[int, int]], epoch: int | None) -> None:
        """Redeliver the entries of `ids`, or all that are not acknowledged (BROKER-31)."""
        offsets = None
        if ids:
            exact = self.topic.log.exact
            found = [exact(ledger_id, entry_id) for ledger_id, entry_id in ids]
            offsets = [offset for offset in found if offset is not None]
        assert self.dispatcher is not None
        self.dispatcher.redeliver(consumer, offsets, epoch)

    # --- end of topic ---------------------------------------------------------------------------------

    def check_end_of_topic(self) -> None:
        """Tell consumers that a terminated or migrated topic has no more messages, once all are acknowledged
        (BROKER-43)."""
        topic = self.topic
        if topic.migrated_to is not None:
            if self.moves_to is not None:
                self._migrate()
            elif self._is_drained and self.consumers:
                self.confirm(self.check_end_of_topic)
            return
        if topic.terminated_at is None or self.cursor.mark_delete + 1 < topic.terminated_at:
            return
        for consumer in [each for each in self._unaware_of_end if each.ready]:
            del self._unaware_of_end[consumer]
            connection = consumer.connection
            if connection.takes_end_of_topic:
                connection.send(
                    proto.BaseCommand.REACHED_END_OF_TOPIC,
                    proto.CommandReachedEndOfTopic(consumer_id=consumer.id),
                )

    @property
    def moves_to(self) -> "MigratedTo | None":
        """The cluster to which the topic migrated, once the subscription has nothing left to deliver here and
        that is durable.

        Before that, a crash could bring entries back after their consumers had moved.
        """
        topic = self.topic
        if topic.migrated_to is None or topic.lost or not self._is_drained:
            return None
        return topic.migrated_to if topic.journal.is_cursor_durable(self) else None

    @property
    def _is_drained(self) -> bool:
        return self.cursor.mark_delete + 1 >= self.topic.log.end

    def _migrate(self) -> None:
        """Send consumers to the other cluster. Consumers whose client does not know TOPIC_MIGRATED stay
        connected."""
        for consumer in list(self.consumers):
            if consumer.connection.takes_migration and not consumer.closed:
                consumer.connection.close_consumer(consumer)

    # --- seek and end ---------------------------------------------------------------------------------

    def seek(self, mark_delete: int, first_remaining: int | None) -> None:
        """Disconnect the consumers being served, and begin after `mark_delete`.

        Of a Failover subscription only the active consumer is disconnected (seen with a real broker). Of the
        first entry only the messages of the bits in `first_remaining` are delivered; None is all.
        """
        before = self.cursor.mark_delete
        self.fenced = True
        if isinstance(self.dispatcher, SingleActive):
            self.dispatcher.disconnect_active()
        else:
            self.disconnect_all()
        log = self.topic.log
        self.cursor.reset(mark_delete)
        offset = mark_delete + 1
        if first_remaining is not None and log.first <= offset < log.durable_end:
            self.cursor.acknowledge_partly(offset, first_remaining, log.peek(offset).messages)
        if self.dispatcher is not None:
            self.dispatcher.reset()
        self.fenced = False
        self.orphaned_at = self.context.now
        self._unaware_of_end = dict.fromkeys(self.consumers)
        if self.durable:
            self.topic.journal.cursor_moved(self)
        self.topic.mark_delete_moved(before, self.cursor.mark_delete)

    def unsubscribe(self, consumer: Consumer, force: bool) -> None:
        """Delete the subscription. Raises `MetadataError` if other consumers are attached, unless `force`
        (WIRE-14)."""
        if self.consumers != [consumer] and not force:
            raise MetadataError("Unconnected or shared consumer attempting to unsubscribe")
        consumer.connection.detach_consumer(consumer)
        self.delete()

    def delete(self) -> None:
        """Disconnect all consumers, and delete the cursor."""
        self.fenced = True
        self.disconnect_all()
        if self.dispatcher is not None:
            self.dispatcher.close()
        if self.throttle is not None:
            self.throttle.close()
        if self.topic.subscriptions.pop(self.name, None) is not None:
            _, _, messages, size = self.counters()
            messages_before, size_before = self.topic.out_of_deleted
            self.topic.out_of_deleted = messages_before + messages, size_before + size
        self.topic.journal.discard_cursor(self)
        if self.durable:
            self.topic.journal.records.append(CursorDeleted(self.topic.name, self.name))
        self.topic.cursor_deleted(self.cursor.mark_delete)

    def unload(self, moved_to: "OtherBroker | None" = None) -> None:
        """Disconnect all consumers, and discard state held only in memory: deliveries and redelivery
        counts."""
        self.fenced = True
        self.disconnect_all(moved_to)
        if self.throttle is not None:
            self.throttle.close()
            self.throttle = None
            self._limiters = NO_LIMITERS
        if self.dispatcher is not None:
            self.dispatcher.close()
            self.dispatcher = None
            self.kind = None
        self.fenced = False
        if not self.durable:
            self.delete()
