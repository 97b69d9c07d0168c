"""`Requests`: the pending requests of a client, with their answers and timeouts (CONN-06, CONN-07, CONN-12,
CONN-13).

A client has one counter of request ids. Pending requests are kept per connection, because an answer counts
only on the connection of its request. Exactly one of the two callbacks is called, once, unless the request is
cancelled. A request is a frame, the type of its answer and a deadline; the requester knows its meaning.
"""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from ...core.deadlines import Slot
from ...model.errors import BrokerError, PulsarError, RemoteProtocolError, TimedOut
from ...wire import proto
from ..outputs import RequestAnswered, RequestSent
from .services import Services

if TYPE_CHECKING:
    from .connection import Connection

Command = proto.BaseCommand

REPLIES: dict[type, int] = {
    # Maps the class of an answer to its command type.
    proto.CommandSuccess: Command.SUCCESS,
    proto.CommandProducerSuccess: Command.PRODUCER_SUCCESS,
    proto.CommandLookupTopicResponse: Command.LOOKUP_RESPONSE,
    proto.CommandPartitionedTopicMetadataResponse: Command.PARTITIONED_METADATA_RESPONSE,
    proto.CommandAckResponse: Command.ACK_RESPONSE,
    proto.CommandGetLastMessageIdResponse: Command.GET_LAST_MESSAGE_ID_RESPONSE,
    proto.CommandConsumerStatsResponse: Command.CONSUMER_STATS_RESPONSE,
    proto.CommandGetTopicsOfNamespaceResponse: Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    proto.CommandWatchTopicListSuccess: Command.WATCH_TOPIC_LIST_SUCCESS,
    proto.CommandGetSchemaResponse: Command.GET_SCHEMA_RESPONSE,
    proto.CommandGetOrCreateSchemaResponse: Command.GET_OR_CREATE_SCHEMA_RESPONSE,
    proto.CommandTcClientConnectResponse: Command.TC_CLIENT_CONNECT_RESPONSE,
    proto.CommandNewTxnResponse: Command.NEW_TXN_RESPONSE,
    proto.CommandAddPartitionToTxnResponse: Command.ADD_PARTITION_TO_TXN_RESPONSE,
    proto.CommandAddSubscriptionToTxnResponse: Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    proto.CommandEndTxnResponse: Command.END_TXN_RESPONSE,
}


MAX_DONE = 1000
"""The number of done requests that may stay in the queue of timeouts.

Beyond this number, the queue holds at most as many done requests as pending ones.
"""


_NEVER = 1 << 63
"""The deadline of a request without a timeout; such a request is not in the queue of timeouts."""


def _command_of(frame: bytes) -> str:
    """Return the name of the command in a frame: byte 9 is the type, after both sizes and the field's tag."""
    return Command.Type.Name(Command.Type.ValueType(frame[9]))


class Pending:
    """One request without an answer yet."""

    __slots__ = ("connection", "deadline", "done", "on_done", "on_failed", "reply", "request_id")

    def __init__(
        self,
        connection: "Connection",
        request_id: int,
        reply: int,
        deadline: int,
        on_done: Callable[[Any], None],
        on_failed: Callable[[PulsarError], None],
    ) -> None:
        self.connection = connection
        self.request_id = request_id
        self.reply = reply
        self.deadline = deadline
        self.on_done = on_done
        self.on_failed = on_failed
        self.done = False


class _Timeouts:
    """Requests by deadline. All have one timeout, so the order is that of sending: a queue, not a heap."""

    __slots__ = ("_done", "queue", "slot")

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.queue: deque[Pending] = deque()
        self._done = 0
        """The number of done requests in the queue, each behind an older one that is pending."""

    def add(self, pending: Pending) -> None:
        self.queue.append(pending)
        if self.slot.when is None:
            self.slot.set(pending.deadline)

    def tidy(self) -> None:
        """Count one more done request, drop done ones, and clear the timer of an empty queue."""
        queue = self.queue
        self._done += 1
        while queue and queue[0].done:
            queue.popleft()
            self._done -= 1
        if not queue:
            self.slot.clear()
        elif self._done > MAX_DONE and 2 * self._done > len(queue):
            self.queue = deque(pending for pending in queue if not pending.done)
            self._done = 0


