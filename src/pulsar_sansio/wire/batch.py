"""The payload of a batch: `count` times size u32, SingleMessageMetadata, payload (wire: batch payload).

Taking a batch apart is the most frequent thing a consumer does, and members mostly look alike: the same
header but for the sequence id, the same payload size. So runs of alike members are found by comparing
whole columns of bytes, and cut in one go; what does not look alike is read member by member, and a header
with anything but a size and a sequence id goes through the general decoder. Headers are kept as
positions and parsed when asked for.

Knows nothing of compression, and not which messages of a batch are to be delivered.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from struct import Struct

from ..model.errors import FrameError
from .metadata import SingleMessageMetadata, decode_single_metadata
from .varint import SMALL_VARINTS, encode_varint, read_varint

_MIN_MEMBER = 6
"""Bytes of the smallest member: its size, and metadata with a payload_size of one byte."""

_FIRST_WINDOW = 32
_SCALAR_STRETCH = 16
"""Members looked at as one run at first, and members read one by one before a run is tried again."""

_PAYLOAD_SIZE_TAG, _SEQUENCE_ID_TAG = 0x18, 0x40

_read_head = Struct(">IBB").unpack_from
_LOW_BYTES = bytes(range(0x80))
_IS_LOW = bytes([1] * 0x80 + [0] * 0x80)


# --- taking apart ----------------------------------------------------------------------------------


class Batch:
    """The members of one batch.

    `payloads`: the members' payloads, in order. `plain`: no member has more in its header than
    its size and its sequence id; no key, no properties, not null, not compacted out.
    """

    __slots__ = ("_data", "_firsts", "_segments", "payloads", "plain")

    def __init__(self, data: bytes) -> None:
        self.payloads: list[bytes] = []
        self.plain = True
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
        header = position + 4
        size = int.from_bytes(self._data[position:header], "big")
        return decode_single_metadata(self._data[header : header + size])

    def _add(self, segment: tuple[int, int] | list[int], payloads: Sequence[bytes]) -> None:
        self._firsts.append(len(self.payloads))
        self._segments.append(segment)
        self.payloads += payloads


def split_batch(payload: bytes, count: int) -> Batch:
    """The `count` members of an uncompressed, decrypted batch payload.

    Raises `FrameError` when there are not exactly that many, or one of them is malformed.
    """
    if count < 1 or count * _MIN_MEMBER > len(payload):
        raise FrameError(f"a payload of {len(payload)} bytes cannot hold a batch of {count} messages")
    batch = Batch(payload)
    position = 0
    left = count
    window = _FIRST_WINDOW
    try:
        while left:
            run, stride = _take_run(batch, position, min(left, window))
            if run:
                position += run * stride
                left -= run
                window = window * 8 if run == window else _FIRST_WINDOW
            else:
                stretch = min(left, _SCALAR_STRETCH)
                position = _take_members(batch, position, stretch)
                left -= stretch
    except IndexError:
        raise FrameError("a batch ends inside a message") from None
    if position != len(payload):
        raise FrameError(f"a batch of {count} messages is followed by {len(payload) - position} bytes")
    return batch


def _take_run(batch: Batch, position: int, most: int) -> tuple[int, int]:
    """Takes up to `most` members from `position` that differ in payload and sequence id alone.

    Gives their number and the distance from one to the next; 0 when there are not even two.
    """
    data = batch._data
    header_end = position + 4 + int.from_bytes(data[position : position + 4], "big")
    if data[position + 4] != _PAYLOAD_SIZE_TAG:
        return 0, 0
    payload_size, behind = read_varint(data, position + 5)
    constant = behind - position
    sequence_length = header_end - behind
    if sequence_length:
        if sequence_length < 2 or sequence_length > 11 or data[behind] != _SEQUENCE_ID_TAG:
            return 0, 0
        constant += 1
        sequence_length -= 1
    header = constant + sequence_length
    stride = header + payload_size
    run = min(most, (len(data) - position) // stride)
    if (
        run < 2
        or payload_size >> 31
        or not data.startswith(data[position : position + constant], position + stride)
    ):
        return 0, 0
    stop = position + run * stride
    for offset in range(constant):
        column = data[position + offset : stop : stride]
        byte = column[:1]
        if column != byte * len(column):
            run = min(run, len(column) - len(column.lstrip(byte)))
    for offset in range(constant, header):
        column = data[position + offset : stop : stride]
        if offset == header - 1:
            if not column.isascii():
                run = min(run, column.translate(_IS_LOW).find(b"\x00"))
        elif column.translate(None, _LOW_BYTES) != column:
            run = min(run, column.translate(_IS_LOW).find(b"\x01"))
    if run < 2:
        return 0, 0
    start = position + header
    stop = position + run * stride
    batch._add(
        (position, stride),
        [data[begin : begin + payload_size] for begin in range(start, stop, stride)],
    )
    return run, stride


def _take_members(batch: Batch, position: int, count: int) -> int:
    """Takes `count` members one by one; gives the position behind them."""
    data = batch._data
    limit = len(data)
    positions: list[int] = []
    payloads: list[bytes] = []
    for _ in range(count):
        if position + _MIN_MEMBER > limit:
            raise IndexError
        positions.append(position)
        size, tag, payload_size = _read_head(data, position)
        header_end = position + 4 + size
        if header_end > limit:
            raise IndexError
        behind = position + 6
        if payload_size > 0x7F:
            byte = data[behind]
            behind += 1
            if byte < 0x80:
                payload_size = payload_size & 0x7F | byte << 7
            else:
                tag = 0
        rest = header_end - behind
        # Exactly a size, or a size and a sequence id whose varint ends with the header.
        if tag != _PAYLOAD_SIZE_TAG or not (
            rest == 0
            or (
                data[behind] == _SEQUENCE_ID_TAG
                and (
                    (rest == 2 and data[behind + 1] < 0x80)
                    or (rest == 3 and data[behind + 1] > 0x7F and data[behind + 2] < 0x80)
                    or (rest > 3 and _is_varint(data, behind + 1, header_end))
                )
            )
        ):
            single = decode_single_metadata(data[position + 4 : header_end])
            payload_size = single.payload_size
            if payload_size < 0:
                raise FrameError(f"a message in a batch has a payload of {payload_size} bytes")
            if single.__dict__.keys() - _PLAIN_FIELDS:
                batch.plain = False
        position = header_end + payload_size
        payloads.append(data[header_end:position])
    if position > limit:
        raise IndexError
    batch._add(positions, payloads)
    return position


_PLAIN_FIELDS = {"payload_size", "sequence_id", "unknown"}


def _is_varint(data: bytes, start: int, end: int) -> bool:
    """Whether the bytes are exactly one varint."""
    try:
        return read_varint(data, start)[1] == end
    except FrameError:
        return False


# --- putting together ------------------------------------------------------------------------------


def encode_single(single: SingleMessageMetadata, payload: bytes) -> bytes:
    """One member. Sets the `payload_size` of `single`.

    Raises `InvalidMessage` for text that has no UTF-8 form.
    """
    single.payload_size = len(payload)
    header = single.encode()
    return len(header).to_bytes(4, "big") + header + payload


class _Heads(dict[int, bytes]):
    """By payload size: what a member begins with when its sequence id takes `length` bytes."""

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
    """What precedes a payload in a batch when it has a sequence id and nothing else: size and header."""
    if 0 <= sequence_id < 16384:
        sequence = SMALL_VARINTS[sequence_id]
    else:
        sequence = encode_varint(sequence_id)
    return _HEADS[len(sequence)][payload_size] + sequence


_BLOCK = 128
_LAST = SMALL_VARINTS[:_BLOCK]
_FIRST_OF_MORE = [bytes([0x80 | low]) for low in range(_BLOCK)]


def encode_batch_payloads(payloads: Sequence[bytes], first_sequence_id: int) -> bytes:
    """Members with the sequence ids `first_sequence_id`, `first_sequence_id` + 1, … and nothing else."""
    parts: list[Iterable[bytes]] = []
    start = 0
    count = len(payloads)
    while start < count:
        # The upper bytes of a sequence id are the same for all of a block.
        sequence_id = first_sequence_id + start
        low = sequence_id & _BLOCK - 1
        taken = min(_BLOCK - low, count - start)
        block = payloads[start : start + taken]
        upper = sequence_id >> 7
        if upper:
            high = encode_varint(upper)
            heads = map(_HEADS[1 + len(high)].__getitem__, map(len, block))
            parts.append(
                chain.from_iterable(
                    zip(heads, _FIRST_OF_MORE[low : low + taken], repeat(high), block, strict=False)
                )
            )
        else:
            heads = map(_HEADS[1].__getitem__, map(len, block))
            parts.append(chain.from_iterable(zip(heads, _LAST[low : low + taken], block, strict=False)))
        start += taken
    return b"".join(chain.from_iterable(parts))
