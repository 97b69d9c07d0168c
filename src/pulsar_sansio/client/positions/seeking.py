"""`Seeking`: moves a consumer's subscription to another position in its topic.

The broker answers a SEEK by closing every consumer of the subscription, moving the cursor, and sending
SUCCESS. The consumer then attaches again in the normal way. A seek is done when the answer has arrived and
the consumer is attached again. The broker decides the order of both, and the time they take:

* An answer counts for the attachment that the SEEK was sent on. If another attachment replaced it before the
  answer arrived (the connection was lost, the topic was moved, the close overtook the answer), the client
  cannot tell which messages were delivered since, and sends the SEEK again.
* A broker may remove a subscription that is not durable while no consumer is attached; SUBSCRIBE then creates
  a new one, at the position in the command. If SUBSCRIBE was written before the answer arrived, that position
  is outdated, and the SEEK is sent again. For a seek by time the position is the beginning of the topic:
  older messages are dropped on arrival.
* On a new attachment the SEEK goes before any permit, so that no message arrives from the old position.
* After the answer no earlier message is delivered: the consumer forgets its messages (`on_moved`).
* Without an answer in time the broker may still have moved the cursor. Earlier acknowledgements are not sent
  over a later connection then (`on_perhaps_moved`): they could acknowledge messages behind the new position.

Seeks are done one after the other, in the order of the requests. This module knows nothing of the state that
the consumer has to forget.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ...model.errors import (
    BrokerError,
    ConnectionLost,
    LocalProtocolError,
    PulsarError,
    TimedOut,
    UnsupportedVersion,
)
from ...model.message import Message, Source
from ...model.message_id import MessageId, is_message_id
from ...wire import encode_command, proto, words_from_bits
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..outputs import RequestDone, RequestFailed

Target = MessageId | int
"""A position: of a message, or (milliseconds since 1970) of the first message published then or later."""

SeekTarget = Target | Message | Callable[[str], Target | Message]
"""The targets an application may pass: a function is given the topic's full name."""

SEEK_VERSION = 12
"""Protocol version from which a broker knows SEEK and GET_LAST_MESSAGE_ID."""

LARGEST_BATCH = 65_536
"""The largest batch, in messages, for which a bitset is made; a peer may announce any size."""

_UINT64 = 2**64 - 1
_SEEK = proto.BaseCommand.SEEK


def check_target(target: SeekTarget, source: Source) -> Target:
    """Return the application's target as a position in that topic. Raises `LocalProtocolError` for any other
    value."""
    if not source.topic.startswith("persistent://"):
        raise LocalProtocolError(f"seek on {source.topic}: it is not persistent, and has no place to go to")
    if callable(target):
        target = _asked(target, source.topic)
    if isinstance(target, Message):
        if target.entry.source != source:
            raise LocalProtocolError(
                f"seek on {source.topic} to message {target.message_id} of {target.topic}"
            )
        return target.message_id
    if is_message_id(target):
        if target.partition >= 0 and target.partition != source.partition:
            raise LocalProtocolError(
                f"seek on {source.topic} to {target}: it is of partition {target.partition}"
            )
        return target
    if isinstance(target, bool) or not isinstance(target, int) or not 0 <= target < 2**63:
        raise LocalProtocolError(
            f"seek: a message, its id, or milliseconds since 1970 as a whole number, not {target!r}"
        )
    return target


def _asked(position_of: Callable[[str], Target | Message], topic: str) -> Target | Message:
    """Return the target from the application's function; an exception becomes the cause of a
    `LocalProtocolError`."""
    try:
        return position_of(topic)
    except LocalProtocolError:
        raise
    except Exception as error:
        raise LocalProtocolError(f"seek: the function for {topic} failed: {error!r}") from error


@dataclass(slots=True)
class Seek:
    """A requested seek. `request`: None when the client itself seeks. `required`: the consumer must reach the
    position, because it would otherwise deliver unwanted messages."""

    request: int | None
    target: Target
    inclusive: bool
    deadline: int | None
    required: bool = False


