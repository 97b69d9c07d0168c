"""A receiver queue of size 0: the broker is asked for a message when the application waits for one (FLOW-13,
GAP-13).

A demand stands until a message has arrived for it. An entry that was acknowledged already, or cannot be read,
does not satisfy the demand. Demands do not add up: several calls that find the queue empty make one demand. A
message that arrives after its demand was cancelled waits for the next call, so cancelling loses nothing.

The Java client closes a consumer that receives a batch. Here the queue takes a batch as a whole and delivers
the rest of it without new permits (CONS-37). A batch costs the broker more permits than it had; the next FLOW
brings it back to one permit (rule FLOW-14).
"""

from collections.abc import Callable
from typing import Any

from ...model.message import Message
from .permits import Permits
from .received_entries import Messages, ReceivedBatch, ReceivedSingles
from .receiver_queue import ReceiverQueue


class ZeroQueuePermits(Permits):
    """Permits that are granted on demand only."""

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        super().__init__(0)
        self.wanted = False
        """True while the application waits for a message and none has arrived since."""

    def attach(self, grant: Callable[[int], None]) -> None:
        """Grant nothing until the application waits for a message; repeat the demand of one that already
        waits (FLOW-03)."""
        self._grant = grant
        self._ask()

    def give_back(self, messages: int) -> None:
        """Ask for no message in place of those that left the queue; repeat a demand that is not satisfied
        yet."""
        self._ask()

    def want(self) -> None:
        """Record that the application waits for a message."""
        self.wanted = True
        self._ask()

    def _ask(self) -> None:
        if self.wanted and self._grant is not None and not self.paused and self.at_broker < 1:
            self._report(1 - self.at_broker)


class ZeroQueue(ReceiverQueue):
    """A queue that is mostly empty."""

    def __init__(self, permits: ZeroQueuePermits, **others: Any) -> None:
        super().__init__(permits, **others)
        self._demand = permits

    def want(self) -> None:
        if not self.undelivered:
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

    # --- delivery: a receive that finds nothing asks for a message ---

    def receive(self) -> Message | None:
        message = super().receive()
        if message is None:
            self.want()
        return message

    def take(self, limit: int, whole_batches: bool = False) -> Messages:
        messages = super().take(limit, whole_batches)
        if not messages:
            self.want()
        return messages
