"""Messages that come in chunks, each an entry by itself, until the last one is there (rule CHUNK-01).

What is held is bounded in number, bytes and time, whatever producers write into their headers: nothing is
reserved for what is only announced. ChunkAssembly that will never make a message are acknowledged once their time is
over, or they would stay in the backlog for ever; until then they may come again, and complete it.

Knows nothing of permits and of what becomes of a complete message.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...model.config import ConsumerSpec, nanoseconds_of
from ...model.message_id import EntryPosition
from ...wire import MessageMetadata
from ..connecting.services import ClientContext
from ..counters import ArrivalCounters
from ..producing.send_encoder import MAX_CHUNKS

_Uuid = tuple[str, str]
"""Name of the producer and what it calls the message, so that no two producers' chunks mix."""


@dataclass(slots=True)
class _Incomplete:
    """One message on its way. `broken`: a chunk is missing, and only the first one makes it whole again."""

    total: int
    size: int
    since: int
    others: dict[EntryPosition, None]
    """Chunks of it that are of no use, and acknowledged with it."""
    places: dict[EntryPosition, None] = field(default_factory=dict)
    payloads: list[bytes] = field(default_factory=list)
    received: int = 0
    broken: bool = False


@dataclass(slots=True)
class Complete:
    """All chunks of a message: where they lie, and their payloads, compressed as one."""

    places: list[EntryPosition]
    payload: bytes


class ChunkAssembly:
    """The incomplete messages of one consumer. `done_with(places)`: acknowledge these entries."""

    __slots__ = (
        "_acknowledge_dropped",
        "_context",
        "_counters",
        "_done_with",
        "_expiry",
        "_incomplete",
        "_max_pending",
        "_slot",
        "max_message_size",
    )

    def __init__(
        self,
        context: ClientContext,
        spec: ConsumerSpec,
        counters: ArrivalCounters,
        done_with: Callable[[Iterable[EntryPosition]], None],
    ) -> None:
        self._counters = counters
        self._context = context
        self._done_with = done_with
        self._max_pending = spec.max_pending_chunked_messages
        self.max_message_size = spec.max_chunked_message_size
        self._acknowledge_dropped = spec.acknowledge_dropped_chunks
        self._expiry = nanoseconds_of(spec.incomplete_chunked_message_timeout)
        self._incomplete: OrderedDict[_Uuid, _Incomplete] = OrderedDict()
        """The one that began first at the front."""
        self._slot = context.deadlines.slot(self._expire)

    def take(self, place: EntryPosition, metadata: MessageMetadata, payload: bytes) -> Complete | None:
        """One chunk; the message, if it was the last one missing. A chunk that says what cannot be counts as
        one that is missing."""
        uuid = (metadata.producer_name, metadata.uuid or "")
        chunk_id = metadata.chunk_id or 0
        total, size = metadata.num_chunks_from_msg or 1, metadata.total_chunk_msg_size or 0
        self._counters.last_chunk = place
        if size > self.max_message_size:
            self._counters.chunks_oversized += 1
            self._counters.note_unreadable(place)
            return None
        message = self._incomplete.get(uuid)
        if chunk_id == 0:
            message = self._begin(uuid, message, place, total, size)
        elif message is None:
            places = {place: None}
            message = self._add(uuid, _Incomplete(total, size, self._context.now, {}, places, broken=True))
        elif not message.broken and chunk_id < len(message.places):
            self._counters.chunk_duplicates += 1
            if place not in message.places:
                self._done_with([place])
            return None
        if len(message.places) < MAX_CHUNKS:
            message.places[place] = None
        if message.broken or not self._fits(message, chunk_id, total, size, len(payload)):
            message.broken = True
            message.payloads.clear()
            self._counters.chunk_orphans += 1
            self._counters.last_orphan = place
            return None
        message.received += len(payload)
        message.payloads.append(payload)
        if len(message.payloads) < message.total:
            return None
        self._forget(uuid)
        if message.others:
            self._done_with(message.others.keys() - message.places.keys())
        return Complete(list(message.places), b"".join(message.payloads))

    @property
    def waiting(self) -> bool:
        """Whether a message may be complete with what comes next. One that is broken is not counted."""
        return not all(each.broken for each in self._incomplete.values())

    def clear(self) -> None:
        """Everything that is not acknowledged comes again."""
        self._incomplete.clear()
        self._slot.clear()

    def clear_behind(self, place: EntryPosition) -> None:
        """Everything that lies behind it comes again; what has begun there or before goes on."""
        for uuid, message in list(self._incomplete.items()):
            if next(iter(message.places)) > place:
                del self._incomplete[uuid]
        self._schedule()

    # --- inside ------------------------------------------------------------------------------------

    @staticmethod
    def _fits(message: _Incomplete, chunk_id: int, total: int, size: int, length: int) -> bool:
        """Whether this is the chunk that comes next, and says of the message what the others said."""
        received = message.received + length
        last = chunk_id == total - 1
        return (
            chunk_id == len(message.payloads)
            and (total, size) == (message.total, message.size)
            and 0 < total <= MAX_CHUNKS
            and (received == size if last else received < size)
        )

    def _begin(
        self, uuid: _Uuid, before: _Incomplete | None, place: EntryPosition, total: int, size: int
    ) -> _Incomplete:
        """The first chunk came, perhaps again: a producer that reconnects between chunks sends all of them
        once more, in other entries, and the same entries come again where they are delivered again. Those
        that came in front of it do not, and may belong to nothing.
        """
        others: dict[EntryPosition, None] = {}
        if before is not None:
            self._forget(uuid)
            if place not in before.places:
                self._counters.chunk_duplicates += len(before.places)
            others = before.others
            if len(others) < MAX_CHUNKS:
                others.update(before.places)
        return self._add(uuid, _Incomplete(total, size, self._context.now, others))

    def _add(self, uuid: _Uuid, message: _Incomplete) -> _Incomplete:
        """For one too many the oldest goes, a broken one rather than another. A broken one never takes the
        place of one that is not: the rest of what was dropped would drop all others."""
        incomplete = self._incomplete
        if len(incomplete) >= self._max_pending:
            broken = next((uuid for uuid, each in incomplete.items() if each.broken), None)
            if broken is not None:
                self._drop(incomplete.pop(broken))
            elif message.broken:
                self._drop(message)
                return message
            else:
                self._drop(incomplete.popitem(last=False)[1])
        incomplete[uuid] = message
        self._schedule()
        return message

    def _drop(self, message: _Incomplete) -> None:
        self._counters.chunks_dropped += len(message.places)
        if not message.broken:
            self._counters.note_unreadable(next(iter(message.places)))
        if self._acknowledge_dropped:
            self._done_with({**message.others, **message.places})

    def _forget(self, uuid: _Uuid) -> None:
        del self._incomplete[uuid]
        self._schedule()

    def _schedule(self) -> None:
        oldest = next(iter(self._incomplete.values()), None)
        if oldest is None or not self._expiry:
            self._slot.clear()
        else:
            self._slot.set(oldest.since + self._expiry)

    def _expire(self) -> None:
        now = self._context.now
        while self._incomplete:
            uuid, oldest = next(iter(self._incomplete.items()))
            if oldest.since + self._expiry > now:
                break
            del self._incomplete[uuid]
            self._counters.chunks_expired += len(oldest.places)
            self._done_with({**oldest.others, **oldest.places})
        self._schedule()
