"""`Window`: the sealed messages of a producer that no receipt has confirmed yet (rules PROD-42 to PROD-47).

It owns the entries in the order in which they were sent, the matching of receipts with the oldest of them,
their send timeout, and what the application is told of each ticket: `Receipts` or `SendFailed`, and the end
of the flushes that wait for them. It knows nothing of how a message is sealed, of messages that are not
sealed yet, or of how a connection is found.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ..model.errors import PulsarError, RemoteProtocolError
from ..wire import SendReceipt
from .connection import Connection
from .envelopes import Frame
from .outputs import Output, Receipts, RequestDone, RequestFailed, SendFailed
from .receipts import Place, ReceiptIds
from .services import ClientContext

UNSET_UINT64 = 2**63
"""A receipt's highest_sequence_id from here on is the broker's "none" (2^64-1)."""


class Listener(Protocol):
    """Who hears what a producer says, in place of the application: see `partitions`."""

    def hear(self, output: Output) -> None:
        """Anything but receipts."""
        ...

    def confirmed(self, ticket: int, count: int, ledger_id: int, entry_id: int) -> int:
        """Tickets `ticket` to `ticket + count - 1` are confirmed: the messages of one entry. Returns what the
        application calls the first of them, or -1 where it was told already."""
        ...

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """The producer is gone for good; `hear` was told of it before."""
        ...


class Entry:
    """One sealed SEND: a message, a batch, or a chunk of a message (rule PROD-03).

    `count`: messages; 0 for every chunk of a message but the last, which stands for it. All of them have the
    message's ticket.
    """

    __slots__ = ("count", "deadline", "first_ticket", "frame", "highest", "sequence_id")

    def __init__(
        self,
        first_ticket: int,
        count: int,
        sequence_id: int,
        highest: int | None,
        frame: Frame,
        deadline: int,
    ) -> None:
        self.first_ticket = first_ticket
        self.count = count
        self.sequence_id = sequence_id
        self.highest = highest
        """Only a batch has one (WIRE-07)."""
        self.frame = frame
        self.deadline = deadline


class Flush:
    """A flush that waits until every ticket below `end` is settled."""

    __slots__ = ("end", "error", "request")

    def __init__(self, request: int, end: int) -> None:
        self.request = request
        self.end = end
        self.error: PulsarError | None = None


def _nobody() -> None:
    """Nobody is told."""


class Window:
    """One producer's. `send_timeout`: nanoseconds, 0 for never. `listener`: where it is not the application
    that is told.

    `on_timeout` is called when the oldest entry has run out of time; `on_settled`, after entries were
    settled, while `watched`.
    """

    __slots__ = (
        "_context",
        "_emit",
        "_first_chunk",
        "_flushes",
        "_handle",
        "_listener",
        "_newest_end",
        "_newest_ids",
        "_newest_receipts",
        "_on_timeout",
        "_partition",
        "_send_timeout",
        "_timer",
        "_wire_id",
        "entries",
        "messages",
        "on_settled",
        "watched",
    )

    def __init__(
        self,
        context: ClientContext,
        handle: int,
        wire_id: int,
        partition: int,
        send_timeout: int,
        on_timeout: Callable[[], None],
        listener: Listener | None = None,
    ) -> None:
        self.entries: deque[Entry] = deque()
        self.messages = 0
        """How many messages the entries hold together."""
        self.watched = False
        self.on_settled: Callable[[], None] = _nobody
        self._context = context
        self._listener = listener
        self._emit = context.emit if listener is None else listener.hear
        self._handle = handle
        self._wire_id = wire_id
        self._partition = partition
        self._send_timeout = send_timeout
        self._on_timeout = on_timeout
        self._timer = context.deadlines.slot(self._check_timeout)
        self._flushes: deque[Flush] = deque()
        self._first_chunk: Place | None = None
        """Where the first chunk lies of the message whose chunks are being confirmed."""
        self._newest_receipts: Receipts | None = None
        self._newest_ids = ReceiptIds(partition)
        self._newest_end = 0
        """The ticket that would continue the newest `Receipts`."""

    def add(self, ticket: int, count: int, sequence_id: int, highest: int | None, frame: Frame) -> None:
        """One more entry; it waits for its receipt from now on."""
        deadline = 0
        if self._send_timeout:
            deadline = self._context.now + self._send_timeout
            if self._timer.when is None:
                self._timer.set(deadline)
        self.entries.append(Entry(ticket, count, sequence_id, highest, frame, deadline))
        self.messages += count

    # --- what the broker says ---

    def on_receipt(self, connection: Connection, receipt: SendReceipt) -> None:
        """A receipt counts for the oldest entry or for none (rules PROD-42, PROD-43)."""
        if not self.entries:
            return  # it timed out
        entry = self.entries[0]
        sequence_id = receipt.sequence_id
        if sequence_id != entry.sequence_id:
            if sequence_id > entry.sequence_id:
                connection.close(
                    RemoteProtocolError(
                        f"the broker confirmed message {sequence_id} of producer {self._wire_id} while "
                        f"{entry.sequence_id} was not confirmed: everything is sent again"
                    )
                )
            return
        highest = receipt.highest_sequence_id
        if (
            entry.highest is not None
            and highest is not None
            and sequence_id < highest < min(entry.highest, UNSET_UINT64)
        ):
            connection.close(
                RemoteProtocolError(
                    f"the broker confirmed a batch of producer {self._wire_id} up to {highest}, it ends at "
                    f"{entry.highest}: everything is sent again"
                )
            )
            return
        self.entries.popleft()
        ticket, count = entry.first_ticket, entry.count
        self.messages -= count
        ledger_id, entry_id = receipt.ledger_id, receipt.entry_id
        if ledger_id is None or entry_id is None:
            ledger_id = entry_id = -1  # rule CONN-08
        first_chunk = self._first_chunk
        if not count:
            self._first_chunk = first_chunk or (ledger_id, entry_id)
            return
        self._first_chunk = None
        if self._listener is not None:
            ticket = self._listener.confirmed(ticket, count, ledger_id, entry_id)
        if ticket >= 0:
            # A run of receipts that nobody has taken yet goes on growing: one output for all of it.
            outputs = self._context.outputs
            if ticket != self._newest_end or not outputs or outputs[-1] is not self._newest_receipts:
                self._newest_ids = ReceiptIds(self._partition)
                self._newest_receipts = Receipts(self._handle, ticket, self._newest_ids)
                self._context.emit(self._newest_receipts)
            self._newest_end = ticket + count
            self._newest_ids.add(ledger_id, entry_id, count, first_chunk)
        if self.watched:
            self.on_settled()

    def named(self, sequence_id: int) -> Entry | None:
        """The entry that a SEND_ERROR names: a batch by its highest id."""
        for entry in self.entries:
            if sequence_id == (entry.sequence_id if entry.highest is None else entry.highest):
                return entry
        return None

    # --- failure ---

    def fail(self, ticket: int, count: int, error: PulsarError) -> None:
        """Say that these tickets failed, wherever their messages were."""
        self._emit(SendFailed(self._handle, ticket, count, error))
        for flush in self._flushes:
            if flush.end > ticket and flush.error is None:
                flush.error = error

    def fail_entry(self, entry: Entry, error: PulsarError) -> None:
        """That one alone, with the other chunks of its message."""
        ticket = entry.first_ticket
        together = [each for each in self.entries if each.first_ticket == ticket]
        if not together:
            return  # it failed with another chunk of its message
        if together[0] is self.entries[0]:
            self._first_chunk = None
        for each in together:
            self.entries.remove(each)
        count = sum(each.count for each in together)
        self.messages -= count
        self.fail(ticket, count, error)
        if self.watched:
            self.on_settled()

    def fail_all(self, error: PulsarError) -> None:
        """Every entry, in the order of the tickets (rule PROD-26). Nobody is told of room yet."""
        entries, self.entries = self.entries, deque()
        self.messages = 0
        self._first_chunk = None
        self._timer.clear()
        while entries:
            entry = entries.popleft()
            first, count = entry.first_ticket, entry.count
            while entries and entries[0].first_ticket == first + count:
                count += entries.popleft().count
            self.fail(first, count, error)

    def _check_timeout(self) -> None:
        """Only the oldest entry can be the first to run out of time (rule PROD-47)."""
        if not self.entries:
            return
        deadline = self.entries[0].deadline
        if deadline > self._context.now:
            self._timer.set(deadline)
        else:
            self._on_timeout()

    # --- flushes ---

    def flush(self, request: int, end: int) -> None:
        """`RequestDone` when every ticket below `end` is settled, `RequestFailed` if one of them failed."""
        self._flushes.append(Flush(request, end))
        self.watched = True

    def forget_flush(self, request: int) -> None:
        """Nobody waits for this flush any more, if it is one of this producer's."""
        self._flushes = deque(flush for flush in self._flushes if flush.request != request)

    def hand_over_flushes(self) -> Sequence[Flush]:
        """Those that wait: they are for somebody else to answer."""
        flushes, self._flushes = self._flushes, deque()
        return flushes

    def settle_flushes(self, oldest_unsettled: int) -> bool:
        """Answer the flushes that are done; whether others go on waiting."""
        flushes = self._flushes
        while flushes and flushes[0].end <= oldest_unsettled:
            flush = flushes.popleft()
            if flush.error is None:
                self._emit(RequestDone(flush.request, None))
            else:
                self._emit(RequestFailed(flush.request, flush.error))
        return bool(flushes)
