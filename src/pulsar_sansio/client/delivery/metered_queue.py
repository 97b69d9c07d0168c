"""`MeteredQueue`: a receiver queue that knows how many bytes of payload wait in it.

Two kinds of queue need the number: scaled queues, whose size follows the memory limit, and queues of a batch
receive, which count bytes. Other queues do not pay for it. The bytes of an item leave with its last message.
"""

from collections.abc import Container, Iterator, Sequence
from itertools import islice
from operator import length_hint
from typing import Any

from ...model.message import Message
from ...model.message_id import EntryPosition
from .permits import Permits
from .received_entries import Item, ReceivedBatch, ReceivedSingles
from .receiver_queue import ReceiverQueue


class MeteredQueue(ReceiverQueue):
    """`bytes_waiting`: the payload in the queue, in bytes before compression."""

    def __init__(self, permits: Permits, **others: Any) -> None:
        super().__init__(permits, **others)
        self.bytes_waiting = 0

    def weigh(self, size: int) -> None:
        """Add `size` bytes to those that wait; `size` is negative for bytes that leave."""
        self.bytes_waiting += size

    def add(self, message: Message) -> None:
        self.weigh(len(message.data))
        super().add(message)

    def add_batch(self, batch: ReceivedBatch) -> None:
        self.weigh(bytes_of(batch))
        super().add_batch(batch)

    def add_singles(self, singles: ReceivedSingles) -> None:
        self.weigh(bytes_of(singles))
        super().add_singles(singles)

    def _pass_over(self, size: int) -> None:
        self.weigh(-bytes_of(self._items[0]))
        super()._pass_over(size)

    def _end_item(self, left: int) -> None:
        assert self._current is not None
        self.weigh(-bytes_of(self._current))
        super()._end_item(left)

    def clear(self) -> None:
        super().clear()
        self.weigh(-self.bytes_waiting)

    def _drop(self, positions: Container[EntryPosition], index: int | None) -> int:
        """Messages that stay are weighed when they are added again."""
        current = 0 if self._current is None else bytes_of(self._current)
        self.weigh(current - self.bytes_waiting)
        return super()._drop(positions, index)

    def fitting(self, limit: int, max_bytes: int) -> int:
        """Return how many of the next `limit` messages have at most `max_bytes` bytes together: at least one,
        if there is one."""
        count = 0
        for size in self._sizes():
            max_bytes -= size
            if count and (max_bytes < 0 or count >= limit):
                break
            count += 1
        return count

    def size_of_next(self, count: int) -> int:
        """Return the size of the next `count` messages, in bytes."""
        return sum(islice(self._sizes(), count))

    def _sizes(self) -> Iterator[int]:
        if self._current is not None:
            yield from list(_sizes_of(self._current))[-length_hint(self._left) :]
        for item in self._items:
            yield from _sizes_of(item)


def _sizes_of(item: Item) -> Iterator[int]:
    return map(len, _payloads_of(item))


def bytes_of(item: Item) -> int:
    return sum(_sizes_of(item))


def _payloads_of(item: Item) -> Sequence[bytes]:
    return [message.data for message in item] if isinstance(item, list) else item.payloads
