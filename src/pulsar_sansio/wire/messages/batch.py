"""The payload of a batch: `count` times size u32, SingleMessageMetadata, payload.

A consumer takes batches apart more often than it does anything else. Members mostly are uniform: they have
the same payload size, and the same header but for the sequence id. `uniform.members` takes a run of them in
one go. This module reads all other members one by one. The general decoder reads a header with anything but a
size and a sequence id. A batch keeps its headers as positions, and parses them when the caller asks for them.

This module knows nothing of compression, and not which messages of a batch the consumer delivers. What is
cached here is a function of sizes only, never of a peer's bytes.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import lru_cache
from itertools import chain, repeat
from struct import Struct
from typing import Any

from ...model.errors import FrameError
from ..fields import encode_text
from ..uniform.keyed_members import KeyedMembers, keys_of, take_keyed
from ..uniform.members import FIRST_WINDOW, KEY_TAG, PAYLOAD_SIZE_TAG, SEQUENCE_ID_TAG, take_uniform
from ..varint import CONTINUED_VARINTS, SMALL_VARINTS, VALUE_OF_SMALL, encode_varint, read_varint
from .metadata import SingleMessageMetadata, decode_single_range, encode_unordered_single, short_pair

_MIN_MEMBER = 6
"""Bytes of the smallest member: its size, and metadata with a payload_size of one byte."""

_FIRST_STRETCH = 16
"""Members read one by one before a run is tried again; more while that proves right."""


# --- taking apart ----------------------------------------------------------------------------------


class Batch:
    """The members of one batch.

    `payloads`: the members' payloads, in order. `plain`: no member has more in its header than
    its size and its sequence id; no key, no properties, not null, not compacted out. `compacted`: there are
    members that compaction took out.
    """

    __slots__ = ("_data", "_firsts", "_segments", "compacted", "payloads", "plain")

    def __init__(self, data: bytes) -> None:
        self.payloads: list[bytes] = []
        self.plain = True
        self.compacted = False
        self._data = data
        self._firsts: list[int] = []
        self._segments: list[tuple[int, int] | list[int]] = []

    def __len__(self) -> int:
        return len(self.payloads)

    def single(self, index: int) -> SingleMessageMetadata:
        """The header of member `index`, parsed now. Raises `IndexError` beyond the batch."""
        if not 0 <= index < len(self.payloads):
            raise IndexError(f"no message {index} in a batch of {len(self.payloads)}")
        number = bisect_right(self._firsts, index) - 1
        segment = self._segments[number]
        offset = index - self._firsts[number]
        if isinstance(segment, list):
            position = segment[offset]
        else:
            start, stride = segment
            position = start + offset * stride
        data = self._data
        header = position + 4
        return decode_single_range(data, header, header + int.from_bytes(data[position:header], "big"))

    def keys(self) -> list[str | None]:
        """The members' keys, in order, None where there is none; cheaper than their headers one by one."""
        keys: list[str | None] = []
        ends = [*self._firsts[1:], len(self.payloads)]
        for segment, first, end in zip(self._segments, self._firsts, ends, strict=True):
            if isinstance(segment, KeyedMembers):
                keys += keys_of(self._data, segment)
            elif isinstance(segment, list) and not self.plain:
                keys += [self.single(index).partition_key for index in range(first, end)]
            else:
                keys += [None] * (end - first)
        return keys

    def _add(self, segment: tuple[int, int] | list[int], payloads: Sequence[bytes]) -> None:
        self._firsts.append(len(self.payloads))
        self._segments.append(segment)
        self.payloads += payloads


def split_batch(payload: bytes, count: int, start: int = 0) -> Batch:
    """The `count` members of an uncompressed, decrypted batch payload, which begins at `start`.

    Raises `FrameError` when there are not exactly that many, or one of them is malformed.
    """
    check_count(payload, count, start)
    batch = Batch(payload)
    position = start
    left = count
    window = FIRST_WINDOW
    stretch = _FIRST_STRETCH
    try:
        while left:
            if payload[position + 4] == KEY_TAG and (keyed := take_keyed(payload, position, left)):
                members, payloads, position = keyed
                batch.plain = False
                batch._add(members, payloads)
                left -= len(members)
                continue
            uniform = take_uniform(payload, position, min(left, window))
            if uniform is not None:
                stride, payloads = uniform
                batch._add((position, stride), payloads)
                run = len(payloads)
                position += run * stride
                left -= run
                window = window * 8 if run == window else FIRST_WINDOW
                stretch = _FIRST_STRETCH
            else:
                taken = min(left, stretch)
                position = _take_members(batch, position, taken)
                left -= taken
                stretch *= 4
    except IndexError:
        raise FrameError("a batch ends inside a message") from None
    if position != len(payload):
        raise FrameError(f"a batch of {count} messages is followed by {len(payload) - position} bytes")
    return batch


