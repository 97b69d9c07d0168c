"""The acknowledgement timeout: entries that the application received and did not acknowledge in time are
requested again.

Time goes in ticks, counted from the consumer's creation. An entry delivered during one tick expires a fixed
number of ticks later: as many as the timeout needs, and one more, so never early. A backoff adds a delay by
redelivery count. The timeout tracks entries, not messages: a batch is redelivered as a whole, and is tracked
until all of it is acknowledged (UNACK-07, ACK-21).

`TrackedQueue` tells the timeout about deliveries. `redelivery` decides what is requested when an entry
expires, and how. A consumer without the timeout has none of these objects.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...model.config import ConsumerSpec, nanoseconds_of
from ...model.message import Entry, Message
from ...model.message_id import EntryPosition
from ..connecting.services import ClientContext
from ..delivery.permits import Permits
from ..delivery.received_entries import ReceivedBatch, ReceivedSingles
from ..delivery.receiver_queue import ReceiverQueue
from .redelivery_schedule import RedeliverySchedule


class AcknowledgementTimeout:
    """The timeout of one consumer. `Redelivery` sets `expired`."""

    __slots__ = (
        "_backoff",
        "_context",
        "_due",
        "_origin",
        "_slot",
        "_tick",
        "_ticks",
        "expired",
        "in_chunks",
        "waiting",
    )

    def __init__(self, context: ClientContext, spec: ConsumerSpec) -> None:
        """`spec.acknowledgement_timeout` is not 0."""
        self._context = context
        self._tick = tick = nanoseconds_of(spec.acknowledgement_timeout_tick)
        self._ticks = -(-nanoseconds_of(spec.acknowledgement_timeout) // tick) + 1
        """An entry expires this many ticks after its delivery (UNACK-02, UNACK-05)."""
        backoff = spec.acknowledgement_timeout_backoff
        self._backoff = (0,) if backoff is None else backoff.delays()
        self._origin = context.now
        self._due = RedeliverySchedule()
        self._slot = context.deadlines.slot(self._tick_over)
        self.expired: Callable[[Sequence[EntryPosition]], None]
        """Called with entries that have expired."""
        self.in_chunks: Callable[[EntryPosition], bool]
        """True when the chunks of the message that ends at that position are known."""
        self.waiting: Callable[[], bool]
        """True when the receiver queue has messages that are not delivered yet."""

    def __len__(self) -> int:
        return len(self._due)

    def expect(self) -> None:
        """Start the timer when messages arrive. Delivering them then sets no timer: the application takes
        them from an iterator."""
        when, expiry = self._slot.when, self._expiry(0)
        if when is None or when > expiry:  # the running timer may be later because of a backoff
            self._slot.set(expiry)

    def delivered(self, position: EntryPosition, redelivery_count: int) -> None:
        """Record that a message of that entry was delivered to the application; the last delivery counts
        (UNACK-03)."""
        self._due.move(position, self._expiry(redelivery_count))

    def message_delivered(self, entry: Entry) -> None:
        """Record the delivery of a message, unless its entry is acknowledged already through an earlier
        delivery. Such an entry is a complete batch, or a last chunk whose other chunks are unknown; no
        message could be made of it alone."""
        if entry.size:
            if entry.acknowledgement.complete:
                return
        elif entry.first_chunk is not None and not self.in_chunks(entry.position):
            return
        self.delivered(entry.position, entry.redelivery_count)

    def discard(self, position: EntryPosition) -> None:
        """Stop tracking an entry that was acknowledged or negatively acknowledged."""
        self._due.discard(position)

    def discard_through(self, last: EntryPosition) -> None:
        """Stop tracking this entry and all before it (ACK-08)."""
        self._due.discard_through(last)

    def clear(self) -> None:
        """Stop tracking everything: the broker redelivers it unasked."""
        self._due.clear()
        self._slot.clear()

    def _expiry(self, redelivery_count: int) -> int:
        backoff = self._backoff
        delay = backoff[min(redelivery_count, len(backoff) - 1)]
        tick = self._tick
        ticks = (self._context.now - self._origin) // tick + self._ticks - (-delay // tick)
        return self._origin + ticks * tick

    def _tick_over(self) -> None:
        due = self._due.take(self._context.now)
        when = self._due.next()
        if self.waiting():
            when = min(when or self._expiry(0), self._expiry(0))
        if when is not None:
            self._slot.set(when)
        if due:
            self.expired(due)


class TrackedQueue(ReceiverQueue):
    """The queue of a consumer with an acknowledgement timeout: it reports every delivery."""

    def __init__(self, permits: Permits, *, timeout: AcknowledgementTimeout, **others: Any) -> None:
        super().__init__(permits, **others)
        self._timeout = timeout
        timeout.waiting = self._has_some

    def _has_some(self) -> bool:
        return self.available > 0

    def add(self, message: Message) -> None:
        super().add(message)
        self._timeout.expect()

    def add_batch(self, batch: ReceivedBatch) -> None:
        super().add_batch(batch)
        self._timeout.expect()

    def add_singles(self, singles: ReceivedSingles) -> None:
        super().add_singles(singles)
        self._timeout.expect()

    def _begin(self) -> None:
        super()._begin()
        self._messages = map(self._deliver_message, self._messages)
        self._begin_run()

    def _deliver_message(self, message: Message) -> Message:
        self._timeout.message_delivered(message.entry)
        return message

    def _pass_over(self, size: int) -> None:
        item = self._items[0]
        super()._pass_over(size)
        delivered = self._timeout.delivered
        if isinstance(item, ReceivedBatch):
            self._timeout.message_delivered(item.entry)
        elif isinstance(item, ReceivedSingles):
            for position in item.positions:
                delivered(position, item.redelivery_count)
        else:
            for message in item:
                self._timeout.message_delivered(message.entry)
