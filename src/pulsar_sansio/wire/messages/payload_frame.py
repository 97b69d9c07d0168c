"""Headers and payload: what stands behind SEND and MESSAGE, and what a broker stores as an entry.

    [0e02, size u32, BrokerEntryMetadata]  [0e01, crc32c u32]  size u32, MessageMetadata, payload

The two blocks in brackets may be missing, in any combination. Compression, encryption and batches are
inside the payload, and none of this module's business.
"""

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from google.protobuf.message import DecodeError

from ...model.errors import ChecksumMismatch, FrameError
from .. import proto
from ..checksum import crc32c
from ..varint import encode_varint
from .metadata import MessageMetadata
from .metadata_decoder import MetadataDecoder

BROKER_ENTRY_METADATA_MAGIC = b"\x0e\x02"
CHECKSUM_MAGIC = b"\x0e\x01"
_BROKER_ENTRY_METADATA = 0x0E02
_CHECKSUM = 0x0E01

_read_checked = Struct(">HII").unpack_from
_read_u32 = Struct(">I").unpack_from


class UnpackedPayload(NamedTuple):
    broker_entry_metadata: proto.BrokerEntryMetadata | None
    checksum_ok: bool | None
    """True: verified. None: the entry carries no checksum."""
    metadata: MessageMetadata
    payload: bytes
    """The payload as the producer sent it: compressed and encrypted as the metadata says."""


def pack_payload(metadata: bytes, *payload: bytes) -> list[bytes]:
    """Checksum, metadata and payload, as chunks; `payload`, which may come in parts, is not copied."""
    sized = len(metadata).to_bytes(4, "big") + metadata
    checksum = crc32c(sized)
    for part in payload:
        checksum = crc32c(part, checksum)
    return [CHECKSUM_MAGIC + checksum.to_bytes(4, "big") + sized, *payload]


def pack_broker_entry_metadata(broker_timestamp: int, index: int) -> bytes:
    """The block that a broker may put in front of a stored entry: when it got the entry, in milliseconds
    since 1970, and the index of the entry's last message in the topic."""
    metadata = b"\x08" + encode_varint(broker_timestamp) + b"\x10" + encode_varint(index)
    return BROKER_ENTRY_METADATA_MAGIC + len(metadata).to_bytes(4, "big") + metadata


def unpack_payload(data: bytes) -> UnpackedPayload:
    """Take headers and payload apart, and verify the checksum where there is one. Raises as `open_payload`
    does.

    For single entries: a decoder that reads many of them calls `open_payload` with a `MetadataDecoder` of its
    own.
    """
    broker_entry_metadata, checksum_ok, metadata, start = open_payload(data, MetadataDecoder())
    return _new_tuple(UnpackedPayload, (broker_entry_metadata, checksum_ok, metadata, data[start:]))


OpenedPayload = tuple[proto.BrokerEntryMetadata | None, bool | None, MessageMetadata, int]
"""The fields of an `UnpackedPayload`, with the payload's position in place of the payload."""


def open_payload(data: bytes, decoder: MetadataDecoder) -> OpenedPayload:
    """Unpack a payload as `unpack_payload` does, but give the payload's position instead of a copy.

    A megabyte of fresh memory costs more than all that a consumer does with it.

    Raises `ChecksumMismatch` when the checksum is wrong. Raises `FrameError` when the structure or the
    metadata cannot be parsed.
    """
    try:
        magic, checksum, size = _read_checked(data, 0)
        position = 6
        broker_entry_metadata = None
        if magic == _BROKER_ENTRY_METADATA:
            broker_entry_metadata, position = _read_broker_entry_metadata(data)
            magic, checksum, size = _read_checked(data, position)
            position += 6
        checksum_ok = True if magic == _CHECKSUM else None
    except StructError:
        # Ten bytes are not there: at most metadata of less than six, which never are complete.
        raise FrameError("a payload ends inside its headers") from None
    if checksum_ok is None:
        position -= 6
        size = magic << 16 | checksum >> 16
    else:
        # Below some kilobytes, copying is cheaper than making a view.
        covered = data[position:] if len(data) < 4096 else memoryview(data)[position:]
        if crc32c(covered) != checksum:
            raise ChecksumMismatch(f"the checksum of a payload of {len(data)} bytes is wrong")
    position += 4
    end = position + size
    if end > len(data):
        raise FrameError(f"a payload of {len(data)} bytes cannot hold metadata of {size}")
    metadata = decoder.decode_range(data, position, end)
    return broker_entry_metadata, checksum_ok, metadata, end


def peek_metadata(data: bytes) -> MessageMetadata | None:
    """The metadata of an entry whose checksum is wrong, as far as it can be read: it may be damaged, too.

    None where it cannot be. For guesses only.
    """
    try:
        position = 0
        if data.startswith(BROKER_ENTRY_METADATA_MAGIC):
            position = 6 + _read_u32(data, 2)[0]
        if data.startswith(CHECKSUM_MAGIC, position):
            position += 6
        (size,) = _read_u32(data, position)
        end = position + 4 + size
        return MessageMetadata.decode_range(data, position + 4, end) if end <= len(data) else None
    except (StructError, FrameError):
        return None


_new_tuple = tuple.__new__


def _read_broker_entry_metadata(data: bytes) -> tuple[proto.BrokerEntryMetadata, int]:
    (size,) = _read_u32(data, 2)
    end: int = 6 + size
    if end > len(data):
        raise FrameError(f"a payload of {len(data)} bytes cannot hold broker entry metadata of {size}")
    metadata = proto.BrokerEntryMetadata()
    try:
        metadata.MergeFromString(data[6:end])
    except DecodeError as error:
        raise FrameError(f"broker entry metadata is malformed: {error}") from None
    return metadata, end


def has_checksum(data: bytes) -> bool:
    """Tell whether headers and payload carry a checksum (behind broker entry metadata, if there is any)."""
    position = 0
    if data.startswith(BROKER_ENTRY_METADATA_MAGIC) and len(data) >= 6:
        position = 6 + _read_u32(data, 2)[0]
    return data.startswith(CHECKSUM_MAGIC, position)
