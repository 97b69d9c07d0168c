"""A receiver queue whose size follows the application (Java's `autoScaledReceiverQueueSizeEnabled`).

It begins with one message. It doubles, up to the size that was asked for, when the application finds it empty
although it was full when something arrived last: then the size was what held the application up. It halves
when what waits in such queues of the client, and what its producers hold, fill the client's memory limit to
`SHRINK_AT`; from `STAY_AT` on it does not grow.

Nothing is refused for want of memory: what a broker was granted is taken. Producers never wait for consumers,
so an application that sends before it receives goes on.
"""

from typing import Any

from ...model.message import Message
from ..memory import ReceivedMemory
from .metered_queue import MeteredQueue
from .permits import Permits
from .received_entries import Messages, ReceivedBatch, ReceivedSingles

FIRST_SIZE = 1
"""Messages, as the Java client begins with."""

STAY_AT = 0.75
"""Part of the memory limit up to which a queue grows, as in the Java client."""


class ScaledPermits(Permits):
    """Permits of a queue whose size changes."""

    __slots__ = ("_maximum", "_minimum", "was_full")

    def __init__(self, maximum: int, minimum: int) -> None:
        self._maximum = maximum
        self._minimum = min(max(FIRST_SIZE, minimum), maximum)
        super().__init__(self._minimum)
        self.was_full = False
        """When something arrived last, the broker had used all that it was granted."""

    def grow(self) -> None:
        self._resize(min(self._maximum, 2 * self.queue_size))

    def shrink(self) -> None:
        """The broker keeps what it was granted; the next permits that come back stay here."""
        self._resize(max(self._minimum, self.queue_size // 2))

    def _resize(self, size: int) -> None:
        more = size - self.queue_size
        self.queue_size = size
        self.threshold = max(1, size // 2)
        self.give_back(more)


class ScaledQueue(MeteredQueue):
    """It tells the permits what they need to know of it."""

    def __init__(self, permits: ScaledPermits, *, memory: ReceivedMemory, **others: Any) -> None:
        super().__init__(permits, **others)
        self.permits = permits
        self._memory = memory
        memory.queues[self] = None

    def weigh(self, size: int) -> None:
        super().weigh(size)
        self._memory.bytes_waiting += size
        if size > 0:
            self._memory.look()

    def add(self, message: Message) -> None:
        self.permits.was_full = self.permits.at_broker <= 0
        super().add(message)

    def add_batch(self, batch: ReceivedBatch) -> None:
        self.permits.was_full = self.permits.at_broker <= 0
        super().add_batch(batch)

    def add_singles(self, singles: ReceivedSingles) -> None:
        self.permits.was_full = self.permits.at_broker <= 0
        super().add_singles(singles)

    def receive(self) -> Message | None:
        message = super().receive()
        if message is None:
            self._found_empty()
        return message

    def take(self, limit: int) -> Messages:
        messages = super().take(limit)
        if not messages:
            self._found_empty()
        return messages

    def _found_empty(self) -> None:
        permits = self.permits
        if permits.was_full and self._memory.usage < STAY_AT:
            permits.was_full = False
            permits.grow()

    def leave(self) -> None:
        super().leave()
        self._memory.queues.pop(self, None)
