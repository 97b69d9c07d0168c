"""The delivery queue: messages that have arrived and were not handed out yet.

An item is a batch, or plain entries of one message that came together, whose `Message` objects are made only
when they are handed out (a list of a thousand waiting objects costs more than the rest of the way), or a list
of other entries of one message. The queue always
accepts an item, whatever its size (rules CONS-37, FLOW-14); how much arrives is limited by permits, which go
back to `Permits` as messages leave.

`receive` is the hottest path of the consumer. Messages are handed out in *runs*: a run ends where the item
ends, or where enough has been handed out for a FLOW. Inside a run one counter is all there is.

Knows nothing of commands, acknowledgements and connections.
"""

from collections import deque
from collections.abc import Container, Iterator, Sequence
from itertools import islice, repeat
from operator import length_hint
from typing import Any, NamedTuple

from ..model.errors import ClosedError
from ..model.message import Entry, Message, Source
from ..model.message_id import MessageId
from ..wire import MessageMetadata, decode_message_metadata
from .acks import EntryAcknowledgement, Place
from .permits import Permits


class BatchItem(NamedTuple):
    """A batch, or what is to be delivered of it."""

    entry: Entry
    payloads: Sequence[bytes]
    """Never empty."""
    indexes: Sequence[int]
    """The index in the batch of each payload."""


class PlainEntry(Entry):
    """An entry of one message, whose header is parsed when it is looked at: few applications do."""

    __slots__ = ("_undecoded",)

    batch = None
    size = 0

    def __init__(
        self,
        source: Source,
        place: Place,
        header: bytes | MessageMetadata,
        redelivery_count: int,
        acknowledgement: EntryAcknowledgement,
    ) -> None:
        # Not all that an `Entry` has is set here: this is made once per message.
        self.source = source
        self.place = place
        self._undecoded = header
        self.redelivery_count = redelivery_count
        self.acknowledgement = acknowledgement

    def __getattr__(self, name: str) -> Any:
        if name != "header":
            raise AttributeError(name)
        header = self._undecoded
        self.header = decode_message_metadata(header) if isinstance(header, bytes) else header
        return self.header


class SinglesItem(NamedTuple):
    """Plain entries of one message: what they have in common, and of each its place, header and payload."""

    source: Source
    places: Sequence[Place]
    headers: Sequence[bytes | MessageMetadata]
    redelivery_count: int
    acknowledgement: EntryAcknowledgement
    payloads: Sequence[bytes]
    """Never empty."""

    def entries(self) -> Iterator[PlainEntry]:
        """Made one by one."""
        return map(
            PlainEntry,
            repeat(self.source),
            self.places,
            self.headers,
            repeat(self.redelivery_count),
            repeat(self.acknowledgement),
        )

    def entry(self, index: int) -> PlainEntry:
        return PlainEntry(
            self.source,
            self.places[index],
            self.headers[index],
            self.redelivery_count,
            self.acknowledgement,
        )

    def without_first(self, count: int) -> "SinglesItem":
        return self._replace(
            places=self.places[count:], headers=self.headers[count:], payloads=self.payloads[count:]
        )


Item = BatchItem | SinglesItem | list[Message]


