"""The entries behind SEND and MESSAGE, each distinct run of bytes read once.

A producer sends an entry once and the broker delivers it several times. So the checker keeps what it found
out about the entry's bytes for a while. It looks inside of a batch or a compressed payload only where a rule
asks for that. The producer alone answers for its payload, and the broker that delivers it has no part in it.
"""

from collections.abc import Sequence
from itertools import pairwise

from ..model.errors import ChecksumMismatch, DecompressionFailed, FrameError
from ..wire import (
    MessageMetadata,
    SingleMessageMetadata,
    crc32c,
    decompress,
    single_prefix,
    split_batch,
    unpack_payload,
)
from ..wire.messages.payload_frame import BROKER_ENTRY_METADATA_MAGIC, CHECKSUM_MAGIC
from .traits import (
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
    TRANSACTION,
    UNREADABLE,
)

_KEPT = 1024
"""Entries remembered."""
_KEPT_BYTES = 16 * 1024
"""Entries above this size, in bytes, are read again each time."""
_DECOMPRESS_LIMIT = 16 * 1024 * 1024
"""Bytes up to which a payload is decompressed in order to look inside; a larger one stays closed."""


class ObservedEntry:
    """Headers and payload, read."""

    __slots__ = (
        "_looked_inside", "_null_with_payload", "_size_wrong", "batch_wrong", "broker_block",
        "checksum_wrong", "count", "digest", "metadata", "payload", "sequences_wrong", "traits", "wrong",
    )  # fmt: skip

    def __init__(self, data: bytes) -> None:
        self.metadata: MessageMetadata | None = None
        """The decoded metadata; None where the headers cannot be read."""
        self.payload = b""
        self.wrong = ""
        """The reason why the headers cannot be read."""
        self.checksum_wrong = ""
        self.broker_block = data.startswith(BROKER_ENTRY_METADATA_MAGIC)
        self.digest = _digest(data)
        """Tells one entry from another: metadata and payload, without what brokers add and take away."""
        self.count = 1
        """Messages in it."""
        self._looked_inside = False
        self._size_wrong = ""
        self.batch_wrong = ""
        """After `look_inside`: why the payload is not the batch it claims to be."""
        self.sequences_wrong = ""
        self._null_with_payload: bool | None = None
        """True when a member of a decoded batch is marked as null and has bytes."""
        try:
            unpacked = unpack_payload(data)
        except ChecksumMismatch as error:
            self.checksum_wrong = str(error)
        except FrameError as error:
            self.wrong = str(error)
        else:
            self.metadata = unpacked.metadata
            self.payload = unpacked.payload
            if unpacked.metadata.num_messages_in_batch is not None:
                self.count = max(1, unpacked.metadata.num_messages_in_batch)
        self.traits = _traits(self.metadata, self.broker_block)
        """The traits that set the entry apart from a plain one, see `traits`."""

    @property
    def batch(self) -> bool:
        """True when the payload has the batch format (MSG-10)."""
        return self.metadata is not None and self.metadata.num_messages_in_batch is not None

    @property
    def encrypted(self) -> bool:
        return self.metadata is not None and bool(self.metadata.encryption_keys)

    def look_inside(self) -> None:
        """Decompress the payload, compare sizes, and take a batch apart.

        An encrypted payload, or a part of a message, stays closed.
        """
        if self._looked_inside:
            return
        self._looked_inside = True
        metadata = self.metadata
        if metadata is None or metadata.encryption_keys or metadata.chunk_id is not None:
            return
        payload = self.payload
        if metadata.compression:
            if metadata.uncompressed_size > _DECOMPRESS_LIMIT:
                return  # it may be so large: what is compressed counts for the broker's limit
            try:
                payload = decompress(
                    metadata.compression, payload, metadata.uncompressed_size, _DECOMPRESS_LIMIT
                )
            except DecompressionFailed as error:
                self._size_wrong = str(error)
                return
        elif metadata.uncompressed_size and metadata.uncompressed_size != len(payload):
            self._size_wrong = (
                f"uncompressed_size is {metadata.uncompressed_size}, the payload has {len(payload)} bytes"
            )
        count = metadata.num_messages_in_batch
        if count is not None and count > 0:
            if _is_plain(payload, count, metadata.sequence_id, metadata.highest_sequence_id):
                return
            try:
                members = split_batch(payload, count)
            except FrameError as error:
                self.batch_wrong = str(error)
                return
            singles = [members.single(index) for index in range(count)]
            highest = metadata.highest_sequence_id
            self.sequences_wrong = _sequences_wrong(singles, metadata.sequence_id, highest)
            self._null_with_payload = any(
                single.null_value and bool(payload)
                for single, payload in zip(singles, members.payloads, strict=True)
            )

    @property
    def size_wrong(self) -> str:
        """Return the reason why the uncompressed size differs from the promised size."""
        self.look_inside()
        return self._size_wrong

    def null_with_payload(self) -> bool:
        """Tell whether a message that is marked as null has bytes."""
        self.look_inside()
        if self._null_with_payload is not None:
            return self._null_with_payload
        metadata = self.metadata
        return (
            metadata is not None
            and metadata.null_value
            and not metadata.encryption_keys
            and (bool(self.payload) and not metadata.compression)
        )


