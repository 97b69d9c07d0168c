"""`ReceiverQueue`: messages that have arrived and are not delivered to the application yet.

The queue accepts an item of any size (rules CONS-37, FLOW-14). Permits limit how much arrives; they go back
to `Permits` as messages leave.

Delivering one message after the other is the hottest path of the consumer. It goes in *runs*: a run ends
where the item ends, where enough is delivered for a FLOW, or after `LONGEST_RUN`. Inside a run no decision is
needed, so all of it but its last message is an iterator, `ready`.

The queue knows nothing of commands, acknowledgements and connections.
"""

from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import islice
from operator import length_hint

from ...model.errors import ClosedError
from ...model.message import Entry, Message
from ...model.message_id import EntryPosition, MessageId
from .permits import Permits
from .received_entries import (
    Item,
    Messages,
    ReceivedBatch,
    ReceivedSingles,
    message_at,
    messages_of,
    size_of,
    unpack,
)

LONGEST_RUN = 64
"""The maximum length of a run, in messages. A merged queue changes turns between runs."""


class ReceiverQueue:
    """Messages of one consumer between their arrival and their delivery."""

    __slots__ = (
        "_closed",
        "_current",
        "_delivered",
        "_items",
        "_last_entry",
        "_last_index",
        "_messages",
        "_left",
        "_partly",
        "_permits",
        "_left_after",
        "_singles",
        "_waiting",
        "announced",
        "on_taken_back",
        "ready",
        "run_length",
    )

    def __init__(self, permits: Permits) -> None:
        self.announced = False
        """True once the application was told that messages wait; it is told once (`Deliverable`)."""
        self.on_taken_back: Callable[[Sequence[Item]], None] | None = None
        """Called with messages that are dropped and will be redelivered."""
        self._permits = permits
        self._closed: str | None = None
        self._items: deque[Item] = deque()
        self._singles: list[Message] | None = None
        """The last of `_items`, if it is a list."""
        self._waiting = 0
        """The number of messages in `_items`."""
        self._delivered = 0
        """The number of messages delivered before the present run."""
        self._current: Item | None = None
        """The item that is being delivered; it is no longer in `_items`."""
        self._left: Iterator[object] = iter(())
        """The rest of the current item; the iterator is only good for counting."""
        self._messages: Iterator[Message] = iter(())
        self.run_length = 0
        """The number of messages in the present run; 0 without a current item."""
        self._left_after = 0
        """The number of messages that remain in the current item after the present run."""
        self.ready: Iterator[Message] = iter(())
        """The messages of the present run without its last one. Taking a message from this iterator delivers
        it; nothing else has to be done. The iterator ends with the run, or when the run's messages are taken
        back; then call `receive`."""
        self._last_entry: Entry | None = None
        self._last_index = -1
        self._partly = False
        """True when messages of that entry were taken back before they were delivered."""

    def add(self, message: Message) -> None:
        """Add an entry of one message that has arrived."""
        singles = self._singles
        if singles is None:
            singles = self._singles = []
            self._items.append(singles)
        singles.append(message)
        self._waiting += 1

    def add_batch(self, batch: ReceivedBatch) -> None:
        """Add a batch that has arrived."""
        self._singles = None
        self._items.append(batch)
        self._waiting += len(batch.payloads)

    def add_singles(self, singles: ReceivedSingles) -> None:
        """Add several plain entries of one message each that have arrived."""
        self._singles = None
        self._items.append(singles)
        self._waiting += len(singles.payloads)

    # --- delivering ------------------------------------------------------------------------------

    def want(self) -> None:
        """The application waits for a message. Only queues that ask the broker on demand react."""

    def receive(self) -> Message | None:
        """Return the next message, or None when there is none. Raises `ClosedError` after `close`."""
        message = next(self.ready, None)
        return self._receive_at_edge() if message is None else message

    def _receive_at_edge(self) -> Message | None:
        """Return the next message at the end of a run, or at the beginning of an item."""
        if self._current is None:
            if not self._items:
                self._check_open()
                return None
            self._begin()
            return self.receive()
        message = next(self._messages)
        self._end_run()
        return message

    def take(self, limit: int, whole_batches: bool = False) -> Messages:
        """Return the next messages, at most `limit`; this is the fastest path for many. Raises `ClosedError`
        after `close`. `whole_batches`: the last batch may exceed the limit, and is not divided."""
        self._check_open()
        taken: list[Item] = []
        while limit > 0:
            if self._current is None:
                if not self._items:
                    break
                item = self._items[0]
                size = size_of(item)
                if whole_batches and isinstance(item, ReceivedBatch):
                    limit = max(limit, size)
                if size <= limit:
                    taken.append(item)
                    limit -= size
                    self._pass_over(size)
                    continue
                self._begin()
            if whole_batches and isinstance(self._current, ReceivedBatch):
                limit = max(limit, length_hint(self._left))
            in_run = length_hint(self._left) - self._left_after
            count = min(in_run, limit)
            taken.append(list(islice(self.ready, count)))
            if count == in_run:
                taken.append([next(self._messages)])
                self._end_run()
            limit -= count
        return Messages(taken)

    def _pass_over(self, size: int) -> None:
        """Count the first item, of `size` messages, as delivered in one piece."""
        item = self._items.popleft()
        if item is self._singles:
            self._singles = None
        self._waiting -= size
        self._delivered += size
        self._last_entry, self._last_index = message_at(item, size - 1)
        self._partly = False
        if not self._items:
            self.announced = False
        self._permits.give_back(size)

    def _begin(self) -> None:
        """Begin to deliver the first item."""
        item = self._items.popleft()
        self._current = item
        if item is self._singles:
            self._singles = None
        self._left, self._messages = unpack(item)
        self._waiting -= size_of(item)
        self._begin_run()

    def _begin_run(self) -> None:
        left = length_hint(self._left)
        self.run_length = min(left, self._permits.until_report, LONGEST_RUN)
        self._left_after = left - self.run_length
        self.ready = islice(self._messages, self.run_length - 1)

    def _end_run(self) -> None:
        """End a run that was delivered: return its permits and begin the next run."""
        self._delivered += self.run_length
        self._permits.give_back(self.run_length)
        if self._left_after:
            self._begin_run()
        else:
            self._end_item(0)
            if not self._items:
                self.announced = False

    def _end_item(self, left: int) -> None:
        """End the current item; `left` of its messages were not delivered, and never will be."""
        item = self._current
        assert item is not None
        assert left < size_of(item)  # the first message is delivered as soon as the item begins
        self._last_entry, self._last_index = message_at(item, size_of(item) - left - 1)
        self._partly = left > 0 and isinstance(item, ReceivedBatch)
        deque(self._left, maxlen=0)
        self._current = None
        self._messages = self.ready = iter(())
        self.run_length = self._left_after = 0

    def _check_open(self) -> None:
        if self._closed is not None:
            raise ClosedError(self._closed)

    # --- taking back -----------------------------------------------------------------------------

    def clear(self) -> None:
        """Drop everything and return the permits: the broker redelivers it (rules CONS-09, REDEL-02)."""
        if self.on_taken_back is not None:
            self.on_taken_back([*self._rest_of_current(), *self._items])
        permits = self._waiting + self._drop_current()
        self._items.clear()
        self._singles = None
        self._waiting = 0
        self.announced = False
        self._permits.give_back(permits)

    def close(self, why: str) -> None:
        """Drop everything, and deliver nothing from now on."""
        self.clear()
        self._closed = why
        self.leave()

    def weigh_held(self, items: Iterable[Item], sign: int) -> None:
        """Items are held, with `sign` 1, or are not held any more, with `sign` -1: see `SchemaQueue`."""

    def leave(self) -> None:
        """Unregister from the other objects that know this queue; the consumer has ended."""

    def remove(self, positions: Collection[EntryPosition]) -> int:
        """Drop all messages of these entries and nothing else (rules REDEL-04, REDEL-06); return their
        number."""
        return self._drop(positions, None) if self.waiting_of(positions) else 0

    def withdraw(self, position: EntryPosition, index: int) -> int:
        """Drop one message of that entry as `remove` does."""
        waits = self.waiting_of((position,)).get(position, 0) >> max(index, 0) & 1
        return self._drop((position,), index) if waits else 0

    def _drop(self, positions: Container[EntryPosition], index: int | None) -> int:
        """Drop all messages of these entries; with `index`, only their messages with that index."""
        rest = self._rest_of_current()
        permits = self._drop_current() - sum(map(size_of, rest))
        items = [*rest, *self._items]
        self._items.clear()
        self._singles = None
        self._waiting = 0
        dropped: list[Item] = []
        for item in items:
            if isinstance(item, ReceivedBatch):
                if item.entry.position not in positions:
                    self.add_batch(item)
                elif index is None or tuple(item.indexes) == (index,):
                    dropped.append(item)
                elif index not in item.indexes:  # the item may be the rest of an earlier delivery
                    self.add_batch(item)
                else:
                    kept = [each for each in range(len(item.indexes)) if item.indexes[each] != index]
                    payloads, indexes = item.payloads, item.indexes
                    dropped.append(ReceivedBatch(item.entry, (b"",), (index,)))
                    parts = [payloads[each] for each in kept], [indexes[each] for each in kept]
                    self.add_batch(ReceivedBatch(item.entry, *parts))
            elif isinstance(item, ReceivedSingles) and not any(
                position in positions for position in item.positions
            ):
                self.add_singles(item)
            else:
                for message in messages_of(item):
                    if message.entry.position in positions:
                        dropped.append([message])
                    else:
                        self.add(message)
        if not self._items:
            self.announced = False
        count = sum(map(size_of, dropped))
        if index is None and self.on_taken_back is not None:
            self.on_taken_back(dropped)
        self._permits.give_back(permits + count)
        return count

    def _rest_of_current(self) -> list[Item]:
        """Return the rest of the current item as a new item."""
        current, left = self._current, length_hint(self._left)
        if current is None or not left:
            return []
        if isinstance(current, ReceivedBatch):
            return [ReceivedBatch(current.entry, current.payloads[-left:], current.indexes[-left:])]
        if isinstance(current, ReceivedSingles):
            return [current.without_first(len(current.payloads) - left)]
        return [current[-left:]]

    def _drop_current(self) -> int:
        """Drop the rest of the current item; return the permits of that rest and of the present run."""
        if self._current is None:
            return 0
        left = length_hint(self._left)
        permits = self.run_length + self._left_after
        self._delivered += permits - left
        self._end_item(left)
        return permits

    # --- looking ---------------------------------------------------------------------------------

    @property
    def available(self) -> int:
        """The number of messages that `take` would return."""
        return self._waiting + length_hint(self._left)

    @property
    def undelivered(self) -> int:
        """The number of messages that arrived and were not delivered; some kinds of queue deliver them
        later."""
        return self.available

    def _not_begun(self) -> Iterable[Item]:
        """The items of which no message was delivered."""
        return self._items

    def _everything(self) -> list[Item]:
        """All messages that were not delivered."""
        return [*self._rest_of_current(), *self._not_begun()]

    def positions(self) -> set[EntryPosition]:
        """Return the entries that have messages in the queue."""
        found: set[EntryPosition] = set()
        for item in self._everything():
            if isinstance(item, ReceivedBatch):
                found.add(item.entry.position)
            elif isinstance(item, ReceivedSingles):
                found.update(item.positions)
            else:
                found.update(message.entry.position for message in item)
        return found

    def waiting_of(self, positions: Collection[EntryPosition]) -> dict[EntryPosition, int]:
        """Return the messages of these entries that wait, as bits; entries without a waiting message are left
        out."""
        found: dict[EntryPosition, int] = {}
        if not positions or not self.undelivered:
            return found
        wanted = set(positions)
        for item in self._everything():
            if isinstance(item, ReceivedBatch):
                position = item.entry.position
                if position in wanted:
                    found[position] = found.get(position, 0) | bits_of(item.indexes)
            elif isinstance(item, ReceivedSingles):
                found.update(dict.fromkeys(wanted.intersection(item.positions), 1))
            else:
                found.update((each.entry.position, 1) for each in item if each.entry.position in wanted)
        return found

    def copies_of(self, position: EntryPosition, index: int) -> int:
        """Return how many copies of that message wait: one for each delivery of its entry."""
        count = 0
        for item in self._everything():
            if isinstance(item, ReceivedBatch):
                count += item.entry.position == position and index in item.indexes
            elif isinstance(item, ReceivedSingles):
                count += item.positions.count(position)
            else:
                count += sum(message.entry.position == position for message in item)
        return count

    @property
    def last(self) -> tuple[Entry, int] | None:
        """The entry of the message delivered last, and the index of the message in its batch."""
        current = self._current
        if current is not None:
            delivered = size_of(current) - length_hint(self._left)
            if delivered:
                return message_at(current, delivered - 1)
        return None if self._last_entry is None else (self._last_entry, self._last_index)

    @property
    def last_delivered(self) -> EntryPosition | None:
        """The last entry that was delivered completely, valid while the queue is empty: the entry of the
        message delivered last, or the entry before it. None when nothing was delivered, or after `forget`."""
        if self._last_entry is None:
            return None
        ledger_id, entry_id = self._last_entry.position
        return ledger_id, entry_id - self._partly

    def forget(self) -> None:
        """Drop everything, and the message delivered last: the subscription was moved."""
        on_taken_back, self.on_taken_back = (
            self.on_taken_back,
            None,
        )  # delivery counts begin anew after a seek
        self.clear()
        self.on_taken_back = on_taken_back
        self._last_entry = None

    @property
    def delivered(self) -> int:
        """The number of messages delivered to the application."""
        return self._delivered + self.run_length + self._left_after - length_hint(self._left)

    def resume_after(self) -> MessageId | None:
        """Return the id after which every message is still to be delivered, or None when none ever arrived.

        The id is the one just before the first waiting message or, when none waits, that of the message
        delivered last (rule CONS-16). When the first chunk of a waiting message lies before that id,
        `first_chunk` is the entry before the earliest such chunk.
        """
        first = self._current
        skipped = 0
        if first is not None:
            skipped = size_of(first) - length_hint(self._left)
        elif (waiting := next(iter(self._not_begun()), None)) is not None:
            first = waiting
        elif self._last_entry is not None:
            return message_id_of(self._last_entry, self._last_index)
        else:
            return None
        after = _predecessor(*message_at(first, skipped))
        first_chunk = min(self._first_chunks(), default=None)
        if first_chunk is None or first_chunk > after[:2]:
            return after
        return after._replace(first_chunk=(first_chunk[0], first_chunk[1] - 1))

    def _first_chunks(self) -> Iterator[EntryPosition]:
        """Yield the first chunk's position of each waiting message that came in chunks."""
        current = self._current
        left = [] if not isinstance(current, list) else current[len(current) - length_hint(self._left) :]
        for item in [left, *self._not_begun()]:
            if isinstance(item, list):
                yield from (message.entry.first_chunk for message in item if message.entry.first_chunk)
            elif isinstance(item, ReceivedBatch) and item.entry.first_chunk:
                yield item.entry.first_chunk


