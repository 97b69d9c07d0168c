"""Receipts: one small handle per message, settled by the batch.

Tickets are consecutive integers, so their outcomes are kept as ranges on pages of `PAGE` tickets.
A `Receipt` is a page and a number; settling a thousand of them appends one range. A page is forgotten by its
producer when all of it is settled, and lives on only while the application holds a receipt of it. Message ids
are made on request, a few at a time, and not kept. As objects that live as long as the receipts, they would
double the work of the garbage collector.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, overload

import trio

from pulsar_sansio import MessageId, PulsarError

from ..client.endpoint import TURN
from ..errors import NotAwaitable

if TYPE_CHECKING:
    from .producer import Producer

PAGE = 1024
"""Tickets on one page: about one batch, so that a page is rarely held for one forgotten receipt."""

AHEAD = 64
"""Message ids made together where receipts are asked for in their order: a third of what single ones cost."""


class Settled(NamedTuple):
    """Tickets `first` to `end - 1` have come to the same end: message ids, or one error for all.

    `message_ids` begins with ticket `base`.
    """

    first: int
    end: int
    base: int
    message_ids: Sequence[MessageId]
    error: PulsarError | None


class Page:
    """The outcomes of tickets `first` to `end - 1`, and the tasks that wait for them."""

    __slots__ = (
        "_count",
        "_ranges",
        "_starts",
        "_waiting",
        "end",
        "first",
        "ids",
        "ids_first",
        "prefix",
        "producer",
    )

    def __init__(self, producer: "Producer[Any]", first: int, end: int) -> None:
        self.producer = producer
        self.first = first
        self.end = end
        self.prefix = first
        """Every ticket below it is settled."""
        self._count = 0
        self._ranges: list[Settled] = []
        self._starts: list[int] = []
        self.ids: Sequence[MessageId] = ()
        """The message ids of tickets from `ids_first` on: what `message_id` made last."""
        self.ids_first = first
        self._waiting: dict[int, list[trio.lowlevel.Task]] = {}

    def settle(self, settled: Settled) -> bool:
        """Settle a range on this page and wake its waiting tasks. True if the whole page is settled now."""
        first, end = settled.first, settled.end
        ranges = self._ranges
        index = bisect_right(self._starts, first)
        ranges.insert(index, settled)
        self._starts.insert(index, first)
        if first == self.prefix:
            self.prefix = end if ranges[-1].end == end else self._end_of_run(end)
        self._count += end - first
        if self._waiting:
            self._wake(first, end)
        return self._count == self.end - self.first

    def fail_rest(self, error: PulsarError) -> None:
        """Give every ticket that is not settled yet an error."""
        start = self.first
        for first, end in [(settled.first, settled.end) for settled in self._ranges] + [(self.end, self.end)]:
            if start < first:
                self.settle(Settled(start, first, start, (), error))
            start = end

    def find(self, ticket: int) -> Settled | None:
        """The range a ticket is in, or None while it is not settled."""
        index = bisect_right(self._starts, ticket) - 1
        if index >= 0 and ticket < self._ranges[index].end:
            return self._ranges[index]
        return None

    def message_id(self, ticket: int) -> MessageId | None:
        """The id of a ticket's message, or None while it is not settled. Raises what it failed with."""
        settled = self.find(ticket)
        if settled is None:
            return None
        if settled.error is not None:
            raise settled.error.with_traceback(None)
        in_order = ticket == self.ids_first + len(self.ids)
        end = min(settled.end, ticket + AHEAD) if in_order else ticket + 1
        self.ids = settled.message_ids[ticket - settled.base : end - settled.base]
        self.ids_first = ticket
        return self.ids[0]

    def unsettled(self, tickets: range) -> int | None:
        """One of these tickets that is not settled, a late one if there are many; None when all are."""
        last = tickets.stop - 1
        if last >= self.prefix and self.find(last) is None:
            return last
        ticket = max(tickets.start, self.prefix)
        while ticket < last:
            settled = self.find(ticket)
            if settled is None:
                return ticket
            ticket = settled.end
        return None

    def ranges(self, tickets: range) -> Iterator[Settled]:
        """Return the outcomes of these tickets in order; all must be settled."""
        first = tickets.start
        while first < tickets.stop:
            settled = self.find(first)
            assert settled is not None
            end = min(tickets.stop, settled.end)
            yield settled._replace(first=first, end=end)
            first = end

    async def wait(self, ticket: int) -> None:
        """Wait until one ticket, which is not settled yet, is. Cancelling only ends the waiting."""
        task = trio.lowlevel.current_task()
        waiting = self._waiting.setdefault(ticket, [])
        waiting.append(task)

        def abort(_: object) -> trio.lowlevel.Abort:
            waiting.remove(task)
            if not waiting:
                self._waiting.pop(ticket, None)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _wake(self, first: int, end: int) -> None:
        waiting = self._waiting
        if end - first < len(waiting):
            woken = [tasks for ticket in range(first, end) if (tasks := waiting.pop(ticket, None))]
        else:
            woken = [waiting.pop(ticket) for ticket in sorted(waiting) if first <= ticket < end]
        for tasks in woken:
            for task in tasks:
                trio.lowlevel.reschedule(task)

    def _end_of_run(self, end: int) -> int:
        while (settled := self.find(end)) is not None:
            end = settled.end
        return end


