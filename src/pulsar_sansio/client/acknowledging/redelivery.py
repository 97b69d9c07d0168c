"""Asking for messages again: negative acknowledgements, timeouts, redeliver-all, and the consumer epoch.

The broker redelivers entries, not messages: of a batch all messages come again that it does not know to be
acknowledged (NACK-03). Shared and Key_Shared subscriptions ask for single entries, of which each waits until
its other messages are settled (`held_back`). On the others there is only one way back, and it leads to the
first message that is not acknowledged (rule REDEL-02). There the epoch tells which deliveries were on their
way before the broker had gone back.

A connection that is lost brings everything back by itself, so nothing of this outlives an attachment but the
epoch, which SUBSCRIBE tells the broker.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from ...model.config import ConsumerSpec, nanoseconds_of
from ...model.errors import ConnectionLost
from ...model.message import Entry
from ...model.message_id import EntryPosition
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..connecting.services import ClientContext
from ..counters import ArrivalCounters
from ..delivery.ack_records import BatchAcknowledgement
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
"""Nanoseconds by which a negative acknowledgement may wait for others to be sent together with it."""

MAX_EXPIRED = 10_000
"""Entries that have timed out and are remembered until they are acknowledged."""

_UINT64 = 2**64 - 1
_REDELIVER = proto.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES


def _nobody(_places: Sequence[EntryPosition]) -> None:
    """Nobody wants to hear of it."""


class NegativeAcknowledgements(RedeliverySchedule):
    """Entries to ask for again, each when its delay is over (rules NACK-01, NACK-02): a batch when the delay
    of the last of its messages is.

    Never early; late by at most a tenth of the delay and `MAX_TICK`, so that many make one request.
    """

    __slots__ = ("_delays",)

    def __init__(self, spec: ConsumerSpec) -> None:
        super().__init__()
        backoff = spec.negative_acknowledgement_backoff
        delays = (
            (nanoseconds_of(spec.negative_acknowledgement_delay),) if backoff is None else backoff.delays()
        )
        self._delays = [(delay, max(1, min(delay // 10, MAX_TICK))) for delay in delays]
        """By redelivery count: the delay, and what moments are multiples of."""

    def add_after_delay(self, place: EntryPosition, redelivery_count: int, now: int, least: int = 0) -> None:
        """The earlier moment counts for an entry named twice. `least`: nanoseconds, where the delay is
        shorter."""
        self.add(place, self._moment(redelivery_count, now, least))

    def add_message(self, place: EntryPosition, redelivery_count: int, now: int) -> None:
        """One more message of that batch: its delay is never cut short."""
        when = self._moment(redelivery_count, now, 0)
        if (self.when(place) or 0) < when:
            self.move(place, when)

    def _moment(self, redelivery_count: int, now: int, least: int) -> int:
        delays = self._delays
        delay, tick = delays[min(redelivery_count, len(delays) - 1)]
        return -(-(now + max(delay, least)) // tick) * tick

    @property
    def longest(self) -> int:
        """The longest delay there is, in nanoseconds."""
        return max(delay for delay, _ in self._delays)


class Redelivery:
    """Redelivery requests of one consumer."""

    __slots__ = (
        "_acknowledger",
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
        "_told_epoch",
        "_tracker",
        "_wanted",
        "_wire_id",
        "epoch",
        "negative",
        "on_acknowledged",
        "on_acknowledged_through",
        "on_negative",
        "on_timeout",
    )

    def __init__(
        self,
        context: ClientContext,
        wire_id: int,
        spec: ConsumerSpec,
        queue: ReceiverQueue,
        acknowledger: AckGrouping,
        tracker: AckTracker,
        timeout: AcknowledgementTimeout | None,
        counters: ArrivalCounters,
        *,
        wanted: bool,
    ) -> None:
        """`timeout`: None where messages may stay unacknowledged for ever. `counters`: of what is taken out
        of the queue because it was acknowledged meanwhile. `wanted`: whether the topic can deliver anything
        again; if not, nothing is ever asked for."""
        self.epoch = 0
        """Deliveries of an older one are dropped; it goes up with every redeliver-all."""
        self.negative = NegativeAcknowledgements(spec)
        self._context = context
        self._wire_id = wire_id
        self._single_entries = not spec.subscription_type.cumulative
        self._queue = queue
        self._acknowledger = acknowledger
        self._tracker = tracker
        self._counters = counters
        self._held = HeldBack(context, tracker, queue, self._held_long_enough)
        self._expired: dict[EntryPosition, None] = {}
        """Entries that have timed out: the application may have them, and acknowledge them later."""
        self._timeout = timeout
        if timeout is not None:
            timeout.expired = self._timed_out
            timeout.in_chunks = tracker.in_chunks
        self._wanted = wanted
        self.on_negative: Callable[[Sequence[EntryPosition]], None] = _nobody
        self.on_timeout: Callable[[Sequence[EntryPosition]], None] = _nobody
        """Who is told, for either reason, what is going to be asked for again."""
        self.on_acknowledged: Callable[[EntryPosition], None] | None = None
        self.on_acknowledged_through: Callable[[EntryPosition], None] | None = None
        """Who else asks for entries, and has to know."""
        self._slot = context.deadlines.slot(self._negative_due)
        self._connection: Connection | None = None
        self._active = True
        self._told_epoch = 0
        """The epoch in SUBSCRIBE, which the broker knows for certain."""

    def attach(self, connection: Connection) -> None:
        self._connection = connection
        self._forget()  # also what was handed out meanwhile
        self._told_epoch = self.epoch
        self._active = True

    def detach(self) -> None:
        """Everything not acknowledged comes again without being asked for."""
        self._connection = None
        self._forget()

    @property
    def tracks(self) -> bool:
        """Whether it has to be told of every entry that is acknowledged."""
        return self._timeout is not None

    def drop(self) -> None:
        """The subscription was moved: it is not known any more what there is to ask for."""
        self._forget()

    # --- asking ----------------------------------------------------------------------------------

    def negative_acknowledge(
        self, places: Mapping[EntryPosition, int], batches: Mapping[BatchAcknowledgement, tuple[int, int]]
    ) -> None:
        """Ask for these entries and batches when the delay is over; while detached there is no need to.

        `places`: with their redelivery counts. `batches`: each with the messages in question, as bits, and
        its redelivery count; messages that are acknowledged need not be asked for.
        """
        if self._connection is None or not self._wanted:
            return
        now = self._context.now
        for place, redelivery_count in places.items():
            self._refuse_entry(place, redelivery_count, now)
        for record, (bits, redelivery_count) in batches.items():
            self._refuse_messages(record, bits, redelivery_count, now)
        self._schedule()

    def _refuse_entry(self, place: EntryPosition, redelivery_count: int, now: int) -> None:
        if self._timeout is not None:  # it is settled
            self._timeout.discard(place)
        if not self._tracker.is_duplicate(place):
            for each in self._tracker.places(place):
                self.negative.add_after_delay(each, redelivery_count, now)

    def _refuse_messages(
        self, record: BatchAcknowledgement, bits: int, redelivery_count: int, now: int
    ) -> None:
        place = record.place
        if self._tracker.open_batch(place) is not record:
            if record.open_bits & bits:
                self._refuse_entry(place, redelivery_count, now)
            return
        is_new = record.refuse(bits)
        if self._timeout is not None and not self._held.silent((place,)):
            self._timeout.discard(place)
        if not self._single_entries:
            if record.open_bits & bits:
                self.negative.add_after_delay(place, redelivery_count, now)
        elif is_new:
            self._held.discard(place)
            self.negative.add_message(place, redelivery_count, now)

    def settled(self, place: EntryPosition) -> None:
        """A message of that batch is acknowledged, and others are not."""
        if self._held.places:
            self._held.settled(place)

    def not_copied(self, places: Mapping[EntryPosition, int]) -> None:
        """Ask for these entries: the messages in question, as bits, were to be copied and could not be. Only
        while attached."""
        for place, bits in places.items():
            record = self._tracker.open_batch(place)
            if record is not None:
                record.refuse(bits)
        every = [each for place in places for each in self._tracker.places(place)]
        self._ask_for(self._held.sort(every, self.negative.longest) if self._single_entries else every)

    def take_back(self, entry: Entry, index: int) -> None:
        """The application has acknowledged a message of an earlier delivery: it need not be delivered again
        if it waits in the queue."""
        if self._tracker.may_be_back(entry):
            self.take_back_id(entry.place, index)

    def take_back_id(self, place: EntryPosition, index: int) -> None:
        """As `take_back`, where it is not known of which delivery the message is."""
        self._counters.duplicates += self._queue.withdraw(place, index)

    def take_back_through(self, entry: Entry, index: int) -> None:
        """As `take_back`, for this message and all before it."""
        if not self._tracker.may_be_back(entry):
            return
        place, queue = entry.place, self._queue
        removed = queue.remove({each for each in queue.places() if each < place})
        waiting = queue.waiting_of((place,)).get(place, 0)
        for each in range(max(index, 0) + 1):
            if waiting >> each & 1:
                removed += queue.withdraw(place, each if index >= 0 else -1)
        self._counters.duplicates += removed

    def acknowledged(self, place: EntryPosition) -> None:
        """The entry is wholly acknowledged; asking for it would be wrong."""
        if self.negative:
            self.negative.discard(place)
        if self._held.places:
            self._held.discard(place)
        if self._timeout is not None:
            self._timeout.discard(place)
            if place in self._expired:
                del self._expired[place]
                self._counters.duplicates += self._queue.remove((place,))
        if self.on_acknowledged is not None:
            self.on_acknowledged(place)

    def acknowledged_through(self, place: EntryPosition) -> None:
        """So are this entry and all before it."""
        if self.negative:
            self.negative.discard_through(place)
        if self._timeout is not None:
            self._timeout.discard_through(place)
        if self.on_acknowledged_through is not None:
            self.on_acknowledged_through(place)

    def redeliver_all(self) -> None:
        """Everything not acknowledged again, the queue included (rule REDEL-01).

        A Failover consumer that is not the active one does nothing: the broker would ignore it, and an epoch
        that the broker does not take over would make every later message look outdated.
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
        self._acknowledger.flush()
        if not self._single_entries:
            self.epoch += 1
        self._request_all(connection)
        # After the request, so that what these permits bring is of the new epoch already.
        self._queue.clear()

    def active_changed(self, active: bool) -> None:
        """A Failover consumer's turn came or went.

        Its last request may have reached the broker at a moment when it was not active, and have been
        ignored; then the broker still sends the older epoch. Asking again settles it either way.
        """
        self._active = active
        if active and self._connection is not None and self.epoch > self._told_epoch:
            self._request_all(self._connection)

    # --- inside ----------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Everything comes again: nothing has to be asked for."""
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
        places = self.negative.take(self._context.now)
        if places and self._single_entries:
            places = self._held.sort(places, self.negative.longest)
        if places:
            self.on_negative(places)
            self._ask_for(places)
        self._schedule()

    def _held_long_enough(self, places: Sequence[EntryPosition]) -> None:
        self.on_negative(places)
        self._ask_for(list(places))

    def _timed_out(self, places: Sequence[EntryPosition]) -> None:
        """Rule UNACK-04. No message of them has left the queue for the time of the timeout; those that wait
        there are taken back. Entries of which the application has nothing are not asked for."""
        places = self._held.silent(places)
        if not places:
            return
        self.on_timeout(places)
        every = [each for place in places for each in self._tracker.places(place)]
        if self._single_entries:
            self._expired.update(dict.fromkeys(every))
            while len(self._expired) > MAX_EXPIRED:
                del self._expired[next(iter(self._expired))]
        self._ask_for(every)

    def _ask_for(self, places: list[EntryPosition]) -> None:
        connection = self._connection
        assert connection is not None
        if places:
            if self._single_entries:
                self._request(connection, places)
            else:
                self.redeliver_all()

    def _request(self, connection: Connection, places: list[EntryPosition]) -> None:
        for place in places:  # whatever else waits to ask for it need not
            self._tracker.asked_for(place)
            self.negative.discard(place)
            self._held.discard(place)
            if self._timeout is not None:
                self._timeout.discard(place)
        # What is acknowledged of a batch must be known before the rest is asked for.
        self._acknowledger.flush()
        if self._leave_if_too_old(connection):
            return
        remaining = iter(places)
        while part := list(islice(remaining, MAX_IDS_IN_REQUEST)):
            command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=self._wire_id)
            for ledger_id, entry_id in part:
                command.message_ids.add(ledgerId=ledger_id & _UINT64, entryId=entry_id & _UINT64)
            connection.write(encode_command(_REDELIVER, command))
        self._queue.remove(set(places))

    def _request_all(self, connection: Connection) -> None:
        if self._leave_if_too_old(connection):
            return
        command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=self._wire_id)
        if not self._single_entries:
            command.consumer_epoch = self.epoch
        connection.write(encode_command(_REDELIVER, command))

    def _leave_if_too_old(self, connection: Connection) -> bool:
        """A broker that does not know the command delivers again over a new connection (REDEL-03)."""
        version = connection.protocol_version
        if version < REDELIVERY_VERSION:
            connection.close(ConnectionLost(f"a broker of protocol {version} delivers again only so"))
        return version < REDELIVERY_VERSION
