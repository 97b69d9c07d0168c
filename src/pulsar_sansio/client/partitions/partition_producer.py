"""`Partition`: one partition of a partitioned producer, and the translation of its tickets.

The `Producer` of a partition gives tickets of its own. The application sees one sequence of tickets for all
partitions. For consecutive messages of one partition, both tickets differ by a constant offset, so the
offsets are kept as runs. Outputs of the partition's producer are translated and emitted; outputs about the
whole producer go to the owner.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...model.config import ProducerSpec
from ...model.errors import PulsarError
from ...model.message_id import EntryPosition, MessageId
from ...model.topic_name import TopicName
from ..connecting.services import Services
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
from ..producing.producer import Producer
from ..producing.receipt_ids import ReceiptIds
from ..statistics import ProducerStatistics


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """The statistics of the messages of one partition."""

    topic: str
    connected: bool
    statistics: ProducerStatistics

    @property
    def confirmed(self) -> int:
        """Messages that the broker has confirmed."""
        return self.statistics.confirmed

    @property
    def failed(self) -> int:
        """Messages that failed."""
        return self.statistics.failed

    @property
    def pending(self) -> int:
        """Messages that are accepted and neither confirmed nor failed."""
        return self.statistics.pending


class PartitionOwner(Protocol):
    """The partitioned producer, as its partitions see it."""

    handle: int

    def on_partition_ready(self, partition: "Partition", name: str, last_sequence_id: int) -> None: ...
    def on_partition_detached(self, partition: "Partition", cause: PulsarError) -> None: ...
    def on_partition_attached(self, partition: "Partition") -> None: ...
    def on_partition_ended(self, partition: "Partition", error: PulsarError | None) -> None: ...
    def on_partition_flushed(self, partition: "Partition", outcome: RequestDone | RequestFailed) -> None: ...
    def on_partition_writable(self) -> None: ...


class Partition:
    """The `ProducerListener` of one partition's producer."""

    __slots__ = (
        "_context",
        "_owner",
        "_runs",
        "_stale",
        "detached",
        "end",
        "index",
        "admission",
        "offset",
        "producer",
        "ready",
        "topic",
    )

    def __init__(
        self,
        services: Services,
        owner: PartitionOwner,
        index: int,
        wire_id: int,
        spec: ProducerSpec,
    ) -> None:
        """`spec` is that of the partition."""
        self._context = services.context
        self._owner = owner
        self.index = index
        self.topic = TopicName.parse(spec.topic)
        self.producer = Producer(services, owner.handle, wire_id, spec, self)
        self.admission = self.producer.admission
        self.ready = False
        """True once the partition was attached."""
        self.detached: PulsarError | None = None
        """The cause of the loss, while detached; else None."""
        self.end: PulsarError | None = None
        """The cause of the permanent end after the partition was ready; else None."""
        self.offset = 0
        """The difference between the application's and the partition's ticket of the next message."""
        self._runs: deque[tuple[int, int]] = deque([(0, 0)])
        """The first ticket and the offset of each run with unsettled tickets."""
        self._stale = False
        """True when failures have left settled runs in `_runs`."""

    # --- tickets ---

    @property
    def next_ticket(self) -> int:
        """The application's ticket of the next message, if that message goes to this partition."""
        return self.admission.next_ticket + self.offset

    def continue_at(self, ticket: int) -> None:
        """Give the next message this ticket, and later messages the tickets that follow."""
        inner = self.admission.next_ticket
        offset = ticket - inner
        if offset == self.offset:
            return
        self.offset = offset
        runs = self._runs
        if self._stale:
            self._stale = False
            self._forget(self.admission.oldest_unsettled())
        if runs[-1][0] == inner:
            runs[-1] = (inner, offset)
        else:
            runs.append((inner, offset))

    def _forget(self, ticket: int) -> None:
        """Discard runs that end before this ticket."""
        runs = self._runs
        while len(runs) > 1 and runs[1][0] <= ticket:
            runs.popleft()

    def confirmed(
        self, ticket: int, count: int, ledger_id: int, entry_id: int, first_chunk: EntryPosition | None
    ) -> int:
        """Translate the tickets of one entry, see `ProducerListener`; every older ticket is settled."""
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
        """Emit `Receipts` for tickets when older tickets may be unsettled."""
        for first, stop, offset in self._outside(ticket, len(message_ids)):
            ids = message_ids[first - ticket : stop - ticket]
            self._context.emit(Receipts(self._owner.handle, first + offset, ids))

    def _outside(self, ticket: int, count: int) -> Iterator[tuple[int, int, int]]:
        """Split consecutive tickets at run boundaries; yield each part's first ticket, end and offset."""
        self._stale = True
        end = ticket + count
        runs = list(self._runs)
        stops = [first for first, _ in runs[1:]] + [end]
        for (first, offset), stop in zip(runs, stops, strict=True):
            first, stop = max(first, ticket), min(stop, end)
            if first < stop:
                yield first, stop, offset

    # --- outputs of the producer ---

    def on_output(self, output: Output) -> None:
        """Translate an output, or report it to the owner (see `ProducerListener`)."""
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
        """Do nothing (see `ProducerListener`): an earlier output reported the end."""

    # --- statistics ---

    @property
    def statistics(self) -> PartitionStatistics:
        return PartitionStatistics(
            str(self.topic),
            self.ready and self.detached is None and self.end is None,
            self.producer.statistics(),
        )
