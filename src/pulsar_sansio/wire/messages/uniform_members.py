"""Members of a batch that stand at equal distances, because all their sizes are equal.

This module compares their headers column by column, which costs one step for all members. It cuts the
members in one go. It knows nothing of the fields of a header.
"""

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct

FIRST_WINDOW = 32
"""Members looked at together at first; more where all of them proved to be alike."""

_LOW_BYTES = bytes(range(0x80))
_IS_LOW = bytes([1] * 0x80 + [0] * 0x80)


def alike(
    data: bytes, position: int, stride: int, most: int, constant: Iterable[int], header: int, number: int
) -> int:
    """Count the members that are like the first one, up to `most`.

    The members begin at `position`, one every `stride` bytes. Alike members have the same bytes at the
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


_CUT = 64
"""Members cut by one call; more would make the formats long, and nothing faster."""


@lru_cache(maxsize=512)
def _cutter(skipped: int, size: int, behind: int, count: int) -> Struct:
    return Struct(f"{skipped}x{size}s{behind}x" * count)


def cut(data: bytes, position: int, skipped: int, size: int, stride: int, count: int) -> list[bytes]:
    """Cut `size` bytes, behind `skipped` others, out of each of `count` members, one every `stride` bytes."""
    pieces: list[bytes] = []
    behind = stride - skipped - size
    many, rest = divmod(count, _CUT)
    if many:
        cutter = _cutter(skipped, size, behind, _CUT)
        for _ in range(many):
            pieces += cutter.unpack_from(data, position)
            position += cutter.size
    if rest:
        stop = position + rest * stride
        pieces += [piece for (piece,) in _cutter(skipped, size, behind, 1).iter_unpack(data[position:stop])]
    return pieces
