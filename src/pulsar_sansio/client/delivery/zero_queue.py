"""A receiver queue of size 0: the broker is asked for a message when somebody wants one (FLOW-13, GAP-13).

A wish stands until something has arrived for it, whatever became of the entries in between: one that was
acknowledged already, or cannot be read, does not use it up. Wishes do not add up; whoever finds nothing has
one. What arrives although nobody wants it any more waits for the next who does, so giving up loses nothing.

The Java client closes a consumer that is sent a batch; here a batch is taken as a whole, and what is left of
it is handed out without asking (CONS-37). It costs the broker more permits than it had; it is given as many
as bring it back to one (rule FLOW-14).
"""

from collections.abc import Callable
from typing import Any

from ...model.message import Message
from .permits import Permits
from .received_entries import Messages, ReceivedBatch, ReceivedSingles
from .receiver_queue import ReceiverQueue


class ZeroQueuePermits(Permits):
    """Permits that are granted for wishes only."""

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        super().__init__(0)
        self.wanted = False
        """Somebody waits for a message, and none has arrived since."""

    def attach(self, grant: Callable[[int], None]) -> None:
        """Nothing is granted before somebody wants a message; who waits already does (FLOW-03)."""
        self._grant = grant
        self._ask()

    def give_back(self, messages: int) -> None:
        """What left the queue is not asked for again, but a wish that was not fulfilled is."""
        self._ask()

    def want(self) -> None:
        """Somebody waits for a message."""
        self.wanted = True
        self._ask()

    def _ask(self) -> None:
        if self.wanted and self._grant is not None and not self.paused and self.at_broker < 1:
            self._report(1 - self.at_broker)


class ZeroQueue(ReceiverQueue):
    """A queue in which mostly nothing waits."""

    def __init__(self, permits: ZeroQueuePermits, **others: Any) -> None:
        super().__init__(permits, **others)
        self._demand = permits

    def want(self) -> None:
        if not self.available:
            self._demand.want()

    # --- arriving: it fulfils the wish ---

    def add(self, message: Message) -> None:
        super().add(message)
        self._demand.wanted = False

    def add_batch(self, batch: ReceivedBatch) -> None:
        super().add_batch(batch)
        self._demand.wanted = False

    def add_singles(self, singles: ReceivedSingles) -> None:
        super().add_singles(singles)
        self._demand.wanted = False

    # --- handing out: who finds nothing wants something ---

    def receive(self) -> Message | None:
        message = super().receive()
        if message is None:
            self._demand.want()
        return message

    def take(self, limit: int) -> Messages:
        messages = super().take(limit)
        if not messages:
            self._demand.want()
        return messages
