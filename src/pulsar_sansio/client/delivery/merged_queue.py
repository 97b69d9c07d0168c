"""`MergedQueue`: messages of several consumers, delivered in turn (rules MULTI-19, MULTI-34).

No message moves into the merged queue. Every consumer keeps its messages in a queue of its own, with permits
of its own; a topic that the application does not take from stops only its own broker. The merged queue keeps
the turns: each queue that has messages delivers one run, then the next queue has its turn. Order holds within
a queue. A topic that brings a thousand times more than another does not delay the other's messages.

A merged queue offers the application the methods of `ReceiverQueue`. It knows queues only: no consumers and
no topics.
"""

from collections import deque
from collections.abc import Iterator

from ...model.errors import ClosedError
from ...model.message import Message
from .received_entries import Item, Messages
from .receiver_queue import LONGEST_RUN, ReceiverQueue


class MergedQueue:
    """Messages of several queues. `available` looks at each queue that has messages."""

    __slots__ = ("_closed", "_has_turn", "_turns", "announced", "ready", "run_length")

    def __init__(self) -> None:
        self.announced = False
        """See `ReceiverQueue`."""
        self.run_length = 0
        self.ready: Iterator[Message] = iter(())
        self._turns: deque[ReceiverQueue] = deque()
        """Queues that have messages, in the order of their turns. A queue that was cleared since stays until
        its turn."""
        self._has_turn: set[ReceiverQueue] = set()
        self._closed: str | None = None

    def add(self, queue: ReceiverQueue) -> bool:
        """Include a queue that was empty and now has messages; return True when all other queues were
        empty."""
        alone = not any(other.announced for other in self._turns if other is not queue)
        if queue not in self._has_turn:
            self._has_turn.add(queue)
            self._turns.append(queue)
        return alone

    def remove(self, queue: ReceiverQueue) -> None:
        """Remove a queue for good."""
        if queue in self._has_turn:
            self._has_turn.remove(queue)
            self._turns.remove(queue)
            self._begin_turn()

    def close(self, why: str) -> None:
        """Deliver nothing from now on."""
        self._closed = why
        self._turns.clear()
        self._has_turn.clear()
        self._begin_turn()

    # --- delivering ------------------------------------------------------------------------------

    def receive(self) -> Message | None:
        """Return the next message, or None when there is none. Raises `ClosedError` after `close`."""
        message = next(self.ready, None)
        return self._receive_at_edge() if message is None else message

    def _receive_at_edge(self) -> Message | None:
        """Return the next message at the end of a run, or at the beginning of one."""
        self._check_open()
        turns = self._turns
        while turns:
            queue = turns[0]
            if self.run_length and not queue.run_length:  # taking back the run's messages ended its turn
                self._end_turn(queue)
                continue
            ends_run = queue.run_length > 0
            message = queue.receive()
            if message is not None and not ends_run and queue.announced:
                self.ready = queue.ready
                self.run_length = queue.run_length
                return message
            self._end_turn(queue)
            if message is not None:
                return message
        return None

    def want(self) -> None:
        """See `ReceiverQueue`. Every queue here asks its broker ahead, so there is nothing to do."""

    def take(self, limit: int, whole_batches: bool = False) -> Messages:
        """Return the next messages, at most `limit`; each queue gives its share. Raises `ClosedError` after
        `close`. `whole_batches`: see `ReceiverQueue.take`."""
        self._check_open()
        taken: list[Item] = []
        turns = self._turns
        share = max(LONGEST_RUN, -(-limit // max(1, len(turns))))
        while limit > 0 and turns:
            queue = turns[0]
            messages = queue.take(min(limit, share), whole_batches)
            taken += messages.items
            limit -= len(messages)
            self._end_turn(queue)
        return Messages(taken)

    def _end_turn(self, queue: ReceiverQueue) -> None:
        """End this queue's turn. The queue has another turn after all others if messages are left in it."""
        if queue.announced:
            self._turns.rotate(-1)
        else:
            self._turns.popleft()
            self._has_turn.remove(queue)
        self._begin_turn()

    def _begin_turn(self) -> None:
        if self._turns:
            self.ready = self._turns[0].ready
            self.run_length = self._turns[0].run_length
        else:
            self.announced = False
            self.ready = iter(())
            self.run_length = 0

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ClosedError(self._closed)

    # --- looking ---------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """The number of messages that `take` would return."""
        return sum(queue.available for queue in self._turns)