def _traits(metadata: MessageMetadata | None, broker_block: bool) -> int:
    traits = BROKER_BLOCK if broker_block else 0
    if metadata is None:
        return traits | UNREADABLE
    if metadata.num_messages_in_batch is not None:
        traits |= BATCH
    if metadata.compression:
        traits |= COMPRESSED
    if metadata.uncompressed_size:
        traits |= SIZED
    if metadata.encryption_keys:
        traits |= ENCRYPTED
    if metadata.chunk_id is not None or (metadata.num_chunks_from_msg or 0) > 1:
        traits |= CHUNK
    if metadata.marker_type is not None:
        traits |= MARKER
    if metadata.schema_version:
        traits |= SCHEMA
    if metadata.deliver_at_time is not None:
        traits |= DELAYED
    if metadata.null_value:
        traits |= NULL
    if metadata.txnid_most_bits is not None or metadata.txnid_least_bits is not None:
        traits |= TRANSACTION
    return traits


def _digest(data: bytes) -> int:
    start = 0
    if data.startswith(BROKER_ENTRY_METADATA_MAGIC):
        start = 6 + int.from_bytes(data[2:6], "big")
    if data.startswith(CHECKSUM_MAGIC, start):
        start += 6
    stored = data[start:] if start else data
    return len(stored) << 32 | crc32c(stored)


def _is_plain(payload: bytes, count: int, sequence_id: int, highest: int | None) -> bool:
    """Tell whether a payload is exactly `count` members with consecutive ids and nothing else.

    Nearly every batch is like that.
    """
    if highest is not None and highest != sequence_id + count - 1:
        return False
    position = 0
    end = len(payload)
    for number in range(sequence_id, sequence_id + count):
        if position + 7 > end:
            return False
        size = payload[position + 5]
        if size > 0x7F:
            size = size & 0x7F | payload[position + 6] << 7
        prefix = single_prefix(size, number)
        if not payload.startswith(prefix, position):
            return False
        position += len(prefix) + size
    return position == end


def _sequences_wrong(singles: Sequence[SingleMessageMetadata], sequence_id: int, highest: int | None) -> str:
    """Members ascend from the batch's id to its highest one; a batch of one key is named by its highest
    id."""
    count = len(singles)
    found = [single.sequence_id for single in singles]
    ids = [number for number in found if number is not None]
    if not ids:
        return ""
    if len(ids) < count:
        return f"{count - len(ids)} of {count} members have no sequence id"
    if any(after <= before for before, after in pairwise(ids)):
        return f"the members' sequence ids do not ascend: {ids[:20]}"
    if highest is not None and ids[-1] != highest:
        return f"the last member has {ids[-1]}, highest_sequence_id is {highest}"
    if sequence_id != ids[0] and not (sequence_id == highest == ids[-1]):
        return f"the members have {ids[0]} to {ids[-1]}, the batch {sequence_id}"
    return ""


class Entries(dict[bytes, ObservedEntry]):
    """Entries by their bytes; forgets everything when it is full."""

    def __missing__(self, data: bytes) -> ObservedEntry:
        entry = ObservedEntry(data)
        if len(data) <= _KEPT_BYTES:
            if len(self) >= _KEPT:
                self.clear()
            self[data] = entry
        return entry
