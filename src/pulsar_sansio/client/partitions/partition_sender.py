"""`PartitionSender`: distributes the messages of one producer to the partitions of a topic (ROUTE, PART-06).

It owns the application's tickets, the choice of the partition, and the limits. The partition owns everything
after the routing. The `PartitionedProducer` opens and closes the partitions.

`append` is the fast path for messages that join an open batch: consecutive messages without a key mostly go
to one partition while a batch is open there. A batching producer is routed by time when a batch begins, not
for each message, so that the clock never cuts a batch in two.
"""

from collections.abc import Callable, Sequence

from ...model.config import OutgoingMessage
from ...model.errors import InvalidMessage, ProducerQueueIsFull, PulsarError, TransactionNotOpen
from ...model.transaction_id import TransactionId
from ..connecting.services import Services
from ..memory import payload_size
from ..outputs import SendFailed, Writable
from ..producing.admission import in_transaction
from .partition_producer import Partition
from .routing import Router


def _decline(_: bytes | OutgoingMessage, __: TransactionId | None = None) -> int:
    """The `append` of a sender without an open batch."""
    return -1


class PartitionSender:
    """Distributes the messages of one partitioned producer.

    `window`: the limit of unconfirmed messages in one partition. `begin(index)`: starts a partition.
    """

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
        "_transactions",
        "_window",
        "begin",
        "failed",
        "partitions",
        "was_full",
    )

    def __init__(
        self,
        services: Services,
        handle: int,
        router: Router,
        partitions: int,
        window: int,
        begin: Callable[[int], Partition],
    ) -> None:
        self.partitions: list[Partition | None] = [None] * partitions
        """The partitions that routing may choose.

        None for a partition that was not started, or that failed to open once the whole was ready; the next
        message starts that partition.
        """
        self.begin = begin
        self.failed = 0
        """The number of messages that failed without a partition."""
        self.was_full = False
        """A send was refused for lack of room; `Writable` is owed."""
        self._context = services.context
        self._handle = handle
        self._router = router
        self._window = window
        self._memory = services.memory
        self._transactions = services.transactions
        self._next_ticket = 0
        """The next ticket, while no partition is current."""
        self._current: Partition | None = None
        """The partition of the last message; its own count gives the next ticket."""
        self._append: Callable[[bytes | OutgoingMessage, TransactionId | None], int] = _decline
        """The fast path into the current partition's batch, while messages without a key go there."""
        self._offset = 0
        """The ticket offset of the current partition."""
        self._batching: dict[Partition, None] = {}
        """The partitions that may have an open batch."""

    # --- taking messages ---

    def append(self, message: bytes | OutgoingMessage, transaction: TransactionId | None = None) -> int:
        """Add a message to an open batch; see `Admission.append`."""
        if type(message) is bytes:
            ticket = self._append(message, transaction)
        else:
            partition = self._by_key(message)
            if partition is None:
                return -1
            self._turn_to(partition)
            ticket = partition.admission.append(message)
        return ticket + self._offset if ticket >= 0 else -1

    def _by_key(self, message: bytes | OutgoingMessage) -> Partition | None:
        """Return the partition of a message with a cached key, if that partition can take messages."""
        index = self._router.of_known_key(message, len(self.partitions))
        if index < 0:
            return None
        partition = self.partitions[index]
        return partition if partition is not None and partition.end is None else None

    def send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Accept a message; see `Admission.send`.

        A message for an ended partition gets a ticket and fails. Raises `InvalidMessage` if the application's
        routing function returns no partition.
        """
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
        admission = partition.admission
        if partition.end is not None:
            admission.refuse(message, publish_time, partition.end)
            return self._fail_message(message, partition.end)
        self._turn_to(partition)
        ticket = admission.send(message, publish_time) + self._offset
        if self._router.stays and (isinstance(message, bytes) or message.key is None):
            self._append = admission.append
        return ticket

    def send_many(
        self,
        messages: Sequence[bytes | OutgoingMessage],
        publish_time: int,
        transaction: TransactionId | None = None,
    ) -> range:
        """Accept as many messages as their partitions have room for; see `Admission.send_many`."""
        if self._router.stays and set(map(type, messages)) <= {bytes}:
            partition = self._partition(self._router.keyless(self._context.now, len(self.partitions)))
            if partition.end is None:
                self._turn_to(partition)
                tickets = partition.admission.send_many(messages, publish_time, transaction)
                self._append = partition.admission.append
                self.was_full |= len(tickets) < len(messages)
                return range(tickets.start + self._offset, tickets.stop + self._offset)
        messages = in_transaction(messages, transaction)
        first = self.next_ticket
        fitting = self._memory.fitting(self._handle, messages)
        plan, full = self._plan(messages[:fitting], publish_time)
        self._memory.turn = self._handle
        try:
            for message, index in plan:
                self._send_or_fail(message, index, publish_time, first)
                self._router.advance(message)
        except ProducerQueueIsFull:  # an interceptor has enlarged the message
            self.was_full = True
        finally:
            self._memory.turn = 0
        if full is not None:
            self._partition(full).admission.wait_for_room()
            self.was_full = True
        elif fitting < len(messages):
            self._memory.wait(self._handle, payload_size(messages[fitting]), self._memory_free)
            self.was_full = True
        return range(first, self.next_ticket)

    def _send_or_fail(
        self, message: bytes | OutgoingMessage, index: int, publish_time: int, first: int
    ) -> None:
        """Send one of several messages; see `Admission._send_or_fail`."""
        try:
            self._send_to(self._partition(index), message, publish_time)
        except (InvalidMessage, TransactionNotOpen) as error:
            if self.next_ticket == first:
                raise
            self._fail_message(message, error)

    def keep_waiting_for_memory(self) -> None:
        """Keep the producer's position in the line for memory, from before the partitions were known.

        A send was refused then for lack of memory, so one `Writable` is owed.
        """
        self.was_full = True
        self._memory.pass_on(self._handle, self._memory_free)

    def _memory_free(self) -> None:
        """The client's memory has room again: emit the owed `Writable`."""
        if self.was_full:
            self.was_full = False
            self._context.emit(Writable(self._handle))

    def _plan(
        self, messages: Sequence[bytes | OutgoingMessage], publish_time: int
    ) -> tuple[list[tuple[bytes | OutgoingMessage, int]], int | None]:
        """Return the messages that fit, each with its partition, and the first partition without room, if
        any.

        Raises `InvalidMessage`, having changed nothing.
        """
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
                        room = room - partition.admission.pending if partition.end is None else len(messages)
                if room <= 0:
                    full = index
                    break
                if partition is not None:
                    partition.admission.check_given(message, publish_time)
                rooms[index] = room - 1
                plan.append((message, index))
                router.advance(message)
        finally:
            router.state = before
        return plan, full

    def take_unsealed(
        self, ticket: int, message: bytes | OutgoingMessage, publish_time: int
    ) -> InvalidMessage | None:
        """Send a message that got its ticket before the partitions were known.

        Returns the error of a message that goes to no partition, else None.
        """
        self._leave(ticket)
        try:
            index = self._router.choose(self._context.now, message, len(self.partitions))
        except InvalidMessage as error:
            self.fail_untaken(error)
            self._memory.release(payload_size(message))
            return error
        partition = self._partition(index)
        self._turn_to(partition)
        partition.admission.take_over(message, publish_time)
        self._router.advance(message)
        return None

    def _partition(self, index: int) -> Partition:
        return self.partitions[index] or self.begin(index)

    def push(self) -> None:
        """Send the open batches now (rule PROD-28)."""
        for partition in self._batching:
            partition.admission.push()
        self._batching = {} if self._current is None else {self._current: None}

    # --- tickets ---

    @property
    def next_ticket(self) -> int:
        """The ticket of the next message."""
        return self._next_ticket if self._current is None else self._current.next_ticket

    def continue_at(self, ticket: int) -> None:
        """Give the next message this ticket."""
        self._leave(ticket)

    def fail_untaken(self, error: PulsarError) -> int:
        """Give a ticket to a message without a partition, fail that ticket, and return it."""
        ticket = self.next_ticket
        self._leave(ticket + 1)
        self.failed += 1
        self._context.emit(SendFailed(self._handle, ticket, 1, error))
        return ticket

    def _fail_message(self, message: bytes | OutgoingMessage, error: PulsarError) -> int:
        """Fail a message without a partition, and the commit of its transaction; return its ticket."""
        id_ = None if isinstance(message, bytes) else message.transaction
        transaction = None if id_ is None else self._transactions.open.get(id_)
        if transaction is not None:
            transaction.began()
        ticket = self.fail_untaken(error)
        if transaction is not None:
            transaction.over(error)
        return ticket

    def _turn_to(self, partition: Partition) -> None:
        """Direct the next message to this partition."""
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

    # --- ends ---

    def forget(self, partition: Partition) -> None:
        """Stop using a partition that has ended."""
        self._batching.pop(partition, None)
        if partition is self._current:
            self._leave(partition.next_ticket)

    def close(self) -> None:
        """Leave the line for memory, because no more messages are accepted."""
        self._memory.detach(self._handle)