def bits_of(indexes: Sequence[int]) -> int:
    """Return a bitset with bit i set for each index i; bit 0 stands for a message outside a batch."""
    if isinstance(indexes, range):
        return (1 << indexes.stop) - (1 << indexes.start)
    bits = 0
    for index in indexes:
        bits |= 1 << max(index, 0)
    return bits


def message_id_of(entry: Entry, index: int) -> MessageId:
    """Return the id of that message, without its first chunk."""
    size = entry.size if index >= 0 else 0
    return MessageId(*entry.position, entry.source.partition, index, size)


def before(message_id: MessageId) -> MessageId:
    """Return the id just before that message: the message before it in the batch, or else the entry before it
    or before its first chunk."""
    if message_id.batch_index > 0:
        return message_id._replace(batch_index=message_id.batch_index - 1)
    ledger_id, entry_id = message_id.first_chunk or message_id[:2]
    return MessageId(ledger_id, entry_id - 1, message_id.partition)


def _predecessor(entry: Entry, index: int) -> MessageId:
    """Return the id just before that message: the message before it in the batch, or else the entry before
    it."""
    if index > 0:
        return message_id_of(entry, index - 1)
    ledger_id, entry_id = entry.position
    return MessageId(ledger_id, entry_id - 1, entry.source.partition)
