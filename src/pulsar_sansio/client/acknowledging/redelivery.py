"""Requests for redelivery: negative acknowledgements, timeouts, redeliver-all, and the consumer epoch.

The broker redelivers entries, not messages: of a batch it redelivers all messages that it does not know to be
acknowledged (NACK-03). Shared and Key_Shared subscriptions request single entries; each waits until its other
messages are settled (`held_back`). On other subscriptions the broker can only go back to the first message
that is not acknowledged (rule REDEL-02). There the epoch marks deliveries that were under way before the
broker had gone back.

A lost connection makes the broker redeliver everything unasked. So only the epoch, which SUBSCRIBE tells the
broker, outlives an attachment.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from ...core.callbacks import ignore
from ...model.config import ConsumerSpec, nanoseconds_of
from ...model.errors import ConnectionLost
from ...model.message import Entry
from ...model.message_id import EntryPosition
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..delivery.ack_records import BatchAcknowledgement
from ..delivery.consumer_services import ConsumerServices
from ..delivery.receiver_queue import ReceiverQueue
from .ack_grouping import AckGrouping
from .ack_timeout import AcknowledgementTimeout
from .ack_tracker import AckTracker
from .held_back import HeldBack
from .redelivery_schedule import RedeliverySchedule

MAX_IDS_IN_REQUEST = 1_000
"""Ids in one REDELIVER_UNACKNOWLEDGED_MESSAGES (rule REDEL-05)."""

REDELIVERY_VERSION = 2
"""Protocol version from which a broker knows the command (REDEL-03)."""

MAX_TICK = 100_000_000
"""The maximum time that a negative acknowledgement waits for others in order to share a request, in
nanoseconds."""

MAX_EXPIRED = 10_000
"""Entries that have timed out and are remembered until they are acknowledged."""

_UINT64 = 2**64 - 1
_REDELIVER = proto.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES


class NegativeAcknowledgements(RedeliverySchedule):
    """Entries to request again, each when its delay is over (rules NACK-01, NACK-02). A batch is due when the
    delay of its last negatively acknowledged message is over.

    An entry is never early, and late by at most a tenth of the delay and `MAX_TICK`, so that many entries
    share one request.
    """

    __slots__ = ("_delays",)

    def __init__(self, spec: ConsumerSpec) -> None:
        super().__init__()
        backoff = spec.negative_acknowledgement_backoff
        delays = (
            (nanoseconds_of(spec.negative_acknowledgement_delay),) if backoff is None else backoff.delays()
        )
        self._delays = [(delay, max(1, min(delay // 10, MAX_TICK))) for delay in delays]
        """By redelivery count: the delay, and the tick that due times are multiples of."""

    def add_after_delay(
        self, position: EntryPosition, redelivery_count: int, now: int, least: int = 0
    ) -> None:
        """Add an entry; the earlier moment counts for an entry added twice. `least`: a minimum delay, in
        nanoseconds."""
        self.add(position, self._moment(redelivery_count, now, least))

    def add_message(self, position: EntryPosition, redelivery_count: int, now: int) -> None:
        """Add one more message of a batch: its delay is never shortened."""
        when = self._moment(redelivery_count, now, 0)
        if (self.when(position) or 0) < when:
            self.move(position, when)

    def _moment(self, redelivery_count: int, now: int, least: int) -> int:
        delays = self._delays
        delay, tick = delays[min(redelivery_count, len(delays) - 1)]
        return -(-(now + max(delay, least)) // tick) * tick

    @property
    def longest(self) -> int:
        """The longest delay, in nanoseconds."""
        return max(delay for delay, _ in self._delays)


class Redelivery:
    """Redelivery requests of one consumer."""

    __slots__ = (
        "_ack_grouping",
        "_active",
        "_connection",
        "_context",
        "_counters",
        "_expired",
        "_held",
        "_queue",
        "_single_entries",
        "_slot",
        "_timeout",
        "_subscribed_epoch",
        "_tracker",
        "_wanted",
        "_wire_id",
        "epoch",
        "negative",
        "on_acknowledged",
        "on_acknowledged_through",
        "on_all_requested",
        "on_negative",
        "on_timeout",
    )

    def __init__(
        self,
        services: ConsumerServices,
        queue: ReceiverQueue,
        ack_grouping: AckGrouping,
        tracker: AckTracker,
        timeout: AcknowledgementTimeout | None,
    ) -> None:
        """`timeout`: None without an acknowledgement timeout."""
        context, spec = services.context, services.spec
        self.epoch = 0
        """Deliveries of an older epoch are dropped; every redeliver-all increments the epoch."""
        self.negative = NegativeAcknowledgements(spec)
        self._context = context
        self._wire_id = services.wire_id
        self._single_entries = not spec.subscription_type.cumulative
        self._queue = queue
        self._ack_grouping = ack_grouping
        self._tracker = tracker
        self._counters = services.counters
        """The counters also count messages that are taken out of the queue because they were acknowledged
        meanwhile."""
        self._held = HeldBack(context, tracker, queue, self._held_long_enough)
        self._expired: dict[EntryPosition, None] = {}
        """Entries that have timed out: the application may hold their messages, and acknowledge them
        later."""
        self._timeout = timeout
        if timeout is not None:
            timeout.expired = self._timed_out
            timeout.in_chunks = tracker.in_chunks
        self._wanted = services.topic.persistent
        """False for a topic that cannot redeliver; then nothing is ever requested."""
        self.on_negative: Callable[[Sequence[EntryPosition]], None] = ignore
        self.on_timeout: Callable[[Sequence[EntryPosition]], None] = ignore
        """Both are called, each for its reason, with entries that are going to be requested again."""
        self.on_all_requested: Callable[[], None] | None = None
        """Called once the redelivery of everything was requested, before the queue is dropped."""
        self.on_acknowledged: Callable[[EntryPosition], None] | None = None
        self.on_acknowledged_through: Callable[[EntryPosition], None] | None = None
        """Called with acknowledged entries; dead-letter copies request entries too, and must know."""
        self._slot = context.deadlines.slot(self._negative_due)
        self._connection: Connection | None = None
        self._active = True
        self._subscribed_epoch = 0
        """The epoch in SUBSCRIBE, which the broker certainly knows."""

    def attach(self, connection: Connection) -> None:
        self._connection = connection
        self._forget()  # this includes entries delivered while detached
        self._subscribed_epoch = self.epoch
        self._active = True

    def detach(self) -> None:
        """Forget all requests: the broker redelivers unacknowledged entries unasked."""
        self._connection = None
        self._forget()

    @property
    def tracks(self) -> bool:
        """True when redelivery must know of every acknowledged entry."""
        return self._timeout is not None

    def drop(self) -> None:
        """Forget all requests: the subscription was moved."""
        self._forget()

    # --- asking ----------------------------------------------------------------------------------

    def negative_acknowledge(
        self, positions: Mapping[EntryPosition, int], batches: Mapping[BatchAcknowledgement, tuple[int, int]]
    ) -> None:
        """Request these entries and batches when their delay is over; do nothing while detached.

        `positions`: entries with their redelivery counts. `batches`: each with the messages to redeliver, as
        bits, and its redelivery count; acknowledged messages are left out.
        """
        if self._connection is None or not self._wanted:
            return
        now = self._context.now
        for position, redelivery_count in positions.items():
            self._refuse_entry(position, redelivery_count, now)
        for record, (bits, redelivery_count) in batches.items():
            self._refuse_messages(record, bits, redelivery_count, now)
        self._schedule()

    def _refuse_entry(self, position: EntryPosition, redelivery_count: int, now: int) -> None:
        if self._timeout is not None:  # a negatively acknowledged entry cannot time out
            self._timeout.discard(position)
        if not self._tracker.is_duplicate(position):
            for each in self._tracker.positions(position):
                self.negative.add_after_delay(each, redelivery_count, now)

    def _refuse_messages(
        self, record: BatchAcknowledgement, bits: int, redelivery_count: int, now: int
    ) -> None:
        position = record.position
        if self._tracker.open_batch(position) is not record:
            if record.open_bits & bits:
                self._refuse_entry(position, redelivery_count, now)
            return
        is_new = record.refuse(bits)
        if self._timeout is not None and not self._held.silent((position,)):
            self._timeout.discard(position)
        if not self._single_entries:
            if record.open_bits & bits:
                self.negative.add_after_delay(position, redelivery_count, now)
        elif is_new:
            self._held.discard(position)
            self.negative.add_message(position, redelivery_count, now)

    def settled(self, position: EntryPosition) -> None:
        """A message of that batch was acknowledged, and others are not."""
        if self._held.positions:
            self._held.settled(position)

    def not_copied(self, positions: Mapping[EntryPosition, int]) -> None:
        """Request these entries, given with the messages, as bits, that could not be copied. Call only while
        attached."""
        for position, bits in positions.items():
            record = self._tracker.open_batch(position)
            if record is not None:
                record.refuse(bits)
        of_all = (each for position in positions for each in self._tracker.positions(position))
        every = list(dict.fromkeys(of_all))
        self._ask_for(self._held.sort(every, self.negative.longest) if self._single_entries else every)

    def aborted(self, positions: Mapping[EntryPosition, int]) -> None:
        """Request these entries, given with the messages, as bits, whose transaction was aborted, unless the
        messages were acknowledged outside of it. Do nothing while detached: the broker redelivers them
        unasked.

        A message in chunks is requested as a whole: the chunks that were dropped while the transaction was
        open would come behind the others.
        """
        if self._connection is None or not self._wanted:
            return
        wanted: dict[EntryPosition, int] = {}
        for position, bits in positions.items():
            record = self._tracker.batch_of(position)
            if record is not None:
                record.aborted(bits)
                bits &= record.open_bits
            if bits and position not in self._tracker.entries:
                wanted[position] = bits
        self.not_copied(self._tracker.with_all_chunks(wanted))

    def aborted_in_order(self) -> None:
        """Request everything whose acknowledgement an aborted transaction has not carried out, in order.

        A Failover consumer that is not the active one drops its queue instead. Messages that precede those in
        the queue go to the active consumer.
        """
        if self._connection is not None and not self._active:
            self._queue.clear()
        self.redeliver_all()

    def take_back(self, entry: Entry, index: int) -> None:
        """Remove a message from the queue that the application has acknowledged through an earlier
        delivery."""
        if self._tracker.may_be_back(entry):
            self.take_back_id(entry.position, index)

    def take_back_id(self, position: EntryPosition, index: int) -> None:
        """Act as `take_back` for a message of an unknown delivery."""
        self._counters.duplicates += self._queue.withdraw(position, index)

    def take_back_through(self, entry: Entry, index: int) -> None:
        """Act as `take_back` for this message and all before it."""
        if self._tracker.may_be_back(entry):
            self.take_back_through_id(entry.position, index)

    def take_back_through_id(self, position: EntryPosition, index: int) -> None:
        """Act as `take_back_through` for a message of an unknown delivery."""
        queue = self._queue
        removed = queue.remove({each for each in queue.positions() if each < position})
        waiting = queue.waiting_of((position,)).get(position, 0)
        for each in range(max(index, 0) + 1):
            if waiting >> each & 1:
                removed += queue.withdraw(position, each if index >= 0 else -1)
        self._counters.duplicates += removed

    def acknowledged(self, position: EntryPosition) -> None:
        """Cancel the requests for an entry that is wholly acknowledged."""
        if self.negative:
            self.negative.discard(position)
        if self._held.positions:
            self._held.discard(position)
        if self._timeout is not None:
            self._timeout.discard(position)
            if position in self._expired:
                del self._expired[position]
                self._counters.duplicates += self._queue.remove((position,))
        if self.on_acknowledged is not None:
            self.on_acknowledged(position)

    def acknowledged_through(self, position: EntryPosition) -> None:
        """Cancel the requests for this entry and all before it."""
        if self.negative:
            self.negative.discard_through(position)
        if self._timeout is not None:
            self._timeout.discard_through(position)
        if self.on_acknowledged_through is not None:
            self.on_acknowledged_through(position)

    def not_delivered(self, position: EntryPosition, redelivery_count: int) -> None:
        """Record an entry that could not be delivered: it is requested again after the acknowledgement
        timeout, if there is one (CRYPTO-05). Negative acknowledgements of its earlier deliveries are over, as
        at every redelivery."""
        record = self._tracker.open_batch(position)
        if record is not None:
            record.delivered_again(None)
        if self._timeout is not None:
            self._timeout.delivered(position, redelivery_count)
            self._timeout.expect()

    def redeliver_all(self) -> None:
        """Request everything that is not acknowledged, including the queued messages (rule REDEL-01).

        A Failover consumer that is not the active one does nothing. The broker would ignore the request, and
        with an epoch unknown to the broker every later message would look outdated.
        """
        if not self._wanted:
            return
        connection = self._connection
        if connection is None:
            self._queue.clear()
            return
        if not self._active:
            return
        self._forget()
        self._ack_grouping.flush()
        if not self._single_entries:
            self.epoch += 1
        self._request_all(connection)
        # Permits follow the request, so that they only bring messages of the new epoch.
        if self.on_all_requested is not None:
            self.on_all_requested()
        self._queue.clear()

    def active_changed(self, active: bool) -> None:
        """Record that a Failover consumer became active or inactive.

        The broker ignores a request that arrives while the consumer is not active, and keeps sending the
        older epoch. Requesting again resolves both cases.
        """
        self._active = active
        if active and self._connection is not None and self.epoch > self._subscribed_epoch:
            self._request_all(self._connection)

    # --- inside ----------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop all requests: the broker redelivers everything unasked."""
        self.negative.clear()
        self._held.clear()
        self._expired.clear()
        self._slot.clear()
        if self._timeout is not None:
            self._timeout.clear()

    def _schedule(self) -> None:
        when = self.negative.next()
        if when is None:
            self._slot.clear()
        elif when <= self._context.now:
            self._negative_due()
        elif self._slot.when is None or when < self._slot.when:
            self._slot.set(when)

    def _negative_due(self) -> None:
        positions = self.negative.take(self._context.now)
        if positions and self._single_entries:
            positions = self._held.sort(positions, self.negative.longest)
        if positions:
            self.on_negative(positions)
            self._ask_for(positions)
        self._schedule()

    def _held_long_enough(self, positions: Sequence[EntryPosition]) -> None:
        self.on_negative(positions)
        self._ask_for(list(positions))

    def _timed_out(self, positions: Sequence[EntryPosition]) -> None:
        """Request expired entries (UNACK-04). Their messages that still wait in the queue are taken back.
        Entries without messages at the application are not requested."""
        positions = self._held.silent(positions)
        if not positions:
            return
        self.on_timeout(positions)
        every = [each for position in positions for each in self._tracker.positions(position)]
        if self._single_entries:
            self._expired.update(dict.fromkeys(every))
            while len(self._expired) > MAX_EXPIRED:
                del self._expired[next(iter(self._expired))]
        self._ask_for(every)

    def _ask_for(self, positions: list[EntryPosition]) -> None:
        connection = self._connection
        assert connection is not None
        if positions:
            if self._single_entries:
                self._request(connection, positions)
            else:
                self.redeliver_all()

    def _request(self, connection: Connection, positions: list[EntryPosition]) -> None:
        for position in positions:  # one request for an entry replaces all others that wait
            self._tracker.asked_for(position)
            self.negative.discard(position)
            self._held.discard(position)
            if self._timeout is not None:
                self._timeout.discard(position)
        # Acknowledged messages of a batch must reach the broker before the rest is requested.
        self._ack_grouping.flush()
        if self._leave_if_too_old(connection):
            return
        remaining = iter(positions)
        while part := list(islice(remaining, MAX_IDS_IN_REQUEST)):
            command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=self._wire_id)
            for ledger_id, entry_id in part:
                command.message_ids.add(ledgerId=ledger_id & _UINT64, entryId=entry_id & _UINT64)
            connection.write(encode_command(_REDELIVER, command))
        self._queue.remove(set(positions))

    def _request_all(self, connection: Connection) -> None:
        if self._leave_if_too_old(connection):
            return
        command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=self._wire_id)
        if not self._single_entries:
            command.consumer_epoch = self.epoch
        connection.write(encode_command(_REDELIVER, command))

    def _leave_if_too_old(self, connection: Connection) -> bool:
        """Close the connection to a broker that does not know the command; it redelivers over a new
        connection (REDEL-03). Return True if so."""
        version = connection.protocol_version
        if version < REDELIVERY_VERSION:
            connection.close(ConnectionLost(f"a broker of protocol {version} delivers again only so"))
        return version < REDELIVERY_VERSION
