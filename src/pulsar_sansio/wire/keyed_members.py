"""Members of a batch whose header is a key, a payload size and a sequence id, in this order: what producers
write that give keys and nothing else.

They are taken one by one, but without reading a header field by field: a member that is anything else, or
not complete, is left to whoever reads those. So nothing is raised here, and what is known of these members
is enough to have all keys of a batch at the price of cutting them out.
"""

from struct import Struct

from .fields import decode_text
from .varint import VALUE_OF_CONTINUED, VALUE_OF_SMALL

KEY_TAG = 0x12
_PAYLOAD_SIZE_TAG, _SEQUENCE_ID_TAG = 0x18, 0x40

_read_head = Struct(">IBB").unpack_from
_HEAD = 6
"""Bytes of it: header's size, the key's tag and its length."""

_LEAST = 4
"""Bytes behind the key, at least."""


class KeyedMembers(list[int]):
    """Where they begin. The key begins `_HEAD` bytes behind that; the byte before it is its length."""


def take_keyed(data: bytes, position: int, most: int) -> tuple[KeyedMembers, list[bytes], int] | None:
    """Up to `most` members from `position` on, their payloads, and the position behind them; None where the
    first is none of these."""
    members = KeyedMembers()
    payloads: list[bytes] = []
    small, continued = VALUE_OF_SMALL, VALUE_OF_CONTINUED
    limit = len(data)
    last = limit - _HEAD - _LEAST
    while position <= last and len(payloads) < most:
        size, tag, key_size = _read_head(data, position)
        header_end = position + 4 + size
        tail = data[position + _HEAD + key_size : header_end]
        if tag != KEY_TAG or key_size > 0x7F or len(tail) < _LEAST or tail[0] != _PAYLOAD_SIZE_TAG:
            break
        payload_size = tail[1]
        if payload_size > 0x7F:
            sized = small.get(tail[1:3])
            if sized is None or tail[3] != _SEQUENCE_ID_TAG:
                break
            payload_size = sized
            sequence = tail[4:]
        elif tail[2] == _SEQUENCE_ID_TAG:
            sequence = tail[3:]
        else:
            break
        end = header_end + payload_size
        if end > limit or (
            sequence not in small and (sequence[:2] not in continued or sequence[2:] not in small)
        ):
            break
        members.append(position)
        payloads.append(data[header_end:end])
        position = end
    return (members, payloads, position) if payloads else None


def keys_of(data: bytes, members: KeyedMembers) -> list[str]:
    """The keys of these, in order."""
    raw = [data[member + _HEAD : member + _HEAD + data[member + _HEAD - 1]] for member in members]
    if raw.count(raw[0]) == len(raw):
        return [decode_text(raw[0])] * len(raw)
    return list(map(decode_text, raw))
