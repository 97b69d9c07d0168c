"""Entries as they are stored: checksum, metadata, payload; and the MESSAGE frames that deliver them.

The broker stores what producers sent, byte for byte. Per message it decodes the metadata once and writes a
few bytes in front. Both are on the path of every message.
"""

from struct import Struct
from typing import NamedTuple

from ...model.errors import ChecksumMismatch, FrameError
from ...wire import (
    MessageMetadata,
    MetadataDecoder,
    crc32c,
    encode_varint,
    pack_payload,
    unpack_payload,
)

_HEADERS = 10
"""Bytes of magic, checksum and the size of the metadata."""

_read_headers = Struct(">HII").unpack_from
_CHECKSUM_MAGIC = 0x0E01
_write_sizes = Struct(">II").pack


class Headers(NamedTuple):
    """The headers of a SEND's payload."""

    data: bytes
    """The bytes to store: with a checksum, without broker entry metadata."""
    metadata: MessageMetadata
    payload_size: int


def read_headers(data: bytes, decoder: MetadataDecoder) -> Headers:
    """Read the headers of a SEND, with the decoder of its connection. Does not copy the payload.

    Raises `ChecksumMismatch`, or `FrameError` for bytes that cannot be parsed.
    """
    if len(data) >= _HEADERS:
        magic, checksum, size = _read_headers(data)
        end = _HEADERS + size
        if magic == _CHECKSUM_MAGIC and end <= len(data):
            if crc32c(data[6:] if len(data) < 4096 else memoryview(data)[6:]) != checksum:
                raise ChecksumMismatch("the checksum is wrong")
            return Headers(data, decoder.decode_range(data, _HEADERS, end), len(data) - end)
    unpacked = unpack_payload(data)
    if unpacked.broker_entry_metadata is not None:
        raise FrameError("broker entry metadata from a client")
    # An entry without a checksum gets one: some clients cannot read it otherwise.
    metadata_end = 4 + int.from_bytes(data[:4], "big")
    stored = b"".join(pack_payload(data[4:metadata_end], data[metadata_end:]))
    return Headers(stored, unpacked.metadata, len(unpacked.payload))


def entry_metadata(data: bytes, decoder: MetadataDecoder) -> MessageMetadata:
    """Return the metadata of a stored entry, whose checksum was verified before it was stored."""
    return decoder.decode_range(data, _HEADERS, _HEADERS + int.from_bytes(data[6:_HEADERS], "big"))


class MessageFront:
    """The bytes in front of entries of one ledger for one consumer, except for sizes and entry id.

    Only for entries without a redelivery count and an ack set. Equal to `wire.encode_message`, several times
    cheaper.
    """

    __slots__ = ("_consumer", "_fronts", "_ledger", "_tail", "ledger_id")

    def __init__(self, consumer_id: int, ledger_id: int, partition: int, epoch: int | None) -> None:
        self.ledger_id = ledger_id
        self._consumer = b"\x08" + encode_varint(consumer_id)
        self._ledger = b"\x08" + encode_varint(ledger_id) + b"\x10"
        partition_field = b"\x18" + encode_varint(partition)
        self._tail = (
            partition_field,
            partition_field + (b"" if epoch is None else b"\x28" + encode_varint(epoch)),
        )
        self._fronts: dict[int, tuple[int, bytes]] = {}
        """The number of bytes of an entry id -> size of the command, and the bytes before the entry id."""

    def frame(self, entry_id: int, stored: bytes) -> bytes:
        """Return all bytes before `stored`."""
        entry = encode_varint(entry_id)
        front = self._fronts.get(len(entry))
        if front is None:
            front = self._make(len(entry))
        size, before = front
        return _write_sizes(size + 4 + len(stored), size) + before + entry + self._tail[1]

    def _make(self, entry_bytes: int) -> tuple[int, bytes]:
        position = len(self._ledger) + entry_bytes + len(self._tail[0])
        body_front = self._consumer + b"\x12" + encode_varint(position) + self._ledger
        body = len(body_front) + entry_bytes + len(self._tail[1])
        before = b"\x08\x09\x4a" + encode_varint(body) + body_front
        front = (len(before) + entry_bytes + len(self._tail[1]), before)
        self._fronts[entry_bytes] = front
        return front