class SeekingOwner(Protocol):
    """The positions of the consumer, as its seeks see them."""

    def on_moved(self, target: Target, inclusive: bool) -> None:
        """The broker has moved the cursor, and everything known precedes the seek."""
        ...

    def on_perhaps_moved(self, error: PulsarError) -> None:
        """The consumer is detached, and the broker may have moved the cursor."""
        ...

    def on_arrived(self) -> None:
        """The consumer is attached at the position. The owner calls `finish`, now or when the position is
        certain to last."""
        ...

    def on_idle(self) -> None:
        """The consumer is attached, and no seek is under way."""
        ...

    def on_position_failed(self, error: PulsarError) -> None:
        """The consumer cannot reach its position."""
        ...


class Seeking:
    """Seeks of one consumer."""

    __slots__ = (
        "_answered",
        "_client",
        "_connection",
        "_context",
        "_emit",
        "_leaving",
        "_last_error",
        "_named",
        "_owner",
        "_pending",
        "_durable",
        "_slot",
        "_unanswered",
        "_wire_id",
        "current",
        "sent_on",
        "waiting",
    )

    def __init__(self, services: ConsumerServices, owner: SeekingOwner) -> None:
        self._context = services.context
        self._client = services.client
        self._wire_id = services.wire_id
        self._durable = services.position_is_kept
        self._emit = services.emit
        self._owner = owner
        self._slot = services.context.deadlines.slot(self._timed_out)
        self.current: Seek | None = None
        self.waiting: deque[Seek] = deque()
        self._connection: Connection | None = None
        """The connection, while attached."""
        self._pending: tuple[Connection, int] | None = None
        """The SEEK that has no answer yet: its connection and request id."""
        self.sent_on: Connection | None = None
        """The connection that the present SEEK was sent on."""
        self._unanswered: PulsarError | None = None
        """The reason why a SEEK on the present connection is not waited for any more."""
        self._answered = False
        """True when the broker has carried out the present SEEK."""
        self._named = False
        """True when SUBSCRIBE was written after the answer."""
        self._leaving = False
        self._last_error: PulsarError | None = None

    def seek(self, request: int, target: Target, inclusive: bool) -> None:
        """Seek after the seeks that are under way. `RequestDone` or `RequestFailed` follows."""
        deadline = self._context.now + self._client.durations.operation_timeout
        self._add(Seek(request, target, inclusive, deadline))

    def require(self, target: Target, inclusive: bool) -> None:
        """Seek after the seeks that are under way; `on_position_failed` follows when that fails. No time
        limit for attaching is set here."""
        self._add(Seek(None, target, inclusive, None, required=True))

    def _add(self, seek: Seek) -> None:
        self.waiting.append(seek)
        if self.current is None:
            self._begin()

    def forget(self, request: int) -> None:
        """Cancel the answer to a request; the seek is still carried out."""
        for seek in [self.current, *self.waiting]:
            if seek is not None and seek.request == request:
                seek.request = None

    # --- attachment ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Record that SUBSCRIBE is being written."""
        self._named = self._answered

    def attach(self, connection: Connection) -> None:
        """Record the new attachment. `on_idle` follows, at once or when every seek is done."""
        self._connection = connection
        if self.current is None:
            self._owner.on_idle()
        elif self._answered and (self._durable or (self._named and connection is self.sent_on)):
            self._owner.on_arrived()
        else:
            self._send(connection)

    @property
    def answered(self) -> bool:
        """True when the broker has carried out the present seek."""
        return self.current is not None and self._answered

    def finish(self) -> None:
        """Finish the present seek: the consumer is at its position."""
        self._finish(None)

    def detach(self) -> None:
        self._connection = None
        error, self._unanswered = self._unanswered, None
        if error is not None:
            self._owner.on_perhaps_moved(error)

    def leave(self, error: PulsarError) -> None:
        """Send no more seeks: the consumer is closing. A SEEK that was sent may still be answered."""
        self._leaving = True
        others, self.waiting = self.waiting, deque()
        for each in others:
            self._settle(each, error)

    def end(self, error: PulsarError) -> None:
        """Fail all seeks: the consumer has ended."""
        self._cancel()
        self._slot.clear()
        seeks = [self.current, *self.waiting]
        self.current = self._unanswered = None
        self.waiting.clear()
        for seek in seeks:
            if seek is not None:
                self._settle(seek, error)

    # --- inside ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Begin the first of the waiting seeks."""
        self.current = seek = self.waiting.popleft()
        self._answered = False
        self.sent_on = None
        self._last_error = None
        if seek.deadline is not None:
            self._slot.set(seek.deadline)
        if self._connection is not None:
            self._send(self._connection)

    def _send(self, connection: Connection) -> None:
        seek = self.current
        assert seek is not None
        self._cancel()
        self.sent_on = connection
        if connection.protocol_version < SEEK_VERSION:
            error = UnsupportedVersion(f"seek: the broker speaks protocol {connection.protocol_version}")
            others, self.waiting = self.waiting, deque()
            self._finish(error)
            for each in others:
                self._settle(each, error)
            return
        request_id = self._client.requests.send(
            connection,
            lambda request_id: encode_command(_SEEK, _command(self._wire_id, request_id, seek.target)),
            self._succeeded,
            self._refused,
        )
        self._pending = connection, request_id

    def _succeeded(self, _reply: Any) -> None:
        seek = self.current
        assert seek is not None
        self._pending = None
        self._answered = True
        self._owner.on_moved(seek.target, seek.inclusive)
        if self._connection is not None:  # some brokers seek without closing their consumers
            self._finish(None)

    def _refused(self, error: PulsarError) -> None:
        """Handle a refused SEEK. A SEEK may be too late for a consumer that the broker has closed for another
        reason. The next attachment then tries again, as after a lost connection."""
        self._pending = None
        too_late = self._connection is None and isinstance(error, BrokerError) and error.retryable
        if isinstance(error, ConnectionLost) or too_late:
            self._last_error = error
        elif self.current is not None and self.current.required:
            self._owner.on_position_failed(error)
        else:
            self._finish(error)

    def _timed_out(self) -> None:
        last = self._last_error
        seconds = self._client.config.operation_timeout
        state = (
            "the position was moved, but the consumer has not come back" if self._answered else "no answer"
        )
        why = f"; the last attempt: {last}" if last is not None else ""
        error = TimedOut(f"seek was not done within {seconds:g} s: {state}{why}")
        error.__cause__ = last
        self._finish(error)

    def _finish(self, error: PulsarError | None) -> None:
        """End the present seek and begin the next."""
        seek = self.current
        assert seek is not None
        self._cancel()
        self._slot.clear()
        self.current = None
        if isinstance(error, TimedOut) and self.sent_on is not None and not self._answered:
            if self._connection is None:
                self._owner.on_perhaps_moved(error)
            else:
                self._unanswered = error
        self._settle(seek, error)
        if error is not None and seek.required:
            self._owner.on_position_failed(error)
            return
        if self.waiting:
            self._begin()
        elif self._connection is not None and not self._leaving:
            self._owner.on_idle()

    def _settle(self, seek: Seek, error: PulsarError | None) -> None:
        if seek.request is not None:
            self._emit(
                RequestDone(seek.request, None) if error is None else RequestFailed(seek.request, error)
            )

    def _cancel(self) -> None:
        if self._pending is not None:
            self._client.requests.cancel(*self._pending)
            self._pending = None


def _command(wire_id: int, request_id: int, target: Target) -> proto.CommandSeek:
    """Return a SEEK. The broker begins with the whole entry, or with its first chunk; in a batch it may skip
    the messages before the target if it tracks batch indexes. Other earlier messages are dropped on arrival.
    """
    command = proto.CommandSeek(consumer_id=wire_id, request_id=request_id)
    if isinstance(target, int):
        command.message_publish_time = target
        return command
    ledger_id, entry_id = target.first_chunk or target[:2]
    command.message_id.ledgerId = ledger_id & _UINT64
    command.message_id.entryId = entry_id & _UINT64
    if 0 <= target.batch_index < target.batch_size <= LARGEST_BATCH:
        bits = (1 << target.batch_size) - (1 << target.batch_index)
        command.message_id.ack_set.extend(words_from_bits(bits))
    return command
