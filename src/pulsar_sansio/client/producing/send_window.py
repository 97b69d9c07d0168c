"""`SendWindow`: the sealed messages of a producer that no receipt has confirmed yet (rules PROD-42,
PROD-43, PROD-47).

The window owns the entries in the order of sending, matches each receipt with the oldest entry, and applies
the send timeout. It reports each ticket by `Receipts` or `SendFailed`, and answers flushes. The `Admission`
and the `EntryBuilder` own messages that are not sealed yet.
"""

from collections import deque
from collections.abc import Callable, Sequence

from ...core.callbacks import ignore
from ...model.config import nanoseconds_of
from ...model.errors import PulsarError, RemoteProtocolError
from ...model.message_id import EntryPosition
from ...wire import SendReceipt
from ..connecting.connection import Connection
from ..outputs import Receipts, RequestDone, RequestFailed, SendFailed
from ..transactions.transaction import Transaction
from .key_batches import KeyBatch, runs
from .producer_services import ProducerServices
from .receipt_ids import ReceiptIds
from .send_encoder import Frame

LATENCIES = 1024
"""The number of latencies that a producer keeps for its percentiles."""

UNSET_UINT64 = 2**63
"""A receipt's highest_sequence_id of this size or more means "none" (brokers send 2^64-1)."""


class SealedEntry:
    """One sealed SEND: a message, a batch, or a chunk of a message (rule PROD-03).

    `count`: the number of messages; 0 for every chunk of a message but the last. All chunks have the
    message's ticket. `size`: the bytes of client memory that the messages hold. `sealed`: the time of
    sealing.
    """

    __slots__ = ("count", "first_ticket", "frame", "highest", "sealed", "sequence_id", "size", "written")

    tickets: Sequence[int] | None = None
    """The tickets of a key-based batch, which need not be consecutive; else None."""

    def __init__(
        self,
        first_ticket: int,
        count: int,
        sequence_id: int,
        highest: int | None,
        frame: Frame,
        size: int,
        sealed: int,
    ) -> None:
        self.first_ticket = first_ticket
        self.count = count
        self.sequence_id = sequence_id
        self.highest = highest
        """The highest sequence id of a batch; None for other entries (WIRE-07)."""
        self.frame = frame
        self.size = size
        self.sealed = sealed
        self.written = False
        """The entry was written to a connection, so a broker may have stored it."""

    @property
    def oldest(self) -> int:
        """A ticket below which every ticket is settled, while this is the oldest entry."""
        return self.first_ticket


class KeyEntry(SealedEntry):
    """A key-based batch. `oldest`: the lowest ticket of the round, see `key_batches`."""

    __slots__ = ("_oldest", "tickets")

    def __init__(self, batch: KeyBatch, oldest: int, frame: Frame, sealed: int) -> None:
        tickets, last = batch.tickets, batch.highest
        highest = last if len(tickets) > 1 else None
        super().__init__(tickets[0], len(tickets), last, highest, frame, batch.size, sealed)
        self.tickets: Sequence[int] = tickets
        self._oldest = oldest

    @property
    def oldest(self) -> int:
        return self._oldest


def _rest_of_round(entry: SealedEntry, following: deque[SealedEntry]) -> list[int]:
    """Return the tickets of a key-based batch and its round, and remove that round from `following`."""
    tickets = list(entry.tickets or ())
    while following and following[0].tickets is not None and following[0].oldest == entry.oldest:
        tickets += following.popleft().tickets or ()
    return sorted(tickets)


def _tickets_of(entry: SealedEntry) -> Sequence[int]:
    return entry.tickets or range(entry.first_ticket, entry.first_ticket + entry.count)


class Flush:
    """A flush that waits until every ticket below `end` is settled."""

    __slots__ = ("end", "error", "request")

    def __init__(self, request: int, end: int) -> None:
        self.request = request
        self.end = end
        self.error: PulsarError | None = None


