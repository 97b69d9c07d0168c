"""`MemoryLimit`: the bytes of payload that all producers of a client hold together (rule PROD-59, CFG-021).

A payload counts from the moment it is taken until its ticket is settled, however that happens; not its
metadata, nor what compression saves. Whoever takes counts here, whoever settles gives back, so that at rest
nothing is held (INV-P7).

One message may be larger than the whole limit: it is taken when nothing else is held.

Producers that find no room stand in one line, in the order in which they were refused first, and keep their
place until they have got something. While one of them has not been told of room, nobody behind it gets any,
so that a large message is not overtaken for ever by small ones. Who was told and does not come (its task was
cancelled) holds up nobody.

An open batch takes payloads by a short way that does not ask here. It is lent the bytes that it may take so;
what it has not used is called back before anybody is refused.
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, count
from typing import Protocol

from ..model.config import OutgoingMessage

UNLIMITED = 2**62
"""More than any memory."""

MAX_OVER = 100
"""Places in the heap that nobody holds any more; from here on at most twice as many as are held."""


class Borrower(Protocol):
    """Who was lent bytes."""

    @property
    def unused(self) -> int:
        """How many of them are not used."""
        ...

    def give_back(self) -> None:
        """Return what is not used, by `returned`."""
        ...


def payload_size(message: bytes | OutgoingMessage) -> int:
    """Bytes that a message counts. What is no message counts nothing: it is going to be refused."""
    if isinstance(message, bytes):
        return len(message)
    payload = message.payload if isinstance(message, OutgoingMessage) else None
    return len(payload) if payload else 0


def payload_sizes(messages: Sequence[bytes | OutgoingMessage]) -> list[int]:
    """`payload_size` of each. Who sends many mostly sends bytes alone, and needs no call for each."""
    if set(map(type, messages)) <= {bytes}:
        return list(map(len, messages))  # type: ignore[arg-type]
    return list(map(payload_size, messages))


class Waiting:
    """A producer's place in the line."""

    __slots__ = ("need", "place", "tell", "told")

    def __init__(self, place: int) -> None:
        self.place = place
        self.need = 0
        """Bytes that it did not get."""
        self.tell: Callable[[], None] | None = None
        self.told = True
        """It knows that there is room, and has not come back yet."""


class MemoryLimit:
    """One client's. `limit`: bytes; None for no limit. Producers are known by their handles."""

    __slots__ = ("_borrowers", "_line", "_places", "_untold", "blocked", "free", "limit", "turn")

    def __init__(self, limit: int | None) -> None:
        self.limit = UNLIMITED if limit is None else limit
        self.free = self.limit
        """Bytes that may still be taken or lent; below 0 while one message is larger than the limit."""
        self.blocked = False
        """Somebody waits, and was not told of room: nobody else gets any."""
        self.turn = 0
        """The handle of who takes several messages one after the other, and keeps its place meanwhile."""
        self._line: dict[int, Waiting] = {}
        self._places = count().__next__
        self._untold: list[tuple[int, Waiting]] = []
        """Heap of (place, who), of those that are to be told of room, and of some that are not any more."""
        self._borrowers: dict[Borrower, None] = {}

    @property
    def held(self) -> int:
        """Bytes of the messages that are taken and not settled."""
        return self.limit - self.free - sum(borrower.unused for borrower in self._borrowers)

    # --- taking ---

    def take(self, handle: int, size: int, tell: Callable[[], None]) -> bool:
        """Count `size` bytes more. False, and nothing has changed but the place in the line, where there is
        no room: `tell` is called when there is."""
        if (self.blocked and not self._is_first(handle)) or not self._has_room(size):
            self.wait(handle, size, tell)
            return False
        self.free -= size
        waiting = self._line.get(handle)
        if waiting is not None and waiting.told:  # else it is still to be told
            del self._line[handle]
        return True

    def fitting(self, handle: int, messages: Sequence[bytes | OutgoingMessage]) -> int:
        """How many of these messages `take` would take one after the other, while it is this one's `turn`."""
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

    def wait(self, handle: int, size: int, tell: Callable[[], None]) -> None:
        """Who asked for `size` bytes waits for them, in its place."""
        waiting = self._line.get(handle)
        if waiting is None:
            waiting = self._line[handle] = Waiting(self._places())
        if waiting.told:
            waiting.told = False
            heappush(self._untold, (waiting.place, waiting))
        waiting.need, waiting.tell = size, tell
        self.blocked = True

    def pass_on(self, handle: int, tell: Callable[[], None]) -> None:
        """Somebody else has taken over who waits: `tell` is called in its place."""
        waiting = self._line.get(handle)
        if waiting is not None:
            waiting.tell = tell

    def leave(self, handle: int, tell: Callable[[], None] | None = None) -> None:
        """It does not wait any more; with `tell`, only if it is this that would be called."""
        waiting = self._line.get(handle)
        if waiting is not None and tell in (None, waiting.tell):
            del self._line[handle]
            waiting.told = True
            if len(self._untold) > MAX_OVER + 2 * len(self._line):
                self._untold = sorted(each for each in self._untold if not each[1].told)
            self.tell()

    # --- giving back ---

    def release(self, size: int) -> None:
        """So many bytes are settled, or were not taken after all."""
        self.free += size
        if self.blocked:
            self.tell()

    def tell(self) -> None:
        """Who waits and would get what it needs is told, in the order of the line."""
        nothing_held = self.free == self.limit
        room = self.free
        while (waiting := self._first_untold()) is not None:
            if waiting.need > room and not nothing_held:
                break
            room -= waiting.need
            heappop(self._untold)
            waiting.told = True
            assert waiting.tell is not None
            waiting.tell()
        self.blocked = waiting is not None

    def _is_first(self, handle: int) -> bool:
        """Nobody before it in the line has yet to be told."""
        if handle == self.turn:
            return True
        waiting, first = self._line.get(handle), self._first_untold()
        return waiting is not None and (first is None or waiting.place <= first.place)

    def _first_untold(self) -> Waiting | None:
        untold = self._untold
        while untold and untold[0][1].told:
            heappop(untold)
        return untold[0][1] if untold else None

    # --- lending ---

    def lend(self, borrower: Borrower, size: int) -> int:
        """Up to `size` bytes to be used without asking."""
        lent = min(size, self.free)
        if self.blocked or lent <= 0:
            return 0
        self.free -= lent
        self._borrowers[borrower] = None
        return lent

    def returned(self, borrower: Borrower, unused: int) -> None:
        """What of it was not used; the rest is taken."""
        self._borrowers.pop(borrower, None)
        self.release(unused)

    def _call_back(self) -> None:
        for borrower in list(self._borrowers):
            borrower.give_back()


SHRINK_AT = 0.95
"""Part of the memory limit at which the scaled queues of a client become smaller, as in the Java client."""


class ShrinkingPermits(Protocol):
    """Permits of a queue that becomes smaller when the memory of its client is nearly full."""

    def shrink(self) -> None: ...


class ScaledQueue(Protocol):
    """A receiver queue whose size follows the application and the memory of its client."""

    @property
    def permits(self) -> ShrinkingPermits: ...


class ReceivedMemory:
    """The memory that received messages take in all scaled queues of a client."""

    __slots__ = ("_limit", "_tight", "bytes_waiting", "queues")

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._tight = False
        """The queues were made smaller, and the memory has not become less full since."""
        self.bytes_waiting = 0
        self.queues: dict[ScaledQueue, None] = {}

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
