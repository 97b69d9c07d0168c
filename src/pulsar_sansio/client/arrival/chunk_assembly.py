"""`ChunkAssembly`: messages in chunks, each an entry by itself, until the last chunk has arrived (CHUNK-01).

Stored chunks are bounded in number, bytes and time, whatever producers write into their headers: no memory is
reserved for announced sizes. Chunks that will never make a message are acknowledged after a time limit,
because they would stay in the backlog for ever. Until then the broker may redeliver them and complete the
message.

This module knows nothing of permits and of the use of a complete message.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...model.config import nanoseconds_of
from ...model.message_id import MAX_CHUNKS, EntryPosition
from ...wire import MessageMetadata
from ..delivery.consumer_services import ConsumerServices

_Uuid = tuple[str, str]
"""The producer's name and its uuid of the message, so that chunks of two producers never mix."""


@dataclass(slots=True)
class _Incomplete:
    """An incomplete message. `broken`: a chunk is missing, and only a new first chunk can complete the
    message."""

    total: int
    size: int
    since: int
    others: dict[EntryPosition, None]
    """Unusable chunks of the message, acknowledged with it."""
    positions: dict[EntryPosition, None] = field(default_factory=dict)
    payloads: list[bytes] = field(default_factory=list)
    received: int = 0
    broken: bool = False


@dataclass(slots=True)
class Complete:
    """All chunks of a message: their positions, and their payloads joined, still compressed."""

    positions: list[EntryPosition]
    payload: bytes


class ChunkAssembly:
    """The incomplete messages of one consumer. `done_with(positions)`: acknowledge these entries."""

    __slots__ = (
        "_acknowledge_dropped",
        "_context",
        "_counters",
        "_done_with",
        "_expiry",
        "_incomplete",
        "_kept_back",
        "_max_pending",
        "_slot",
        "max_message_size",
    )

    def __init__(
        self,
        services: ConsumerServices,
        done_with: Callable[[Iterable[EntryPosition]], None],
    ) -> None:
        context, spec = services.context, services.spec
        self._counters = services.counters
        self._context = context
        self._done_with = done_with
        self._max_pending = spec.max_pending_chunked_messages
        self.max_message_size = spec.max_chunked_message_size
        self._acknowledge_dropped = spec.acknowledge_dropped_chunks
        self._expiry = nanoseconds_of(spec.incomplete_chunked_message_timeout)
        self._incomplete: OrderedDict[_Uuid, _Incomplete] = OrderedDict()
        """Incomplete messages; the oldest is first."""
        self._kept_back: dict[_Uuid, None] = {}
        """Messages of which a chunk stays unacknowledged because it could not be decrypted; as many as may be
        incomplete."""
        self._slot = context.deadlines.slot(self._expire)

    def take(self, position: EntryPosition, metadata: MessageMetadata, payload: bytes) -> Complete | None:
        """Take one chunk; return the message if that was its last missing chunk. A chunk with impossible
        numbers counts as a missing one."""
        uuid = (metadata.producer_name, metadata.uuid or "")
        chunk_id = metadata.chunk_id or 0
        total, size = metadata.num_chunks_from_msg or 1, metadata.total_chunk_msg_size or 0
        self._counters.last_chunk = position
        if size > self.max_message_size:
            self._counters.chunks_oversized += 1
            self._counters.note_unreadable(position)
            return None
        message = self._incomplete.get(uuid)
        if chunk_id == 0:
            message = self._begin(uuid, message, position, total, size)
        elif message is None:
            positions = {position: None}
            message = self._add(uuid, _Incomplete(total, size, self._context.now, {}, positions, broken=True))
        elif not message.broken and chunk_id < len(message.positions):
            self._counters.chunk_duplicates += 1
            if position not in message.positions:
                self._done_with([position])
            return None
        if len(message.positions) < MAX_CHUNKS:
            message.positions[position] = None
        if message.broken or not self._fits(message, chunk_id, total, size, len(payload)):
            message.broken = True
            message.payloads.clear()
            self._counters.chunk_orphans += 1
            self._counters.last_orphan = position
            return None
        message.received += len(payload)
        message.payloads.append(payload)
        if len(message.payloads) < message.total:
            return None
        self._forget(uuid)
        if message.others:
            self._done_with(message.others.keys() - message.positions.keys())
        return Complete(list(message.positions), b"".join(message.payloads))

    def keep_back(self, metadata: MessageMetadata) -> None:
        """Record that a chunk could not be decrypted and stays unacknowledged (CRYPTO-05)."""
        self._kept_back[metadata.producer_name, metadata.uuid or ""] = None
        if len(self._kept_back) > self._max_pending:
            del self._kept_back[next(iter(self._kept_back))]

    def is_kept_back(self, metadata: MessageMetadata) -> bool:
        """Tell whether a chunk has to stay unacknowledged because an earlier one does. Its acknowledgement
        would lose the message, whose key may have come meanwhile. A first chunk begins the message anew."""
        uuid = (metadata.producer_name, metadata.uuid or "")
        if not metadata.chunk_id:
            self._kept_back.pop(uuid, None)
        return uuid in self._kept_back

    @property
    def waiting(self) -> bool:
        """True when the next chunk may complete a message. Broken messages do not count."""
        return not all(each.broken for each in self._incomplete.values())

    def clear(self) -> None:
        """Forget all chunks: the broker redelivers everything unacknowledged."""
        self._incomplete.clear()
        self._kept_back.clear()
        self._slot.clear()

    def clear_behind(self, position: EntryPosition) -> None:
        """Forget chunks behind that position, which the broker redelivers; messages that began there or
        before stay."""
        for uuid, message in list(self._incomplete.items()):
            if next(iter(message.positions)) > position:
                del self._incomplete[uuid]
        self._schedule()

    # --- inside ------------------------------------------------------------------------------------

    @staticmethod
    def _fits(message: _Incomplete, chunk_id: int, total: int, size: int, length: int) -> bool:
        """True when the chunk is the next one, and describes the message as the chunks before it do."""
        received = message.received + length
        last = chunk_id == total - 1
        return (
            chunk_id == len(message.payloads)
            and (total, size) == (message.total, message.size)
            and 0 < total <= MAX_CHUNKS
            and (received == size if last else received < size)
        )

    def _begin(
        self, uuid: _Uuid, before: _Incomplete | None, position: EntryPosition, total: int, size: int
    ) -> _Incomplete:
        """Take the first chunk of a message, perhaps again. A producer that reconnects between chunks sends
        all of them once more, in other entries; a redelivery brings the original entries. Chunks in front of
        a repeated first chunk are not redelivered, and may belong to no message."""
        others: dict[EntryPosition, None] = {}
        if before is not None:
            self._forget(uuid)
            if position not in before.positions:
                self._counters.chunk_duplicates += len(before.positions)
            others = before.others
            if len(others) < MAX_CHUNKS:
                others.update(before.positions)
        return self._add(uuid, _Incomplete(total, size, self._context.now, others))

    def _add(self, uuid: _Uuid, message: _Incomplete) -> _Incomplete:
        """Store an incomplete message. Beyond the limit the oldest is dropped, a broken one first. A broken
        message never replaces another: later chunks of a dropped message would otherwise drop all others."""
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
        self._counters.chunks_dropped += len(message.positions)
        if not message.broken:
            self._counters.note_unreadable(next(iter(message.positions)))
        if self._acknowledge_dropped:
            self._done_with({**message.others, **message.positions})

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
            self._counters.chunks_expired += len(oldest.positions)
            self._done_with({**oldest.others, **oldest.positions})
        self._schedule()