class SendWindow:
    """The unconfirmed entries of one producer.

    `on_timeout` is called when the oldest entry has timed out; `on_settled`, after entries were settled,
    while `watched`.
    """

    __slots__ = (
        "_context",
        "_emit",
        "_first_chunk",
        "_flushes",
        "_handle",
        "_listener",
        "_memory",
        "_newest_chunk",
        "_newest_end",
        "_newest_ids",
        "_newest_receipts",
        "_on_timeout",
        "_partition",
        "_send_timeout",
        "_timer",
        "_transactions",
        "_wire_id",
        "entries",
        "failed",
        "held_from",
        "last_sequence_id",
        "latencies",
        "messages",
        "on_settled",
        "watched",
    )

    def __init__(self, services: ProducerServices, on_timeout: Callable[[], None]) -> None:
        self.entries: deque[SealedEntry] = deque()
        self.held_from: int | None = None
        """The ticket from which entries are held, as their transaction has not joined the topic yet: they are
        not written. None while no transaction joins."""
        self.messages = 0
        """The number of messages in all entries."""
        self.failed = 0
        """The number of failed tickets, including tickets of messages that were never sealed."""
        self.last_sequence_id = -1
        """The highest sequence id that the broker has confirmed or had stored for the name; -1 for none."""
        self.latencies: deque[int] = deque(maxlen=LATENCIES)
        """Nanoseconds from sealing to receipt, for the first of each run of receipts."""
        self.watched = False
        self.on_settled: Callable[[], None] = ignore
        self._context = services.context
        self._memory = services.client.memory
        """The client's memory, released as messages are settled."""
        self._listener = services.listener
        self._emit = services.emit
        self._handle = services.handle
        self._wire_id = services.wire_id
        self._partition = services.topic.partition
        self._send_timeout = nanoseconds_of(services.spec.send_timeout)
        """Nanoseconds; 0 for none."""
        self._on_timeout = on_timeout
        self._timer = services.context.deadlines.slot(self._check_timeout)
        self._flushes: deque[Flush] = deque()
        self._transactions: dict[int, Transaction] = {}
        """Tickets of messages in transactions. Those that took the fast path of a batch are not here: all
        messages of a batch are settled together, and the first one counts for them."""
        self._first_chunk: EntryPosition | None = None
        """The position of the first chunk of the message whose chunks are being confirmed."""
        self._newest_chunk: EntryPosition = (-1, -1)
        """The position of the newest confirmed chunk."""
        self._newest_receipts: Receipts | None = None
        self._newest_ids = ReceiptIds(self._partition)
        self._newest_end = 0
        """The ticket that extends the newest `Receipts`."""

    def add(
        self, ticket: int, count: int, sequence_id: int, highest: int | None, frame: Frame, size: int
    ) -> SealedEntry:
        """Add an entry, which then waits for its receipt."""
        entry = SealedEntry(ticket, count, sequence_id, highest, frame, size, self._started())
        self.entries.append(entry)
        self.messages += count
        return entry

    def add_key_batch(self, batch: KeyBatch, oldest: int, frame: Frame) -> SealedEntry:
        """Add a key-based batch of a round whose lowest ticket is `oldest`."""
        entry = KeyEntry(batch, oldest, frame, self._started())
        self.entries.append(entry)
        self.messages += len(batch.tickets)
        return entry

    @property
    def held(self) -> list[SealedEntry]:
        """The entries that are held."""
        first = self.held_from
        return [entry for entry in self.entries if first is not None and entry.first_ticket >= first]

    def _started(self) -> int:
        """Return the time, and make sure that the send timeout runs."""
        now = self._context.now
        if self._send_timeout and self._timer.when is None:
            self._timer.set(now + self._send_timeout)
        return now

    # --- transactions ---

    def join(self, ticket: int, transaction: Transaction) -> None:
        """The message of this ticket is in a transaction, which waits for its outcome."""
        self._transactions[ticket] = transaction
        transaction.began()

    def leave(self, ticket: int) -> None:
        """The message of this ticket was not taken after all."""
        transaction = self._transactions.pop(ticket, None)
        if transaction is not None:
            transaction.over(None)

    def of_transactions_that_are_over(self) -> list[tuple[SealedEntry, Transaction]]:
        """Return the entries of transactions that are over without their receipts, by their timeout."""
        found = self._transactions
        if not found:
            return []
        entries = [(entry, found.get(entry.first_ticket)) for entry in self.entries]
        return [(entry, each) for entry, each in entries if each is not None and each.is_over]

    def entries_to_send_once(self) -> list[SealedEntry]:
        """Return the written entries of transactions with `exactly_once`."""
        if not self._transactions:
            return []
        once = {ticket for ticket, each in self._transactions.items() if each.exactly_once}
        return [each for each in self.entries if each.written and not once.isdisjoint(_tickets_of(each))]

    def hand_over_transactions(self) -> dict[int, Transaction]:
        """Remove and return the tickets of messages in transactions, for another producer."""
        transactions, self._transactions = self._transactions, {}
        return transactions

    def _settle(self, tickets: Sequence[int], error: PulsarError | None) -> None:
        counts: dict[Transaction, int] = {}
        for ticket in tickets:
            transaction = self._transactions.pop(ticket, None)
            if transaction is not None:
                counts[transaction] = counts.get(transaction, 0) + 1
        for transaction, count in counts.items():
            transaction.over(error, count)

    # --- receipts ---

    def on_receipt(self, connection: Connection, receipt: SendReceipt) -> None:
        """A receipt counts for the oldest entry or for none (rules PROD-42, PROD-43)."""
        if not self.entries:
            return  # the entry timed out
        entry = self.entries[0]
        sequence_id = receipt.sequence_id
        if sequence_id != entry.sequence_id:
            if sequence_id > entry.sequence_id:
                self._out_of_turn(
                    connection,
                    f"message {sequence_id} of producer {self._wire_id} while {entry.sequence_id} was not "
                    "confirmed",
                )
            return
        highest = receipt.highest_sequence_id
        if (
            entry.highest is not None
            and highest is not None
            and sequence_id < highest < min(entry.highest, UNSET_UINT64)
        ):
            what = f"a batch of producer {self._wire_id} up to {highest}, it ends at {entry.highest}"
            self._out_of_turn(connection, what)
            return
        ledger_id, entry_id = receipt.ledger_id, receipt.entry_id
        if ledger_id is None or entry_id is None:
            ledger_id = entry_id = -1  # rule CONN-08
        first_chunk = self._first_chunk
        if first_chunk is not None and ledger_id >= 0 and (ledger_id, entry_id) <= self._newest_chunk:
            return  # a repeated receipt of a chunk does not confirm the next chunk
        self.entries.popleft()
        ticket, count = entry.first_ticket, entry.count
        self.messages -= count
        if not count:
            self._newest_chunk = (ledger_id, entry_id)
            self._first_chunk = first_chunk or self._newest_chunk
            return
        self._first_chunk = None
        last = sequence_id if entry.highest is None else entry.highest
        if last > self.last_sequence_id:
            self.last_sequence_id = last
        if ledger_id < 0:
            # the broker had stored the message before, and its new chunks belong to nothing
            first_chunk = None
        if entry.tickets is not None:
            self._confirm_key_batch(entry, ledger_id, entry_id)
            ticket = -1
        elif self._listener is not None:
            ticket = self._listener.confirmed(ticket, count, ledger_id, entry_id, first_chunk)
        if ticket >= 0:
            # Extend the newest `Receipts` while the driver has not taken it: one output for a run of
            # receipts.
            outputs = self._context.outputs
            if ticket != self._newest_end or not outputs or outputs[-1] is not self._newest_receipts:
                self._newest_ids = ReceiptIds(self._partition)
                self._newest_receipts = Receipts(self._handle, ticket, self._newest_ids)
                self._context.emit(self._newest_receipts)
                self.latencies.append(self._context.now - entry.sealed)
            self._newest_end = ticket + count
            self._newest_ids.add(ledger_id, entry_id, count, first_chunk)
        if self._transactions:
            self._settle(_tickets_of(entry), None)
        memory = self._memory
        memory.free += entry.size
        if self.watched:
            self.on_settled()
        if memory.blocked:
            memory.notify()

    @staticmethod
    def _out_of_turn(connection: Connection, what: str) -> None:
        """Close the connection, so that unconfirmed entries are resent over another one."""
        connection.close(RemoteProtocolError(f"the broker confirmed {what}: everything is sent again"))

    def _confirm_key_batch(self, entry: SealedEntry, ledger_id: int, entry_id: int) -> None:
        """Emit `Receipts` for each run of tickets in a key-based batch."""
        assert entry.tickets is not None
        ids = ReceiptIds(self._partition)
        ids.add(ledger_id, entry_id, entry.count)
        done = 0
        for ticket, count in runs(entry.tickets):
            self._emit(Receipts(self._handle, ticket, ids[done : done + count]))
            done += count
        self.latencies.append(self._context.now - entry.sealed)

    def named(self, sequence_id: int) -> SealedEntry | None:
        """Return the entry that a SEND_ERROR names; the name of a batch is its highest sequence id."""
        for entry in self.entries:
            if sequence_id == (entry.sequence_id if entry.highest is None else entry.highest):
                return entry
        return None

    # --- failure ---

    def fail(self, ticket: int, count: int, error: PulsarError) -> None:
        """Report that tickets failed, including tickets of messages outside the window."""
        self.failed += count
        self._emit(SendFailed(self._handle, ticket, count, error))
        if self._transactions:
            self._settle(range(ticket, ticket + count), error)
        for flush in self._flushes:
            if flush.end > ticket and flush.error is None:
                flush.error = error

    def fail_entry(self, entry: SealedEntry, error: PulsarError) -> None:
        """Fail one entry, with all chunks of its message."""
        ticket = entry.first_ticket
        together = [each for each in self.entries if each.first_ticket == ticket]
        if not together:
            return  # the entry failed together with another chunk
        if together[0] is self.entries[0]:
            self._first_chunk = None
        for each in together:
            self.entries.remove(each)
        count = sum(each.count for each in together)
        self.messages -= count
        if entry.tickets is None:
            self.fail(ticket, count, error)
        else:
            self.fail_tickets(entry.tickets, error)
        self._memory.release(sum(each.size for each in together))
        if self.watched:
            self.on_settled()

    def fail_tickets(self, tickets: Sequence[int], error: PulsarError) -> None:
        """Report that ascending tickets failed, which need not be consecutive."""
        for ticket, count in runs(tickets):
            self.fail(ticket, count, error)

    def fail_all(self, error: PulsarError) -> None:
        """Fail every entry in the order of the tickets, without a call of `on_settled` (rule PROD-26)."""
        entries, self.entries = self.entries, deque()
        self._first_chunk = None
        self._timer.clear()
        self._fail(entries, error)

    def fail_held(self, error: PulsarError) -> None:
        """Fail every entry that is held, without a call of `on_settled`."""
        held = deque(self.held)
        for _ in held:
            self.entries.pop()
        if not self.entries:
            self._first_chunk = None
        self._fail(held, error)

    def _fail(self, entries: deque[SealedEntry], error: PulsarError) -> None:
        """Fail entries that were removed, in the order of the tickets."""
        self.messages -= sum(entry.count for entry in entries)
        self._memory.free += sum(entry.size for entry in entries)
        while entries:
            entry = entries.popleft()
            first, count = entry.first_ticket, entry.count
            if entry.tickets is not None:
                self.fail_tickets(_rest_of_round(entry, entries), error)
                continue
            while entries and entries[0].tickets is None and entries[0].first_ticket == first + count:
                count += entries.popleft().count
            self.fail(first, count, error)

    def _check_timeout(self) -> None:
        """Check the oldest entry, because entries time out in order (rule PROD-47)."""
        if not self.entries:
            return
        deadline = self.entries[0].sealed + self._send_timeout
        if deadline > self._context.now:
            self._timer.set(deadline)
        else:
            self.time_out()

    def time_out(self) -> None:
        """The oldest message, in an entry or before it is in one, has timed out."""
        self._on_timeout()

    # --- flushes ---

    def flush(self, request: int, end: int) -> None:
        """Emit `RequestDone` once every ticket below `end` is settled; `RequestFailed` if one failed."""
        self._flushes.append(Flush(request, end))
        self.watched = True

    def discard_flush(self, request: int) -> None:
        """Discard a flush if it is one of this producer's."""
        self._flushes = deque(flush for flush in self._flushes if flush.request != request)

    def hand_over_flushes(self) -> Sequence[Flush]:
        """Remove and return the waiting flushes, for another producer to answer."""
        flushes, self._flushes = self._flushes, deque()
        return flushes

    def settle_flushes(self, oldest_unsettled: int) -> bool:
        """Answer completed flushes, and return True while others wait."""
        flushes = self._flushes
        while flushes and flushes[0].end <= oldest_unsettled:
            flush = flushes.popleft()
            if flush.error is None:
                self._emit(RequestDone(flush.request, None))
            else:
                self._emit(RequestFailed(flush.request, flush.error))
        return bool(flushes)
