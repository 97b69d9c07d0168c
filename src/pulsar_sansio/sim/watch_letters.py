"""Dead letters as the clients write them: what is copied, and when a copy is safe (INV-C10).

Owns the producers that consumers have for their dead letters, on the clients' ends of the wires: a copy is of
a message that has come too often, holds what it held, and says where it is from. When its receipt has arrived
the original may be acknowledged, not before. It knows nothing of how a consumer gets there.
"""

from typing import Any

from ..model.config import ProducerSpec
from ..wire import MessageMetadata, Send, unpack_payload
from .model import ReferenceModel
from .records import Entry, Lane, Place, ProducerRecord, Sent, SubscriptionRecord, TopicRecord
from .violations import ViolationError
from .watch_sends import ProducerEnd


class LetterEnd(ProducerEnd):
    """The id of such a producer on one wire."""

    __slots__ = ("copies", "name")

    def __init__(self, record: ProducerRecord, lane: Lane, name: str) -> None:
        super().__init__(record, lane)
        self.name = name
        self.copies: dict[int, tuple[SubscriptionRecord, Place]] = {}
        """By sequence id: of what it is a copy."""


class LetterWatch:
    """All of them."""

    def __init__(self, model: ReferenceModel) -> None:
        self.model = model
        self._number = 0

    def opened(self, topic: TopicRecord, name: str) -> LetterEnd:
        record = ProducerRecord(name, topic, ProducerSpec(topic=topic.name))
        return LetterEnd(record, record.lane(topic), name)

    def wrote(self, letters: LetterEnd, command: Send) -> None:
        """A copy is written, perhaps not for the first time."""
        unpacked = unpack_payload(command.payload)
        metadata = unpacked.metadata
        said = dict(metadata.properties)
        parts = [int(part) for part in said.get("ORIGIN_MESSAGE_ID", "").split(":") if part]
        topic = self.model.topics.get(said.get("REAL_TOPIC", ""))
        subscription = topic.subscriptions.get(said.get("REAL_SUBSCRIPTION", "")) if topic else None
        if topic is None or subscription is None or len(parts) < 3:
            raise ViolationError("INV-C10", f"{letters.name}: a copy does not say where it is from: {said}")
        place = (parts[0], parts[1], parts[3] if len(parts) > 3 else 0)
        entry = topic.log.get(place[:2])
        if entry is None or place[2] >= len(entry.messages):
            raise ViolationError("INV-C10", f"{letters.name}: a copy of {place}, which is not there")
        self._check_cause(letters, subscription, place)
        original = entry.messages[place[2]]
        if not _is_copy(original, metadata, bytes(unpacked.payload)):
            raise ViolationError("INV-C10", f"{letters.name}: the copy of {original} is another message")
        letters.copies[command.sequence_id] = subscription, place
        sends = letters.lane.topic.sends
        if command.payload not in sends:
            self._number += 1
            copy = Sent(letters.record, self._number, original.payload, original.key, said, 0)
            copy.topic = letters.lane.topic
            sends[command.payload] = Entry(command.payload, (copy,))

    def _check_cause(self, letters: LetterEnd, subscription: SubscriptionRecord, place: Place) -> None:
        """The message has come too often to the consumer whose producer it is, and was not acknowledged."""
        before = f"{subscription.topic.name}-{subscription.name}-"
        consumer = letters.name.removeprefix(before).removesuffix("-DLQ").rpartition("-")[0]
        record = self.model.consumers.get(consumer)
        if record is not None and not record.too_often.get(place[:2], 0) >> place[2] & 1:
            raise ViolationError("INV-C10", f"{consumer}: {place} is a dead letter without a cause")

    @staticmethod
    def got_receipt(letters: LetterEnd, command: Any) -> None:
        copied = letters.copies.get(command.sequence_id)
        if copied is not None:
            subscription, place = copied
            subscription.copied.add(place)


def _is_copy(original: Sent, metadata: MessageMetadata, payload: bytes) -> bool:
    said = dict(metadata.properties)
    return (
        payload == (original.payload or b"")
        and bool(metadata.null_value) is (original.payload is None)
        and (metadata.partition_key or None) == (original.key or None)
        and (metadata.event_time or 0) == original.event_time
        and all(said.get(name) == value for name, value in original.properties.items())
    )
