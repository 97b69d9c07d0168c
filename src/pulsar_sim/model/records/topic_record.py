"""A topic and its log."""

from bisect import insort
from typing import TYPE_CHECKING

from ...engine.failures import ViolationError
from ..compaction import Compacted
from .entry import StoredEntry
from .message_position import Position
from .sent import Sent

if TYPE_CHECKING:
    from .subscription_record import SubscriptionRecord


class TopicRecord:
    """A topic's log, as far as it is known."""

    def __init__(self, name: str, deduplication: bool) -> None:
        self.name = name
        self.persistent = not name.startswith("non-persistent:")
        self.deduplication = deduplication
        self.ended = False
        """An administrator has terminated the topic, perhaps."""
        self.gone = -1
        """The last ledger that was deleted with the topic, perhaps; -1 for none."""
        self.served_twice = False
        """A broker that has lost the topic still serves it with its own state."""
        self.sends: dict[bytes, StoredEntry] = {}
        """Every payload ever written in a SEND for this topic."""
        self.log: dict[Position, StoredEntry] = {}
        self.order: list[Position] = []
        self.messages = 0
        """The number of messages in the log, with duplicates."""
        self.late = 0
        """The number of entries that became known after a later one."""
        self.subscriptions: dict[str, SubscriptionRecord] = {}
        self.compacted = Compacted(self)

    @property
    def expected(self) -> int:
        """Return the number of messages that are certainly in the log, with duplicates."""
        if self.gone < 0:
            return self.messages
        return sum(len(entry.messages) for position, entry in self.log.items() if position[0] > self.gone)

    @property
    def last_message(self) -> Position | None:
        """Return the position of the last message that was not deleted; skip chunks that complete no
        message."""
        for position in reversed(self.order):
            if position[0] <= self.gone:
                return None
            if self.log[position].messages:
                return position
        return None

    def lose_unsaved(self) -> None:
        """Records that were not durable are lost. A deleted and unknown ledger may be among them: its id is
        then used again."""
        self.gone = min(self.gone, self.order[-1][0] if self.order else -1)

    def stored(self, position: Position, entry: StoredEntry) -> None:
        """The broker shows, by a receipt or a delivery, that the entry lies there."""
        known = self.log.get(position)
        if known is not None:
            if known is not entry and (entry.chunk is None or known.payload != entry.payload):
                raise ViolationError("INV-P9", f"{self.name} {position} holds two different entries")
            return
        if entry.chunk is not None:
            part = StoredEntry(entry.payload, entry.messages, entry.chunk)
            part.sealed = entry.sealed
            self._stored_chunk(position, part)
            return
        self.log[position] = entry
        if self.order and position < self.order[-1]:
            insort(self.order, position)
            self.late += 1
        else:
            self.order.append(position)
        self.messages += len(entry.messages)
        entry.positions.append(position)
        for index, message in enumerate(entry.messages):
            message.message_positions.append((*position, index))

    def _stored_chunk(self, position: Position, entry: StoredEntry) -> None:
        """Record a chunk as an entry of its own: the chunks before it decide whether it completes the
        message."""
        assert entry.chunk is not None
        sent = entry.source
        entry.messages = ()
        entry.positions.append(position)
        self.log[position] = entry
        if self.order and position < self.order[-1]:
            insort(self.order, position)
            self.late += 1
        else:
            self.order.append(position)
        insort(sent.chunks, (position, entry.chunk.number))
        whole = self.complete_chunks(sent)
        for each, _ in sent.chunks:
            messages = (sent,) if each in whole else ()
            if self.log[each].messages != messages:
                self.messages += len(messages) - len(self.log[each].messages)
                self.log[each].messages = messages
                if each != position:
                    self.late += 1
        sent.message_positions = [(*each, 0) for each in whole]

    def chunks_of(self, position: Position) -> list[Position]:
        """Return the entries of the message that this one completes: all of its chunks, or this entry
        alone."""
        entry = self.log.get(position)
        if entry is None or entry.chunk is None:
            return [position]
        return self.complete_chunks(entry.source).get(position, [position])

    def complete_chunks(self, sent: Sent) -> dict[Position, list[Position]]:
        """Return the chunks of each completion of the message, by last chunk (CHUNK-01). A first chunk begins
        it again, a repeated chunk is skipped, and no chunk fits behind a gap or the deletion of the topic."""
        whole: dict[Position, list[Position]] = {}
        parts: list[Position] = []
        for position, number in sent.chunks:
            chunk = self.log[position].chunk
            assert chunk is not None
            if parts and parts[0][0] <= self.gone < position[0]:
                parts = []
            if number == 0:
                parts = [position]
            elif parts and number == len(parts):
                parts.append(position)
            elif number >= len(parts):
                parts = []
            if len(parts) == chunk.total:
                whole[position] = parts
                parts = []
        return whole

    def is_torn(self, sent: Sent) -> bool:
        """True when chunks of the message were deleted with the topic, so that the rest completes nothing."""
        return any(position[0] <= self.gone for position, _ in sent.chunks)
