"""Members of a batch whose header is a key, a payload size, perhaps whether the key stands for bytes, and a
sequence id, in this order: what producers write that give keys and nothing else. The Java client and ours say
what the key stands for, the C++ client does not.

They are taken without reading a header field by field: one member says what the next ones look like that have
a key and a payload of the same lengths, and as long as they do, they need only be compared and cut. A member
that is anything else, or not complete, is left to whoever reads headers; so nothing is raised here. What is
known of these members is enough to have all keys of a batch at the price of cutting them out.
"""

from functools import lru_cache
from itertools import islice
from struct import Struct

from .fields import decode_text
from .varint import VALUE_OF_CONTINUED, VALUE_OF_SMALL

KEY_TAG = 0x12
_PAYLOAD_SIZE_TAG, _BASE64_TAG, _SEQUENCE_ID_TAG = 0x18, 0x30, 0x40

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
    limit = len(data)
    last = limit - _HEAD - _LEAST
    while position <= last and len(payloads) < most:
        size, tag, key_size = _read_head(data, position)
        header_end = position + 4 + size
        tail = data[position + _HEAD + key_size : header_end]
        if tag != KEY_TAG or key_size > 0x7F or len(tail) < _LEAST:
            break
        payload_size, constant = _read_tail(tail)
        end = header_end + payload_size
        if not constant or end > limit:
            break
        members.append(position)
        payloads.append(data[header_end:end])
        behind = end + _HEAD + key_size
        if (
            data[end : end + _HEAD] == data[position : position + _HEAD]
            and data[behind : behind + constant] == tail[:constant]
        ):
            stride = end - position
            following = memoryview(data)[end : end + (limit - end) // stride * stride]
            run = _run(following, key_size, tail, constant, payload_size, most - len(payloads))
            payloads += run
            members += range(end, end + len(run) * stride, stride)
            end += len(run) * stride
        position = end
    return (members, payloads, position) if payloads else None


def _read_tail(tail: bytes) -> tuple[int, int]:
    """What stands behind the key: the payload size, and at which of its bytes the sequence id begins; 0 where
    it is anything else."""
    if tail[0] != _PAYLOAD_SIZE_TAG:
        return 0, 0
    payload_size, position = tail[1], 2
    if payload_size > 0x7F:
        sized = VALUE_OF_SMALL.get(tail[1:3])
        if sized is None:
            return 0, 0
        payload_size, position = sized, 3
    if tail[position] == _BASE64_TAG and tail[position + 1 : position + 2] < b"\x80":
        position += 2
    sequence = tail[position + 1 :]
    if tail[position : position + 1] != _SEQUENCE_ID or not (
        sequence in VALUE_OF_SMALL or (sequence[:2] in VALUE_OF_CONTINUED and sequence[2:] in VALUE_OF_SMALL)
    ):
        return 0, 0
    return payload_size, position + 1


_SEQUENCE_ID = bytes([_SEQUENCE_ID_TAG])


@lru_cache(maxsize=512)
def _reader(key_size: int, constant: int, upper: int, payload_size: int) -> Struct:
    return Struct(f"{_HEAD}s{key_size}x{constant}sB{upper}s{payload_size}s")


def _run(
    following: memoryview, key_size: int, tail: bytes, constant: int, payload_size: int, most: int
) -> list[bytes]:
    """The payloads of those that are like the one before them, but for the key, the payload, and the lowest
    seven bits of the sequence id."""
    payloads: list[bytes] = []
    reader = _reader(key_size, constant, len(tail) - constant - 1, payload_size)
    like_head = bytes(following[:_HEAD])
    like_constant, like_upper = tail[:constant], tail[constant + 1 :]
    goes_on = tail[constant] >> 7
    for head, fixed, low, upper, payload in islice(reader.iter_unpack(following), most):
        if head != like_head or fixed != like_constant or low >> 7 != goes_on or upper != like_upper:
            break
        payloads.append(payload)
    return payloads


def keys_of(data: bytes, members: KeyedMembers) -> list[str]:
    """The keys of these, in order."""
    raw = [data[member + _HEAD : member + _HEAD + data[member + _HEAD - 1]] for member in members]
    if raw.count(raw[0]) == len(raw):
        return [decode_text(raw[0])] * len(raw)
    try:
        keys = _BETWEEN.join(raw).decode().split(_BETWEEN.decode())  # all at once
    except UnicodeDecodeError:
        keys = []
    return keys if len(keys) == len(raw) else list(map(decode_text, raw))


_BETWEEN = b"\x00"
"""Keys seldom have it; where one does, there are more pieces than keys."""
