"""Variable-length integers of protobuf: seven bits a byte, the lowest first, the top bit means "more".

Owns the tables that make writing them cheap. Knows nothing of fields or messages.
"""

from ..model.errors import FrameError

_WORD = 1 << 64


SMALL_VARINTS: list[bytes] = [
    *(bytes((value,)) for value in range(1 << 7)),
    *(bytes((value & 0x7F | 0x80, value >> 7)) for value in range(1 << 7, 1 << 14)),
]
"""The varints of 0 to 16383: one or two bytes."""

CONTINUED_VARINTS: list[bytes] = [bytes((value & 0x7F | 0x80, value >> 7 | 0x80)) for value in range(1 << 14)]
"""Two bytes for the lowest 14 bits of a larger number, both with "more" set."""

VALUE_OF_SMALL: dict[bytes, int] = dict(zip(SMALL_VARINTS, range(1 << 14), strict=True))
"""The reverse of `SMALL_VARINTS`: also the cheapest check that one or two bytes are a varint."""

VALUE_OF_CONTINUED: dict[bytes, int] = dict(zip(CONTINUED_VARINTS, range(1 << 14), strict=True))
"""The reverse of `CONTINUED_VARINTS`."""


def encode_varint(value: int) -> bytes:
    """The varint of -2^63 to 2^64-1; a negative number takes ten bytes.

    Raises `OverflowError` for any other number.
    """
    if 0 <= value < 16384:
        return SMALL_VARINTS[value]
    if value < 0:
        value += _WORD
        if value < _WORD >> 1:
            raise OverflowError("a number below -2^63 has no varint of 64 bits")
    elif value >= _WORD:
        raise OverflowError("a number of 2^64 or more has no varint of 64 bits")
    encoded = CONTINUED_VARINTS[value & 0x3FFF]
    value >>= 14
    while value > 0x3FFF:
        encoded += CONTINUED_VARINTS[value & 0x3FFF]
        value >>= 14
    return encoded + SMALL_VARINTS[value]


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position`, modulo 2^64, and the position behind it.

    Raises `FrameError` when it is longer than ten bytes, `IndexError` when `data` ends in it.
    """
    byte = data[position]
    if byte < 0x80:
        return byte, position + 1
    value = shift = 0
    continued = VALUE_OF_CONTINUED.get
    pair = continued(data[position : position + 2])
    while pair is not None:
        value |= pair << shift
        shift += 14
        position += 2
        if shift > 63:
            raise FrameError("a varint is longer than ten bytes")
        pair = continued(data[position : position + 2])
    byte = data[position]
    if byte > 0x7F:
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        byte = data[position]
    value |= byte << shift
    return (value if shift < 63 else value & _WORD - 1), position + 1
