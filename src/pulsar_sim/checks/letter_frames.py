"""Dead-letter and retry copies as the clients write them: their contents, and when a copy is stored
(INV-C10).

Owns the copy producers of consumers, on the clients' ends of the wires. A copy is of a message that was
redelivered too often or is to be reconsumed later; it has the contents of the message, names its origin, and
goes to the right topic. Only after its receipt may the original be acknowledged, with all messages before it
if that was asked for. It does not know how consumers work.
"""

from typing import Any, NamedTuple

from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.wire import MessageMetadata, Send, unpack_payload

from ..engine.failures import ViolationError
from ..model.records import (
    ConsumerRecord,
    Entry,
    Lane,
    Place,
    ProducerRecord,
    Sent,
    SubscriptionRecord,
    TopicRecord,
)
from ..model.reference_model import ReferenceModel
from ..model.retry_letters import DELAY, TIMES, Copy, RetryLetters, origin_of
from .send_frames import ProducerEnd

CHANGING = (TIMES, DELAY)
"""Properties that each copy of a copy sets anew."""


class Source(NamedTuple):
    """A message that a copy may be of."""

    subscription: SubscriptionRecord
    place: Place
    sent: Sent
    put_off: RetryLetters | None = None
    """The request to reconsume the message later."""


class Letter(NamedTuple):
    """A copy, however often it is written."""

    copy: Copy
    sources: list[Source]
    """The possible sources: a message that was copied twice may be copied again twice."""


class LetterEnd(ProducerEnd):
    """A copy producer's id on one wire."""

    __slots__ = ("copies", "name")

    def __init__(self, record: ProducerRecord, lane: Lane, name: str) -> None:
        super().__init__(record, lane)
        self.name = name
        self.copies: dict[int, Letter] = {}
        """Copies by sequence id."""


