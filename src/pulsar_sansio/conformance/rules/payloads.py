"""Rules about the entry behind SEND: metadata, sizes, checksum, batches, compression, encryption, schema.

The rules check a producer's part of an entry when the producer sends it. The broker that delivers the entry
answers only for the parts that a broker looks at.
"""

from typing import Any

from ...model.config import CompressionType
from .. import commands as c
from ..findings import Finding
from ..registry import rule
from ..state.state import State
from ..traits import (
    BATCH,
    BROKER_BLOCK,
    CHUNK,
    COMPRESSED,
    DELAYED,
    ENCRYPTED,
    MARKER,
    NULL,
    SCHEMA,
    SIZED,
    UNREADABLE,
)

NONCE_SIZE = 12
"""Bytes of the initialisation vector of AES-GCM."""
TAG_SIZE = 16
"""Bytes of its tag, the least that an encrypted payload has."""
_CODECS = frozenset(int(codec) for codec in CompressionType)

# --- headers ---------------------------------------------------------------------------------------


@rule("GAP-02", c.SEND, c.MESSAGE, traits=UNREADABLE)
def checksums_are_right(state: State, command: Any) -> Finding:
    """The checksum is CRC-32C over metadata size, metadata and payload as sent.

    A broker that got a wrong one refuses the message, so one that delivers it answers for it.
    """
    return state.entry.checksum_wrong or None


@rule("CHECK-38", c.SEND, c.MESSAGE, traits=UNREADABLE)
def headers_can_be_read(state: State, command: Any) -> Finding:
    """Behind SEND and MESSAGE stand the headers, whole, with metadata that has its required fields."""
    return state.entry.wrong or None


@rule("CHECK-39", c.SEND, traits=BROKER_BLOCK)
def no_broker_entry_metadata(state: State, send: Any) -> Finding:
    """Broker entry metadata is the broker's: SEND has none."""
    return "SEND with broker entry metadata" if state.entry.broker_block else None


@rule("CHECK-40", c.SEND)
def highest_is_not_below(state: State, send: Any) -> Finding:
    """highest_sequence_id is not below sequence_id."""
    if send.highest_sequence_id is None or send.highest_sequence_id >= send.sequence_id:
        return None
    return f"sequence_id {send.sequence_id}, highest_sequence_id {send.highest_sequence_id}"


@rule("CHECK-41", c.SEND)
def counts_agree(state: State, send: Any) -> Finding:
    """num_messages of SEND is the batch's number of messages, and 1 for a message alone."""
    metadata = state.entry.metadata
    if metadata is None or send.num_messages == (metadata.num_messages_in_batch or 1):
        return None
    return f"SEND counts {send.num_messages} messages, the metadata {metadata.num_messages_in_batch or 1}"


@rule("CHECK-42", c.SEND)
def sequence_ids_agree(state: State, send: Any) -> Finding:
    """SEND and its metadata have the same sequence ids; replicated messages excepted."""
    metadata = state.entry.metadata
    if metadata is None or metadata.replicated_from is not None:
        return None
    if metadata.sequence_id != send.sequence_id:
        return f"SEND has sequence id {send.sequence_id}, the metadata {metadata.sequence_id}"
    highest = metadata.highest_sequence_id
    if highest is None or send.highest_sequence_id is None or highest == send.highest_sequence_id:
        return None
    return f"SEND has highest id {send.highest_sequence_id}, the metadata {highest}"


@rule("CHECK-43", c.SEND)
def metadata_has_the_name(state: State, send: Any) -> Finding:
    """The metadata names the producer as PRODUCER_SUCCESS did; replicated messages excepted."""
    metadata, producer = state.entry.metadata, state.producer
    if metadata is None or producer is None or metadata.replicated_from is not None or not producer.name:
        return None
    if metadata.producer_name in (producer.name, producer.memory.name):
        return None
    return f"the metadata says {metadata.producer_name!r}, the producer is {producer.name!r}"


@rule("CHECK-44", c.SEND, traits=MARKER)
def markers_are_marked(state: State, send: Any) -> Finding:
    """A marker is marked in SEND and in the metadata; nothing else is."""
    metadata = state.entry.metadata
    if metadata is None or send.marker == (metadata.marker_type is not None):
        return None
    return "a marker in SEND or in the metadata alone"


@rule("PROD-35", c.SEND)
def payloads_fit(state: State, send: Any) -> Finding:
    """No payload is above the maximum message size."""
    size = len(state.entry.payload)
    if size <= state.max_message_size:
        return None
    return f"a payload of {size} bytes, allowed are {state.max_message_size}"