def check_count(payload: Sized, count: int, start: int) -> None:
    """Raises `FrameError` where the payload is too short for that many members."""
    size = len(payload) - start
    if count < 1 or count * _MIN_MEMBER > size:
        raise FrameError(f"a payload of {size} bytes cannot hold a batch of {count} messages")


def _take_members(batch: Batch, position: int, count: int) -> int:
    """Takes `count` members one by one; gives the position behind them.

    Members that differ in nothing but their sizes and ids mostly have headers of one length, and ids of
    which only the lowest seven bits change. The last header read in full says what the next one should
    look like; one read of the whole header then shows whether it does.
    """
    data = batch._data
    limit = len(data)
    positions: list[int] = []
    payloads: list[bytes] = []
    value_of = VALUE_OF_SMALL.get
    last_start = -1
    layouts = _layouts(1)
    read, header_size = layouts[0]
    upper: bytes | None = None
    for _ in range(count):
        positions.append(position)
        if position <= last_start:
            size, tag, size_bytes, sequence_tag, low, high = read(data, position)
            if size != header_size:
                read, header_size = layouts[header_size == layouts[0][1]]
                size, tag, size_bytes, sequence_tag, low, high = read(data, position)
            if (
                size == header_size
                and tag == 0x18
                and sequence_tag == 0x40
                and high == upper
                and (low > 0x7F if upper else low < 0x80)
            ):
                payload_size = value_of(size_bytes)
                if payload_size is not None:
                    header_end = position + 4 + size
                    position = header_end + payload_size
                    payloads.append(data[header_end:position])
                    continue
        header_end, payload_size, plain, compacted = _read_header(data, position)
        if plain:
            upper = _upper_bytes(data, position, header_end)
        else:
            upper = None
            batch.plain = False
            if compacted:
                batch.compacted = True
        if upper is not None:
            layouts = _layouts(len(upper))
            read, header_size = layouts[0]
            last_start = limit - 4 - layouts[1][1]
        else:
            last_start = -1
        position = header_end + payload_size
        payloads.append(data[header_end:position])
    if position > limit:
        raise IndexError
    batch._add(positions, payloads)
    return position


_Layout = tuple[Callable[[bytes, int], tuple[Any, ...]], int]
"""A reader of headers that are a size and a sequence id, and the length of these headers."""


@lru_cache(maxsize=16)
def _layouts(upper: int) -> tuple[_Layout, _Layout]:
    """Build the layouts for payload sizes of one byte and of two.

    `upper`: the length of a sequence id without its first byte.

    The readers give: header length, tag, payload size, tag, lowest byte of the sequence id, its upper bytes.
    """
    short, long = ((Struct(f">IB{length}sBB{upper}s").unpack_from, length + upper + 3) for length in (1, 2))
    return short, long


def _upper_bytes(data: bytes, position: int, header_end: int) -> bytes | None:
    """The sequence id without its first byte, when the header is a size of one or two bytes and it; else
    None."""
    behind = position + 6 if data[position + 5] < 0x80 else position + 7
    if (
        data[position + 4] == PAYLOAD_SIZE_TAG
        and 2 <= header_end - behind <= 10
        and data[behind - 1] < 0x80
        and data[behind] == SEQUENCE_ID_TAG
        and read_varint(data, behind + 1)[1] == header_end
    ):
        return data[behind + 2 : header_end]
    return None