class DeliveryQueue:
    """Messages of one consumer between arrival and application."""

    __slots__ = (
        "_closed",
        "_current",
        "_items",
        "_last_entry",
        "_last_index",
        "_messages",
        "_left",
        "_permits",
        "_run",
        "_run_length",
        "_singles",
        "_waiting",
        "announced",
    )

    def __init__(self, permits: Permits) -> None:
        self.announced = False
        """Whether the application was told that there is something; it is told once (`Deliverable`)."""
        self._permits = permits
        self._closed: str | None = None
        self._items: deque[Item] = deque()
        self._singles: list[Message] | None = None
        """The last of `_items`, where that is a list."""
        self._waiting = 0
        """Messages in `_items`."""
        self._current: Item | None = None
        """The item being handed out; it is not in `_items` any more."""
        self._left: Iterator[object] = iter(())
        """What is left of it: only good for counting."""
        self._messages: Iterator[Message] = iter(())
        self._run_length = 0
        self._run = 0
        """Messages left in the present run; more than 0 as long as there is a current item."""
        self._last_entry: Entry | None = None
        self._last_index = -1

    def add(self, message: Message) -> None:
        """An entry of one message has arrived."""
        singles = self._singles
        if singles is None:
            singles = self._singles = []
            self._items.append(singles)
        singles.append(message)
        self._waiting += 1

    def add_batch(self, batch: BatchItem) -> None:
        """A batch has arrived."""
        self._singles = None
        self._items.append(batch)
        self._waiting += len(batch.payloads)

    def add_singles(self, singles: SinglesItem) -> None:
        """Several plain entries of one message have arrived."""
        self._singles = None
        self._items.append(singles)
        self._waiting += len(singles.payloads)

    # --- handing out -----------------------------------------------------------------------------

    def receive(self) -> Message | None:
        """The next message, None where there is none. Raises `ClosedError` after `close`."""
        run = self._run
        if run > 1:
            self._run = run - 1
            return next(self._messages)
        return self._receive_at_edge(run)

    def _receive_at_edge(self, run: int) -> Message | None:
        """The next message where it is the last of a run, or the first of an item."""
        if run == 0:
            if not self._items:
                self._check_open()
                return None
            self._begin()
            return self.receive()
        message = next(self._messages)
        self._end_run()
        return message

    def take(self, limit: int) -> list[Message]:
        """The next messages, at most `limit`; the faster way for many. Raises `ClosedError` after `close`."""
        self._check_open()
        taken: list[Message] = []
        while limit > 0:
            if not self._run:
                if not self._items:
                    break
                self._begin()
            count = min(self._run, limit)
            taken.extend(islice(self._messages, count))
            limit -= count
            self._run -= count
            if not self._run:
                self._end_run()
        return taken

    def _begin(self) -> None:
        """The first item is handed out from now on."""
        item = self._items.popleft()
        self._current = item
        if isinstance(item, BatchItem):
            payloads = iter(item.payloads)
            self._left = payloads
            self._messages = map(Message, payloads, repeat(item.entry), item.indexes)
        elif isinstance(item, SinglesItem):
            payloads = iter(item.payloads)
            self._left = payloads
            self._messages = map(Message, payloads, item.entries(), repeat(-1))
        else:
            if item is self._singles:
                self._singles = None
            self._left = self._messages = iter(item)
        left = _size(item)
        self._waiting -= left
        self._run = self._run_length = min(left, self._permits.until_report)

    def _end_run(self) -> None:
        """The run was handed out: its permits go back, and the next one begins."""
        self._permits.give_back(self._run_length)
        left = length_hint(self._left)
        if left:
            self._run = self._run_length = min(left, self._permits.until_report)
        else:
            self._end_item(0)
            if not self._items:
                self.announced = False

    def _end_item(self, left: int) -> None:
        """The current item is over; `left` of its messages were not handed out."""
        item = self._current
        assert item is not None
        if left < _size(item):
            self._last_entry, self._last_index = _message_at(item, _size(item) - left - 1)
        self._current = None
        self._left = iter(())
        self._messages = iter(())
        self._run = self._run_length = 0

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ClosedError(self._closed)

    # --- taking back -----------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop everything: it comes again (rules CONS-09, REDEL-02). The permits go back."""
        permits = self._waiting + self._drop_current()
        self._items.clear()
        self._singles = None
        self._waiting = 0
        self.announced = False
        self._permits.give_back(permits)

    def close(self, why: str) -> None:
        """Drop everything; from now on nothing is handed out."""
        self.clear()
        self._closed = why

    def remove(self, places: Container[Place]) -> None:
        """Drop what is left of these entries, and nothing else (rules REDEL-04, REDEL-06)."""
        items: list[Item] = []
        current = self._current
        permits = 0
        if current is not None:
            left = length_hint(self._left)
            permits = self._drop_current() - left
            if isinstance(current, BatchItem):
                items.append(BatchItem(current.entry, current.payloads[-left:], current.indexes[-left:]))
            elif isinstance(current, SinglesItem):
                items.append(current.without_first(len(current.payloads) - left))
            else:
                items.append(current[-left:])
        items += self._items
        self._items.clear()
        self._singles = None
        self._waiting = 0
        for item in items:
            if isinstance(item, BatchItem):
                if item.entry.place in places:
                    permits += len(item.payloads)
                else:
                    self.add_batch(item)
            elif isinstance(item, SinglesItem) and not any(place in places for place in item.places):
                self.add_singles(item)
            else:
                for message in _singles(item):
                    if message.entry.place in places:
                        permits += 1
                    else:
                        self.add(message)
        if not self._items:
            self.announced = False
        self._permits.give_back(permits)

    def _drop_current(self) -> int:
        """Drop what is left of the current item; how many permits that and the present run make."""
        if self._current is None:
            return 0
        left = length_hint(self._left)
        permits = self._run_length - self._run + left
        self._end_item(left)
        return permits

    # --- looking ---------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """Messages that `take` would give."""
        return self._waiting + length_hint(self._left)

    def resume_after(self) -> MessageId | None:
        """The id after which everything is still to be handed out, None where nothing ever arrived.

        That is the one just before the first message waiting here or, where none waits, the last one handed
        out (rule CONS-16).
        """
        first = self._current
        skipped = 0
        if first is not None:
            skipped = _size(first) - length_hint(self._left)
        elif self._items:
            first = self._items[0]
        elif self._last_entry is not None:
            return _message_id(self._last_entry, self._last_index)
        else:
            return None
        return _predecessor(*_message_at(first, skipped))


def _size(item: Item) -> int:
    return len(item) if isinstance(item, list) else len(item.payloads)


def _singles(item: SinglesItem | list[Message]) -> list[Message]:
    if isinstance(item, list):
        return item
    return list(map(Message, item.payloads, item.entries(), repeat(-1)))


def _message_at(item: Item, position: int) -> tuple[Entry, int]:
    """Which message stands there: its entry, and its index in the batch."""
    if isinstance(item, BatchItem):
        return item.entry, item.indexes[position]
    return item[position].entry if isinstance(item, list) else item.entry(position), -1


def _message_id(entry: Entry, index: int) -> MessageId:
    return MessageId(*entry.place, entry.source.partition, index, entry.size if index >= 0 else 0)


def _predecessor(entry: Entry, index: int) -> MessageId:
    """The id just before that message: the one before it in the batch, else the entry before."""
    if index > 0:
        return _message_id(entry, index - 1)
    ledger_id, entry_id = entry.place
    return MessageId(ledger_id, entry_id - 1, entry.source.partition)
