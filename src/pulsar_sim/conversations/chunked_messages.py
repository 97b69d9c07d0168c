"""Messages in chunks that arrive in pieces: again, out of order, too many at a time, and never.

Owns a model of the incomplete messages with exact counters (CHUNK-01): each chunk makes a message
complete, counts for one reason, or waits; the acknowledgements and the moment of each follow.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..engine.clock import SECOND
from .consuming import Consuming
from .raw_broker import RawBroker, entry_bytes

if TYPE_CHECKING:
    from ..engine.randomness import Stream

STEPS = 60
MESSAGES = 4
"""Messages that are under way at a time."""

Position = tuple[int, int]


@dataclass
class _Message:
    """A message that is not complete. `broken`: a chunk is missing."""

    number: int
    since: int
    others: set[Position] = field(default_factory=set)
    """Chunks before the last first one."""
    positions: list[Position] = field(default_factory=list)
    chunks: list[bytes] = field(default_factory=list)
    broken: bool = False


class ChunkedMessages:
    """Chunks of a few messages, in any order, for a consumer with random limits."""

    def __init__(self, raw: RawBroker, stream: "Stream") -> None:
        self._raw = raw
        self._stream = stream
        self._limit = stream.between(1, MESSAGES)
        self._acknowledges_dropped = stream.chance(500)
        self._patience = stream.choice((0, 2, 5))
        self._consuming = Consuming(
            raw,
            acknowledgement_group_time=0.0,
            receiver_queue_size=10,
            max_pending_chunked_messages=self._limit,
            acknowledge_dropped_chunks=self._acknowledges_dropped,
            max_chunked_message_size=1024,
            incomplete_chunked_message_timeout=float(self._patience),
        )
        self._sizes = [stream.between(2, 4) for _ in range(MESSAGES)]
        self._seen: list[dict[int, list[Position]]] = [{} for _ in range(MESSAGES)]
        """The entries of each chunk that have arrived."""
        self._entry = 0
        self._open: dict[int, _Message] = {}
        """Incomplete messages, the oldest first."""
        self._counts = dict.fromkeys(
            ("chunk_duplicates", "chunk_orphans", "chunks_dropped", "chunks_expired", "chunks_oversized"), 0
        )
        self._last_chunk: Position | None = None
        self._last_orphan: Position | None = None
        self._withheld: list[Position] = []
        self._acknowledged: set[Position] = set()
        self._said: set[Position] = set()
        """The entries that the client has acknowledged."""

    def hold(self) -> None:
        for _ in range(STEPS):
            if self._stream.chance(150):
                self._wait()
            elif self._stream.chance(50):
                self._deliver_oversized()
            else:
                self._deliver()
            self._check()

    # --- what happens ---

    def _deliver(self) -> None:
        """Deliver a chunk: most often the next one of a message."""
        stream = self._stream
        number = stream.below(MESSAGES)
        size = self._sizes[number]
        message = self._open.get(number)
        following = 0 if message is None else len(message.chunks) % size
        chunk = following if stream.chance(700) else stream.below(size)
        known = self._seen[number].get(chunk, [])
        again = bool(known) and stream.chance(300)
        position = stream.choice(known) if again else (1, self._entry)
        if not again:
            self._entry += 1
            self._seen[number].setdefault(chunk, []).append(position)
        if position in self._acknowledged:  # the broker delivers no entry that is acknowledged
            return
        payload = self._payload(number, chunk)
        stored = entry_bytes(
            payload,
            number,
            uuid=f"m{number}",
            chunk_id=chunk,
            num_chunks_from_msg=size,
            total_chunk_msg_size=2 * size,
        )
        whole = self._take(number, chunk, position, payload)
        self._consuming.deliver(position[1], stored)
        found = [message.payload for message in self._consuming.take_all()]
        self._raw.agree("complete messages", found, [] if whole is None else [whole])

    def _deliver_oversized(self) -> None:
        """Deliver a chunk of a message that is larger than the consumer takes."""
        position = (1, self._entry)
        self._entry += 1
        stored = entry_bytes(
            b"xx", uuid="large", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=1025
        )
        self._counts["chunks_oversized"] += 1
        self._last_chunk = position
        self._withheld.append(position)
        self._consuming.deliver(position[1], stored)

    def _wait(self) -> None:
        """Let time pass: exactly until the oldest message expires, or a moment less."""
        raw, stream = self._raw, self._stream
        moment = raw.now + stream.between(1, SECOND)
        oldest = next(iter(self._open.values()), None)
        if oldest is not None and self._patience:
            due = oldest.since + self._patience * SECOND
            moment = stream.choice((moment, due, due - 1))
        raw.until(moment)
        while self._patience and self._open:
            number, oldest = next(iter(self._open.items()))
            if oldest.since + self._patience * SECOND > raw.now:
                break
            del self._open[number]
            self._counts["chunks_expired"] += len(oldest.positions)
            self._acknowledged |= {*oldest.others, *oldest.positions}

    # --- the model ---

    @staticmethod
    def _payload(number: int, chunk: int) -> bytes:
        return b"%d%d" % (number, chunk)

    def _take(self, number: int, chunk: int, position: Position, payload: bytes) -> bytes | None:
        """Take a chunk into the model; return the message when it is complete."""
        self._last_chunk = position
        message = self._open.get(number)
        if not chunk:
            message = self._begin(number, message, position)
        elif message is None:
            message = self._add(_Message(number, self._raw.now, positions=[position], broken=True))
        elif not message.broken and chunk < len(message.chunks):
            self._counts["chunk_duplicates"] += 1
            if position not in message.positions:
                self._acknowledged.add(position)
            return None
        if position not in message.positions:
            message.positions.append(position)
        if message.broken or chunk != len(message.chunks):
            message.broken = True
            message.chunks.clear()
            self._counts["chunk_orphans"] += 1
            self._last_orphan = position
            return None
        message.chunks.append(payload)
        if len(message.chunks) < self._sizes[number]:
            return None
        del self._open[number]
        self._acknowledged |= message.others.difference(message.positions)
        self._seen[number] = {}
        return b"".join(message.chunks)

    def _begin(self, number: int, before: _Message | None, position: Position) -> _Message:
        others: set[Position] = set()
        if before is not None:
            del self._open[number]
            if position not in before.positions:
                self._counts["chunk_duplicates"] += len(before.positions)
            others = {*before.others, *before.positions}
        return self._add(_Message(number, self._raw.now, others))

    def _add(self, message: _Message) -> _Message:
        if len(self._open) >= self._limit:
            broken = [each for each in self._open.values() if each.broken]
            dropped = broken[0] if broken else next(iter(self._open.values()))
            if message.broken and not broken:
                self._drop(message)
                return message
            del self._open[dropped.number]
            self._drop(dropped)
        self._open[message.number] = message
        return message

    def _drop(self, message: _Message) -> None:
        self._counts["chunks_dropped"] += len(message.positions)
        if not message.broken:
            self._withheld.append(message.positions[0])
        if self._acknowledges_dropped:
            self._acknowledged |= {*message.others, *message.positions}

    def _check(self) -> None:
        ends = (min(self._withheld), max(self._withheld)) if self._withheld else None
        self._consuming.check_counters(
            **self._counts, last_chunk=self._last_chunk, last_orphan=self._last_orphan, unreadable=ends
        )
        self._said |= self._consuming.acknowledged()
        self._raw.agree("acknowledged chunks", self._said, self._acknowledged)