def _read_header(data: bytes, position: int) -> tuple[int, int, bool, bool]:
    """Read the header at `position`.

    Gives its end, the payload size in it, whether it is plain, and whether the member is compacted out.

    Raises `FrameError` and `IndexError`. A header that it accepts can be decoded.
    """
    start = position + 4
    header_end = start + int.from_bytes(data[position:start], "big")
    if header_end > len(data):
        raise IndexError
    position = start
    try:
        # Producers write the fields in the order of their numbers; any other header is decoded.
        tag = data[position]
        plain = tag == PAYLOAD_SIZE_TAG
        while tag == 0x0A:
            size = data[position + 1]
            position += 2
            if size > 0x7F or not short_pair(data, position, position + size):
                return _decode_header(data, start, header_end)
            position += size
            tag = data[position]
        if tag == KEY_TAG:
            size = data[position + 1]
            position += 2
            if size > 0x7F:
                size, position = read_varint(data, position - 1)
            position += size
            tag = data[position]
        if tag != PAYLOAD_SIZE_TAG:
            return _decode_header(data, start, header_end)
        payload_size = data[position + 1]
        position += 2
        if payload_size > 0x7F:
            if data[position] < 0x80:
                payload_size = payload_size & 0x7F | data[position] << 7
                position += 1
            else:
                payload_size, position = read_varint(data, position - 1)
        if payload_size >> 31:
            return _decode_header(data, start, header_end)
        while position < header_end:
            tag = data[position]
            position += 2
            if data[position - 1] > 0x7F:
                if tag & 1:  # no varint: a field of fixed size, of a later version
                    return _decode_header(data, start, header_end)
                if data[position] < 0x80:
                    position += 1
                else:
                    _, position = read_varint(data, position - 1)
            if tag != SEQUENCE_ID_TAG:
                plain = False
                if tag != 0x28 and tag != 0x30 and tag != 0x48:
                    return _decode_header(data, start, header_end)
    except IndexError:
        return _decode_header(data, start, header_end)
    if position != header_end:
        return _decode_header(data, start, header_end)
    return header_end, payload_size, plain, False


def _decode_header(data: bytes, start: int, end: int) -> tuple[int, int, bool, bool]:
    """Read any header, with the results of `_read_header`."""
    single = decode_single_range(data, start, end)
    if single.payload_size < 0:
        raise FrameError(f"a message in a batch has a payload of {single.payload_size} bytes")
    plain = not single.__dict__.keys() - _PLAIN_FIELDS
    return end, single.payload_size, plain, single.compacted_out


_PLAIN_FIELDS = {"payload_size", "sequence_id", "unknown"}


# --- putting together ------------------------------------------------------------------------------


def encode_single(single: SingleMessageMetadata, payload: bytes) -> bytes:
    """One member. Sets the `payload_size` of `single`.

    Raises `InvalidMessage` for text that has no UTF-8 form.
    """
    single.payload_size = len(payload)
    header = single.encode()
    return len(header).to_bytes(4, "big") + header + payload


def encode_keyed(key: str, is_base64: bool, event_time: int, sequence_id: int, payload: bytes) -> bytes:
    """One member with a key and, unless it is 0, an event time: what `encode_single` gives for it, sooner.

    Raises `InvalidMessage` for a key that has no UTF-8 form.
    """
    encoded = encode_text(key)
    header = b"".join(
        (
            b"\x12",
            encode_varint(len(encoded)),
            encoded,
            b"\x18",
            encode_varint(len(payload)),
            b"\x28" + encode_varint(event_time) if event_time else b"",
            b"\x30\x01\x40" if is_base64 else b"\x30\x00\x40",
            encode_varint(sequence_id),
        )
    )
    return len(header).to_bytes(4, "big") + header + payload


def encode_unordered(
    properties: Iterable[tuple[str, str]],
    key: str | None,
    is_base64: bool,
    event_time: int,
    sequence_id: int,
    payload: bytes | None,
) -> bytes:
    """One member without an ordering key, as `encode_keyed`. `payload`: None for a null value.

    Raises `InvalidMessage` for text that has no UTF-8 form.
    """
    size = 0 if payload is None else len(payload)
    flag = None if key is None else is_base64
    null = True if payload is None else None
    header = encode_unordered_single(size, properties, key, flag, event_time or None, sequence_id, null)
    return len(header).to_bytes(4, "big") + header + (payload or b"")


class _Heads(dict[int, bytes]):
    """Payload size -> the first bytes of a member whose sequence id takes `length` bytes."""

    LIMIT = 4096
    """Sizes remembered; payloads of a stream rarely have more different ones."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __missing__(self, payload_size: int) -> bytes:
        size = encode_varint(payload_size)
        header_size = 1 + len(size) + 1 + self.length
        head = header_size.to_bytes(4, "big") + b"\x18" + size + b"\x40"
        if len(self) >= self.LIMIT:
            self.clear()
        self[payload_size] = head
        return head


_HEADS = [_Heads(length) for length in range(11)]


def single_prefix(payload_size: int, sequence_id: int) -> bytes:
    """Encode size and header of a batch's member that has a sequence id and nothing else."""
    if sequence_id >> 14:
        if sequence_id >> 28:
            sequence = encode_varint(sequence_id)
        else:
            sequence = CONTINUED_VARINTS[sequence_id & 0x3FFF] + SMALL_VARINTS[sequence_id >> 14]
    else:
        sequence = SMALL_VARINTS[sequence_id]
    return _HEADS[len(sequence)][payload_size] + sequence


