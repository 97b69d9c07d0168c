"""Entries that are to be asked for again as soon as their other messages are settled (NACK-03).

A broker delivers a batch again as a whole. Messages of it that wait in the receiver queue would be delivered
twice, and those the application has not yet acknowledged, too. So a batch of which some messages were
negatively acknowledged waits, when their delay is over, until the others are settled: acknowledged or
negatively acknowledged as well.

An application may never settle a message. A batch waits for its `patience` after the last of its messages has
left the queue or was settled, and is asked for then in any case; what is left in the queue is taken back.
Patience is counted in looks, each a patience after the one before, and ends with the first look that finds
nothing changed: so it is a patience at least, and two at most.

This knows what waits, and neither why nor how the broker is asked.
"""

from collections.abc import Callable, Sequence

from ...model.message_id import EntryPosition
from ..connecting.services import ClientContext
from ..delivery.receiver_queue import ReceiverQueue
from .ack_tracker import AckTracker
from .redelivery_schedule import RedeliverySchedule

DELAYS_OF_PATIENCE = 10
LEAST_PATIENCE = 60_000_000_000
"""A batch is patient for so many times its delay, and for so many nanoseconds at least: a handler of one of
its messages may take a while, however short the delay is."""


class HeldBack:
    """One consumer's. `ask` is called with entries whose time has come."""

    __slots__ = ("_ask", "_context", "_looks", "_queue", "_seen", "_slot", "_tracker", "places")

    def __init__(
        self,
        context: ClientContext,
        tracker: AckTracker,
        queue: ReceiverQueue,
        ask: Callable[[Sequence[EntryPosition]], None],
    ) -> None:
        self._context = context
        self._tracker = tracker
        self._queue = queue
        self._ask = ask
        self._looks = RedeliverySchedule()
        self._slot = context.deadlines.slot(self._look)
        self._seen: dict[EntryPosition, tuple[int, int, int]] = {}
        """The patience of each entry, and what the last look has found: messages of it in the queue, and
        messages that are not settled, as bits."""
        self.places = self._seen.keys()
        """The entries that wait: always the same object."""

    def sort(self, places: Sequence[EntryPosition], delay: int) -> list[EntryPosition]:
        """Those of the entries that are to be asked for now. The others are held back; those that were
        delivered again meanwhile, and wait in the queue, are not to be asked for. `delay`: nanoseconds, of
        negative acknowledgements."""
        queued = self._queue.waiting_of(places)
        ready: list[EntryPosition] = []
        back: set[EntryPosition] = set()
        patience = max(delay * DELAYS_OF_PATIENCE, LEAST_PATIENCE)
        for place in places:
            record, in_queue = self._tracker.open_batch(place), queued.get(place, 0)
            if record is None:
                if in_queue:  # it has been delivered again already
                    back.update(self._tracker.places(place))
                else:
                    ready.append(place)
            elif record.unsettled and record.refused:
                self._seen[place] = patience, in_queue, record.unsettled
                self._looks.move(place, self._context.now + patience)
            elif record.refused:
                ready.append(place)
        self._schedule()
        return [place for place in ready if place not in back] if back else ready

    def silent(self, places: Sequence[EntryPosition]) -> list[EntryPosition]:
        """Those of the entries of which the application has messages that it has not settled."""
        queued = self._queue.waiting_of(places)
        found: list[EntryPosition] = []
        for place in places:
            record, in_queue = self._tracker.open_batch(place), queued.get(place, 0)
            if record.unsettled & ~in_queue if record is not None else not in_queue:
                found.append(place)
        return found

    def settled(self, place: EntryPosition) -> None:
        """A message of that entry was acknowledged, or negatively acknowledged."""
        record = self._tracker.open_batch(place)
        if place in self._seen and record is not None and not (record.unsettled and record.refused):
            self.discard(place)
            if record.refused:
                self._ask([place])

    def discard(self, place: EntryPosition) -> None:
        """Nothing of that entry is left, or it was asked for."""
        if self._seen.pop(place, None) is not None:
            self._looks.discard(place)

    def clear(self) -> None:
        """Everything is delivered again without being asked for."""
        self._seen.clear()
        self._looks.clear()
        self._slot.clear()

    def _look(self) -> None:
        now = self._context.now
        places = self._looks.take(now)
        queued = self._queue.waiting_of(places)
        due: list[EntryPosition] = []
        for place in places:
            patience, before, unsettled_before = self._seen[place]
            record, in_queue = self._tracker.open_batch(place), queued.get(place, 0)
            unsettled = 0 if record is None else record.unsettled
            if (in_queue, unsettled) == (before, unsettled_before) or record is None:
                del self._seen[place]
                due.append(place)
            else:
                self._seen[place] = patience, in_queue, unsettled
                self._looks.add(place, now + patience)
        self._schedule()
        if due:
            self._ask(due)

    def _schedule(self) -> None:
        when = self._looks.next()
        if when is None:
            self._slot.clear()
        else:
            self._slot.set(when)
