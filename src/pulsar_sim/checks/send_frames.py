"""The producers' frames on the clients' ends: contents and order of SENDs.

Owns what each producer has written on each attachment, and the chunks of messages. A SEND holds what was
submitted, unchanged; sequence ids rise, no message overtakes another or is left out when messages are resent;
exclusive access has an epoch of its own. `client_frames` owns the wires and the producers open on each.
"""

from typing import Any

from pulsar_sansio.model.config import CompressionType, ProducerAccessMode
from pulsar_sansio.wire import Send, decompress, split_batch, unpack_payload

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..model.records.entry import StoredChunk, StoredEntry
from ..model.records.producer_record import Lane, ProducerRecord
from ..model.records.sent import Sent
from ..model.redelivery_timing import LATEST
from ..model.reference_model import ReferenceModel
from .encrypted_frames import EncryptionWatch

LIMIT = 64 * 1024 * 1024


class ProducerEnd:
    """A producer id on one wire."""

    __slots__ = (
        "chunks",
        "closed",
        "lane",
        "last_of_key",
        "last_sequence",
        "last_ticket",
        "ready",
        "ready_at",
        "record",
    )

    def __init__(self, record: ProducerRecord, lane: Lane) -> None:
        self.record = record
        self.lane = lane
        self.chunks: tuple[Sent, int, int] | None = None
        """The message of which some chunks were written: its last chunk's number, and the number of
        chunks."""
        self.ready = False
        self.ready_at = 0
        self.closed = False
        self.last_sequence = -1
        self.last_ticket = -1
        self.last_of_key: dict[str | None, int] = {}
        """The last ticket of each key, where batches are made by key."""


