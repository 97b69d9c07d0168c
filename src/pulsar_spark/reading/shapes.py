"""Batches in columns: members of a batch that look alike, taken apart together.

A member is the size of its header, the header (SingleMessageMetadata) and the payload. What producers write
in one go mostly has one *shape*: the same fields in the same order, each as long as in the member before;
only the contents differ. The header of the first member gives the shape, and a mask gives the bits that have
to be the same in the others. Then the members are rows of a table, and every field is a slice of it.

This module finds such runs. What has no shape that it knows, or is alone, it leaves to others.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

Slice = tuple[int, int]
"""Where a field stands in a header (its size in front counts) and how many bytes it has."""

_LEAST = 4
"""Members from which a run is worth it."""

_TILED = 16 * 1024
"""Bytes of headers compared at once."""

_MOST_HEADER = 1024
"""Bytes; a header longer than that is left to others."""


@dataclass(slots=True)
class Shape:
    """The properties that all headers of one run share."""

    header: int
    """Bytes in front of the payload."""
    payload: int
    """Bytes of the payload."""
    mask: Any = None
    """The bits of the header that all have in common, `tiled` times (uint8)."""
    common: bytes = b""
    """The values of these bits, repeated `tiled` times."""
    tiled: int = 1
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
    """So many members that look alike, one after the other from `position` in `data` (uint8) on."""

    shape: Shape
    data: Any
    position: int
    count: int

    def __len__(self) -> int:
        return self.count

    @property
    def payload(self) -> Slice:
        """Where the payloads are."""
        return self.shape.header, self.shape.payload

    def copy(self, where: Slice, room: Any) -> None:
        """That field of every member into `room` (uint8, exactly as many bytes)."""
        start, size = where
        if size:
            room.view(_piece(size))[...] = self._pieces(start, size)

    def column(self, where: Slice) -> Any:
        """That field of every member: so many rows of so many bytes (uint8)."""
        start, size = where
        if not size:
            return np.empty((self.count, 0), np.uint8)
        return self._pieces(start, size).copy().view(np.uint8).reshape(self.count, size)

    def numbers(self, where: Slice) -> Any:
        """That varint of every member (int64; larger ones as in two's complement)."""
        start, size = where
        if size > 8:
            return self._large_numbers(start, size)
        padded = np.zeros((self.count, 8), np.uint8)
        padded[:, :size] = self.column(where)
        raw = padded.view(np.int64).reshape(-1)
        number = raw & 0x7F
        for position in range(1, size):
            number |= raw >> position & 0x7F << 7 * position
        return number

    def _large_numbers(self, start: int, size: int) -> Any:
        """The same for those that take more than eight bytes."""
        columns = self.column((start, size)).astype(np.int64) & 0x7F
        number = columns[:, 0].copy()
        for position in range(1, size):
            number |= columns[:, position] << 7 * position
        return number

    def _pieces(self, start: int, size: int) -> Any:
        return strided(self.data, self.position + start, self.count, size, self.shape.stride)


def find_run(data: Any, position: int, most: int, last: Shape | None) -> Run | None:
    """The members from `position` in `data` (uint8) that look alike, at most `most`; None where there is no
    such run. `last`: a shape that they may have."""
    room = data.shape[0] - position
    shape = last
    count = 0 if shape is None else _alike(shape, data, position, min(most, room // shape.stride))
    if shape is None or not count:
        shape = _shape_at(data, position, room)
        if shape is None:
            return None
        count = _alike(shape, data, position, min(most, room // shape.stride))
    if count < _LEAST and count < most:
        return None
    return Run(shape, data, position, count)


def _alike(shape: Shape, data: Any, position: int, count: int) -> int:
    """Count the members from `position` on that have the shape, one after the other; at most `count`."""
    size = shape.header
    tiled = shape.tiled
    for first in range(0, count, tiled):
        some = min(tiled, count - first)
        at = position + first * shape.stride
        headers = strided(data, at, some, size, shape.stride).copy().view(np.uint8)
        headers &= shape.mask[: some * size]
        if headers.tobytes() != shape.common[: some * size]:
            expected = np.frombuffer(shape.common, np.uint8, some * size)
            return first + int((headers != expected).argmax()) // size
    return count


def strided(data: Any, position: int, count: int, size: int, stride: int) -> Any:
    """So many pieces of so many bytes, each as one value: the fastest thing to copy for NumPy."""
    return np.ndarray((count,), _piece(size), data, position, (stride,))


@lru_cache(maxsize=512)
def _piece(size: int) -> Any:
    return np.dtype((np.void, size))


def _shape_at(data: Any, position: int, room: int) -> Shape | None:
    """The shape of the member there; None where there is something in it that this module does not know."""
    if room < 6:
        return None
    size = int.from_bytes(data[position : position + 4].tobytes(), "big")
    if not 2 <= size <= min(room - 4, _MOST_HEADER):
        return None
    header = data[position : position + 4 + size].tobytes()
    mask = bytearray(b"\xff" * len(header))
    shape = Shape(len(header), -1)
    at = 4
    try:
        while at < len(header):
            at = _field(shape, header, mask, at)
    except (IndexError, _Unknown):
        return None
    if at != len(header) or shape.payload < 0 or shape.stride > room:
        return None
    shape.tiled = _TILED // len(header) + 1
    masked = bytes(byte & common for byte, common in zip(header, mask, strict=True))
    shape.common = masked * shape.tiled
    shape.mask = np.frombuffer(bytes(mask) * shape.tiled, np.uint8)
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
    """Let these bytes differ between members; return where they end."""
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
