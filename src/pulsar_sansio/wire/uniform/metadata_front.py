"""The front of an entry's metadata, as every client writes it: producer_name, sequence_id, publish_time.

The name repeats from message to message, and the time changes once a millisecond. So a decoder looks the
bytes of both up in a decode cache, and reads them with these functions only once.
"""

from ..fields import decode_text
from ..varint import read_varint

PUBLISH_TIME_SIZE = 7
"""Bytes of publish_time with its tag, for times from 1971 to 2109."""


def read_name(prefix: bytes) -> str | None:
    """Give the name in `prefix`, when that is the field producer_name and the tag of sequence_id."""
    size = len(prefix) - 3
    if not 0 < size < 0x80 or prefix[0] != 0x0A or prefix[1] != size or prefix[-1] != 0x10:
        return None
    return decode_text(prefix[2:-1])


def read_time(field: bytes) -> int | None:
    """Give the number in these `PUBLISH_TIME_SIZE` bytes, when they are publish_time with a varint of six
    bytes."""
    if field[0] != 0x18 or field[-1] > 0x7F or min(field[1:-1]) < 0x80:
        return None
    return read_varint(field, 1)[0]
