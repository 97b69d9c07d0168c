"""Uniform members of a batch as the columns of a table.

What a producer writes in one go is mostly uniform: the same fields in the same order, each as long as in the
member before; only the contents differ. `MemberTemplate` of `pulsar_sansio` knows the bytes of a header:
where its fields are, and which bits all members have in common. This module compares many headers with a
template at once, and slices the fields, with NumPy. It leaves a member without a template, and a member that
is alone, to others.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pulsar_sansio import MemberTemplate, member_template

Slice = tuple[int, int]
"""The position of a field in a header (its size in front counts) and its number of bytes."""

_LEAST = 4
"""Members from which taking them together is worth it."""

_TILED = 16 * 1024
"""Bytes of headers compared at once."""


@dataclass(slots=True)
class Comparison:
    """A template, made ready for comparing many headers with it."""

    template: MemberTemplate
    mask: Any
    """The bits of a header that all members have in common, `tiled` times (uint8)."""
    common: bytes
    """The values of these bits, repeated `tiled` times."""
    tiled: int

    @staticmethod
    def with_member(data: Any, position: int) -> "Comparison | None":
        """Learn from the member at `position` in `data` (uint8); None where the member has no template."""
        template = member_template(memoryview(data), position)
        if template is None:
            return None
        tiled = _TILED // template.header + 1
        mask = np.frombuffer(template.mask * tiled, np.uint8)
        return Comparison(template, mask, template.common * tiled, tiled)

    def count(self, data: Any, position: int, most: int) -> int:
        """Count the members from `position` on that are uniform, one after the other; at most `most`."""
        size, stride, tiled = self.template.header, self.template.stride, self.tiled
        most = min(most, (data.shape[0] - position) // stride)
        for first in range(0, most, tiled):
            some = min(tiled, most - first)
            headers = strided(data, position + first * stride, some, size, stride).copy().view(np.uint8)
            headers &= self.mask[: some * size]
            if headers.tobytes() != self.common[: some * size]:
                expected = np.frombuffer(self.common, np.uint8, some * size)
                return first + int((headers != expected).argmax()) // size
        return most


@dataclass(slots=True)
class UniformMembers:
    """Some uniform members, one after the other from `position` in `data` (uint8) on."""

    comparison: Comparison
    data: Any
    position: int
    count: int

    def __len__(self) -> int:
        return self.count

    @property
    def template(self) -> MemberTemplate:
        return self.comparison.template

    @property
    def payload(self) -> Slice:
        """Return where the payloads are."""
        return self.template.header, self.template.payload

    def copy(self, where: Slice, room: Any) -> None:
        """Copy a field of every member into `room` (uint8, exactly as many bytes)."""
        start, size = where
        if size:
            room.view(_piece(size))[...] = self._pieces(start, size)

    def column(self, where: Slice) -> Any:
        """Return a field of every member: one row of bytes for each (uint8)."""
        start, size = where
        if not size:
            return np.empty((self.count, 0), np.uint8)
        return self._pieces(start, size).copy().view(np.uint8).reshape(self.count, size)

    def numbers(self, where: Slice) -> Any:
        """Return a varint of every member (int64; larger ones as in two's complement)."""
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
        """Return the varints of all members where they take more than eight bytes."""
        columns = self.column((start, size)).astype(np.int64) & 0x7F
        number = columns[:, 0].copy()
        for position in range(1, size):
            number |= columns[:, position] << 7 * position
        return number

    def _pieces(self, start: int, size: int) -> Any:
        return strided(self.data, self.position + start, self.count, size, self.template.stride)


def find_uniform(data: Any, position: int, most: int, last: Comparison | None) -> UniformMembers | None:
    """Find uniform members from `position` in `data` (uint8) on, at most `most`; None where there are none.

    `last`: a comparison that they may pass.
    """
    comparison = last
    count = 0 if comparison is None else comparison.count(data, position, most)
    if comparison is None or not count:
        comparison = Comparison.with_member(data, position)
        if comparison is None:
            return None
        count = comparison.count(data, position, most)
    if count < _LEAST and count < most:
        return None
    return UniformMembers(comparison, data, position, count)


def strided(data: Any, position: int, count: int, size: int, stride: int) -> Any:
    """Return `count` pieces of `size` bytes each, each as one value: the fastest thing to copy for NumPy."""
    return np.ndarray((count,), _piece(size), data, position, (stride,))


@lru_cache(maxsize=512)
def _piece(size: int) -> Any:
    return np.dtype((np.void, size))
