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
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.entry import StoredEntry
from ..model.records.message_position import MessagePosition
from ..model.records.producer_record import Lane, ProducerRecord
from ..model.records.sent import Sent
from ..model.records.subscription_record import SubscriptionRecord
from ..model.records.topic_record import TopicRecord
from ..model.reference_model import ReferenceModel
from ..model.retry_requests import DELAY, TIMES, Copy, RetryRequest, origin_of
from .encrypted_frames import EncryptionWatch
from .send_frames import ProducerEnd

REPEATED_PROPERTIES = (TIMES, DELAY)
"""Properties that each copy of a copy sets anew."""


class CopySource(NamedTuple):
    """A message that a copy may be of."""

    subscription: SubscriptionRecord
    message_position: MessagePosition
    sent: Sent
    requested: RetryRequest | None = None
    """The request to reconsume the message later."""

    def is_undecrypted(self, payload: bytes) -> bool:
        """True when the copy is of an entry that was delivered as it is (CRYPTO-06)."""
        sealed = self.subscription.topic.log[self.message_position[:2]].sealed
        return sealed is not None and payload == sealed.ciphertext

    def of_whole_entry(self) -> "list[CopySource]":
        """Return all messages of the entry: one that was delivered as it is stands for them."""
        position = self.message_position[:2]
        messages = self.subscription.topic.log[position].messages
        return [CopySource(self.subscription, (*position, at), sent) for at, sent in enumerate(messages)]


class WrittenCopy(NamedTuple):
    """A copy, however often it is written."""

    copy: Copy
    sources: list[CopySource]
    """The possible sources: a message that was copied twice may be copied again twice."""
    consumer: ConsumerRecord | None
    """The consumer that copies, where its name tells."""


class CopyProducerEnd(ProducerEnd):
    """A copy producer's id on one wire."""

    __slots__ = ("copies", "name")

    def __init__(self, record: ProducerRecord, lane: Lane, name: str) -> None:
        super().__init__(record, lane)
        self.name = name
        self.copies: dict[int, WrittenCopy] = {}
        """Copies by sequence id."""


