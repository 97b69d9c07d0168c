"""The delivery queue: messages that have arrived and were not handed out yet.

Items are whole: a `Message` for an entry of one message, a `BatchItem` for a batch, whose `Message` objects
are made only when they are handed out (a list of a thousand waiting objects costs more than the rest of the
way). The queue always accepts an item, whatever its size (rules CONS-37, FLOW-14); how much arrives is
limited by permits, which go back to `Permits` as messages leave.

`receive` is the hottest path of the consumer. Messages of a batch are handed out in *runs*: a run ends where
the batch ends, or where enough has been handed out for a FLOW. Inside a run one counter is all there is.

Knows nothing of commands, acknowledgements and connections.
"""

from collections import deque
from collections.abc import Container, Iterator, Sequence
from itertools import islice, repeat
from operator import length_hint
from typing import NamedTuple

from ..model.message import Entry, Message
from ..model.message_id import MessageId
from .acks import Place
from .permits import Permits


class BatchItem(NamedTuple):
    """A batch, or what is to be delivered of it."""

    entry: Entry
    payloads: Sequence[bytes]
    """Never empty."""
    indexes: Sequence[int]
    """The index in the batch of each payload."""


class DeliveryQueue:
    """Messages of one consumer between arrival and application."""

    __slots__ = (
        "_batch",
        "_items",
        "_last_entry",
        "_last_index",
        "_messages",
        "_payloads",
        "_permits",
        "_run",
        "_run_length",
        "_waiting",
        "announced",
    )

    def __init__(self, permits: Permits) -> None:
        self.announced = False
        """Whether the application was told that there is something; it is told once (`Deliverable`)."""
        self._permits = permits
        self._items: deque[Message | BatchItem] = deque()
        self._waiting = 0
        """Messages in `_items`."""
        self._batch: BatchItem | None = None
        """The batch being handed out; its messages left are not in `_items` any more."""
        self._payloads: Iterator[bytes] = iter(())
        self._messages: Iterator[Message] = iter(())
        self._run_length = 0
        self._run = 0
        """Messages left in the present run; more than 0 whenever messages of `_batch` are left."""
        self._last_entry: Entry | None = None
        self._last_index = -1

    def add(self, message: Message) -> None:
        """An entry of one message has arrived."""
        self._items.append(message)
        self._waiting += 1

    def add_batch(self, batch: BatchItem) -> None:
        """A batch has arrived."""
        self._items.append(batch)
        self._waiting += len(batch.payloads)

    # --- handing out -----------------------------------------------------------------------------

    def receive(self) -> Message | None:
        """The next message, None where there is none."""
        run = self._run
        if run > 1:
            self._run = run - 1
            return next(self._messages)
        return self._receive_at_edge(run)

    def _receive_at_edge(self, run: int) -> Message | None:
        """The next message where it is the last of a run, or the first of an item."""
        if run == 1:
            message = next(self._messages)
            self._end_run()
        else:
            items = self._items
            if not items:
                return None
            item = items.popleft()
            if type(item) is not Message:
                assert isinstance(item, BatchItem)
                self._begin(item)
                return self.receive()
            message = item
            self._waiting -= 1
            self._last_entry = message.entry
            self._last_index = -1
            self._permits.give_back(1)
        if not self._items and not self._run:
            self.announced = False
        return message

    def take(self, limit: int) -> list[Message]:
        """The next messages, at most `limit`; the faster way for many."""
        taken: list[Message] = []
        items = self._items
        singles = 0
        while limit > 0:
            if not self._run:
                if not items:
                    break
                item = items.popleft()
                if type(item) is Message:
                    taken.append(item)
                    singles += 1
                    limit -= 1
                    continue
                assert isinstance(item, BatchItem)
                self._begin(item)
            count = min(self._run, limit)
            taken.extend(islice(self._messages, count))
            limit -= count
            self._run -= count
            if not self._run:
                self._end_run()
        if singles:
            self._waiting -= singles
            last = taken[-1]
            if last.batch_index < 0:
                self._last_entry = last.entry
                self._last_index = -1
            self._permits.give_back(singles)
        if not items and not self._run:
            self.announced = False
        return taken

    def _begin(self, batch: BatchItem) -> None:
        self._batch = batch
        self._waiting -= len(batch.payloads)
        self._payloads = payloads = iter(batch.payloads)
        self._messages = map(Message, payloads, repeat(batch.entry), batch.indexes)
        self._begin_run(len(batch.payloads))

    def _begin_run(self, left: int) -> None:
        self._run = self._run_length = min(left, self._permits.until_report)

    def _end_run(self) -> None:
        """The run was handed out: its permits go back, and the next one begins."""
        self._permits.give_back(self._run_length)
        left = length_hint(self._payloads)
        if left:
            self._begin_run(left)
        else:
            self._end_batch()

    def _end_batch(self) -> None:
        batch = self._batch
        assert batch is not None
        self._last_entry = batch.entry
        self._last_index = batch.indexes[-1]
        self._batch = None
        self._payloads = iter(())
        self._messages = iter(())
        self._run = self._run_length = 0

    # --- taking back -----------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop everything: it comes again (rules CONS-09, REDEL-02). The permits go back."""
        dropped = self._waiting + self._drop_batch()
        self._items.clear()
        self._waiting = 0
        self.announced = False
        self._permits.give_back(dropped)

    def remove(self, places: Container[Place]) -> None:
        """Drop what is left of these entries, and nothing else (rules REDEL-04, REDEL-06)."""
        dropped = 0
        if self._batch is not None and self._batch.entry.place in places:
            dropped += self._drop_batch()
        kept: deque[Message | BatchItem] = deque()
        for item in self._items:
            if item.entry.place in places:
                count = 1 if isinstance(item, Message) else len(item.payloads)
                self._waiting -= count
                dropped += count
            else:
                kept.append(item)
        self._items = kept
        if not kept and not self._run:
            self.announced = False
        self._permits.give_back(dropped)

    def _drop_batch(self) -> int:
        """Drop what is left of the batch being handed out; how many permits that and the run make."""
        batch = self._batch
        if batch is None:
            return 0
        left = length_hint(self._payloads)
        permits = self._run_length - self._run + left
        handed_out = len(batch.payloads) - left
        if handed_out:
            self._last_entry = batch.entry
            self._last_index = batch.indexes[handed_out - 1]
        self._batch = None
        self._payloads = iter(())
        self._messages = iter(())
        self._run = self._run_length = 0
        return permits

    # --- looking ---------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """Messages that `take` would give."""
        return self._waiting + (length_hint(self._payloads) if self._run else 0)

    def resume_after(self) -> MessageId | None:
        """The id after which everything is still to be handed out, None where nothing ever arrived.

        That is the one just before the first message waiting here or, where none waits, the last one handed
        out (rule CONS-16).
        """
        batch = self._batch
        if batch is not None:
            handed_out = len(batch.payloads) - length_hint(self._payloads)
            return _predecessor(batch.entry, batch.indexes[handed_out])
        if self._items:
            first = self._items[0]
            return _predecessor(first.entry, -1 if isinstance(first, Message) else first.indexes[0])
        if self._last_entry is not None:
            return _message_id(self._last_entry, self._last_index)
        return None


def _message_id(entry: Entry, index: int) -> MessageId:
    return MessageId(*entry.place, entry.source.partition, index, entry.size if index >= 0 else 0)


def _predecessor(entry: Entry, index: int) -> MessageId:
    """The id just before that message: the one before it in the batch, else the entry before."""
    if index > 0:
        return _message_id(entry, index - 1)
    ledger_id, entry_id = entry.place
    return MessageId(ledger_id, entry_id - 1, entry.source.partition)
