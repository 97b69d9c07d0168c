"""`Partition`: one partition of a partitioned producer, and how its tickets are called outside.

The `Producer` of a partition numbers its messages by itself. The application knows one row of numbers for
all partitions, so what a partition takes in a row differs from its own numbers by an offset. Here are these
offsets, as runs: a producer that stays with a partition for a while makes one run of all messages of that
while. What the partition's producer says is translated and passed on; what concerns the whole goes to the
owner.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...model.config import ProducerSpec
from ...model.errors import PulsarError
from ...model.message_id import EntryPosition, MessageId
from ...model.topic_name import TopicName
from ..connecting.services import ClientContext, Services
from ..outputs import (
    Attached,
    Closed,
    Detached,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    RequestDone,
    RequestFailed,
    SendFailed,
    Writable,
)
from ..statistics import ProducerStatistics
from .producer import Producer
from .receipt_ids import ReceiptIds


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """What became of the messages that went to one partition."""

    topic: str
    connected: bool
    statistics: ProducerStatistics

    @property
    def confirmed(self) -> int:
        return self.statistics.confirmed

    @property
    def failed(self) -> int:
        return self.statistics.failed

    @property
    def pending(self) -> int:
        return self.statistics.pending


class Owner(Protocol):
    """The partitioned producer, as its partitions see it."""

    handle: int

    def on_partition_ready(self, partition: "Partition", name: str, last_sequence_id: int) -> None: ...
    def on_partition_detached(self, partition: "Partition", cause: PulsarError) -> None: ...
    def on_partition_attached(self, partition: "Partition") -> None: ...
    def on_partition_ended(self, partition: "Partition", error: PulsarError | None) -> None: ...
    def on_partition_flushed(self, partition: "Partition", outcome: RequestDone | RequestFailed) -> None: ...
    def on_partition_writable(self) -> None: ...


class Partition:
    """The `Listener` of one partition's producer."""

    __slots__ = (
        "_context",
        "_owner",
        "_runs",
        "_stale",
        "detached",
        "end",
        "index",
        "intake",
        "offset",
        "producer",
        "ready",
        "topic",
    )

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        owner: Owner,
        index: int,
        wire_id: int,
        spec: ProducerSpec,
    ) -> None:
        """`spec` is that of the partition."""
        self._context = context
        self._owner = owner
        self.index = index
        self.topic = TopicName.parse(spec.topic)
        self.producer = Producer(context, services, owner.handle, wire_id, spec, self)
        self.intake = self.producer.intake
        self.ready = False
        """It was attached once."""
        self.detached: PulsarError | None = None
        """Why it is not attached any more, while it is not."""
        self.end: PulsarError | None = None
        """Why it ended for good, after it was ready."""
        self.offset = 0
        """What to add to the ticket of the next message."""
        self._runs: deque[tuple[int, int]] = deque([(0, 0)])
        """The first ticket of each run, and its offset: those of which some are unsettled."""
        self._stale = False
        """Failures have left runs behind."""

    # --- tickets ---

    @property
    def next_ticket(self) -> int:
        """What the application calls the next message, if it comes here."""
        return self.intake.next_ticket + self.offset

    def continue_at(self, ticket: int) -> None:
        """The next message is called that, those after it in a row."""
        inner = self.intake.next_ticket
        offset = ticket - inner
        if offset == self.offset:
            return
        self.offset = offset
        runs = self._runs
        if self._stale:
            self._stale = False
            self._forget(self.intake.oldest_unsettled())
        if runs[-1][0] == inner:
            runs[-1] = (inner, offset)
        else:
            runs.append((inner, offset))

    def _forget(self, ticket: int) -> None:
        """Runs that end before this ticket are of no use any more."""
        runs = self._runs
        while len(runs) > 1 and runs[1][0] <= ticket:
            runs.popleft()

    def confirmed(
        self, ticket: int, count: int, ledger_id: int, entry_id: int, first_chunk: EntryPosition | None
    ) -> int:
        """See `Listener`. Receipts come in the order of the tickets, so every older one is settled."""
        runs = self._runs
        while len(runs) > 1 and runs[1][0] <= ticket:
            runs.popleft()
        end = ticket + count
        if len(runs) == 1 or end <= runs[1][0]:
            return ticket + runs[0][1]
        ids = ReceiptIds(self.index)
        ids.add(ledger_id, entry_id, count)
        emit, handle = self._context.emit, self._owner.handle
        made = ids[:]
        first, offset = ticket, runs[0][1]
        while len(runs) > 1 and (stop := runs[1][0]) < end:
            emit(Receipts(handle, first + offset, made[first - ticket : stop - ticket]))
            runs.popleft()
            first, offset = runs[0]
        emit(Receipts(handle, first + offset, made[first - ticket :]))
        return -1

    def _failed_tickets(self, ticket: int, count: int, error: PulsarError) -> None:
        for first, stop, offset in self._outside(ticket, count):
            self._context.emit(SendFailed(self._owner.handle, first + offset, stop - first, error))

    def _confirmed_apart(self, ticket: int, message_ids: Sequence[MessageId]) -> None:
        """Older tickets may be unsettled."""
        for first, stop, offset in self._outside(ticket, len(message_ids)):
            ids = message_ids[first - ticket : stop - ticket]
            self._context.emit(Receipts(self._owner.handle, first + offset, ids))

    def _outside(self, ticket: int, count: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a row of tickets that are a row outside too: beginning, end and offset of each."""
        self._stale = True
        end = ticket + count
        runs = list(self._runs)
        stops = [first for first, _ in runs[1:]] + [end]
        for (first, offset), stop in zip(runs, stops, strict=True):
            first, stop = max(first, ticket), min(stop, end)
            if first < stop:
                yield first, stop, offset

    # --- what the producer says ---

    def on_output(self, output: Output) -> None:
        """See `Listener`."""
        owner = self._owner
        match output:
            case SendFailed(_, ticket, count, error):
                self._failed_tickets(ticket, count, error)
            case Receipts(_, ticket, message_ids):
                self._confirmed_apart(ticket, message_ids)
            case Writable():
                owner.on_partition_writable()
            case RequestDone() | RequestFailed():
                owner.on_partition_flushed(self, output)
            case ProducerReady(_, name, last_sequence_id):
                self.ready = True
                owner.on_partition_ready(self, name, last_sequence_id)
            case Detached(_, cause):
                owner.on_partition_detached(self, cause)
            case Attached():
                owner.on_partition_attached(self)
            case ProducerFailed(_, error) | Closed(_, error):
                owner.on_partition_ended(self, error)
            case _:
                raise AssertionError(f"a producer does not say {output!r}")

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """See `Listener`: all that matters was said."""

    # --- facts about it ---

    @property
    def statistics(self) -> PartitionStatistics:
        return PartitionStatistics(
            str(self.topic),
            self.ready and self.detached is None and self.end is None,
            self.producer.statistics(),
        )