@rule("PROD-37", c.SEND, traits=SCHEMA)
def schema_versions_were_given(state: State, send: Any) -> Finding:
    """The schema version in the metadata is one the broker has given for the topic.

    Replicated messages keep that of their origin.
    """
    metadata, producer = state.entry.metadata, state.producer
    if metadata is None or producer is None or not metadata.schema_version:
        return None
    if metadata.replicated_from is not None:
        return None
    known = state.memory.topics.schema_versions.get(producer.topic, set())
    if metadata.schema_version in known or len(known) >= 256:
        return None
    return f"schema version {metadata.schema_version.hex()} was never given for {producer.topic}"


# --- batches ---------------------------------------------------------------------------------------


@rule("BATCH-06", c.SEND, traits=BATCH)
def batches_are_not_empty(state: State, send: Any) -> Finding:
    """An empty batch is never sent."""
    metadata = state.entry.metadata
    if metadata is None or metadata.num_messages_in_batch is None or metadata.num_messages_in_batch > 0:
        return None
    return f"a batch of {metadata.num_messages_in_batch} messages"


@rule("CHECK-45", c.SEND, traits=BATCH)
def batches_hold_what_they_count(state: State, send: Any) -> Finding:
    """A batch's payload is exactly as many messages as its metadata counts."""
    state.entry.look_inside()
    return state.entry.batch_wrong or None


@rule("CHECK-46", c.SEND, traits=BATCH)
def members_have_their_ids(state: State, send: Any) -> Finding:
    """The sequence ids of a batch's messages ascend, from the batch's own to its highest.

    A batch of one key is named by its highest id instead. Members without any id belong to old clients.
    """
    state.entry.look_inside()
    return state.entry.sequences_wrong or None


@rule("BATCH-11", c.SEND, traits=BATCH)
def members_keep_their_own(state: State, send: Any) -> Finding:
    """Properties and event times of a batch's messages live in the single metadata."""
    metadata = state.entry.metadata
    if metadata is None or metadata.num_messages_in_batch is None:
        return None
    if metadata.properties:
        return f"the metadata of a batch has {len(metadata.properties)} properties"
    return (
        f"the metadata of a batch has the event time {metadata.event_time}" if metadata.event_time else None
    )


@rule("DELAY-03", c.SEND, traits=DELAYED)
def delayed_messages_travel_alone(state: State, send: Any) -> Finding:
    """A message with a delivery time is never batched."""
    metadata = state.entry.metadata
    if metadata is None or metadata.deliver_at_time is None or metadata.num_messages_in_batch is None:
        return None
    return f"a batch with deliver_at_time {metadata.deliver_at_time}"


# --- compression, null values ----------------------------------------------------------------------


@rule("CHECK-47", c.SEND, traits=COMPRESSED)
def codecs_are_known(state: State, send: Any) -> Finding:
    """The codec is one of the five."""
    metadata = state.entry.metadata
    if metadata is None or metadata.compression in _CODECS:
        return None
    return f"compression {metadata.compression}"


@rule("CHECK-48", c.SEND, traits=COMPRESSED | SIZED)
def sizes_are_kept(state: State, send: Any) -> Finding:
    """The payload decompresses to uncompressed_size bytes; without codec it has that size, where given."""
    metadata = state.entry.metadata
    if metadata is None or metadata.compression not in _CODECS:
        return None
    return state.entry.size_wrong or None


@rule("CHECK-49", c.SEND, traits=BATCH | NULL)
def null_is_empty(state: State, send: Any) -> Finding:
    """A message whose value is null has no payload."""
    return "a null value with a payload" if state.entry.null_with_payload() else None


# --- encryption ------------------------------------------------------------------------------------


@rule("CHECK-50", c.SEND, traits=ENCRYPTED)
def encrypted_payloads_are_whole(state: State, send: Any) -> Finding:
    """An encrypted payload has a nonce of 12 bytes in its metadata and room for the tag of 16."""
    metadata = state.entry.metadata
    if metadata is None or not metadata.encryption_keys:
        return None
    if len(metadata.encryption_param or b"") != NONCE_SIZE:
        return f"a nonce of {len(metadata.encryption_param or b'')} bytes"
    size = len(state.entry.payload)
    return None if size >= TAG_SIZE else f"an encrypted payload of {size} bytes"


