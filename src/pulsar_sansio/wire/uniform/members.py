"""Uniform members of a batch: they stand at equal distances, because all their sizes are equal.

This module compares their headers column by column, which costs one step for all members. It cuts the
payloads in one go. It takes the members that most producers write: their headers have a payload size, and a
sequence id or nothing else. Members with keys are in `keyed_members`.

What is cached here is a function of sizes only, never of a peer's bytes.
"""

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct

from ..varint import read_varint

FIRST_WINDOW = 32
"""Members looked at together at first; more where all of them proved to be uniform."""

PROPERTY_TAG, KEY_TAG, PAYLOAD_SIZE_TAG, COMPACTED_OUT_TAG, EVENT_TIME_TAG = 0x0A, 0x12, 0x18, 0x20, 0x28
BASE64_TAG, ORDERING_KEY_TAG, SEQUENCE_ID_TAG, NULL_VALUE_TAG, NULL_KEY_TAG = 0x30, 0x3A, 0x40, 0x48, 0x50
"""Tags of the fields of a member's header (SingleMessageMetadata)."""

_LOW_BYTES = bytes(range(0x80))
_IS_LOW = bytes([1] * 0x80 + [0] * 0x80)


def count_uniform(
    data: bytes, position: int, stride: int, most: int, constant: Iterable[int], header: int, number: int
) -> int:
    """Count the members that are uniform with the first one, up to `most`.

    The members begin at `position`, one every `stride` bytes. Uniform members have the same bytes at the
    offsets `constant`. Their headers, of `header` bytes, end with a varint of `number` bytes; 0 is no varint.
    """
    stop = position + most * stride
    for offset in constant:
        column = data[position + offset : stop : stride]
        byte = column[:1]
        if column != byte * most:
            most -= len(column.lstrip(byte))
            stop = position + most * stride
    for offset in range(header - number, header):
        column = data[position + offset : stop : stride]
        if offset == header - 1:
            if not column.isascii():
                most = column.translate(_IS_LOW).find(b"\x00")
        elif column.translate(None, _LOW_BYTES) != column:
            most = column.translate(_IS_LOW).find(b"\x01")
        stop = position + most * stride
    return most


_CUT_AT_ONCE = 64
"""Members cut by one call; more would make the formats long, and nothing faster."""


@lru_cache(maxsize=512)
def _pieces_reader(skipped: int, size: int, behind: int, count: int) -> Struct:
    return Struct(f"{skipped}x{size}s{behind}x" * count)


def cut_pieces(data: bytes, position: int, skipped: int, size: int, stride: int, count: int) -> list[bytes]:
    """Cut `size` bytes, behind `skipped` others, out of each of `count` members, one every `stride` bytes."""
    pieces: list[bytes] = []
    behind = stride - skipped - size
    many, rest = divmod(count, _CUT_AT_ONCE)
    if many:
        reader = _pieces_reader(skipped, size, behind, _CUT_AT_ONCE)
        for _ in range(many):
            pieces += reader.unpack_from(data, position)
            position += reader.size
    if rest:
        stop = position + rest * stride
        pieces += [
            piece for (piece,) in _pieces_reader(skipped, size, behind, 1).iter_unpack(data[position:stop])
        ]
    return pieces


def take_uniform(data: bytes, position: int, most: int) -> tuple[int, list[bytes]] | None:
    """Take up to `most` members from `position` that differ in payload and sequence id alone.

    Gives the distance from one to the next, and their payloads; None where there are not even two. Raises
    `IndexError` where the data end inside the first header.
    """
    header_end = position + 4 + int.from_bytes(data[position : position + 4], "big")
    if data[position + 4] != PAYLOAD_SIZE_TAG:
        return None
    payload_size, behind = read_varint(data, position + 5)
    constant = behind - position
    sequence_length = header_end - behind
    if sequence_length:
        if sequence_length < 2 or sequence_length > 11 or data[behind] != SEQUENCE_ID_TAG:
            return None
        constant += 1
        sequence_length -= 1
    header = constant + sequence_length
    stride = header + payload_size
    count = min(most, (len(data) - position) // stride)
    if (
        count < 2
        or payload_size >> 31
        or not data.startswith(data[position : position + constant], position + stride)
    ):
        return None
    count = count_uniform(data, position, stride, count, range(constant), header, sequence_length)
    if count < 2:
        return None
    return stride, cut_pieces(data, position, header, payload_size, stride, count)