class Requests:
    """All requests of one client."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._context = services.context
        self._next_request_id = count().__next__
        self._timeouts = _Timeouts(self._context.deadlines.slot(self._expire))
        self.reported = False
        """When True, emit `RequestSent` and `RequestAnswered` for each request."""

    def send(
        self,
        connection: "Connection",
        encode: Callable[[int], bytes],
        on_done: Callable[[Any], None],
        on_failed: Callable[[PulsarError], None],
        *,
        reply: int = Command.SUCCESS,
    ) -> int:
        """Write the frame that `encode(request_id)` returns, and wait for the answer. Return the request id.

        `reply`: the command type of the answer. `on_done` gets the answer; `on_failed` gets a `BrokerError`
        (ERROR came), `TimedOut` (after the operation timeout) or `ConnectionLost`.
        """
        request_id = self._next_request_id()
        deadline = self._context.now + self._services.durations.operation_timeout
        pending = Pending(connection, request_id, reply, deadline, on_done, on_failed)
        connection.pending[request_id] = pending
        self._timeouts.add(pending)
        frame = encode(request_id)
        connection.write(frame)
        if self.reported:
            self._context.emit(RequestSent(connection.link, request_id, _command_of(frame)))
        return request_id

    def wait_on(
        self,
        connection: "Connection",
        request_id: int,
        on_done: Callable[[Any], None],
        on_failed: Callable[[PulsarError], None],
        *,
        reply: int,
    ) -> None:
        """Wait without a timeout for a second answer to a request that was answered before."""
        connection.pending[request_id] = Pending(connection, request_id, reply, _NEVER, on_done, on_failed)

    def cancel(self, connection: "Connection", request_id: int) -> None:
        """Discard a request, so that a late answer is ignored. An unknown id is ignored, too."""
        pending = connection.pending.get(request_id)
        if pending is not None:
            self._settle(pending)

    def reply(self, connection: "Connection", command: Any) -> None:
        """Pass an answer to its request. An answer to no pending request is ignored (rule CONN-07).

        Raises `RemoteProtocolError` for an answer of the wrong type.
        """
        pending = connection.pending.get(command.request_id)
        if pending is None:
            return
        if REPLIES[type(command)] != pending.reply:
            raise RemoteProtocolError(
                f"the broker answered request {pending.request_id} with {type(command).__name__} instead of "
                f"{Command.Type.Name(pending.reply)}"
            )
        if self.reported:
            name = Command.Type.Name(Command.Type.ValueType(pending.reply))
            self._context.emit(RequestAnswered(connection.link, pending.request_id, name, None))
        self._settle(pending).on_done(command)

    def refuse(self, connection: "Connection", request_id: int, error: PulsarError) -> None:
        """ERROR came for a request; an id that is not pending is ignored."""
        pending = connection.pending.get(request_id)
        if pending is not None:
            self._fail(pending, error)

    def fail_all(self, connection: "Connection", error: PulsarError) -> None:
        """The connection died: fail its requests in the order of sending."""
        while connection.pending:
            for pending in list(connection.pending.values()):
                if connection.pending.get(pending.request_id) is pending:  # else a callback cancelled it
                    self._fail(pending, error)

    def _fail(self, pending: Pending, error: PulsarError) -> None:
        if self.reported:
            link, command = pending.connection.link, "ERROR" if isinstance(error, BrokerError) else "nothing"
            self._context.emit(RequestAnswered(link, pending.request_id, command, error))
        self._settle(pending).on_failed(error)

    def _settle(self, pending: Pending) -> Pending:
        del pending.connection.pending[pending.request_id]
        if pending.deadline != _NEVER:
            pending.done = True
            self._timeouts.tidy()
        return pending

    def _expire(self) -> None:
        timeouts = self._timeouts
        now = self._context.now
        seconds = self._services.config.operation_timeout
        while (queue := timeouts.queue) and queue[0].deadline <= now:
            pending = queue[0]
            self._fail(
                pending, TimedOut(f"request {pending.request_id} was not answered within {seconds:g} s")
            )
        if queue:
            timeouts.slot.set(queue[0].deadline)
