"""`ReceiptIds`: the message ids of one `Receipts`, made when the application reads them.

A receipt names an entry; the messages of a batch differ by their batch index (rules PROD-43, BATCH-12). Each
entry is kept as one row of numbers, so a thousand confirmed messages need not cost a thousand ids.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import overload

from ...model.message_id import EntryPosition, MessageId

new = tuple.__new__
"""Makes a `MessageId` without a call of Python code, because each confirmed message needs one."""

TOGETHER = 1000
"""The number of ids that an iteration makes at a time."""


class ReceiptIds(Sequence[MessageId]):
    """One id for each confirmed message, in the order of their tickets."""

    __slots__ = ("_length", "_partition", "_rows", "_starts")

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._rows: list[tuple[int, int, int, EntryPosition | None]] = []
        self._starts: list[int] = []
        self._length = 0

    def add(
        self, ledger_id: int, entry_id: int, count: int, first_chunk: EntryPosition | None = None
    ) -> None:
        """Add an entry with `count` messages, or the last entry of a chunked message."""
        self._starts.append(self._length)
        self._rows.append((ledger_id, entry_id, count, first_chunk))
        self._length += count

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> MessageId: ...
    @overload
    def __getitem__(self, index: slice) -> list[MessageId]: ...
    def __getitem__(self, index: int | slice) -> MessageId | list[MessageId]:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._length)
            if step == 1:
                return self._ids(start, stop)
            return [self[position] for position in range(start, stop, step)]
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(f"{index} of {self._length} message ids")
        row = bisect_right(self._starts, index) - 1
        ledger_id, entry_id, count, first_chunk = self._rows[row]
        if count == 1:
            return new(MessageId, (ledger_id, entry_id, self._partition, -1, 0, first_chunk))
        return new(MessageId, (ledger_id, entry_id, self._partition, index - self._starts[row], count, None))

    def __iter__(self) -> Iterator[MessageId]:
        for start in range(0, self._length, TOGETHER):
            yield from self._ids(start, min(start + TOGETHER, self._length))

    def _ids(self, start: int, stop: int) -> list[MessageId]:
        """Make the ids with the indices `start` to `stop - 1`."""
        partition = self._partition
        ids: list[MessageId] = []
        row = bisect_right(self._starts, start) - 1
        while start < stop:
            ledger_id, entry_id, count, first_chunk = self._rows[row]
            if count == 1:
                ids.append(new(MessageId, (ledger_id, entry_id, partition, -1, 0, first_chunk)))
                start += 1
            else:
                first = self._starts[row]
                fields = zip(
                    repeat(ledger_id),
                    repeat(entry_id),
                    repeat(partition),
                    range(start - first, min(stop - first, count)),
                    repeat(count),
                    repeat(None),
                    strict=False,
                )
                ids += map(new, repeat(MessageId), fields)
                start = first + count
            row += 1
        return ids

    def __repr__(self) -> str:
        return f"<ReceiptIds {self._length} in {len(self._rows)} entries>"
