"""The acknowledgement timeout: what was handed out and not judged in time is asked for again (rules UNACK-01
to UNACK-09).

Time goes in ticks, counted from the consumer's beginning. An entry handed out during one tick expires a fixed
number of ticks later, as many as the timeout needs and one more, so never early; with a backoff, later by
what its redelivery count says. Entries are tracked, not messages, so a batch comes again as a whole, and only
when nothing of it is left is it forgotten (UNACK-07, ACK-21).

It knows when messages are handed out (`TrackedQueue` tells it) and when time is up; what is asked for then,
and how, is `redelivery`'s. A consumer without the timeout has nothing of this.
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
    """One consumer's. Whoever asks for entries again sets `expired`."""

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
        """An entry expires at the so-many-th tick after it was handed out (UNACK-02, UNACK-05)."""
        backoff = spec.acknowledgement_timeout_backoff
        self._backoff = (0,) if backoff is None else backoff.delays()
        self._origin = context.now
        self._due = RedeliverySchedule()
        self._slot = context.deadlines.slot(self._tick_over)
        self.expired: Callable[[Sequence[EntryPosition]], None]
        """What to do with entries whose time is up."""
        self.in_chunks: Callable[[EntryPosition], bool]
        """Whether the chunks of a message are known that ends there."""
        self.waiting: Callable[[], bool]
        """Whether messages wait that were not handed out yet."""

    def __len__(self) -> int:
        return len(self._due)

    def expect(self) -> None:
        """Messages have arrived. From now on a timer runs, so that nothing need be set when they are handed
        out: that is only taking them from an iterator."""
        when, expiry = self._slot.when, self._expiry(0)
        if when is None or when > expiry:  # with a backoff, what runs may be a longer time
            self._slot.set(expiry)

    def handed_out(self, place: EntryPosition, redelivery_count: int) -> None:
        """A message of that entry is the application's from now on; the last one counts (UNACK-03)."""
        self._due.move(place, self._expiry(redelivery_count))

    def message_handed_out(self, entry: Entry) -> None:
        """Likewise, but for what is acknowledged already, of an earlier delivery: a batch of which ids have
        left nothing, and chunks that are not known; of the last one alone nobody could make anything."""
        if entry.size:
            if entry.acknowledgement.complete:
                return
        elif entry.first_chunk is not None and not self.in_chunks(entry.place):
            return
        self.handed_out(entry.place, entry.redelivery_count)

    def discard(self, place: EntryPosition) -> None:
        """The entry is judged."""
        self._due.discard(place)

    def discard_through(self, last: EntryPosition) -> None:
        """So are this entry and all before it (ACK-08)."""
        self._due.discard_through(last)

    def clear(self) -> None:
        """Everything comes again by itself."""
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
    """The queue of a consumer that has an acknowledgement timeout: it says what it hands out."""

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
        self._messages = map(self._hand_out, self._messages)
        self._begin_run()

    def _hand_out(self, message: Message) -> Message:
        self._timeout.message_handed_out(message.entry)
        return message

    def _pass_over(self, size: int) -> None:
        item = self._items[0]
        super()._pass_over(size)
        handed_out = self._timeout.handed_out
        if isinstance(item, ReceivedBatch):
            self._timeout.message_handed_out(item.entry)
        elif isinstance(item, ReceivedSingles):
            for place in item.places:
                handed_out(place, item.redelivery_count)
        else:
            for message in item:
                self._timeout.message_handed_out(message.entry)