@rule("CHECK-51", c.SEND, traits=ENCRYPTED)
def encryption_was_announced(state: State, send: Any) -> Finding:
    """A producer that encrypts has said so in PRODUCER."""
    if state.producer is None or state.producer.encrypted or not state.entry.encrypted:
        return None
    return "an encrypted message of a producer that announced none"


@rule("INV-X3", c.SEND, traits=ENCRYPTED)
def nonces_are_used_once(state: State, send: Any) -> Finding:
    """A pair of key and nonce is never used for two payloads."""
    metadata, producer = state.entry.metadata, state.producer
    if metadata is None or producer is None or not metadata.encryption_keys:
        return None
    for key in metadata.encryption_keys:
        used = producer.memory.nonces.get((key.value, metadata.encryption_param or b""))
        if used is not None and used != state.entry.digest:
            nonce = (metadata.encryption_param or b"").hex()
            return f"the nonce {nonce} was used before with the key {key.key!r}"
    return None


# --- chunks ----------------------------------------------------------------------------------------


@rule("CHECK-52", c.SEND, traits=CHUNK)
def chunks_are_complete(state: State, send: Any) -> Finding:
    """A chunk has uuid, number, count above 1 and total size, and its number is below the count."""
    metadata = state.entry.metadata
    if metadata is None:
        return None
    chunk, count = metadata.chunk_id, metadata.num_chunks_from_msg
    if chunk is None and (count is None or count <= 1):
        return None
    if chunk is None or count is None or not metadata.uuid or metadata.total_chunk_msg_size is None:
        return "a chunk lacks uuid, chunk_id, num_chunks_from_msg or total_chunk_msg_size"
    return None if count > 1 and 0 <= chunk < count else f"chunk {chunk} of {count}"


@rule("CHECK-53", c.SEND, traits=CHUNK)
def chunks_are_marked(state: State, send: Any) -> Finding:
    """SEND says of chunks, and of nothing else, that they are chunks."""
    metadata = state.entry.metadata
    if metadata is None or send.is_chunk == (metadata.chunk_id is not None):
        return None
    return f"is_chunk is {send.is_chunk}, chunk_id {metadata.chunk_id}"


@rule("CHUNK-01", c.SEND, traits=CHUNK)
def chunks_are_no_batches(state: State, send: Any) -> Finding:
    """Chunking excludes batching: a chunk is no batch."""
    metadata = state.entry.metadata
    if metadata is None or metadata.chunk_id is None or metadata.num_messages_in_batch is None:
        return None
    return f"chunk {metadata.chunk_id} is a batch of {metadata.num_messages_in_batch}"


@rule("GAP-11", c.SEND, traits=CHUNK)
def chunks_come_in_order(state: State, send: Any) -> Finding:
    """The chunks of a message are sent one after the other, from 0, with the same count and total size."""
    metadata, producer = state.entry.metadata, state.producer
    if metadata is None or producer is None or metadata.chunk_id is None or producer.match >= 0:
        return None
    before = producer.memory.chunk
    if metadata.chunk_id in (0, producer.memory.refused.get(send.sequence_id)):
        return None
    if before is None or before[0] != metadata.uuid:
        return f"chunk {metadata.chunk_id} of {metadata.uuid!r} is the first one"
    if metadata.chunk_id > before[1] + 1:
        return f"chunk {metadata.chunk_id} after chunk {before[1]}"
    if before[2:] == (metadata.num_chunks_from_msg, metadata.total_chunk_msg_size):
        return None
    return (
        f"{metadata.num_chunks_from_msg} chunks of {metadata.total_chunk_msg_size} bytes, "
        f"before {before[2]} of {before[3]}"
    )


@rule("CHECK-54", c.SEND, traits=CHUNK)
def chunks_add_up(state: State, send: Any) -> Finding:
    """The chunks' payloads, where they are not encrypted, add up to the total size."""
    metadata, producer = state.entry.metadata, state.producer
    if metadata is None or producer is None or metadata.chunk_id is None or metadata.encryption_keys:
        return None
    count, total, before = metadata.num_chunks_from_msg, metadata.total_chunk_msg_size, producer.memory.chunk
    if count is None or total is None or metadata.chunk_id != count - 1 or producer.match >= 0:
        return None
    if before is None or before[0] != metadata.uuid or before[1] != metadata.chunk_id - 1:
        return None
    if producer.memory.chunk_bytes < 0:
        return None
    size = producer.memory.chunk_bytes + len(state.entry.payload)
    return None if size == total else f"the chunks have {size} bytes, total_chunk_msg_size is {total}"
