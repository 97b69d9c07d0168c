"""The messages in a stored entry, for compaction and administrators.

A broker stores entries as producers sent them. This module alone decodes them, and encodes a batch again
without some of its messages.
"""

from collections.abc import Collection
from typing import NamedTuple

from ...model.errors import DecompressionFailed, FrameError
from ...wire import (
    Batch,
    MessageMetadata,
    MetadataDecoder,
    SingleMessageMetadata,
    compress,
    decompress,
    encode_single,
    pack_payload,
    proto,
    split_batch,
)
from ..storage.entry import entry_metadata

MAX_BATCH = 64 * 1024 * 1024
"""The uncompressed size, in bytes, up to which a batch is decoded."""


class Chunk(NamedTuple):
    """One chunk of a message: `number` (from 0) of `total`, which is more than one.

    `publish_time` in ms, by the producer's clock.
    """

    producer: str
    uuid: str
    number: int
    total: int
    publish_time: int


class KeyedMessage(NamedTuple):
    """`key`: None for a message without. `empty`: the message has no payload, and deletes its key. `chunk`:
    None for a message in one entry."""

    key: str | None
    empty: bool
    chunk: Chunk | None = None


def messages_of(data: bytes, decoder: MetadataDecoder) -> list[KeyedMessage]:
    """Return the messages of an entry, in order. An entry that is no batch, or a batch that cannot be read,
    counts as one.

    Messages that an earlier compaction removed have no key.
    """
    metadata = entry_metadata(data, decoder)
    if metadata.marker_type is not None:
        return [KeyedMessage(None, True)]
    count = metadata.num_messages_in_batch
    payload = None if count is None else batch_payload(data, metadata)
    batch = None if payload is None or count is None else _split(payload, count)
    if batch is None:
        size = metadata.uncompressed_size if metadata.compression else len(payload_of(data))
        return [KeyedMessage(metadata.partition_key, metadata.null_value or not size, _chunk(metadata))]
    found = []
    for index, payload in enumerate(batch.payloads):
        single = batch.single(index)
        key = None if single.compacted_out else single.partition_key
        found.append(KeyedMessage(key, single.null_value or not payload))
    return found


def batch_payload(data: bytes, metadata: MessageMetadata) -> bytes | None:
    """Return the uncompressed payload of an entry with this metadata; None where it is encrypted or
    corrupt."""
    if metadata.encryption_keys:
        return None
    payload = payload_of(data)
    if not metadata.compression:
        return payload
    try:
        return decompress(metadata.compression, payload, metadata.uncompressed_size, MAX_BATCH)
    except DecompressionFailed:
        return None


def read_message(data: bytes) -> tuple[MessageMetadata, bytes]:
    """Return the metadata of an entry, and its payload, uncompressed unless it is encrypted or corrupt."""
    metadata = entry_metadata(data, MetadataDecoder())
    payload = batch_payload(data, metadata)
    return metadata, payload_of(data) if payload is None else payload


def without(data: bytes, kept: Collection[int]) -> bytes:
    """Encode a batch again with only the messages of these indexes.

    Removed messages leave empty ones behind, so every message keeps its id; clients skip them (rule
    COMPACT-02).
    """
    payload = batch_payload(data, entry_metadata(data, MetadataDecoder()))
    end = _metadata_end(data)
    metadata = proto.MessageMetadata.FromString(data[10:end])
    assert payload is not None
    batch = split_batch(payload, metadata.num_messages_in_batch)
    parts = []
    for index, each in enumerate(batch.payloads):
        if index in kept:
            parts.append(encode_single(batch.single(index), each))
        else:
            parts.append(encode_single(SingleMessageMetadata(0, compacted_out=True), b""))
    rewritten = b"".join(parts)
    metadata.compacted_batch_indexes[:] = sorted(kept)
    if metadata.compression:
        metadata.uncompressed_size = len(rewritten)
        rewritten = compress(metadata.compression, rewritten)
    return b"".join(pack_payload(metadata.SerializeToString(), rewritten))


def _chunk(metadata: MessageMetadata) -> Chunk | None:
    total = metadata.num_chunks_from_msg or 0
    if total <= 1 or metadata.num_messages_in_batch is not None:
        return None
    return Chunk(
        metadata.producer_name, metadata.uuid or "", metadata.chunk_id or 0, total, metadata.publish_time
    )


def _split(payload: bytes, count: int) -> Batch | None:
    try:
        return split_batch(payload, count)
    except FrameError:
        return None


def _metadata_end(data: bytes) -> int:
    return 10 + int.from_bytes(data[6:10], "big")


def payload_of(data: bytes) -> bytes:
    """Return the payload of an entry as it is stored."""
    return data[_metadata_end(data) :]
