"""The messages that compaction may have removed from a topic, in the reference model (INV-C17).

Owns, for one topic, how far any compaction ever began, and the messages that readers of the compacted topic
therefore may miss. These are messages without a key, messages that delete their key, and messages with a
later one of their key up to there. All others must arrive. Some messages of an entry may be removed: the
others are unchanged.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pulsar_sansio.wire import SingleMessageMetadata, decompress, split_batch, unpack_payload

if TYPE_CHECKING:
    from .records.entry import StoredEntry
    from .records.message_position import MessagePosition, Position
    from .records.sent import Sent
    from .records.topic_record import TopicRecord

KeyValue: TypeAlias = "tuple[MessagePosition, bytes | None]"
"""A message that has a key: its position, and the value that it gives the key."""

MAX_BATCH = 1 << 24
"""Bytes of a batch, uncompressed, at most."""


def value_of(sent: "Sent") -> bytes | None:
    """Return the value that a message gives its key; None deletes the key."""
    return sent.payload or None


class Compacted:
    """The compactions of one topic."""

    def __init__(self, topic: "TopicRecord") -> None:
        self._topic = topic
        self.horizon: Position = (-1, -1)
        """The last entry that any compaction begun so far looks at."""
        self._of_keys: dict[str, list[KeyValue]] = {}
        self._last: dict[str, KeyValue] = {}
        """The last message of each key up to the horizon."""
        self._looked_at = 0
        """The number of entries when `_of_keys` was computed."""
        self._known = (self.horizon, 0)
        """The horizon and the number of entries when `_last` was computed."""

    def begins(self, horizon: "Position") -> None:
        """A compaction up to `horizon` begins; it completes unless the broker dies."""
        self.horizon = max(self.horizon, horizon)

    def may_lack(self, message_position: "MessagePosition") -> bool:
        """True when readers of the compacted topic may miss the message."""
        if message_position[:2] > self.horizon:
            return False
        sent = self._topic.log[message_position[:2]].messages[message_position[2]]
        return (
            sent.key is None or value_of(sent) is None or self.last_of_keys()[sent.key][0] > message_position
        )

    def messages_of_keys(self) -> "Mapping[str, Sequence[KeyValue]]":
        """Return all messages of each key, in the order of their positions."""
        topic = self._topic
        if self._looked_at != len(topic.order):
            self._looked_at = len(topic.order)
            self._of_keys = {}
            for position in topic.order:
                for index, sent in enumerate(topic.log[position].messages):
                    if sent.key is not None:
                        said = (*position, index), value_of(sent)
                        self._of_keys.setdefault(sent.key, []).append(said)
        return self._of_keys

    def last_of_keys(self) -> "Mapping[str, KeyValue]":
        """Return the last message of each key up to the horizon."""
        known = (self.horizon, len(self._topic.order))
        if self._known != known:
            self._known = known
            self._last = {
                key: said
                for key, messages in self.messages_of_keys().items()
                for said in messages
                if said[0][:2] <= self.horizon
            }
        return self._last

    def is_left_of(self, position: "Position", entry: "StoredEntry", payload: bytes) -> bool:
        """True when these bytes are the entry without messages that may be missing."""
        if not self._topic.log or position > self.horizon:
            return False
        before, after = _singles(entry.payload), _singles(payload)
        return len(before) == len(after) == len(entry.messages) and all(
            found == original or (found[0].compacted_out and self.may_lack((*position, index)))
            for index, (original, found) in enumerate(zip(before, after, strict=True))
        )

    def comes_later(self, key: str, message_position: "MessagePosition", read: "Position") -> bool:
        """True when compaction left a later message of the key, behind `read`, in place of that one."""
        if not (0, 0) <= message_position[:2] <= self.horizon:
            return False
        last = self.last_of_keys()[key][0]
        return last > message_position and last[:2] > read


def _singles(data: bytes) -> list[tuple[SingleMessageMetadata, bytes]]:
    """Return the messages of a batch."""
    unpacked = unpack_payload(data)
    metadata, payload = unpacked.metadata, bytes(unpacked.payload)
    if metadata.num_messages_in_batch is None:
        return []
    if metadata.compression:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size, MAX_BATCH)
    batch = split_batch(payload, metadata.num_messages_in_batch)
    return [(batch.single(index), bytes(each)) for index, each in enumerate(batch.payloads)]
