"""The attributes of delivered messages: they are those of the entry on the wire, and what was submitted.

Owns the comparison (INV-C2). It reads the producer's metadata out of the bytes of the entry.
"""

from pulsar_sansio.model.message import Message
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.wire import MessageMetadata, unpack_payload

from ..engine.failures import ViolationError
from .records.entry import StoredEntry
from .records.sent import Sent


def check_fields(name: str, topic: str, message: Message, entry: StoredEntry, sent: Sent) -> None:
    """INV-C2: consumer `name` is given `message` of that entry, which is `sent`."""
    metadata = entry.metadata
    if metadata is None:
        metadata = entry.metadata = unpack_payload(entry.payload).metadata
    size = metadata.num_messages_in_batch
    found = (
        message.topic,
        message.message_id.partition,
        message.batch_index >= 0,
        message.message_id.batch_size,
        message.producer_name,
        message.publish_time,
        message.schema_version,
    )
    wanted = (
        topic,
        TopicName.parse(topic).partition,
        size is not None,
        size or 0,
        metadata.producer_name,
        metadata.publish_time,
        metadata.schema_version or None,
    )
    if found != wanted or message.batch_index < -1:
        raise ViolationError("INV-C2", f"{name}: {message.message_id} of {sent} has {found}, not {wanted}")
    _check_sequence_id(name, message, metadata)
    if sent.key is not None or sent.properties or sent.event_time:
        _check_submitted(name, message, sent)
    elif message.header.partition_key is not None or message.header.properties:
        raise ViolationError("INV-C2", f"{name}: {sent} was given a key or properties")


def _check_sequence_id(name: str, message: Message, metadata: MessageMetadata) -> None:
    if message.batch_index < 0:
        wanted = metadata.sequence_id
    elif message.batch_index == message.message_id.batch_size - 1:
        wanted = metadata.highest_sequence_id or metadata.sequence_id
    else:
        return
    if message.sequence_id != wanted:
        raise ViolationError(
            "INV-C2", f"{name}: {message.message_id} has the sequence id {message.sequence_id}, not {wanted}"
        )


def _check_submitted(name: str, message: Message, sent: Sent) -> None:
    if message.key != sent.key:
        raise ViolationError("INV-C2", f"{name}: {sent} has the key {message.key!r}, not {sent.key!r}")
    if dict(message.properties) != dict(sent.properties):
        raise ViolationError("INV-C2", f"{name}: {sent} has other properties")
    if (message.event_time or 0) != sent.event_time:
        raise ViolationError("INV-C2", f"{name}: {sent} has another event time")