class LetterWatch:
    """All copies of a world."""

    def __init__(self, model: ReferenceModel) -> None:
        self.model = model
        self._letters: dict[tuple[str, bytes], Letter] = {}
        """Copies by topic and payload; the payload names producer and time."""

    def opened(self, topic: TopicRecord, name: str) -> LetterEnd:
        record = ProducerRecord(name or f"later in {topic.name}", topic, ProducerSpec(topic=topic.name))
        return LetterEnd(record, record.lane(topic), record.tag)

    def wrote(self, letters: LetterEnd, command: Send) -> None:
        """A copy is written, perhaps not for the first time."""
        key = letters.lane.topic.name, command.payload
        letter = self._letters.get(key)
        if letter is None:
            letter = self._letters[key] = self._wrote_first(letters, command)
        letters.copies[command.sequence_id] = letter

    def _wrote_first(self, letters: LetterEnd, command: Send) -> Letter:
        unpacked = unpack_payload(command.payload)
        metadata = unpacked.metadata
        said = dict(metadata.properties)
        put_off = self.model.waiting.of(origin_of(said))
        later = letters.lane.topic.name in self.model.retries
        if later or (put_off and origin_of(said)[2] > put_off[0].most):
            sources = self._put_off(letters, metadata, put_off)
        else:
            sources = self._buried(letters, said)
        original = sources[0].sent
        if not _is_copy(original, metadata, bytes(unpacked.payload)):
            raise ViolationError("INV-C10", f"{letters.name}: the copy of {original} is another message")
        number = len(self._letters) + 1
        payload, key, time = original.payload, original.key, original.event_time
        sent = Sent(letters.record, number, payload, key, said, time)
        sent.topic = letters.lane.topic
        sent.deliver_at = metadata.deliver_at_time or None
        letters.lane.topic.sends[command.payload] = Entry(command.payload, (sent,))
        return Letter(Copy(number), sources)

    def _put_off(
        self, letters: LetterEnd, metadata: MessageMetadata, put_off: list[RetryLetters]
    ) -> list[Source]:
        """An application asked for the copy, which has the right count and delay."""
        times = origin_of(dict(metadata.properties))[2]
        name = letters.lane.topic.name
        wrong = [each.what_is_wrong(name, times, metadata) for each in put_off]
        if "" not in wrong:
            why = "; ".join(dict.fromkeys(wrong)) or "nobody has put it off"
            said = dict(metadata.properties)
            raise ViolationError("INV-C10", f"{letters.name}: a copy that says {said}: {why}")
        return [
            Source(each.record.subscription, each.place, each.sent, each)
            for each, why in zip(put_off, wrong, strict=True)
            if not why
        ]

    def _buried(self, letters: LetterEnd, said: dict[str, str]) -> list[Source]:
        """The message was redelivered too often to the consumer that owns the producer, and was not
        acknowledged."""
        if TIMES in said:
            return self._buried_copies(letters, said)
        parts = [int(part) for part in said.get("ORIGIN_MESSAGE_ID", "").split(":") if part]
        topic = self.model.topics.get(said.get("REAL_TOPIC", ""))
        subscription = topic.subscriptions.get(said.get("REAL_SUBSCRIPTION", "")) if topic else None
        if topic is None or subscription is None or len(parts) < 3:
            raise ViolationError("INV-C10", f"{letters.name}: a copy does not say where it is from: {said}")
        place = (parts[0], parts[1], parts[3] if len(parts) > 3 else 0)
        entry = topic.log.get(place[:2])
        if entry is None or place[2] >= len(entry.messages):
            raise ViolationError("INV-C10", f"{letters.name}: a copy of {place}, which is not there")
        record = self._consumer_of(letters, subscription)
        if record is not None and not _came_too_often(record, place):
            raise ViolationError("INV-C10", f"{record.name}: {place} is a dead letter without a cause")
        return [Source(subscription, place, entry.messages[place[2]])]

    def _buried_copies(self, letters: LetterEnd, said: dict[str, str]) -> list[Source]:
        """The message of a retry topic was redelivered too often."""
        found = []
        for name in self.model.retries:
            topic = self.model.topics[name]
            subscription = topic.subscriptions.get(said.get("REAL_SUBSCRIPTION", ""))
            record = None if subscription is None else self._consumer_of(letters, subscription)
            if subscription is None or record is None:
                continue
            for position, entry in topic.log.items():
                for index, sent in enumerate(entry.messages):
                    place = (*position, index)
                    if origin_of(sent.properties) == origin_of(said) and _came_too_often(record, place):
                        found.append(Source(subscription, place, sent))
        if not found:
            raise ViolationError("INV-C10", f"{letters.name}: a dead letter without a cause: {said}")
        return found

    def _consumer_of(self, letters: LetterEnd, subscription: SubscriptionRecord) -> ConsumerRecord | None:
        """Return the consumer that owns this producer for the subscription's dead letters."""
        before = f"{subscription.topic.name}-{subscription.name}-"
        consumer = letters.name.removeprefix(before).removesuffix("-DLQ").rpartition("-")[0]
        group = self.model.groups.get(consumer)
        if group is not None:
            return group.members.get(subscription.topic.name)
        return self.model.consumers.get(consumer)

    def got_receipt(self, letters: LetterEnd, command: Any, now: int) -> None:
        letter = letters.copies.get(command.sequence_id)
        if letter is None:
            return
        for subscription, place, _, put_off in letter.sources:
            subscription.copied.add(place)
            record = self._consumer_of(letters, subscription) if put_off is None else put_off.record
            if record is not None:
                record.given.copied(place, now)
                record.unjudged.copied(subscription.topic.chunks_of(place[:2]), place[2])
            if put_off is not None:
                put_off.is_stored(letter.copy)
                if put_off.cumulative and not put_off.record.closed:
                    self.model.acknowledge_cumulative(put_off.record, place)
                    put_off.record.given.copied_through(place)


def _came_too_often(record: ConsumerRecord, place: Place) -> bool:
    return bool(record.too_often.get(place[:2], 0) >> place[2] & 1)


def _is_copy(original: Sent, metadata: MessageMetadata, payload: bytes) -> bool:
    said = dict(metadata.properties)
    kept = {name: value for name, value in original.properties.items() if name not in CHANGING}
    return (
        payload == (original.payload or b"")
        and bool(metadata.null_value) is (original.payload is None)
        and (metadata.partition_key or None) == (original.key or None)
        and (metadata.event_time or 0) == original.event_time
        and all(said.get(name) == value for name, value in kept.items())
    )
