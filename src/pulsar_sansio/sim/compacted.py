"""What compaction may have left out of a topic, as the reference model sees it (INV-C17).

Owns, for one topic, how far it was ever begun to be compacted, and what therefore need not come to those who
read compacted: what has no key, what says that its key is gone, and what has a later message of its key up to
there. Everything else has to come. Of an entry some messages may be left out: the others are as they were.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..wire import SingleMessageMetadata, decompress, split_batch, unpack_payload

if TYPE_CHECKING:
    from .records import Entry, Place, Position, Sent, TopicRecord

MAX_BATCH = 1 << 24
"""Bytes, uncompressed."""


def value_of(sent: "Sent") -> bytes | None:
    """What a message says of its key: None is that it is gone."""
    return sent.payload or None


class Compacted:
    """Of one topic."""

    def __init__(self, topic: "TopicRecord") -> None:
        self._topic = topic
        self.horizon: Position = (-1, -1)
        """Of all compactions that were begun the last entry that one looks at."""
        self._last: dict[str, Place] = {}
        """By key, the last message up to the horizon."""
        self._known = (self.horizon, 0)
        """The horizon, and how many entries there were, when that was so."""

    def begins(self, horizon: "Position") -> None:
        """Everything up to `horizon` is being compacted, and will be, unless the broker dies."""
        self.horizon = max(self.horizon, horizon)

    def may_lack(self, place: "Place") -> bool:
        """Whether a message need not come to those who read compacted."""
        if place[:2] > self.horizon:
            return False
        sent = self._topic.log[place[:2]].messages[place[2]]
        return sent.key is None or value_of(sent) is None or self._last_of(sent.key) > place

    def messages_of_keys(self) -> "Iterator[tuple[str, Place, bytes | None]]":
        """All messages that have a key: key, place and value, in the order of their places."""
        topic = self._topic
        for position in topic.order:
            for index, sent in enumerate(topic.log[position].messages):
                if sent.key is not None:
                    yield sent.key, (*position, index), value_of(sent)

    def is_left_of(self, position: "Position", entry: "Entry", payload: bytes) -> bool:
        """Whether these bytes are the entry without messages that need not come."""
        if not self._topic.log or position > self.horizon:
            return False
        before, after = _singles(entry.payload), _singles(payload)
        return len(before) == len(after) == len(entry.messages) and all(
            found == original or (found[0].compacted_out and self.may_lack((*position, index)))
            for index, (original, found) in enumerate(zip(before, after, strict=True))
        )

    def comes_later(self, key: str, place: "Place", read: "Position") -> bool:
        """Whether in place of that message of the key a later one is left, which lies behind `read`."""
        if not (0, 0) <= place[:2] <= self.horizon:
            return False
        last = self._last_of(key)
        return last > place and last[:2] > read

    def _last_of(self, key: str) -> "Place":
        known = (self.horizon, len(self._topic.order))
        if self._known != known:
            self._known = known
            self._last = {
                each: place for each, place, _ in self.messages_of_keys() if place[:2] <= self.horizon
            }
        return self._last[key]


def _singles(data: bytes) -> list[tuple[SingleMessageMetadata, bytes]]:
    """The messages of a batch."""
    unpacked = unpack_payload(data)
    metadata, payload = unpacked.metadata, bytes(unpacked.payload)
    if metadata.num_messages_in_batch is None:
        return []
    if metadata.compression:
        payload = decompress(metadata.compression, payload, metadata.uncompressed_size, MAX_BATCH)
    batch = split_batch(payload, metadata.num_messages_in_batch)
    return [(batch.single(index), bytes(each)) for index, each in enumerate(batch.payloads)]