class CopyWatch:
    """All copies of a world."""

    def __init__(self, model: ReferenceModel, encryption: EncryptionWatch) -> None:
        self.model = model
        self._encryption = encryption
        self._copies: dict[tuple[str, bytes], WrittenCopy] = {}
        """Copies by topic and payload; the payload names producer and time."""

    def opened(self, topic: TopicRecord, name: str) -> CopyProducerEnd:
        spec = ProducerSpec(topic=topic.name, **self._encryption.letters)
        record = ProducerRecord(name or f"later in {topic.name}", topic, spec)
        return CopyProducerEnd(record, record.lane(topic), record.tag)

    def wrote(self, producer: CopyProducerEnd, command: Send) -> WrittenCopy:
        """A copy is written, perhaps not for the first time."""
        key = producer.lane.topic.name, command.payload
        written = self._copies.get(key)
        if written is None:
            written = self._copies[key] = self._wrote_first(producer, command)
        producer.copies[command.sequence_id] = written
        return written

    def _wrote_first(self, producer: CopyProducerEnd, command: Send) -> WrittenCopy:
        unpacked = unpack_payload(command.payload)
        metadata = unpacked.metadata
        properties = dict(metadata.properties)
        requested = self.model.retry_requests.of(origin_of(properties))
        record, topic = producer.record, producer.lane.topic
        plain, sealed = self._encryption.opened(
            record, topic.name, metadata, bytes(unpacked.payload), command.payload
        )
        later = producer.lane.topic.name in self.model.retry_topics
        if later or (requested and origin_of(properties)[2] > requested[0].most):
            sources = self._retry_sources(producer, metadata, requested)
        else:
            sources = self._dead_letter_sources(producer, properties)
        original = sources[0].sent
        undecrypted = sources[0].is_undecrypted(plain)
        if not (undecrypted or _is_copy(original, metadata, plain)):
            raise ViolationError("INV-C10", f"{producer.name}: the copy of {original} is another message")
        number = len(self._copies) + 1
        payload, key, time = original.payload, original.key, original.event_time
        if undecrypted:
            payload, key, time = plain, metadata.partition_key, metadata.event_time or 0
            sources = sources[0].of_whole_entry()
        sent = Sent(producer.record, number, payload, key, properties, time)
        sent.topic = topic
        sent.deliver_at = metadata.deliver_at_time or None
        sent.has_base64_key = original.has_base64_key
        sent.written = original.written if producer.record.definition is not None else None
        entry = topic.sends[command.payload] = StoredEntry(command.payload, (sent,))
        entry.sealed = sealed
        first = sources[0]
        consumer = first.requested and first.requested.record
        return WrittenCopy(Copy(number), sources, consumer or self._consumer_of(producer, first.subscription))

    def _retry_sources(
        self, producer: CopyProducerEnd, metadata: MessageMetadata, requested: list[RetryRequest]
    ) -> list[CopySource]:
        """An application asked for the copy, which has the right count and delay."""
        times = origin_of(dict(metadata.properties))[2]
        name = producer.lane.topic.name
        wrong = [each.what_is_wrong(name, times, metadata) for each in requested]
        if "" not in wrong:
            why = "; ".join(dict.fromkeys(wrong)) or "no application asked for it"
            properties = dict(metadata.properties)
            raise ViolationError("INV-C10", f"{producer.name}: a copy that says {properties}: {why}")
        return [
            CopySource(each.record.subscription, each.message_position, each.sent, each)
            for each, why in zip(requested, wrong, strict=True)
            if not why
        ]

    def _dead_letter_sources(self, producer: CopyProducerEnd, properties: dict[str, str]) -> list[CopySource]:
        """The message was redelivered too often to the consumer that owns the producer, and was not
        acknowledged."""
        if TIMES in properties:
            return self._dead_letter_sources_of_copies(producer, properties)
        parts = [int(part) for part in properties.get("ORIGIN_MESSAGE_ID", "").split(":") if part]
        topic = self.model.topics.get(properties.get("REAL_TOPIC", ""))
        subscription = topic.subscriptions.get(properties.get("REAL_SUBSCRIPTION", "")) if topic else None
        if topic is None or subscription is None or len(parts) < 3:
            raise ViolationError(
                "INV-C10", f"{producer.name}: a copy does not say where it is from: {properties}"
            )
        message_position = (parts[0], parts[1], parts[3] if len(parts) > 3 else 0)
        entry = topic.log.get(message_position[:2])
        record = self._consumer_of(producer, subscription)
        if entry is not None and entry.sealed is not None and parts[-1] < 0 and record is not None:
            often = record.too_often.get(message_position[:2], 0)  # one copy may stand for the whole entry
            message_position = (parts[0], parts[1], max((often & -often).bit_length() - 1, 0))
        if entry is None or message_position[2] >= len(entry.messages):
            raise ViolationError(
                "INV-C10", f"{producer.name}: a copy of {message_position}, which is not there"
            )
        if record is not None and not _came_too_often(record, message_position):
            raise ViolationError(
                "INV-C10", f"{record.name}: {message_position} is a dead letter without a cause"
            )
        return [CopySource(subscription, message_position, entry.messages[message_position[2]])]

    def _dead_letter_sources_of_copies(
        self, producer: CopyProducerEnd, properties: dict[str, str]
    ) -> list[CopySource]:
        """The message of a retry topic was redelivered too often."""
        found = []
        for name in self.model.retry_topics:
            topic = self.model.topics[name]
            subscription = topic.subscriptions.get(properties.get("REAL_SUBSCRIPTION", ""))
            record = None if subscription is None else self._consumer_of(producer, subscription)
            if subscription is None or record is None:
                continue
            for position, entry in topic.log.items():
                for index, sent in enumerate(entry.messages):
                    message_position = (*position, index)
                    if origin_of(sent.properties) == origin_of(properties) and _came_too_often(
                        record, message_position
                    ):
                        found.append(CopySource(subscription, message_position, sent))
        if not found:
            raise ViolationError("INV-C10", f"{producer.name}: a dead letter without a cause: {properties}")
        return found

    def _consumer_of(
        self, producer: CopyProducerEnd, subscription: SubscriptionRecord
    ) -> ConsumerRecord | None:
        """Return the consumer that owns this producer for the subscription's dead letters."""
        before = f"{subscription.topic.name}-{subscription.name}-"
        consumer = producer.name.removeprefix(before).removesuffix("-DLQ").rpartition("-")[0]
        group = self.model.groups.get(consumer)
        if group is not None:
            return group.members.get(subscription.topic.name)
        return self.model.consumers.get(consumer)

    def got_receipt(self, producer: CopyProducerEnd, command: Any, now: int) -> None:
        written = producer.copies.get(command.sequence_id)
        if written is None:
            return
        for subscription, message_position, _, requested in written.sources:
            subscription.copied.add(message_position)
            record = self._consumer_of(producer, subscription) if requested is None else requested.record
            if record is not None:
                record.deliveries.copied(message_position, now)
                record.redelivery_timing.copied(
                    subscription.topic.chunks_of(message_position[:2]), message_position[2]
                )
            if requested is not None:
                requested.is_stored(written.copy)
                if requested.cumulative and not requested.record.closed:
                    self.model.acknowledge_cumulative(requested.record, message_position)
                    requested.record.deliveries.copied_through(message_position)


def _came_too_often(record: ConsumerRecord, message_position: MessagePosition) -> bool:
    return bool(record.too_often.get(message_position[:2], 0) >> message_position[2] & 1)


def _is_copy(original: Sent, metadata: MessageMetadata, payload: bytes) -> bool:
    properties = dict(metadata.properties)
    kept = {name: value for name, value in original.properties.items() if name not in REPEATED_PROPERTIES}
    return (
        payload == (original.payload or b"")
        and bool(metadata.null_value) is (original.payload is None)
        and (metadata.partition_key or None) == (original.key or None)
        and (metadata.event_time or 0) == original.event_time
        and all(properties.get(name) == value for name, value in kept.items())
    )