_BLOCK = 128
_LAST = SMALL_VARINTS[:_BLOCK]
_FIRST_OF_MORE = [bytes([0x80 | low]) for low in range(_BLOCK)]

_FEWEST_UNIFORM = 24
_LARGEST_UNIFORM = 700
"""Columns cost less than pieces from so many payloads on, of up to so many bytes each."""

_PART_BYTES = 64 * 1024
"""Bytes of a part, about.

A part of this size stays near the processor. A megabyte at once would need fresh memory from the system, and
that costs as much as all the rest.
"""

_PART_MEMBERS = 1024


def encode_batch_payloads(payloads: Sequence[bytes], first_sequence_id: int) -> bytes:
    """Members with the sequence ids `first_sequence_id`, `first_sequence_id` + 1, … and nothing else."""
    return b"".join(encode_batch_parts(payloads, first_sequence_id))


def encode_batch_parts(payloads: Sequence[bytes], first_sequence_id: int) -> list[bytes]:
    """Encode the members of `encode_batch_payloads` in parts of about 64 KB; the last one may be smaller."""
    if len(payloads) >= _FEWEST_UNIFORM:
        size = len(payloads[0])
        if size <= _LARGEST_UNIFORM and len(set(map(len, payloads))) == 1:
            return _encode_uniform(payloads, size, first_sequence_id)
    parts: list[bytes] = []
    pieces: list[Iterable[bytes]] = []
    pieces_bytes = 0
    start = 0
    count = len(payloads)
    while start < count:
        # The upper bytes of a sequence id are the same for all of a block.
        sequence_id = first_sequence_id + start
        low = sequence_id & _BLOCK - 1
        size = len(payloads[start]) + _MIN_MEMBER
        taken = min(_BLOCK - low, count - start, _PART_BYTES // size or 1)
        block = payloads[start : start + taken]
        upper = sequence_id >> 7
        if upper:
            high = encode_varint(upper)
            heads = map(_HEADS[1 + len(high)].__getitem__, map(len, block))
            lows = _FIRST_OF_MORE[low : low + taken]
            pieces.append(chain.from_iterable(zip(heads, lows, repeat(high), block, strict=False)))
        else:
            heads = map(_HEADS[1].__getitem__, map(len, block))
            pieces.append(chain.from_iterable(zip(heads, _LAST[low : low + taken], block, strict=False)))
        start += taken
        pieces_bytes += taken * size
        if pieces_bytes >= _PART_BYTES // 2 or start == count:
            parts.append(b"".join(chain.from_iterable(pieces)))
            pieces.clear()
            pieces_bytes = 0
    return parts


def _encode_uniform(payloads: Sequence[bytes], size: int, first_sequence_id: int) -> list[bytes]:
    """Encode uniform members, whose payloads have one size.

    One `join` puts an empty header before each payload. The bytes of the sequence ids are then written as
    columns, each by one assignment to every n-th byte. A thousand payloads of 100 bytes take 80 ns each this
    way, and 210 ns each from pieces.
    """
    parts: list[bytes] = []
    start = 0
    while start < len(payloads):
        sequence_id = first_sequence_id + start
        length = len(encode_varint(sequence_id))
        header = _HEADS[length][size] + bytes(length)
        stride = len(header) + size
        longest = (1 << 7 * length) - sequence_id  # ids of this length
        block = payloads[start : start + min(longest, _PART_MEMBERS, _PART_BYTES // stride)]
        encoded = bytearray(header).join([b"", *block])
        for number in range(length):
            more = 0x80 if number < length - 1 else 0
            column = _varint_bytes(sequence_id, len(block), 7 * number, more)
            encoded[len(header) - length + number :: stride] = column
        parts.append(bytes(encoded))
        start += len(block)
    return parts


_LOWEST = {more: bytes(more | low for low in range(0x80)) * (_PART_MEMBERS // 0x80 + 1) for more in (0, 0x80)}


def _varint_bytes(first: int, count: int, shift: int, more: int) -> bytes:
    """Encode one byte of the varints of `count` consecutive numbers: that of bits `shift` to `shift + 6`.

    All of these bytes carry the mark `more`.
    """
    if not shift:
        return _LOWEST[more][first & 0x7F :][:count]
    runs: list[bytes] = []
    end = first + count
    while first < end:
        following = min(end, (first >> shift) + 1 << shift)
        runs.append(bytes([more | first >> shift & 0x7F]) * (following - first))
        first = following
    return b"".join(runs)
