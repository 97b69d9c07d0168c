"""`MemoryLimit`: the bytes of payload that all producers of a client hold together (rule PROD-59, CFG-021).

A payload counts from the moment a producer takes it until its ticket is settled. Metadata does not count, and
compression saves nothing. The producer that settles a ticket releases its bytes, so that an idle client holds
no memory (INV-P7). A message larger than the whole limit is taken when no other payload is held.

Producers that find no room wait in one line, in the order in which they were refused first. A producer keeps
its position until a message of it was taken. While one producer has not been told of room, no producer behind
it gets any. So small messages do not overtake a large one for ever. A producer that was told of room and does
not come back, because its task was cancelled, delays no other producer.

An open batch takes payloads by a fast path that does not ask the limit. `MemoryLimit` lends it the bytes for
that, and calls unused bytes back before it refuses another producer.

`ReceivedMemory` adds the memory of scaled receiver queues.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, count
from typing import Protocol

from ..model.config import OutgoingMessage

UNLIMITED = 2**62
"""Bytes: more than any machine has."""

MAX_OVER = 100
"""Stale entries that the heap may have, beside two for each waiting producer."""


class Borrower(Protocol):
    """An open batch that was lent bytes."""

    @property
    def unused(self) -> int:
        """The lent bytes that are not used."""
        ...

    def give_back(self) -> None:
        """Give unused bytes back, by `MemoryLimit.returned`."""
        ...


def payload_size(message: bytes | OutgoingMessage) -> int:
    """Return the bytes that a message counts; 0 for anything else, which the producer will refuse."""
    if isinstance(message, bytes):
        return len(message)
    payload = message.payload if isinstance(message, OutgoingMessage) else None
    return len(payload) if payload else 0


def payload_sizes(messages: Sequence[bytes | OutgoingMessage]) -> list[int]:
    """Return `payload_size` of each message. The fast path takes messages that are all bytes."""
    if set(map(type, messages)) <= {bytes}:
        return list(map(len, messages))  # type: ignore[arg-type]
    return list(map(payload_size, messages))


class Waiting:
    """A producer in the line."""

    __slots__ = ("need", "notified", "position", "to_call")

    def __init__(self, position: int) -> None:
        self.position = position
        self.need = 0
        """The bytes that the producer did not get."""
        self.to_call: dict[Callable[[], None], None] = {}
        """The callables for the moment when there is room: one of each partition that had none."""
        self.notified = True
        """The producer knows that there is room, and has not come back yet."""


class MemoryLimit:
    """The limit of one client. `limit`: bytes; None for no limit. Producers are known by their handles."""

    __slots__ = ("_borrowers", "_line", "_positions", "_to_notify", "blocked", "free", "limit", "turn")

    def __init__(self, limit: int | None) -> None:
        self.limit = UNLIMITED if limit is None else limit
        self.free = self.limit
        """Bytes that may still be taken or lent; below 0 while a message larger than the limit is held."""
        self.blocked = False
        """A producer waits, and was not told of room: no other producer gets any."""
        self.turn = 0
        """The handle of the producer that takes several messages in a row, and keeps its position."""
        self._line: dict[int, Waiting] = {}
        self._positions = count().__next__
        self._to_notify: list[tuple[int, Waiting]] = []
        """A heap of (position, producer): those to be told of room, and stale entries of others."""
        self._borrowers: dict[Borrower, None] = {}

    @property
    def held(self) -> int:
        """Bytes of the messages that are taken and not settled."""
        return self.limit - self.free - sum(borrower.unused for borrower in self._borrowers)

    # --- taking ---

    def take(self, handle: int, size: int, notify: Callable[[], None]) -> bool:
        """Take `size` bytes. Return False when there is no room: the producer is in the line then.

        `notify` is called when there is room."""
        if (self.blocked and not self._is_first(handle)) or not self._has_room(size):
            self.wait(handle, size, notify)
            return False
        self.free -= size
        waiting = self._line.get(handle)
        if waiting is not None and waiting.notified:  # otherwise it still waits for room
            del self._line[handle]
        return True

    def fitting(self, handle: int, messages: Sequence[bytes | OutgoingMessage]) -> int:
        """Return how many of these messages `take` would take in a row, in this producer's `turn`."""
        if not messages or (self.blocked and not self._is_first(handle)):
            return 0
        sizes = payload_sizes(messages)
        if sum(sizes) > self.free:
            self._call_back()
            count = sum(together <= self.free for together in accumulate(sizes))
            return count or (1 if self.free == self.limit else 0)
        return len(messages)

    def _has_room(self, size: int) -> bool:
        if size <= self.free:
            return True
        self._call_back()
        return size <= self.free or self.free == self.limit

    def wait(self, handle: int, size: int, notify: Callable[[], None]) -> None:
        """Put a producer into the line for `size` bytes, or keep its position there."""
        waiting = self._line.get(handle)
        if waiting is None:
            waiting = self._line[handle] = Waiting(self._positions())
        if waiting.notified:
            waiting.notified = False
            heappush(self._to_notify, (waiting.position, waiting))
        waiting.need = size
        waiting.to_call[notify] = None
        self.blocked = True

    def pass_on(self, handle: int, notify: Callable[[], None]) -> None:
        """Another machine has replaced a waiting producer: call `notify` for it from now on."""
        waiting = self._line.get(handle)
        if waiting is not None:
            waiting.to_call = {notify: None}

    def detach(self, handle: int, notify: Callable[[], None] | None = None) -> None:
        """Take a producer from the line; with `notify`, only if no other callable would be called."""
        waiting = self._line.get(handle)
        if waiting is None:
            return
        if notify is None:
            waiting.to_call.clear()
        else:
            waiting.to_call.pop(notify, None)
        if not waiting.to_call:
            del self._line[handle]
            waiting.notified = True
            if len(self._to_notify) > MAX_OVER + 2 * len(self._line):
                self._to_notify = sorted(each for each in self._to_notify if not each[1].notified)
            self.notify()

    # --- releasing ---

    def release(self, size: int) -> None:
        """Release `size` bytes, because they are settled, or were not taken after all."""
        self.free += size
        if self.blocked:
            self.notify()

    def notify(self) -> None:
        """Tell waiting producers of room, in the order of the line, as far as it lasts."""
        nothing_held = self.free == self.limit
        room = self.free
        while (waiting := self._first_to_notify()) is not None:
            if waiting.need > room and not nothing_held:
                break
            room -= waiting.need
            heappop(self._to_notify)
            waiting.notified = True
            to_call, waiting.to_call = waiting.to_call, {}
            for each in to_call:
                each()
        self.blocked = waiting is not None

    def _is_first(self, handle: int) -> bool:
        """Tell whether every producer before this one in the line knows of room."""
        if handle == self.turn:
            return True
        waiting, first = self._line.get(handle), self._first_to_notify()
        return waiting is not None and (first is None or waiting.position <= first.position)

    def _first_to_notify(self) -> Waiting | None:
        to_notify = self._to_notify
        while to_notify and to_notify[0][1].notified:
            heappop(to_notify)
        return to_notify[0][1] if to_notify else None

    # --- lending ---

    def lend(self, borrower: Borrower, size: int) -> int:
        """Lend up to `size` bytes, which the borrower uses without asking; return how many."""
        lent = min(size, self.free)
        if self.blocked or lent <= 0:
            return 0
        self.free -= lent
        self._borrowers[borrower] = None
        return lent

    def returned(self, borrower: Borrower, unused: int) -> None:
        """Take unused bytes back from a borrower; the others count as taken."""
        self._borrowers.pop(borrower, None)
        self.release(unused)

    def _call_back(self) -> None:
        for borrower in list(self._borrowers):
            borrower.give_back()


