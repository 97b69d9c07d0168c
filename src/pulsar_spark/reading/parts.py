"""Columns that grow: what a record batch is put together from.

`Bytes` is written in place, because the payloads of messages are most of all there is to copy; everything
else is kept in parts and put together at the end. Knows Arrow's memory layout, runs, and nothing of messages.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import RecordBatchTooLarge
from .uniform_members import Slice, UniformMembers

_FIRST_SIZE = 64 * 1024

MOST_BYTES = 2**31 - 1
"""The most bytes of all texts in a column: Spark's columns have offsets of 32 bits."""


class Bytes:
    """A column of bytes or text, null or not."""

    def __init__(self, type: Any) -> None:
        self._type = type
        self._data = np.empty(_FIRST_SIZE, np.uint8)
        self.size = 0
        """Bytes in it."""
        self._ends: list[Any] = []
        self._nulls: list[tuple[int, int]] = []
        """First and end of the rows that are null."""
        self.rows = 0

    def add_run(self, run: UniformMembers, where: Slice) -> None:
        """One row for each member of the run: that part of it."""
        rows, width = len(run), where[1]
        if width:
            end = self.size + rows * width
            if end > self._data.shape[0]:
                self._grow(end)
            run.copy(where, self._data[self.size : end])
            self._ends.append(np.arange(self.size + width, end + 1, width, dtype=np.int32))
            self.size = end
        else:
            self._ends.append(np.full(rows, self.size, np.int32))
        self.rows += rows

    def add_column(self, column: Any) -> None:
        """Add a row for each row of an array of bytes (uint8, two dimensions)."""
        rows, width = column.shape
        end = self.size + rows * width
        if end > self._data.shape[0]:
            self._grow(end)
        self._data[self.size : end].reshape(rows, width)[...] = column
        self._ends.append(np.arange(self.size + width, end + 1, width, dtype=np.int32))
        self.size = end
        self.rows += rows

    def add_list(self, values: Sequence[bytes | None]) -> None:
        """One row each; None is null."""
        if None in values:
            for position, value in enumerate(values, self.rows):
                if value is None:
                    self._nulls.append((position, position + 1))
            values = [value or b"" for value in values]
        joined = b"".join(values)  # type: ignore[arg-type]
        end = self.size + len(joined)
        if end > self._data.shape[0]:
            self._grow(end)
        self._data[self.size : end] = np.frombuffer(joined, np.uint8)
        sizes = np.fromiter(map(len, values), np.int64, len(values))  # type: ignore[arg-type]
        self._ends.append((self.size + np.cumsum(sizes)).astype(np.int32))
        self.size = end
        self.rows += len(values)

    def add_nulls(self, count: int) -> None:
        self._nulls.append((self.rows, self.rows + count))
        self._ends.append(np.full(count, self.size, np.int32))
        self.rows += count

    def finish(self) -> Any:
        """The Arrow array; this is empty again."""
        rows = self.rows
        offsets = np.zeros(rows + 1, np.int32)
        if self._ends:
            np.concatenate(self._ends, out=offsets[1:])
        buffers = [_validity(rows, self._nulls), pa.py_buffer(offsets), pa.py_buffer(self._data)]
        array = pa.Array.from_buffers(self._type, rows, buffers)
        self._data = np.empty(max(_FIRST_SIZE, self.size + self.size // 8), np.uint8)
        self.size = self.rows = 0
        self._ends = []
        self._nulls = []
        return array

    def _grow(self, least: int) -> None:
        if least > MOST_BYTES:
            raise RecordBatchTooLarge(
                f"a record batch would have a column of {least} bytes; Arrow allows {MOST_BYTES}. Lower the "
                "options receiverQueue and batchBytes"
            )
        data = np.empty(max(least, min(2 * self._data.shape[0], MOST_BYTES)), np.uint8)
        data[: self.size] = self._data[: self.size]
        self._data = data


def _validity(rows: int, nulls: Iterable[tuple[int, int]]) -> Any:
    """The bitmap that Arrow wants; None where nothing is null."""
    if not nulls:
        return None
    valid = np.ones(rows, np.uint8)
    for first, end in nulls:
        valid[first:end] = 0
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


class ColumnParts:
    """A column that is put together from Arrow arrays."""

    def __init__(self, type: Any) -> None:
        self._type = type
        self._parts: list[Any] = []

    def add(self, array: Any) -> None:
        """Arrow array, or NumPy numbers of the right width."""
        self._parts.append(array)

    def add_list(self, values: Sequence[object]) -> None:
        """One row each; None is null."""
        self._parts.append(pa.array(values, self._type))

    def add_nulls(self, count: int) -> None:
        self._parts.append(pa.nulls(count, self._type))

    def finish(self) -> Any:
        """The Arrow array; this is empty again."""
        parts = [
            part if isinstance(part, pa.Array) else fixed(part, self._type) for part in _joined(self._parts)
        ]
        self._parts = []
        if len(parts) == 1:
            return parts[0]
        return pa.concat_arrays(parts) if parts else pa.array([], self._type)


def _joined(parts: list[Any]) -> list[Any]:
    """All of them as one, where all are numbers of NumPy."""
    if len(parts) > 1 and not any(isinstance(part, pa.Array) for part in parts):
        return [np.concatenate(parts)]
    return parts


def fixed(numbers: Any, type: Any) -> Any:
    """An Arrow array of a type of that width over NumPy's memory; nothing is null."""
    return pa.Array.from_buffers(type, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))])


def from_column(column: Any, type: Any) -> Any:
    """An Arrow array of bytes or text out of so many rows of so many bytes (uint8, two dimensions)."""
    rows, width = column.shape
    offsets = (
        np.arange(0, (rows + 1) * width, width, dtype=np.int32) if width else np.zeros(rows + 1, np.int32)
    )
    data = np.ascontiguousarray(column)
    return pa.Array.from_buffers(type, rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
