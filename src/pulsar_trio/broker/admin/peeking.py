"""A stored entry as an answer: its payload as the body, decompressed, and what its header says as headers of
HTTP, with a Java broker's names. A batch is one body: the HTTP client takes it apart.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from pulsar_sansio import Broker, StoredMessage

from .messages import Answer

PREFIX = "X-Pulsar-"

FRONT_SIZE = 10
"""Bytes of magic, checksum and the size of the metadata, which a Java broker counts to a batch's size."""

_PLAIN = {
    "producer_name": "producer-name",
    "sequence_id": "sequence-id",
    "replicated_from": "replicated-from",
    "partition_key": "partition-key",
    "encryption_algo": "encryption-algo",
    "marker_type": "marker-type",
    "txnid_least_bits": "txnid-least-bits",
    "txnid_most_bits": "txnid-most-bits",
    "highest_sequence_id": "highest-sequence-id",
    "uuid": "uuid",
    "num_chunks_from_msg": "num-chunks-from-msg",
    "total_chunk_msg_size": "total-chunk-msg-size",
    "chunk_id": "chunk-id",
}
_FLAGS = {
    "partition_key_b64_encoded": "partition-key-b64-encoded",
    "null_value": "null-value",
    "null_partition_key": "null-partition-key",
}
_BYTES = {
    "encryption_param": "Base64-encryption-param",
    "schema_version": "Base64-schema-version",
    "ordering_key": "Base64-ordering-key",
}
_TIMES = {
    "publish_time": "publish-time",
    "event_time": "event-time",
    "deliver_at_time": "deliver-at-time",
}
_COMPRESSIONS = ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")


def entry_answer(entry: StoredMessage) -> Answer:
    """200 with the payload, which stays compressed where it is encrypted."""
    ledger_id, entry_id = entry.message_id[:2]
    headers = [("X-Pulsar-Message-ID", f"{ledger_id}:{entry_id}")]
    headers += [(PREFIX + name, _one_line(value)) for name, value in _headers(entry)]
    return Answer(200, entry.payload, "application/octet-stream", headers)


def _headers(entry: StoredMessage) -> Iterator[tuple[str, str]]:
    metadata: Any = entry.metadata
    said = vars(metadata)
    yield "PROPERTY", json.dumps(dict(metadata.properties or ()), separators=(",", ":"))
    for field, name in _PLAIN.items():
        if field in said:
            yield name, str(said[field])
    for field, name in _FLAGS.items():
        if field in said:
            yield name, "true" if said[field] else "false"
    for field, name in _BYTES.items():
        if field in said:
            yield name, b64encode(said[field]).decode()
    for field, name in _TIMES.items():
        if field in said:
            yield name, date(said[field])
    count = metadata.num_messages_in_batch
    if count is not None:
        yield "num-batch-message", str(count)
        yield "batch-size", str(entry.stored_size + FRONT_SIZE)
    if metadata.compression:
        yield "compression", _COMPRESSIONS[metadata.compression]
    if "uncompressed_size" in said:
        yield "uncompressed-size", str(metadata.uncompressed_size)
    if metadata.encryption_keys:
        keys = [
            {"key": each.key, "value": b64encode(each.value).decode()} for each in metadata.encryption_keys
        ]
        yield "Base64-encryption-keys", b64encode(json.dumps(keys).encode()).decode()
    yield "Is-Encrypted", "true" if metadata.encryption_keys else "false"
    if entry.aborted is not None:
        yield "txn-aborted", "true" if entry.aborted else "false"
    yield "txn-uncommitted", "true" if entry.uncommitted else "false"
    if metadata.replicate_to:
        yield "replicated-to", ",".join(metadata.replicate_to)


def date(wall_time: int) -> str:
    """ISO 8601 in UTC; `wall_time` in milliseconds since 1970. A number that is no time is given as it is."""
    if not 0 <= wall_time < 1 << 47:
        return str(wall_time)
    fraction = f".{wall_time % 1000:03}".rstrip("0").rstrip(".")
    return Broker.wall_text(wall_time)[:-1] + fraction + "Z"


def _one_line(text: str) -> str:
    """A header has one line, of bytes below 256; what else there is, is shown escaped."""
    if text.isascii() and text.isprintable():
        return text
    return text.encode("unicode_escape").decode("ascii")
