"""`PartitionSender`: the messages of one producer, spread over the partitions of a topic (rules ROUTE, PART-06).

It owns the one row of tickets that the application knows, which partition the next message goes to, and how
many may be taken. What comes after the routing is the partition's. It knows nothing of how partitions are
opened, closed or lost.

`append` is the short path for messages that join an open batch: of those without a key most follow one
another to the same partition, as long as a batch is open there. A producer that batches is routed by time
when a batch begins, not for each message, so that the clock cuts no batch in two.
"""

from collections.abc import Callable, Sequence

from ...model.config import OutgoingMessage
from ...model.errors import InvalidMessage, ProducerQueueIsFull, PulsarError
from ..connecting.services import ClientContext
from ..memory import MemoryLimit, payload_size
from ..outputs import SendFailed, Writable
from .partition_producer import Partition
from .routing import Router


def _decline(_: bytes | OutgoingMessage) -> int:
    """`append` where there is no batch to append to."""
    return -1


class PartitionSender:
    """One partitioned producer's. `window`: unconfirmed messages of one partition; `begin(index)` gives the
    partition that has to be begun."""

    __slots__ = (
        "_append",
        "_batching",
        "_context",
        "_current",
        "_handle",
        "_memory",
        "_next_ticket",
        "_offset",
        "_router",
        "_window",
        "begin",
        "failed",
        "partitions",
        "was_full",
    )

    def __init__(
        self,
        context: ClientContext,
        handle: int,
        router: Router,
        partitions: int,
        window: int,
        memory: MemoryLimit,
        begin: Callable[[int], Partition],
    ) -> None:
        self.partitions: list[Partition | None] = [None] * partitions
        """What routing knows. None: not begun yet, or it failed to open after all was ready; the next message
        begins it."""
        self.begin = begin
        self.failed = 0
        """Messages that no partition has taken."""
        self.was_full = False
        """Somebody was told that there is no room, and waits for `Writable`."""
        self._context = context
        self._handle = handle
        self._router = router
        self._window = window
        self._memory = memory
        self._next_ticket = 0
        """The next ticket, while no partition is current."""
        self._current: Partition | None = None
        """The partition of the last message, whose own count tells the next ticket."""
        self._append: Callable[[bytes | OutgoingMessage], int] = _decline
        """The short path into the current partition's batch, while messages without a key go there."""
        self._offset = 0
        """The current partition's."""
        self._batching: dict[Partition, None] = {}
        """Those that may have an open batch."""

    # --- taking messages ---

    def append(self, message: bytes | OutgoingMessage) -> int:
        """See `Admission.append`."""
        if type(message) is bytes:
            ticket = self._append(message)
        else:
            partition = self._by_key(message)
            if partition is None:
                return -1
            self._turn_to(partition)
            ticket = partition.intake.append(message)
        return ticket + self._offset if ticket >= 0 else -1

    def _by_key(self, message: bytes | OutgoingMessage) -> Partition | None:
        """The partition of a key that is known and that may have an open batch."""
        index = self._router.of_known_key(message, len(self.partitions))
        if index < 0:
            return None
        partition = self.partitions[index]
        return partition if partition is not None and partition.end is None else None

    def send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """See `Admission.send`; also raises `InvalidMessage` where the application's router gives no partition.
        A message for a partition that has ended is taken, and fails."""
        ticket = self.append(message)
        if ticket >= 0:
            return ticket
        router = self._router
        index = router.choose(self._context.now, message, len(self.partitions))
        try:
            ticket = self._send_to(self._partition(index), message, publish_time)
        except ProducerQueueIsFull:
            self.was_full = True
            raise
        router.advance(message)
        return ticket

    def _send_to(self, partition: Partition, message: bytes | OutgoingMessage, publish_time: int) -> int:
        intake = partition.intake
        if partition.end is not None:
            intake.refuse(message, publish_time, partition.end)
            return self.fail_untaken(partition.end)
        self._turn_to(partition)
        ticket = intake.send(message, publish_time) + self._offset
        if type(message) is bytes and self._router.stays:
            self._append = intake.append
        return ticket

    def send_many(self, messages: Sequence[bytes | OutgoingMessage], publish_time: int) -> range:
        """See `Admission.send_many`: as many as the partitions they go to have room for."""
        if self._router.stays and set(map(type, messages)) <= {bytes}:
            partition = self._partition(self._router.keyless(self._context.now, len(self.partitions)))
            if partition.end is None:
                self._turn_to(partition)
                tickets = partition.intake.send_many(messages, publish_time)
                self._append = partition.intake.append
                self.was_full |= len(tickets) < len(messages)
                return range(tickets.start + self._offset, tickets.stop + self._offset)
        first = self.next_ticket
        fitting = self._memory.fitting(self._handle, messages)
        plan, full = self._plan(messages[:fitting], publish_time)
        self._memory.turn = self._handle
        try:
            for message, index in plan:
                self._send_or_fail(message, index, publish_time, first)
                self._router.advance(message)
        except ProducerQueueIsFull:  # an interceptor has made it larger
            self.was_full = True
        finally:
            self._memory.turn = 0
        if full is not None:
            self._partition(full).intake.wait_for_room()
            self.was_full = True
        elif fitting < len(messages):
            self._memory.wait(self._handle, payload_size(messages[fitting]), self._memory_free)
            self.was_full = True
        return range(first, self.next_ticket)

    def _send_or_fail(
        self, message: bytes | OutgoingMessage, index: int, publish_time: int, first: int
    ) -> None:
        """See `Admission._send_or_fail`."""
        try:
            self._send_to(self._partition(index), message, publish_time)
        except InvalidMessage as error:
            if self.next_ticket == first:
                raise
            self.fail_untaken(error)

    def keep_waiting_for_memory(self) -> None:
        """Somebody was told that the client's memory has no room before partitions were known: the place in
        its line stays, and `Writable` is said once."""
        self.was_full = True
        self._memory.pass_on(self._handle, self._memory_free)

    def _memory_free(self) -> None:
        """There is memory again."""
        if self.was_full:
            self.was_full = False
            self._context.emit(Writable(self._handle))

    def _plan(
        self, messages: Sequence[bytes | OutgoingMessage], publish_time: int
    ) -> tuple[list[tuple[bytes | OutgoingMessage, int]], int | None]:
        """The messages that there is room for, each with its partition; and the partition that the next one
        has no room in, if there is such. When it raises, nothing has changed."""
        router, partitions, now = self._router, self.partitions, self._context.now
        before = router.state
        rooms: dict[int, int] = {}
        plan: list[tuple[bytes | OutgoingMessage, int]] = []
        full: int | None = None
        try:
            for message in messages:
                index = router.choose(now, message, len(partitions))
                partition = partitions[index]
                room = rooms.get(index)
                if room is None:
                    room = self._window
                    if partition is not None:
                        room = room - partition.intake.pending if partition.end is None else len(messages)
                if room <= 0:
                    full = index
                    break
                if partition is not None:
                    partition.intake.check_given(message, publish_time)
                rooms[index] = room - 1
                plan.append((message, index))
                router.advance(message)
        finally:
            router.state = before
        return plan, full

    def take_early(
        self, ticket: int, message: bytes | OutgoingMessage, publish_time: int
    ) -> InvalidMessage | None:
        """A message that has its ticket, from the time before partitions were known. Gives what it failed
        with, where it goes nowhere."""
        self._leave(ticket)
        try:
            index = self._router.choose(self._context.now, message, len(self.partitions))
        except InvalidMessage as error:
            self.fail_untaken(error)
            self._memory.release(payload_size(message))
            return error
        partition = self._partition(index)
        self._turn_to(partition)
        partition.intake.take_early(message, publish_time)
        self._router.advance(message)
        return None

    def _partition(self, index: int) -> Partition:
        return self.partitions[index] or self.begin(index)

    def push(self) -> None:
        """Send the open batches now (rule PROD-28)."""
        for partition in self._batching:
            partition.intake.sealing.close_batch()
        self._batching = {} if self._current is None else {self._current: None}

    # --- tickets ---

    @property
    def next_ticket(self) -> int:
        """Every ticket below this one was given."""
        return self._next_ticket if self._current is None else self._current.next_ticket

    def continue_at(self, ticket: int) -> None:
        """The next message gets this ticket."""
        self._leave(ticket)

    def fail_untaken(self, error: PulsarError) -> int:
        """A message that went nowhere gets its ticket, and fails."""
        ticket = self.next_ticket
        self._leave(ticket + 1)
        self.failed += 1
        self._context.emit(SendFailed(self._handle, ticket, 1, error))
        return ticket

    def _turn_to(self, partition: Partition) -> None:
        """The next message goes there."""
        self._append = _decline
        current = self._current
        if partition is not current:
            partition.continue_at(self._next_ticket if current is None else current.next_ticket)
            self._current = partition
            self._offset = partition.offset
            self._batching[partition] = None

    def _leave(self, next_ticket: int) -> None:
        self._current = None
        self._append = _decline
        self._next_ticket = next_ticket

    # --- partitions that go ---

    def forget(self, partition: Partition) -> None:
        """It has ended."""
        self._batching.pop(partition, None)
        if partition is self._current:
            self._leave(partition.next_ticket)

    def close(self) -> None:
        """Nothing more is taken."""
        self._memory.detach(self._handle)
