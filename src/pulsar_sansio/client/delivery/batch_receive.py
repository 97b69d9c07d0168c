"""`BatchReceive`: receive several messages at once, when enough of them have arrived (rule CONS-41).

`RequestDone` tells the application that its request has enough messages; the application takes them then.
Messages stay in the queue until that moment, so cancelling a request loses nothing. Requests are answered in
their order: the next one after the application has taken messages for the one before, or has cancelled it.

The policy says how many messages are enough. Messages are also enough when the broker has used all its
permits, because no more can arrive before the application takes some.

A consumer of several topics or partitions counts the messages in all its queues together; the application
takes them from a `MergedBatchReceive`.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...model.config import BatchReceivePolicy, nanoseconds_of
from ...model.errors import PulsarError
from ...model.message import Message
from ..connecting.services import ClientContext
from ..outputs import Output, RequestDone, RequestFailed
from .merged_queue import MergedQueue
from .metered_queue import MeteredQueue
from .permits import Permits
from .received_entries import Item, Messages, ReceivedBatch, ReceivedSingles
from .receiver_queue import LONGEST_RUN

UNLIMITED = 2**62


class BatchReceive:
    """The batch-receive requests of one consumer."""

    __slots__ = (
        "_context",
        "_emit",
        "_queues",
        "_slot",
        "_timeout",
        "_announced",
        "_waiting",
        "max_bytes",
        "max_messages",
        "over",
    )

    def __init__(
        self, context: ClientContext, policy: BatchReceivePolicy, emit: Callable[[Output], None]
    ) -> None:
        self.max_messages = policy.max_messages or UNLIMITED
        self.max_bytes = policy.max_bytes or UNLIMITED
        self._timeout = nanoseconds_of(policy.timeout)
        self._context = context
        self._emit = emit
        self._queues: dict[BatchReceiveQueue, None] = {}
        """Queues whose messages count."""
        self._waiting: OrderedDict[int, int | None] = OrderedDict()
        """Each waiting request and its deadline; None is never."""
        self._announced: int | None = None
        """The request that was answered last, until the application takes messages."""
        self._slot = context.deadlines.slot(self.look)
        self.over = False
        """True once the topic has ended: any number of messages is enough."""

    def include(self, queue: "BatchReceiveQueue") -> None:
        """Count the messages of this queue too. More messages may arrive in it, even if all other topics have
        ended."""
        self._queues[queue] = None
        self.over = False
        self.look()

    def leave_out(self, queue: "BatchReceiveQueue") -> None:
        """Stop counting the messages of a queue that is closed."""
        self._queues.pop(queue, None)

    def waiting(self) -> list[int]:
        """Return the waiting requests."""
        return list(self._waiting)

    def ask(self, request: int) -> None:
        """Emit `RequestDone(request)` when messages are enough, or `RequestFailed` when the consumer ends."""
        until = self._context.now + self._timeout if self._timeout else None
        self._waiting[request] = until
        for queue in self._queues:
            queue.want()
        self.look()

    def forget(self, request: int) -> None:
        """Drop a request that was cancelled."""
        self._waiting.pop(request, None)
        if request == self._announced:
            self._announced = None
        self.look()

    def taken(self) -> None:
        """The application has taken messages: answer the next request."""
        self._announced = None
        self.look()

    def look(self) -> None:
        """Answer the first request if messages are enough for it."""
        self._slot.clear()
        if self._waiting and (self.over or self._announced is None):
            self._look_for_the_first()

    def end_of_topic(self) -> None:
        """Answer every request: the topic has ended and all its messages are delivered."""
        self.over = True
        while self._waiting:
            self._look_for_the_first()

    def _look_for_the_first(self) -> None:
        request, until = next(iter(self._waiting.items()))
        if self._is_enough(until):
            del self._waiting[request]
            self._announced = request
            self._emit(RequestDone(request, None))
        elif until is not None and until > self._context.now:
            self._slot.set(until)

    def end(self, error: PulsarError) -> None:
        """Fail every request: no message is delivered any more."""
        self._slot.clear()
        while self._waiting:
            request, _ = self._waiting.popitem(last=False)
            self._emit(RequestFailed(request, error))

    def _is_enough(self, until: int | None) -> bool:
        if self.over:
            return True
        queues = [queue for queue in self._queues if queue.available]
        return bool(queues) and (
            (until is not None and until <= self._context.now)
            or any(queue.has_all_there_can_be for queue in queues)
            or sum(queue.available for queue in queues) >= self.max_messages
            or sum(queue.bytes_waiting for queue in queues) >= self.max_bytes
        )


class BatchReceiveQueue(MeteredQueue):
    """A queue that reports arriving messages to a `BatchReceive`, and delivers no more at once than the
    policy allows."""

    def __init__(self, permits: Permits, *, batch_receive: BatchReceive, **others: Any) -> None:
        super().__init__(permits, **others)
        self._batch_receive = batch_receive
        self._is_all = True
        batch_receive.include(self)

    def count_for(self, whole: BatchReceive) -> None:
        """Count this queue's messages in `whole` from now on, together with other queues."""
        self._batch_receive.leave_out(self)
        self._batch_receive = whole
        self._is_all = False
        whole.include(self)

    @property
    def has_all_there_can_be(self) -> bool:
        """True when the broker may send nothing more before messages leave the queue."""
        return self._permits.at_broker <= 0

    def add(self, message: Message) -> None:
        super().add(message)
        self._batch_receive.look()

    def add_batch(self, batch: ReceivedBatch) -> None:
        super().add_batch(batch)
        self._batch_receive.look()

    def add_singles(self, singles: ReceivedSingles) -> None:
        super().add_singles(singles)
        self._batch_receive.look()

    def take(self, limit: int, whole_batches: bool = False) -> Messages:
        batch_receive = self._batch_receive
        if batch_receive.max_bytes < self.bytes_waiting:
            limit = min(limit, self.fitting(limit, batch_receive.max_bytes))
        messages = super().take(min(limit, batch_receive.max_messages), whole_batches)
        if self._is_all:
            batch_receive.taken()
        return messages

    def leave(self) -> None:
        super().leave()
        self._batch_receive.leave_out(self)


class MergedBatchReceive(MergedQueue):
    """The queues of several topics or partitions; `take` delivers no more at once than the policy allows."""

    __slots__ = ("_batch_receive",)

    def __init__(self, batch_receive: BatchReceive) -> None:
        super().__init__()
        self._batch_receive = batch_receive

    def take(self, limit: int, whole_batches: bool = False) -> Messages:
        self._check_open()
        batch_receive = self._batch_receive
        limit = min(limit, batch_receive.max_messages)
        room = batch_receive.max_bytes
        taken: list[Item] = []
        turns = self._turns
        share = max(LONGEST_RUN, -(-limit // max(1, len(turns))))
        while limit > 0 and turns:
            queue = turns[0]
            assert isinstance(queue, BatchReceiveQueue)
            count = queue.fitting(min(limit, share), room)
            size = queue.size_of_next(count)
            if taken and size > room:
                break
            messages = queue.take(count, whole_batches)
            taken += messages.items
            limit -= len(messages)
            room -= size
            self._end_turn(queue)
        batch_receive.taken()
        return Messages(taken)
