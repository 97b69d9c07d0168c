"""Positions in a topic on the wire: the message MessageIdData.

Ledger and entry numbers are signed here: what the wire calls 2^64-1 is -1 ("none", "dropped").
"""

from typing import Any

from ..model.errors import FrameError
from .ack_sets import words_from_bits
from .fields import BYTES, INT32, INT64, Field, Kind, Layout, signed_64
from .varint import encode_varint

MINUS_ONE = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
"""The varint of -1: the partition that brokers write for topics without partitions."""

_SIGNED_64 = Kind(0, signed_64, encode_varint)

_POSITION = Layout(
    "MessageIdData",
    [
        Field(1, "ledger_id", _SIGNED_64, required=True),
        Field(2, "entry_id", _SIGNED_64, required=True),
        Field(3, "partition", INT32),
        Field(4, "batch_index", INT32),
        Field(5, "ack_set", INT64, repeated=True),
        Field(6, "batch_size", INT32),
        Field(7, "first_chunk_message_id", BYTES, merged=True),
    ],
)


_MAX_NESTING = 100
"""Ids inside ids (first chunks of first chunks) that are read; as protobuf's own."""


def decode_position(data: bytes, depth: int = 0) -> tuple[dict[str, Any], bytes]:
    """The fields of a MessageIdData and the unknown ones; `FrameError` when malformed or incomplete."""
    values, unknown = _POSITION.decode(data, 0, len(data))
    if "first_chunk_message_id" in values:
        if depth == _MAX_NESTING:
            raise FrameError("message ids are nested too deeply")
        decode_position(values["first_chunk_message_id"], depth + 1)
    return values, unknown


def take_position(data: bytes, *names: str) -> tuple[list[Any], bytes]:
    """The named fields of a position (None where absent), and the others as bytes."""
    values, unknown = decode_position(data)
    taken = [values.pop(name, None) for name in names]
    return taken, _POSITION.encode(values, unknown)


def write_words(bits: int) -> bytes:
    """A set as field 5 of a position. An empty set is one zero word: no word would mean "no set"."""
    return b"".join(b"\x28" + encode_varint(word) for word in words_from_bits(bits) or [0])
