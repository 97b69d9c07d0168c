"""Keyed members of a batch, as producers write them that give keys and nothing else.

The header of a keyed member has a key, a payload size and a sequence id, in this order. Behind the size it
may say whether the key stands for bytes: the Java client and ours say so, the C++ client does not.

This module does not read these headers field by field. One member is the template of the next ones that have
a key and a payload of the same lengths. As long as members are uniform, they are only compared and cut. Any
other member, or an incomplete one, is left to the caller's general decoder; so this module raises nothing.
With these members a consumer gets all keys of a batch at the price of cutting them out.

What is cached here is a function of sizes only, never of a peer's bytes.
"""

from functools import lru_cache
from itertools import chain
from struct import Struct

from ..fields import decode_text
from ..varint import VALUE_OF_CONTINUED, VALUE_OF_SMALL
from .members import (
    BASE64_TAG,
    FIRST_WINDOW,
    KEY_TAG,
    PAYLOAD_SIZE_TAG,
    SEQUENCE_ID_TAG,
    count_uniform,
    cut_pieces,
)

_read_head = Struct(">IBB").unpack_from
_HEAD = 6
"""Bytes of it: header's size, the key's tag and its length."""

_LEAST = 4
"""Bytes behind the key, at least."""


class KeyedMembers(list[int]):
    """The positions at which keyed members begin."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[tuple[int, int, int, int]] = []
        """The runs of members with keys and payloads of the same lengths.

        Each run has four numbers: its beginning, the length of its keys, the distance from one member to the
        next, and the count of its members. The distance is 0 where all members have the same key.
        """


def take_keyed(data: bytes, position: int, most: int) -> tuple[KeyedMembers, list[bytes], int] | None:
    """Take up to `most` members from `position` on: the members, their payloads, the position behind them.

    Gives None where the first member is not a keyed one.
    """
    members = KeyedMembers()
    payloads: list[bytes] = []
    limit = len(data)
    last = limit - _HEAD - _LEAST
    window = FIRST_WINDOW
    while position <= last and most:
        size, tag, key_size = _read_head(data, position)
        header_end = position + 4 + size
        tail = position + _HEAD + key_size
        if tag != KEY_TAG or key_size > 0x7F or header_end - tail < _LEAST or header_end > limit:
            break
        payload_size, sequence = _read_tail(data, tail, header_end)
        end = header_end + payload_size
        if not sequence or end > limit:
            break
        stride = end - position
        count = 1
        same: list[bytes] | None = None
        if (
            data[end : end + _HEAD] == data[position : position + _HEAD]
            and data[tail + stride : sequence + stride] == data[tail:sequence]
        ):
            count = min(most, window, (limit - position) // stride)
            same = _of_one_key(data, position, sequence, header_end, stride, count)
            if same is None:
                constant = chain(range(_HEAD), range(tail - position, sequence - position))
                header = header_end - position
                count = count_uniform(data, position, stride, count, constant, header, header_end - sequence)
            window = window * 8 if count == window else FIRST_WINDOW
        if count > 1:
            payloads += same or cut_pieces(data, position, header_end - position, payload_size, stride, count)
            end = position + stride * count
            members += range(position, end, stride)
        else:
            payloads.append(data[header_end:end])
            members.append(position)
        members.runs.append((position, key_size, 0 if same else stride, count))
        most -= count
        position = end
    return (members, payloads, position) if payloads else None


def _of_one_key(
    data: bytes, position: int, sequence: int, header_end: int, stride: int, count: int
) -> list[bytes] | None:
    """The payloads of `count` members, where all of them equal the first one up to the sequence id.

    A producer whose batches are of one key writes such members. Gives None where they are not uniform.
    """
    front = data[position:sequence]
    if not data.startswith(front, position + stride):
        return None
    number = header_end - sequence
    read = _reader(len(front), number, position + stride - header_end)
    pairs = read.iter_unpack(data[position : position + count * stride])
    payloads = [payload for found, payload in pairs if found == front]
    if (
        len(payloads) != count
        or count_uniform(data, position, stride, count, (), header_end - position, number) != count
    ):
        return None
    return payloads


@lru_cache(maxsize=512)
def _reader(front: int, number: int, payload: int) -> Struct:
    return Struct(f"{front}s{number}x{payload}s")


def _read_tail(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read the header between the key and its end: the payload size, and where the sequence id begins.

    Gives 0 for both where anything else stands there.
    """
    if data[position] != PAYLOAD_SIZE_TAG:
        return 0, 0
    payload_size = data[position + 1]
    position += 2
    if payload_size > 0x7F:
        sized = VALUE_OF_SMALL.get(data[position - 1 : position + 1])
        if sized is None:
            return 0, 0
        payload_size = sized
        position += 1
    if data[position] == BASE64_TAG and data[position + 1] < 0x80:
        position += 2
    sequence = data[position + 1 : end]
    if (
        position < end
        and data[position] == SEQUENCE_ID_TAG
        and (
            sequence in VALUE_OF_SMALL
            or (sequence[:2] in VALUE_OF_CONTINUED and sequence[2:] in VALUE_OF_SMALL)
        )
    ):
        return payload_size, position + 1
    return 0, 0


def keys_of(data: bytes, members: KeyedMembers) -> list[str]:
    """The keys of these, in order."""
    raw: list[bytes] = []
    for position, size, stride, count in members.runs:
        if stride and count > 1:
            raw += cut_pieces(data, position, _HEAD, size, stride, count)
        else:
            raw += [data[position + _HEAD : position + _HEAD + size]] * count
    if raw.count(raw[0]) == len(raw):
        return [decode_text(raw[0])] * len(raw)
    try:
        keys = _BETWEEN.join(raw).decode().split(_BETWEEN.decode())  # all at once
    except UnicodeDecodeError:
        keys = []
    return keys if len(keys) == len(raw) else list(map(decode_text, raw))


_BETWEEN = b"\x00"
"""Keys seldom have it; where one does, there are more pieces than keys."""