SHRINK_AT = 0.95
"""The part of the memory limit at which the scaled queues become smaller, as in the Java client."""


class ShrinkingPermits(Protocol):
    """The permits of a queue that becomes smaller when the memory of its client is nearly full."""

    def shrink(self) -> None: ...


class ShrinkingQueue(Protocol):
    """A receiver queue whose size follows the application and the memory of its client."""

    @property
    def permits(self) -> ShrinkingPermits: ...


class ReceivedMemory:
    """The memory that received messages take in all scaled queues of a client."""

    __slots__ = ("_limit", "_tight", "bytes_waiting", "queues")

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._tight = False
        """The queues were made smaller, and the usage has not fallen below the limit since."""
        self.bytes_waiting = 0
        self.queues: dict[ShrinkingQueue, None] = {}

    @property
    def usage(self) -> float:
        """The part of the limit that is used, by producers and by scaled queues."""
        if self._limit.limit >= UNLIMITED:
            return 0.0
        return (self._limit.held + self.bytes_waiting) / self._limit.limit

    def look(self) -> None:
        """Check the memory after messages have arrived: once it is nearly full, all queues become smaller."""
        tight = self.usage >= SHRINK_AT
        if tight and not self._tight:
            for queue in self.queues:
                queue.permits.shrink()
        self._tight = tight
