"""`HeldBack`: entries to be requested again as soon as their other messages are settled (NACK-03).

A broker redelivers a batch as a whole. Messages of it that wait in the receiver queue, and those that the
application has not acknowledged yet, would be delivered twice. So a batch with negatively acknowledged
messages waits, when their delay is over, until the others are settled: acknowledged or negatively
acknowledged.

An application may never settle a message. So a batch waits for its `patience` after the last of its messages
has left the queue or was settled. Then it is requested in any case, and its queued messages are taken back. A
look at the batch follows each `patience`; the first look that finds no change ends the wait. The wait is at
least one patience and at most two.

This module knows which entries wait, but neither their reason nor how the broker is asked.
"""

from collections.abc import Callable, Sequence

from ...model.message_id import EntryPosition
from ..connecting.services import ClientContext
from ..delivery.receiver_queue import ReceiverQueue
from .ack_tracker import AckTracker
from .redelivery_schedule import RedeliverySchedule

DELAYS_OF_PATIENCE = 10
LEAST_PATIENCE = 60_000_000_000
"""The patience of a batch: this many times its delay, and at least this many nanoseconds. A handler of one of
its messages may take longer than a short delay."""


class HeldBack:
    """Held-back entries of one consumer. `ask` is called with entries whose wait is over."""

    __slots__ = ("_ask", "_context", "_looks", "_queue", "_seen", "_slot", "_tracker", "positions")

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
        """The patience of each entry, and the result of the last look: its messages in the queue, and its
        messages that are not settled, as bits."""
        self.positions = self._seen.keys()
        """The waiting entries: always the same object."""

    def sort(self, positions: Sequence[EntryPosition], delay: int) -> list[EntryPosition]:
        """Return the entries to request now, and hold back the others. Entries that were redelivered
        meanwhile and wait in the queue are not requested. `delay`: the delay of negative acknowledgements, in
        nanoseconds."""
        queued = self._queue.waiting_of(positions)
        ready: list[EntryPosition] = []
        back: set[EntryPosition] = set()
        patience = max(delay * DELAYS_OF_PATIENCE, LEAST_PATIENCE)
        for position in positions:
            record, in_queue = self._tracker.open_batch(position), queued.get(position, 0)
            if record is None:
                if in_queue:  # the entry was redelivered already
                    back.update(self._tracker.positions(position))
                else:
                    ready.append(position)
            elif record.unsettled and record.refused:
                self._seen[position] = patience, in_queue, record.unsettled
                self._looks.move(position, self._context.now + patience)
            elif record.refused:
                ready.append(position)
        self._schedule()
        return [position for position in ready if position not in back] if back else ready

    def silent(self, positions: Sequence[EntryPosition]) -> list[EntryPosition]:
        """Return the entries whose messages the application holds and has not settled."""
        queued = self._queue.waiting_of(positions)
        found: list[EntryPosition] = []
        for position in positions:
            record, in_queue = self._tracker.open_batch(position), queued.get(position, 0)
            if record.unsettled & ~in_queue if record is not None else not in_queue:
                found.append(position)
        return found

    def settled(self, position: EntryPosition) -> None:
        """A message of that entry was acknowledged or negatively acknowledged: request the entry if no other
        is open."""
        record = self._tracker.open_batch(position)
        if position in self._seen and record is not None and not (record.unsettled and record.refused):
            self.discard(position)
            if record.refused:
                self._ask([position])

    def discard(self, position: EntryPosition) -> None:
        """Stop holding back an entry that is acknowledged, or was requested."""
        if self._seen.pop(position, None) is not None:
            self._looks.discard(position)

    def clear(self) -> None:
        """Forget all entries: the broker redelivers them unasked."""
        self._seen.clear()
        self._looks.clear()
        self._slot.clear()

    def _look(self) -> None:
        now = self._context.now
        positions = self._looks.take(now)
        queued = self._queue.waiting_of(positions)
        due: list[EntryPosition] = []
        for position in positions:
            patience, before, unsettled_before = self._seen[position]
            record, in_queue = self._tracker.open_batch(position), queued.get(position, 0)
            unsettled = 0 if record is None else record.unsettled
            if (in_queue, unsettled) == (before, unsettled_before) or record is None:
                del self._seen[position]
                due.append(position)
            else:
                self._seen[position] = patience, in_queue, unsettled
                self._looks.add(position, now + patience)
        self._schedule()
        if due:
            self._ask(due)

    def _schedule(self) -> None:
        when = self._looks.next()
        if when is None:
            self._slot.clear()
        else:
            self._slot.set(when)
