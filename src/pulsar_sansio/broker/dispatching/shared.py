"""The dispatcher of Shared: each entry goes to one of many consumers (rules SUBT-06, SUBT-07).

Beside the read position it owns the entries pending at each consumer, the entries to redeliver, the
redelivery counts, and the limits on unacknowledged messages (rules SUBT-13, BROKER-27). Delayed entries wait
in `delays`. The chunks of one message go to one consumer, in order. Keys are ignored here: see `key_shared`.
"""

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from .consumer import Consumer
from .delayed_delivery import Delays
from .turns import Turns

if TYPE_CHECKING:
    from ..storage.ledger import Ledger
    from ..topics.subscription import Subscription


class Shared:
    """Round robin over consumers with permits, by priority level; entries to redeliver come first.

    A turn is up to `entries_per_turn` entries, fewer where that would leave nothing for the others.
    """

    def __init__(self, subscription: "Subscription") -> None:
        self.subscription = subscription
        self.consumers: list[Consumer] = []
        self._turns = Turns()
        self.read = subscription.cursor.mark_delete + 1
        self._replay: list[int] = []
        """Heap of offsets to deliver or redeliver; an acknowledged entry is skipped when it is popped."""
        self._replaying: set[int] = set()
        self.redeliveries: dict[int, int] = {}
        """Offset -> how often a redelivery was requested."""
        self.outstanding = 0
        """The number of messages delivered and not acknowledged, over all consumers."""
        self.blocked = False
        """`outstanding` has reached the subscription's limit."""
        self.throttled = False
        """The dispatch rate allows no further message now."""
        self.delays = Delays(subscription.topic, self._delayed_due)
        self._chunk_holders: dict[str, tuple[Consumer, int]] = {}
        """Uuid of a chunked message -> the consumer that has unacknowledged chunks of the message, and their
        number."""
        self._chunks_held: dict[Consumer, dict[str, list[int]]] = {}
        """Consumer that is not available -> uuid -> offsets of the chunks that wait for it, in order."""

    # --- consumers ------------------------------------------------------------------------------------

    def check(self, newcomer: Consumer) -> None:
        """Accept any number of consumers."""

    def add(self, consumer: Consumer) -> None:
        self.consumers.append(consumer)
        self._turns.add(consumer)

    def on_subscribed(self, consumer: Consumer) -> None:
        """Do nothing: a Shared consumer gets no notice."""

    def remove(self, consumer: Consumer) -> None:
        """Redeliver the consumer's unacknowledged entries to others; their redelivery count stays (seen:
        java-shared-two)."""
        self.consumers.remove(consumer)
        self._turns.remove(consumer)
        self._reclaim(consumer, list(consumer.pending))
        self._check_subscription_limit()
        self.dispatch()

    def wake(self, consumer: Consumer) -> None:
        self._turns.wake(consumer)

    # --- dispatch -------------------------------------------------------------------------------------

    def dispatch(self) -> None:
        subscription = self.subscription
        if subscription.fenced or self._is_throttled():
            return
        log = subscription.topic.log
        end, delayed_or_chunked = subscription.topic.transactions.read_end, log.delayed_or_chunked
        if self._chunks_held:
            self._release_chunks()
        if not self._replay and self.read >= end:
            subscription.check_end_of_topic()
            return
        ledger = log.ledger_at(self.read)
        waiting = len(self._replay) + end - self.read
        fair_share = waiting // len(self.consumers) if self.consumers else 1
        per_turn = max(1, min(subscription.topic.services.config.entries_per_turn, fair_share))
        while not self.stopped:
            offset = self._next_offset(end)
            if offset is None:
                return
            consumer = None if self.stopped else self._turns.next()
            if consumer is None:
                self._requeue(offset)
                return
            for turn in range(per_turn):
                if turn:
                    if self.stopped or not consumer.available:
                        break
                    if (offset := self._next_offset(end)) is None:
                        return
                    if delayed_or_chunked and (self.stopped or not consumer.available):
                        self._requeue(offset)  # Chunks took the permits meanwhile.
                        break
                if offset >= ledger.end or offset < ledger.first:
                    ledger = log.ledger_at(offset)
                self._deliver(consumer, ledger, offset)
                if delayed_or_chunked and offset in delayed_or_chunked:
                    self._bind_chunk(consumer, offset)

    def _is_throttled(self) -> bool:
        """Ask whether the dispatch rate allows a message now; if not, dispatch follows when it does."""
        throttle = self.subscription.throttle
        self.throttled = throttle is not None and not throttle.admits()
        return self.throttled

    @property
    def stopped(self) -> bool:
        """True when no consumer may get another message now."""
        return self.blocked or self.throttled

    def _next_offset(self, end: int) -> int | None:
        """Take the next entry to deliver out of the replay heap, or from the read position."""
        log = self.subscription.topic.log
        cursor, first, delayed_or_chunked = self.subscription.cursor, log.first, log.delayed_or_chunked
        hidden, taken = self.subscription.topic.transactions.hidden, self.subscription.pending_acks.taken
        while self._replay:
            offset = heappop(self._replay)
            self._replaying.discard(offset)
            if cursor.acknowledged(offset):  # True also for entries of removed ledgers.
                continue
            if taken and self._is_taken(offset):
                continue
            if not (delayed_or_chunked and offset in delayed_or_chunked and self._is_held_apart(offset)):
                return offset
        while True:
            offset = self.read
            if cursor.ranges.count or offset <= cursor.mark_delete:
                offset = cursor.next_unacknowledged(offset)
            offset = max(offset, first)
            if offset >= end:
                self.read = offset
                return None
            self.read = offset + 1
            if hidden and offset in hidden:
                self.subscription.skip_hidden(offset)
                continue
            if taken and self._is_taken(offset):
                continue
            if not (delayed_or_chunked and offset in delayed_or_chunked and self._is_held_apart(offset)):
                return offset

    def _is_taken(self, offset: int) -> bool:
        """True when open transactions have acknowledged all messages of the entry."""
        subscription = self.subscription
        return subscription.deliverable(offset, subscription.topic.log.entry(offset).messages) == 0

    def _is_held_apart(self, offset: int) -> bool:
        """True when a delayed or chunked entry needs no further care.

        Either the entry is not due, or it waits for the consumer that has the other chunks of its message, or
        it was delivered to that consumer.
        """
        log = self.subscription.topic.log
        entry = log.delayed_or_chunked[offset]
        if entry.deliver_at >= 0 and self.delays.postpone(offset, entry.deliver_at):
            return True
        if entry.chunk_of is None:
            return False
        holder = self._chunk_holders.get(entry.chunk_of)
        if holder is None:
            return False
        consumer = holder[0]
        held = self._chunks_held.get(consumer, {})
        if entry.chunk_of in held or self.stopped or not consumer.available:
            held.setdefault(entry.chunk_of, []).append(offset)
            self._chunks_held[consumer] = held
        else:
            self._deliver(consumer, log.ledger_at(offset), offset)
            self._bind_chunk(consumer, offset)
        return True

    def _bind_chunk(self, consumer: Consumer, offset: int) -> None:
        """If the entry is a chunk, send the other chunks of its message to this consumer, too."""
        message = self.subscription.topic.log.delayed_or_chunked[offset].chunk_of
        if message is not None:
            holder = self._chunk_holders.get(message)
            self._chunk_holders[message] = consumer, 1 if holder is None else holder[1] + 1

    def _release_chunks(self) -> None:
        """Replay chunks that were held back for consumers that are available now."""
        for consumer in [each for each in self._chunks_held if each.available]:
            for offsets in self._chunks_held.pop(consumer).values():
                for offset in offsets:
                    self._replay_later(offset)

    def _delayed_due(self) -> None:
        for offset in self.delays.take_due():
            self._replay_later(offset)
        self.dispatch()

    def _requeue(self, offset: int) -> None:
        """Put back an offset for which no consumer is available."""
        if offset == self.read - 1 and offset not in self._replaying:
            self.read = offset
        else:
            self._replaying.add(offset)
            heappush(self._replay, offset)

    def _deliver(self, consumer: Consumer, ledger: "Ledger", offset: int) -> None:
        entry = ledger.entry(offset)
        messages = entry.messages
        subscription = self.subscription
        ack_set = None
        if (subscription.cursor.partly or subscription.pending_acks.taken) and (
            bits := subscription.deliverable(offset, messages)
        ) is not None:
            ack_set = bits
            messages = bits.bit_count()
        consumer.pending[offset] = messages
        count = self.redeliveries.get(offset, 0) if self.redeliveries else 0
        consumer.deliver(entry, messages, count, ack_set)
        if (throttle := subscription.throttle) is not None:
            self.throttled = throttle.exhausted
        self.outstanding += messages
        limit = subscription.max_unacked_per_consumer
        if limit and consumer.unacked >= limit:
            consumer.blocked = True
        limit = subscription.max_unacked
        if limit and self.outstanding >= limit:
            self.blocked = True

    # --- acknowledgements -----------------------------------------------------------------------------

    def acknowledged(self, consumer: Consumer | None, offset: int, messages: int, whole: bool) -> None:
        """Any consumer may acknowledge an entry that is pending at another one."""
        if whole and self.redeliveries:
            self.redeliveries.pop(offset, None)
        self.acknowledged_in_transaction(consumer, offset, messages, whole)

    def acknowledged_in_transaction(
        self, consumer: Consumer | None, offset: int, messages: int, whole: bool
    ) -> None:
        """Settle the entry with its consumer, and keep its redelivery count."""
        holder = consumer
        if holder is None or offset not in holder.pending:
            holder = next((each for each in self.consumers if offset in each.pending), None)
        if holder is None:
            self.delays.discard(offset)
            return
        left = holder.pending[offset]
        if whole:
            del holder.pending[offset]
            self._count_acknowledged(holder, left)
            self._released(holder, offset)
        else:
            holder.pending[offset] = left - messages
            self._count_acknowledged(holder, messages)

    def returned(self, offsets: list[int]) -> None:
        """Deliver these entries again; one that a consumer still holds in part is delivered once more."""
        for offset in offsets:
            if self.subscription.cursor.acknowledged(offset) or offset >= self.read:
                continue
            self.redeliveries[offset] = self.redeliveries.get(offset, 0) + 1
            holder = next((each for each in self.consumers if offset in each.pending), None)
            if holder is None:
                self._replay_later(offset)
            else:
                self._reclaim(holder, [offset])
        self._check_subscription_limit()
        self._unblocked = False
        self.dispatch()

    def acknowledged_up_to(self, offset: int) -> None:
        """Acknowledge on behalf of consumers, for expiry and skipping; cumulative acknowledgements are
        refused here."""
        for consumer in self.consumers:
            for each in [each for each in consumer.pending if each <= offset]:
                self.acknowledged(consumer, each, 0, True)
        self.delays.discard_up_to(offset)
        for each in [each for each in self.redeliveries if each <= offset]:  # entries pending at no consumer
            del self.redeliveries[each]

    def _count_acknowledged(self, holder: Consumer, messages: int) -> None:
        holder.unacked -= messages
        self.outstanding -= messages
        if holder.blocked:
            limit = self.subscription.max_unacked_per_consumer
            if not limit or holder.unacked <= limit // 2:
                holder.blocked = False
                holder.permits += holder.saved_permits
                holder.saved_permits = 0
                self.wake(holder)
                self._unblocked = True

    _unblocked = False
    """A limit no longer blocks deliveries: dispatch at the end of the command."""

    def _released(self, holder: Consumer, offset: int) -> None:
        """The entry is no longer pending at the consumer."""
        entry = self.subscription.topic.log.delayed_or_chunked.get(offset)
        if entry is None or entry.chunk_of is None:
            return
        consumer, count = self._chunk_holders[entry.chunk_of]
        if count > 1:
            self._chunk_holders[entry.chunk_of] = consumer, count - 1
            return
        del self._chunk_holders[entry.chunk_of]
        held = self._chunks_held.get(consumer)
        if held is not None and entry.chunk_of in held:
            for each in held.pop(entry.chunk_of):
                self._replay_later(each)
            if not held:
                del self._chunks_held[consumer]
            self._unblocked = True

    def _check_subscription_limit(self) -> None:
        if self.blocked:
            limit = self.subscription.max_unacked
            if not limit or self.outstanding <= limit // 2:
                self.blocked = False
                self._unblocked = True

    def acknowledgements_done(self) -> None:
        self._check_subscription_limit()
        if self._unblocked:
            self._unblocked = False
            self.dispatch()

    # --- redelivery -----------------------------------------------------------------------------------

    def redeliver(self, consumer: Consumer, offsets: list[int] | None, epoch: int | None) -> None:
        """Redeliver these entries of the consumer, or all; the epoch is ignored, and permits are not
        returned."""
        if offsets is None:
            offsets = list(consumer.pending)
        else:
            offsets = [each for each in dict.fromkeys(offsets) if each in consumer.pending]
        for offset in offsets:
            self.redeliveries[offset] = self.redeliveries.get(offset, 0) + 1
        self._reclaim(consumer, offsets)
        self._check_subscription_limit()
        self._unblocked = False
        self.dispatch()

    def _reclaim(self, consumer: Consumer, offsets: list[int]) -> None:
        for offset in offsets:
            messages = consumer.pending.pop(offset)
            self._count_acknowledged(consumer, messages)
            self._replay_later(offset)
            self._released(consumer, offset)

    def _replay_later(self, offset: int) -> None:
        if offset not in self._replaying:
            self._replaying.add(offset)
            heappush(self._replay, offset)

    # --- state ----------------------------------------------------------------------------------------

    def reset(self) -> None:
        self.read = self.subscription.cursor.mark_delete + 1
        self._replay.clear()
        self._replaying.clear()
        self.redeliveries.clear()
        self.delays.clear()
        self._chunks_held.clear()

    def unacked(self, consumer: Consumer) -> int:
        return consumer.unacked

    @property
    def replaying(self) -> int:
        """The number of entries to deliver or redeliver from the replay heap."""
        return len(self._replaying)

    def close(self) -> None:
        self.delays.clear()
