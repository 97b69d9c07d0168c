"""The messages in a stored entry, where the broker has to look at them: for compaction and administrators.

A broker keeps what producers sent as it is; this is the one place that takes it apart, and puts a batch
together again without some of its messages.
"""

from collections.abc import Collection
from typing import NamedTuple

from ...model.errors import DecompressionFailed, FrameError
from ...wire import (
    Batch,
    MessageMetadata,
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
"""Bytes, uncompressed: no larger batch is taken apart."""


class Chunk(NamedTuple):
    """Which part of a message an entry is: `number` (from 0) of `total`, which is more than one.

    `publish_time` in ms, by the producer's clock.
    """

    producer: str
    uuid: str
    number: int
    total: int
    publish_time: int


class KeyedMessage(NamedTuple):
    """`key`: None where it has none. `empty`: without payload, which says that the key is gone. `chunk`: what
    it is of a message, where it is not all of it."""

    key: str | None
    empty: bool
    chunk: Chunk | None = None


def messages_of(data: bytes) -> list[KeyedMessage]:
    """The messages of an entry, in order; one where it is no batch, or one that cannot be read. Those that an
    earlier compaction has taken out have no key."""
    metadata = entry_metadata(data)
    if metadata.marker_type is not None:
        return [KeyedMessage(None, True)]
    count = metadata.num_messages_in_batch
    payload = None if count is None else batch_payload(data)
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


def batch_payload(data: bytes) -> bytes | None:
    """The uncompressed payload; None where it cannot be read: it is encrypted, or corrupt."""
    metadata = entry_metadata(data)
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
    """What an entry's header says, and its payload, uncompressed where that can be done."""
    payload = batch_payload(data)
    return entry_metadata(data), payload_of(data) if payload is None else payload


def without(data: bytes, kept: Collection[int]) -> bytes:
    """A batch, of which only the messages of these indexes are left. The places of the others stay, so that
    every message keeps its id; clients pass over them (rule COMPACT-02)."""
    payload = batch_payload(data)
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
    """The payload of an entry as it is stored."""
    return data[_metadata_end(data) :]
