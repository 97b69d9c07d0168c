"""What compaction may have left out of a topic, as the reference model sees it (INV-C17).

Owns, for one topic, how far it was ever begun to be compacted, and what therefore need not come to those who
read compacted: what has no key, what says that its key is gone, and what has a later message of its key up to
there. Everything else has to come. Of an entry some messages may be left out: the others are as they were.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pulsar_sansio.wire import SingleMessageMetadata, decompress, split_batch, unpack_payload

if TYPE_CHECKING:
    from .records import Entry, Place, Position, Sent, TopicRecord

Said: TypeAlias = "tuple[Place, bytes | None]"
"""A message that has a key: its place, and what it says of the key."""

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
        self._of_keys: dict[str, list[Said]] = {}
        self._last: dict[str, Said] = {}
        """By key, the last message up to the horizon."""
        self._looked_at = 0
        """How many entries there were when the former was so …"""
        self._known = (self.horizon, 0)
        """… and the horizon, too, when the latter was."""

    def begins(self, horizon: "Position") -> None:
        """Everything up to `horizon` is being compacted, and will be, unless the broker dies."""
        self.horizon = max(self.horizon, horizon)

    def may_lack(self, place: "Place") -> bool:
        """Whether a message need not come to those who read compacted."""
        if place[:2] > self.horizon:
            return False
        sent = self._topic.log[place[:2]].messages[place[2]]
        return sent.key is None or value_of(sent) is None or self.last_of_keys()[sent.key][0] > place

    def messages_of_keys(self) -> "Mapping[str, Sequence[Said]]":
        """Of every key all its messages, in the order of their places."""
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

    def last_of_keys(self) -> "Mapping[str, Said]":
        """Of every key the last message up to the horizon."""
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
        last = self.last_of_keys()[key][0]
        return last > place and last[:2] > read


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
