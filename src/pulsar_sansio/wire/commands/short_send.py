"""The whole SEND frame of a plain message: a payload without key, properties or codec, by itself.

Unbatched sending costs one frame per message. So this module builds the frame in one go from parts that stay
the same: those of the producer, and of the millisecond. The bytes are those that
`MessageMetadata`, `pack_payload` and `encode_send` give for the same message.
"""

from functools import lru_cache

from ..checksum import crc32c
from ..fields import encode_text
from ..varint import CONTINUED_VARINTS, SMALL_VARINTS, encode_varint
from .hot_commands import SEND

_TYPE_AND_TAG = b"\x08" + encode_varint(SEND) + encode_varint(SEND << 3 | 2)

PLAIN_LIMIT = 16 * 1024
"""Bytes of payload up to which copying it into the frame is cheaper than a chunk of its own."""


def plain_command_prefix(producer_id: int) -> bytes:
    """CommandSend up to the value of its sequence_id."""
    return b"\x08" + encode_varint(producer_id) + b"\x10"


def plain_metadata_prefix(producer_name: str) -> bytes:
    """MessageMetadata up to the value of its sequence_id. Raises `InvalidMessage` for text without UTF-8
    form."""
    name = encode_text(producer_name)
    return b"\x0a" + encode_varint(len(name)) + name + b"\x10"


def plain_time(publish_time: int) -> bytes:
    """The publish_time of MessageMetadata, and the tag of what follows it."""
    return b"\x18" + encode_varint(publish_time) + b"\x48"


def encode_plain_send(
    command_prefix: bytes, metadata_prefix: bytes, time: bytes, sequence_id: int, payload: bytes
) -> bytes:
    """One frame, ready to write. The parts are those of the three functions above."""
    if sequence_id < 16384:
        sequence = SMALL_VARINTS[sequence_id]
    elif sequence_id >> 28:
        sequence = encode_varint(sequence_id)
    else:
        sequence = CONTINUED_VARINTS[sequence_id & 0x3FFF] + SMALL_VARINTS[sequence_id >> 14]
    front, metadata, behind = _around(command_prefix, metadata_prefix, time, len(payload), len(sequence))
    sized = metadata + sequence + behind
    return b"".join(
        (front, sequence, b"\x0e\x01", crc32c(payload, crc32c(sized)).to_bytes(4, "big"), sized, payload)
    )


@lru_cache(maxsize=256)
def _around(
    command_prefix: bytes, metadata_prefix: bytes, time: bytes, size: int, length: int
) -> tuple[bytes, bytes, bytes]:
    """Build the parts that are the same for all payloads of `size` bytes and sequence ids of `length` bytes.

    These are the frame up to the sequence id, and the metadata around its own copy of the sequence id. The
    part in front of that copy includes the size of the metadata. What is cached is a function of sizes, and
    of the producer's own prefixes: nothing of it comes from a peer's frame.
    """
    behind = time + encode_varint(size)
    metadata_size = len(metadata_prefix) + length + len(behind)
    command = command_prefix + bytes(length)
    front = _TYPE_AND_TAG + encode_varint(len(command)) + command_prefix
    command_size = len(front) + length
    total = command_size + 14 + metadata_size + size
    return (
        (total << 32 | command_size).to_bytes(8, "big") + front,
        metadata_size.to_bytes(4, "big") + metadata_prefix,
        behind,
    )
