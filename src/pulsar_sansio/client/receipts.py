"""`ReceiptIds`: the message ids behind one `Receipts`, made when somebody looks at them.

A receipt names an entry; the messages of a batch differ by their index in it (rules PROD-43, BATCH-12). A run
of receipts is kept as one row of numbers per entry, so that a thousand confirmed messages cost no thousand
ids.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import overload

from ..model.message_id import MessageId

new = tuple.__new__
"""Makes a `MessageId` without a call of Python code; there is one for each confirmed message."""


class ReceiptIds(Sequence[MessageId]):
    """One id for each confirmed message, in the order of their tickets."""

    __slots__ = ("_length", "_partition", "_rows", "_starts")

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._rows: list[tuple[int, int, int]] = []
        self._starts: list[int] = []
        self._length = 0

    def add(self, ledger_id: int, entry_id: int, count: int) -> None:
        """One more entry with `count` messages."""
        self._starts.append(self._length)
        self._rows.append((ledger_id, entry_id, count))
        self._length += count

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> MessageId: ...
    @overload
    def __getitem__(self, index: slice) -> list[MessageId]: ...
    def __getitem__(self, index: int | slice) -> MessageId | list[MessageId]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(self._length))]
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(f"{index} of {self._length} message ids")
        row = bisect_right(self._starts, index) - 1
        ledger_id, entry_id, count = self._rows[row]
        if count == 1:
            return MessageId(ledger_id, entry_id, self._partition)
        return new(MessageId, (ledger_id, entry_id, self._partition, index - self._starts[row], count))

    def __iter__(self) -> Iterator[MessageId]:
        partition = self._partition
        for ledger_id, entry_id, count in self._rows:
            if count == 1:
                yield MessageId(ledger_id, entry_id, partition)
            else:
                fields = zip(
                    repeat(ledger_id),
                    repeat(entry_id),
                    repeat(partition),
                    range(count),
                    repeat(count),
                    strict=False,
                )
                yield from map(new, repeat(MessageId), fields)

    def __repr__(self) -> str:
        return f"<ReceiptIds {self._length} in {len(self._rows)} entries>"
