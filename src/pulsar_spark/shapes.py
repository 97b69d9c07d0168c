"""Batches in columns: members of a batch that look alike, taken apart together.

A member is the size of its header, the header (SingleMessageMetadata) and the payload. What producers write
in one go mostly has one *shape*: the same fields in the same order, each as long as in the member before;
only what stands in them differs. The header of the first member says what the shape is, and a mask says which
bits of it have to be the same in the others: then they are rows of a table, and every field is a slice of it.

This module finds such runs. What has no shape that it knows, or is alone, it leaves to others.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Slice = tuple[int, int]
"""Where a field stands in a header (its size in front counts) and how many bytes it has."""

_LEAST = 4
"""Members from which a run is worth it."""

_VARINT, _BYTES = 0, 2
_MOST_HEADER = 4096
"""Bytes; a header longer than that is left to others."""


@dataclass(slots=True)
class Shape:
    """What headers of one run have in common."""

    header: int
    """Bytes in front of the payload."""
    payload: int
    """Bytes of the payload."""
    first: Any
    """The header that the shape was taken from (uint8)."""
    mask: Any
    """The bits of it that all have in common (uint8)."""
    sequence_id: Slice | None = None
    event_time: Slice | None = None
    key: Slice | None = None
    key_is_base64: bool = False
    ordering_key: Slice | None = None
    null_value: bool = False
    compacted_out: bool = False
    properties: list[tuple[Slice, Slice]] = field(default_factory=list)

    @property
    def stride(self) -> int:
        """Bytes from one member to the next."""
        return self.header + self.payload


@dataclass(slots=True)
class Run:
    """Members that look alike: `rows[i]` is all of a member, header and payload."""

    shape: Shape
    rows: Any

    def __len__(self) -> int:
        count: int = self.rows.shape[0]
        return count

    @property
    def payloads(self) -> Any:
        """A column of the payloads: so many rows of so many bytes."""
        return self.rows[:, self.shape.header :]

    def column(self, where: Slice) -> Any:
        """That field of every member."""
        start, size = where
        return self.rows[:, start : start + size]

    def numbers(self, where: Slice) -> Any:
        """That varint of every member (int64; larger ones as in two's complement)."""
        start, size = where
        number = (self.rows[:, start] & 0x7F).astype(np.int64)
        for position in range(1, size):
            number |= (self.rows[:, start + position] & 0x7F).astype(np.int64) << 7 * position
        return number


def find_run(data: Any, position: int, most: int, last: Shape | None) -> Run | None:
    """The members from `position` in `data` (uint8) that look alike, at most `most`; None where there is no
    such run. `last`: a shape that they may have."""
    room = data.shape[0] - position
    shape = last
    if shape is None or not _looks(shape, data, position, room):
        shape = _shape_at(data, position, room)
        if shape is None:
            return None
    stride = shape.stride
    count = min(most, room // stride)
    if count < _LEAST and count < most:
        return None
    rows = data[position : position + count * stride].reshape(count, stride)
    differs = (rows[:, : shape.header] ^ shape.first) & shape.mask
    if differs.any():
        count = int(differs.any(axis=1).argmax())
        if count < _LEAST:
            return None
        rows = rows[:count]
    return Run(shape, rows)


def _looks(shape: Shape, data: Any, position: int, room: int) -> bool:
    if room < shape.stride:
        return False
    return not ((data[position : position + shape.header] ^ shape.first) & shape.mask).any()


def _shape_at(data: Any, position: int, room: int) -> Shape | None:
    """The shape of the member there; None where there is something in it that this module does not know."""
    if room < 6:
        return None
    size = int.from_bytes(data[position : position + 4].tobytes(), "big")
    if not 2 <= size <= min(room - 4, _MOST_HEADER):
        return None
    header = data[position : position + 4 + size].tobytes()
    mask = bytearray(b"\xff" * len(header))
    shape = Shape(len(header), -1, None, None)
    at = 4
    try:
        while at < len(header):
            at = _field(shape, header, mask, at)
    except (IndexError, _Unknown):
        return None
    if at != len(header) or shape.payload < 0 or shape.stride > room:
        return None
    shape.first = np.frombuffer(header, np.uint8)
    shape.mask = np.frombuffer(bytes(mask), np.uint8)
    return shape


class _Unknown(Exception):
    """A field that this module does not know, or one that stands there twice."""


def _field(shape: Shape, header: bytes, mask: bytearray, at: int) -> int:
    """Note the field at `at`; gives where the next one begins."""
    tag = header[at]
    value, behind = _varint(header, at + 1)
    if tag == 0x18 and shape.payload < 0 and value < 1 << 31:
        shape.payload = value
    elif tag in _NUMBERS:
        _set_once(shape, _NUMBERS[tag], (at + 1, behind - at - 1))
        for position in range(at + 1, behind):
            mask[position] = 0x80
    elif tag in _TEXTS:
        _set_once(shape, _TEXTS[tag], (behind, value))
        behind = _free(header, mask, behind, value)
    elif tag == 0x0A:
        end = behind + value
        name_size, name = _tagged(header, 0x0A, behind)
        value_size, text = _tagged(header, 0x12, name + name_size)
        if text + value_size != end:
            raise _Unknown
        shape.properties.append(((name, name_size), (text, value_size)))
        _free(header, mask, name, name_size)
        behind = _free(header, mask, text, value_size)
    elif tag in _FLAGS:
        setattr(shape, _FLAGS[tag], value != 0)
    elif tag != 0x50:  # null_partition_key: there is no key then
        raise _Unknown
    return behind


_NUMBERS = {0x28: "event_time", 0x40: "sequence_id"}
_TEXTS = {0x12: "key", 0x3A: "ordering_key"}
_FLAGS = {0x20: "compacted_out", 0x30: "key_is_base64", 0x48: "null_value"}


def _set_once(shape: Shape, name: str, where: Slice) -> None:
    if getattr(shape, name) is not None:
        raise _Unknown
    setattr(shape, name, where)


def _tagged(header: bytes, tag: int, at: int) -> tuple[int, int]:
    """Size and place of the bytes of that field."""
    if header[at] != tag:
        raise _Unknown
    return _varint(header, at + 1)


def _free(header: bytes, mask: bytearray, start: int, size: int) -> int:
    """What stands there may differ; gives where it ends."""
    end = start + size
    if end > len(header):
        raise IndexError
    mask[start:end] = bytes(size)
    return end


def _varint(header: bytes, at: int) -> tuple[int, int]:
    """The number there, and where it ends."""
    value = shift = 0
    while True:
        byte = header[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _Unknown