class SendWatch:
    """The frames of all producers; they feed the reference model."""

    def __init__(self, model: ReferenceModel, encryption: EncryptionWatch) -> None:
        self.model = model
        self._encryption = encryption
        self._chunks: dict[Sent, dict[int, bytes]] = {}
        """Messages of which some chunks were written."""

    def has_access(self, producer: ProducerEnd, command: Any) -> None:
        """INV-P11: exclusive access has an epoch that no other producer ever has."""
        record, lane = producer.record, producer.lane
        if record.spec.access_mode is ProducerAccessMode.SHARED or not command.HasField("topic_epoch"):
            return
        epoch = command.topic_epoch
        owner = self.model.epochs.setdefault((lane.topic.name, epoch), record)
        if owner is not record:
            raise ViolationError("INV-P11", f"{record.tag} and {owner.tag} have epoch {epoch}")
        if lane.epoch is not None and epoch < lane.epoch:
            raise ViolationError("INV-P11", f"{record.tag}: epoch {epoch} after {lane.epoch}")
        lane.epoch = epoch

    def wrote(self, producer: ProducerEnd, command: Send, now: int) -> None:
        """INV-P2, INV-P3, INV-P6: an open producer writes a SEND."""
        record, lane = producer.record, producer.lane
        topic = lane.topic
        entry = topic.sends.get(command.payload)
        if entry is None:
            entry = self._parse(record, topic.name, command)
            self._encryption.check_time(record, entry, now)
            topic.sends[command.payload] = entry
            frame = (command.sequence_id, 0 if entry.chunk is None else entry.chunk.number)
            known = lane.frames.setdefault(frame, command.payload)
            if known is not command.payload:
                raise ViolationError(
                    "INV-P6", f"{record.tag}: sequence id {command.sequence_id} is used twice"
                )
            for sent in entry.messages:
                if sent.topic is not topic:
                    self.model.routed(sent, topic)
        else:
            frame = (command.sequence_id, 0 if entry.chunk is None else entry.chunk.number)
            if lane.frames.get(frame) != command.payload:
                raise ViolationError("INV-P6", f"{record.tag}: sent again under another sequence id")
        if lane.epoch is not None and lane.epoch not in entry.epochs:
            entry.epochs = (*entry.epochs, lane.epoch)
        if (entry.chunk is not None or producer.chunks is not None) and self._goes_on(producer, entry):
            return
        highest = command.highest_sequence_id
        if command.sequence_id <= producer.last_sequence:
            raise ViolationError(
                "INV-P6", f"{record.tag}: sequence id {command.sequence_id} after {producer.last_sequence}"
            )
        if producer.last_sequence < 0 and record.spec.initial_sequence_id is not None:
            self._check_first(producer)
        producer.last_sequence = command.sequence_id if highest is None else highest
        messages = entry.messages
        if record.by_key:
            self._check_key(producer, messages)
            return
        first, last = messages[0].ticket, messages[-1].ticket
        # All pending messages must be on this attachment before any younger one (INV-P3, INV-P6).
        pending = record.pending
        if pending:
            oldest = next(iter(pending))
            for ticket in range(max(oldest, producer.last_ticket + 1), first):
                if ticket in pending and pending[ticket].topic is topic:
                    raise ViolationError("INV-P6", f"{record.tag}: ticket {first} overtakes {ticket}")
        if first <= producer.last_ticket:
            raise ViolationError("INV-P6", f"{record.tag}: ticket {first} is sent twice on one attachment")
        producer.last_ticket = last
        if entry.chunk is None or entry.chunk.number == entry.chunk.total - 1:
            for sent in messages:
                sent.wires += 1

    @staticmethod
    def check_batch(producer: ProducerEnd, waited_until: int, now: int) -> None:
        """INV-P8: an attached producer writes each accepted message before the delay of its batch is over.
        Each partition of a partitioned topic has its own delay. `waited_until`: the last time at which
        messages may have waited for the version of their schema."""
        record = producer.record
        if not record.pending or record.closed or record.topic is not producer.lane.topic:
            return
        batching = record.spec.batching
        delay = 0 if batching is None else round(batching.max_delay * SECOND)
        latest = now - delay - LATEST
        if max(producer.ready_at, waited_until) > latest:  # earlier messages are put into batches only then
            return
        for sent in record.pending.values():
            if sent.sent_at > latest:
                break
            if not sent.wires:
                raise ViolationError("INV-P8", f"{sent} is not written, and the time of its batch is over")

    @staticmethod
    def _check_first(producer: ProducerEnd) -> None:
        """PROD-04: the first message ever written has the id behind the initial one, and behind those of
        messages that failed before, whose ids may be spent."""
        record, lane = producer.record, producer.lane
        initial = record.spec.initial_sequence_id
        assert initial is not None
        first, chunk = min(lane.frames)
        ticket = lane.topic.sends[lane.frames[first, chunk]].messages[0].ticket
        before = [sent for sent in record.sent if sent.ticket < ticket and sent.topic in (lane.topic, None)]
        spent = sum(sent.outcome == "failed" and not sent.wires for sent in before)
        if not initial < first or (first > initial + 1 + spent and not record.by_key):
            raise ViolationError("INV-P6", f"{record.tag} begins with {first}, not behind {initial}")

    @staticmethod
    def _check_key(producer: ProducerEnd, messages: tuple[Sent, ...]) -> None:
        """INV-P3, INV-P6: an entry has messages of one key, and no message of a key overtakes another."""
        record, key = producer.record, messages[0].key
        last = producer.last_of_key.get(key, -1)
        first = messages[0].ticket
        if any(sent.key != key for sent in messages):
            raise ViolationError("INV-P3", f"{record.tag}: a batch mixes {key!r} with other keys")
        if first <= last:
            raise ViolationError("INV-P6", f"{record.tag}: ticket {first} is sent after {last} of its key")
        for ticket, sent in record.pending.items():
            if last < ticket < first and sent.key == key and sent.topic is producer.lane.topic:
                raise ViolationError("INV-P6", f"{record.tag}: ticket {first} overtakes {ticket} of its key")
        producer.last_of_key[key] = messages[-1].ticket
        for sent in messages:
            sent.wires += 1

    @staticmethod
    def _goes_on(producer: ProducerEnd, entry: StoredEntry) -> bool:
        """INV-P6: no message comes between the chunks of another, and none is left out. A new attachment
        writes the chunks without receipt: it may begin with any. Return True when this chunk follows
        another."""
        before, chunk = producer.chunks, entry.chunk
        sent = entry.messages[0]
        whole = chunk is None or chunk.number == chunk.total - 1
        producer.chunks = None if chunk is None or whole else (sent, chunk.number, chunk.total)
        if before is None:
            return False
        same, number, _ = before
        if chunk is not None and same is sent:
            if chunk.number != number + 1:
                raise ViolationError("INV-P6", f"{sent}: chunk {chunk.number} after {number}")
            sent.wires += whole
            return True
        if same.outcome == "":
            raise ViolationError("INV-P6", f"{sent} comes between the chunks of {same}")
        return False

    def _parse(self, record: ProducerRecord, topic: str, command: Send) -> StoredEntry:
        """INV-P2: return the messages of a SEND, which are those the application submitted."""
        unpacked = unpack_payload(command.payload)
        metadata = unpacked.metadata
        payload = bytes(unpacked.payload)
        if unpacked.checksum_ok is not True:
            raise ViolationError("INV-P2", f"{record.tag}: SEND without a right checksum")
        payload, sealed = self._encryption.opened(record, topic, metadata, payload, command.payload)
        if metadata.uuid is not None:
            entry = self._parse_chunk(record, command, metadata, payload)
            entry.sealed = sealed
            return entry
        codec = CompressionType(metadata.compression or 0)
        if codec is not CompressionType.NONE:
            payload = bytes(decompress(codec, payload, metadata.uncompressed_size or 0, LIMIT))
        by_identity = self.model.by_identity
        messages: list[Sent] = []
        if metadata.num_messages_in_batch is None:
            found = by_identity.get(payload or dict(metadata.properties).get("n", ""))
            if found is not None:
                messages.append(found)
            count = 1
        else:
            count = metadata.num_messages_in_batch
            batch = split_batch(payload, count)
            for index, value in enumerate(batch.payloads):
                value = bytes(value)
                found = by_identity.get(value or dict(batch.single(index).properties).get("n", ""))
                if found is not None:
                    messages.append(found)
        if len(messages) != count or count != command.num_messages:
            raise ViolationError(
                "INV-P2", f"{record.tag}: a SEND of {command.num_messages} holds something else"
            )
        previous = messages[0].ticket - 1
        for sent in messages:
            if sent.producer is not record:
                raise ViolationError("INV-P2", f"{record.tag} sends {sent}")
            if sent.ticket <= previous:
                raise ViolationError("INV-P3", f"{record.tag}: {sent} stands out of order in its batch")
            previous = sent.ticket
        entry = StoredEntry(command.payload, tuple(messages))
        entry.sealed = sealed
        return entry

    def _parse_chunk(
        self, record: ProducerRecord, command: Send, metadata: Any, payload: bytes
    ) -> StoredEntry:
        """INV-C11: return the entry of one chunk; with the last one, the message must be what was
        submitted."""
        sent = self.model.by_identity.get(dict(metadata.properties).get("n", ""))
        number, total = metadata.chunk_id, metadata.num_chunks_from_msg
        if sent is None or sent.producer is not record:
            raise ViolationError("INV-P2", f"{record.tag} sends a chunk of {sent}")
        if command.num_messages != 1 or command.is_chunk is not True:
            raise ViolationError("INV-P2", f"{sent}: a chunk that is not marked as one message's")
        if not 0 <= number < total or total < 2 or not payload:
            raise ViolationError("INV-C11", f"{sent}: chunk {number} of {total}, {len(payload)} bytes")
        size, limit = metadata.total_chunk_msg_size, record.spec.chunk_max_message_size
        if limit is not None and len(payload) > limit:
            raise ViolationError("INV-C11", f"{sent}: a chunk of {len(payload)} bytes, {limit} are allowed")
        parts = self._chunks.setdefault(sent, {})
        parts[number] = payload
        if len(parts) == total:
            joined = b"".join(parts[each] for each in range(total))
            del self._chunks[sent]
            codec = CompressionType(metadata.compression or 0)
            if len(joined) != size:
                raise ViolationError("INV-C11", f"{sent}: {len(joined)} bytes in chunks, {size} announced")
            if codec is not CompressionType.NONE:
                joined = bytes(decompress(codec, joined, metadata.uncompressed_size or 0, LIMIT))
            if joined != sent.payload:
                raise ViolationError("INV-C11", f"{sent}: its chunks make something else")
        return StoredEntry(command.payload, (sent,), StoredChunk(number, total, metadata.uuid))
