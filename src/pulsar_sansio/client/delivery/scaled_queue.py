"""A receiver queue whose size follows the application (Java's `autoScaledReceiverQueueSizeEnabled`).

The size begins at one message. It doubles, up to the configured size, when the application finds the queue
empty although the last arrival had used all permits: the size was the bottleneck then. It halves when the
bytes in all scaled queues of the client and in its producers fill the client's memory limit to `SHRINK_AT`.
From `STAY_AT` on it does not grow.

No message is refused for lack of memory: the queue takes every message that the broker had a permit for.
Producers never wait for consumers, so an application that sends before it receives is not blocked.
"""

from collections.abc import Iterable
from typing import Any

from ...model.message import Message
from ..memory import ReceivedMemory
from .metered_queue import MeteredQueue, bytes_of
from .permits import Permits
from .received_entries import Item, Messages, ReceivedBatch, ReceivedSingles

FIRST_SIZE = 1
"""The first size, in messages, as in the Java client."""

STAY_AT = 0.75
"""The fraction of the memory limit below which a queue grows, as in the Java client."""


class ScaledPermits(Permits):
    """Permits of a queue with a variable size."""

    __slots__ = ("_maximum", "_minimum", "was_full")

    def __init__(self, maximum: int, minimum: int) -> None:
        self._maximum = maximum
        self._minimum = min(max(FIRST_SIZE, minimum), maximum)
        super().__init__(self._minimum)
        self.was_full = False
        """True when the broker had used all its permits at the last arrival."""

    def grow(self) -> None:
        self._resize(min(self._maximum, 2 * self.queue_size))

    def shrink(self) -> None:
        """Halve the size. The broker keeps its permits; the next permits that come back are not reported."""
        self._resize(max(self._minimum, self.queue_size // 2))

    def _resize(self, size: int) -> None:
        more = size - self.queue_size
        self.queue_size = size
        self.threshold = max(1, size // 2)
        self.give_back(more)


class ScaledQueue(MeteredQueue):
    """A queue that tells its permits when to grow and to shrink."""

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

    def weigh_held(self, items: Iterable[Item], sign: int) -> None:
        """Count held messages in the memory, but not among the bytes that the application can have."""
        self._memory.bytes_waiting += sign * sum(map(bytes_of, items))
        if sign > 0:
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

    def take(self, limit: int, whole_batches: bool = False) -> Messages:
        messages = super().take(limit, whole_batches)
        if not messages:
            self._found_empty()
        return messages

    def _found_empty(self) -> None:
        permits = self.permits
        if permits.was_full and not self.undelivered and self._memory.usage < STAY_AT:
            permits.was_full = False
            permits.grow()

    def leave(self) -> None:
        super().leave()
        self._memory.queues.pop(self, None)
