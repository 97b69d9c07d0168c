"""The merged queue: messages of several consumers, handed out in turn (rules MULTI-19 to MULTI-23, MULTI-34).

Nothing moves into it. Every consumer keeps what arrived in a queue of its own, with permits of its own, so a
topic that nobody takes from stops its broker and no other. Here is only whose turn it is: each queue that has
something gives one run, and then it is the next one's turn. Order holds within a queue; a topic that brings a
thousand times more than another does not delay the other's.

To who receives it is the same as a `ReceiverQueue`. It knows queues only: no consumers and no topics.
"""

from collections import deque
from collections.abc import Iterator

from ...model.errors import ClosedError
from ...model.message import Message
from .received_entries import Item, Messages
from .receiver_queue import LONGEST_RUN, ReceiverQueue


class MergedQueue:
    """Messages of several queues. `available` costs a look at each queue that has some."""

    __slots__ = ("_closed", "_has_turn", "_turns", "announced", "ready", "run_length")

    def __init__(self) -> None:
        self.announced = False
        """See `ReceiverQueue`."""
        self.run_length = 0
        self.ready: Iterator[Message] = iter(())
        self._turns: deque[ReceiverQueue] = deque()
        """Those that have something, in the order of their turns. One that was cleared since stays until its
        turn."""
        self._has_turn: set[ReceiverQueue] = set()
        self._closed: str | None = None

    def add(self, queue: ReceiverQueue) -> bool:
        """A queue that was empty has something; whether there was nothing in all others."""
        alone = not any(other.announced for other in self._turns if other is not queue)
        if queue not in self._has_turn:
            self._has_turn.add(queue)
            self._turns.append(queue)
        return alone

    def remove(self, queue: ReceiverQueue) -> None:
        """That queue is none of these any more."""
        if queue in self._has_turn:
            self._has_turn.remove(queue)
            self._turns.remove(queue)
            self._begin_turn()

    def close(self, why: str) -> None:
        """From now on nothing is handed out."""
        self._closed = why
        self._turns.clear()
        self._has_turn.clear()
        self._begin_turn()

    # --- handing out -----------------------------------------------------------------------------

    def receive(self) -> Message | None:
        """The next message, None where there is none. Raises `ClosedError` after `close`."""
        message = next(self.ready, None)
        return self._receive_at_edge() if message is None else message

    def _receive_at_edge(self) -> Message | None:
        """The next message where it is the last of a run, or the first of one."""
        self._check_open()
        turns = self._turns
        while turns:
            queue = turns[0]
            if self.run_length and not queue.run_length:  # its run was taken back, and so is its turn
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
        """See `ReceiverQueue`: every queue here asks ahead, so there is nothing to do."""

    def take(self, limit: int) -> Messages:
        """The next messages, at most `limit`, each queue giving its share. Raises as `receive`."""
        self._check_open()
        taken: list[Item] = []
        turns = self._turns
        share = max(LONGEST_RUN, -(-limit // max(1, len(turns))))
        while limit > 0 and turns:
            queue = turns[0]
            messages = queue.take(min(limit, share))
            taken += messages.items
            limit -= len(messages)
            self._end_turn(queue)
        return Messages(taken)

    def _end_turn(self, queue: ReceiverQueue) -> None:
        """The next queue's turn; this one has another after all others, if it has something left."""
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
        """Messages that `take` would give."""
        return sum(queue.available for queue in self._turns)
