"""`DeliveryStart`: the first message that is wanted after a SUBSCRIBE or a seek.

The broker begins with a whole entry, or further back for a message in chunks. So messages before the start
may arrive at first. `Arrival` asks here which messages those are, until an entry behind the start shows that
no more come. `Positions` moves the start.
"""

from ...model.message_id import EARLIEST, LATEST, EntryPosition, MessageId
from .chunk_assembly import ChunkAssembly


class DeliveryStart:
    """The start of one consumer. The incomplete messages in `chunks` follow it when it moves."""

    __slots__ = ("_chunks", "filters", "inclusive", "message_id", "resumed", "since")

    def __init__(self, chunks: ChunkAssembly) -> None:
        self.message_id: MessageId | None = None
        """The first id wanted, for a subscription that is not durable, or for any after a seek. The broker
        begins with that whole entry."""
        self.inclusive = False
        """True when the message at `message_id` is wanted too."""
        self.resumed = False
        """True when `message_id` is the end of the delivered messages: an id without an index then stands for
        its whole entry."""
        self.since: int | None = None
        """Milliseconds since 1970; messages published before are dropped at the beginning."""
        self.filters = False
        """True while messages before `message_id` or `since` may still arrive; the first entry behind both
        ends that."""
        self._chunks = chunks

    def start_at(self, start: MessageId | None, inclusive: bool) -> None:
        """Begin at the position that the application chose: drop messages before `start` in its entry, and
        that message itself unless `inclusive`.

        An id without an index is before all messages of a batch (MSG-02).
        """
        self.message_id = start
        self.inclusive = inclusive
        self.resumed = False
        self.since = None
        self.begin_again()

    def resume_after(self, last: MessageId, since: int | None = None) -> None:
        """Begin after `last`, up to which everything was delivered (CONS-16); an id without an index is its
        whole entry. The first wanted message after it is the first one published at `since` or later."""
        self.message_id = last
        self.inclusive = False
        self.resumed = True
        self.since = since
        self.filters = True
        self._chunks.clear_behind(last.first_chunk or last[:2])

    def begin_again(self) -> None:
        """Begin at the start once more, as the broker does, when the arrived chunks made no message."""
        start = self.message_id
        self.filters = start is not None and start not in (EARLIEST, LATEST)
        if start is not None:
            self._chunks.clear_behind(start.first_chunk or start[:2])

    def is_returning_past(self, last: MessageId) -> bool:
        """True when arriving messages are still before the start because arrived messages were lost, and
        `last`, the message delivered last, is not behind the start."""
        start = self.message_id
        if start is None or not (self.resumed and self.filters):
            return False
        whole = start.batch_index < 0 and start[:2] == last[:2]
        return whole or (*last[:2], last.batch_index) <= (*start[:2], start.batch_index)

    def is_behind(self, position: EntryPosition) -> bool:
        """True when delivery begins after that entry of one message, or that last chunk.

        For a message in chunks the broker may begin further back (`MessageId.first_chunk`). An entry before
        even that position shows that the subscription was moved since, by an unanswered seek or by another
        client: then everything is wanted.
        """
        start = self.message_id if self.filters else None
        if start is None:
            return False
        if start[:2] == position:
            return start.batch_index < 0 and not self.inclusive
        if start[:2] > position and start.first_chunk is not None and start.first_chunk <= position:
            return True
        self.filters = False
        return False

    def skipped(self, position: EntryPosition, size: int) -> int:
        """Return the number of messages before the start in a batch of `size` messages."""
        start = self.message_id if self.filters else None
        if start is None:
            return 0
        if start[:2] != position:
            return size if self.is_behind(position) else 0
        if start.batch_index < 0:
            return size if self.resumed else 0
        return start.batch_index + (not self.inclusive)