class Receipt:
    """The outcome of one message. The application may drop a receipt at any time; the message is still sent.

    The producer sets `_page` and `_ticket`: an `__init__` would double what making it costs (0.2 instead of
    0.1 µs), and there is one for every message.
    """

    __slots__ = ("_page", "_ticket")

    _page: Page
    _ticket: int

    def done(self) -> bool:
        """Tell whether the message is confirmed or failed."""
        return self._ticket < self._page.prefix or self._page.find(self._ticket) is not None

    def result(self) -> MessageId:
        """The message's id. Raises the error it failed with, or `trio.WouldBlock` while it is not done."""
        message_id = self._page.message_id(self._ticket)
        if message_id is None:
            raise trio.WouldBlock
        return message_id

    async def wait(self) -> MessageId:
        """Wait until the broker has confirmed the message, and give its id.

        Raises what the message failed with. Cancelling it only stops the waiting: the message stays in the
        window with its sequence id, and `wait` may be called again.
        """
        page, ticket = self._page, self._ticket
        producer = page.producer
        producer._turn -= 1
        if producer._turn <= 0:
            producer._turn = TURN
            await trio.lowlevel.checkpoint()
        index = ticket - page.ids_first
        if 0 <= index < len(page.ids):
            return page.ids[index]
        if page.find(ticket) is None:
            await page.wait(ticket)
        return self.result()

    if not TYPE_CHECKING:

        def __await__(self) -> NoReturn:
            raise NotAwaitable("a receipt is not awaited itself; write: message_id = await receipt.wait()")

    def __repr__(self) -> str:
        return f"<Receipt {self._ticket} of {self._page.producer.topic}, {'done' if self.done() else 'open'}>"


class MessageIds(Sequence[MessageId]):
    """The ids of many messages in the order they were sent, each made when it is looked at."""

    __slots__ = ("_ends", "_parts")

    def __init__(self, parts: Sequence[Settled]) -> None:
        self._parts = parts
        self._ends: list[int] = []
        end = 0
        for part in parts:
            end += part.end - part.first
            self._ends.append(end)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[MessageId]:
        for part in self._parts:
            yield from part.message_ids[part.first - part.base : part.end - part.base]

    @overload
    def __getitem__(self, index: int) -> MessageId: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MessageId]: ...
    def __getitem__(self, index: int | slice) -> MessageId | Sequence[MessageId]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"message id {index} of {len(self)}")
        number = bisect_right(self._ends, index)
        part = self._parts[number]
        return part.message_ids[part.end - part.base - self._ends[number] + index]

    def __repr__(self) -> str:
        return f"<MessageIds of {len(self)} messages>"
