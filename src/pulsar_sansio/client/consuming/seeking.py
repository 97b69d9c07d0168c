"""`Seeking`: moving a consumer's subscription to another place in its topic (rules SEEK-01 to SEEK-06).

The broker answers a SEEK by closing every consumer of the subscription, moving the cursor, and then saying
SUCCESS; the consumer comes back by its usual way. A seek is done when both have happened: the answer came and
the consumer is attached again. Which of them comes first is the broker's affair, and so is how long it takes:

* An answer counts for the attachment that the SEEK was sent on. Where that one has been replaced by another
  before the answer came (the connection was lost, the topic was moved, the close overtook the answer), nobody
  can tell what was delivered since, and the SEEK is sent again.
* A subscription that is not durable may go while nobody is attached to it; then SUBSCRIBE makes another, at
  the place that it names. Where it was written before the answer came, that is an old place, and the SEEK is
  sent again. Where a time was sought it is the beginning of the topic: what is older is left out on arrival.
* On a new attachment the SEEK goes before any permit, so that nothing comes from where the cursor is now.
* From the answer on, nothing from before the seek is handed out: the consumer forgets what it has (`moved`).
* Where no answer came in time the broker may have moved the cursor all the same. What was acknowledged is not
  sent over a later connection then (`unsure`): it would be taken out of what comes from the new place.

Seeks are done one after the other, in the order in which they were asked for. It refuses to know what the
consumer has to forget.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from ..connecting.services import ClientContext, Services
from ..outputs import Output, RequestDone, RequestFailed

Target = MessageId | int
"""A place: of a message, or (milliseconds since 1970) of the first message published then or later."""

SeekTarget = Target | Message | Callable[[str], Target | Message]
"""What an application may say: a function is given the topic's full name."""

SEEK_VERSION = 12
"""Protocol version from which a broker knows SEEK and GET_LAST_MESSAGE_ID."""

LARGEST_BATCH = 65_536
"""Messages: of a larger batch, which a peer may only say that there is, no bits are made."""

_UINT64 = 2**64 - 1
_SEEK = proto.BaseCommand.SEEK


def check_target(target: SeekTarget, source: Source) -> Target:
    """What an application said as a place in that topic. Raises `LocalProtocolError` for anything else."""
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


def _asked(place_of: Callable[[str], Target | Message], topic: str) -> Target | Message:
    """What the application's function says; what it raises is the cause of a `LocalProtocolError`."""
    try:
        return place_of(topic)
    except LocalProtocolError:
        raise
    except Exception as error:
        raise LocalProtocolError(f"seek: the function for {topic} failed: {error!r}") from error


@dataclass(slots=True)
class Seek:
    """One that was asked for. `request`: None where nobody waits for it. `required`: the client itself has to
    get there, or it would hand out what it was not asked for."""

    request: int | None
    target: Target
    inclusive: bool
    deadline: int | None
    required: bool = False


class Seeking:
    """Seeks of one consumer.

    `durable`: whether the place outlives the connection. `moved(target, inclusive)`: the broker has moved the
    cursor; what is here is from before. `unsure(error)`: detached, and nobody knows whether it has.
    `arrived()`: attached there; `finish` is to be called, now or when that is sure to last. `idle()`:
    attached, and nothing is to be sought (any more). `lost(error)`: the consumer cannot get to where it has
    to be.
    """

    __slots__ = (
        "_answered",
        "_arrived",
        "_connection",
        "_context",
        "_durable",
        "_emit",
        "_idle",
        "_leaving",
        "_last_error",
        "_lost",
        "_moved",
        "_named",
        "_pending",
        "_services",
        "_slot",
        "_unanswered",
        "_unsure",
        "_wire_id",
        "current",
        "sent_on",
        "waiting",
    )

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        wire_id: int,
        durable: bool,
        emit: Callable[[Output], None],
        moved: Callable[[Target, bool], None],
        unsure: Callable[[PulsarError], None],
        arrived: Callable[[], None],
        idle: Callable[[], None],
        lost: Callable[[PulsarError], None],
    ) -> None:
        self._context = context
        self._services = services
        self._wire_id = wire_id
        self._durable = durable
        self._emit = emit
        self._moved = moved
        self._unsure = unsure
        self._arrived = arrived
        self._idle = idle
        self._lost = lost
        self._slot = context.deadlines.slot(self._timed_out)
        self.current: Seek | None = None
        self.waiting: deque[Seek] = deque()
        self._connection: Connection | None = None
        """While attached."""
        self._pending: tuple[Connection, int] | None = None
        """The SEEK that has no answer yet."""
        self.sent_on: Connection | None = None
        """Where the present one was sent."""
        self._unanswered: PulsarError | None = None
        """Why one that was sent over the present connection is not waited for any more."""
        self._answered = False
        """The broker has done it."""
        self._named = False
        """SUBSCRIBE was written when that was known."""
        self._leaving = False
        self._last_error: PulsarError | None = None

    def seek(self, request: int, target: Target, inclusive: bool) -> None:
        """Go there, after the seeks that are under way. `RequestDone` or `RequestFailed` follows."""
        deadline = self._context.now + self._services.durations.operation_timeout
        self._add(Seek(request, target, inclusive, deadline))

    def require(self, target: Target, inclusive: bool) -> None:
        """Go there, after the seeks that are under way, or the consumer is `lost`. How long to be attached
        may take is not decided here."""
        self._add(Seek(None, target, inclusive, None, required=True))

    def _add(self, seek: Seek) -> None:
        self.waiting.append(seek)
        if self.current is None:
            self._begin()

    def forget(self, request: int) -> None:
        """Nobody wants to know what becomes of it any more; it happens all the same."""
        for seek in [self.current, *self.waiting]:
            if seek is not None and seek.request == request:
                seek.request = None

    # --- attachment ------------------------------------------------------------------------------

    def prepare(self) -> None:
        """SUBSCRIBE is being written."""
        self._named = self._answered

    def attach(self, connection: Connection) -> None:
        """Attached again. `idle` follows, at once or when what is to be sought is found."""
        self._connection = connection
        if self.current is None:
            self._idle()
        elif self._answered and (self._durable or (self._named and connection is self.sent_on)):
            self._arrived()
        else:
            self._send(connection)

    @property
    def answered(self) -> bool:
        """Whether the broker has done the present one."""
        return self.current is not None and self._answered

    def finish(self) -> None:
        """The consumer is where it was to be."""
        self._finish(None)

    def detach(self) -> None:
        self._connection = None
        error, self._unanswered = self._unanswered, None
        if error is not None:
            self._unsure(error)

    def leave(self, error: PulsarError) -> None:
        """The consumer is being closed: what was sent may still be answered, and nothing more is sent."""
        self._leaving = True
        others, self.waiting = self.waiting, deque()
        for each in others:
            self._settle(each, error)

    def end(self, error: PulsarError) -> None:
        """The consumer is gone: whoever still waits is told."""
        self._cancel()
        self._slot.clear()
        seeks = [self.current, *self.waiting]
        self.current = None
        self.waiting.clear()
        for seek in seeks:
            if seek is not None:
                self._settle(seek, error)

    # --- inside ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        """With the first of those that wait."""
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
        request_id = self._services.requests.send(
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
        self._moved(seek.target, seek.inclusive)
        if self._connection is not None:  # a broker that does so without closing its consumers
            self._finish(None)

    def _refused(self, error: PulsarError) -> None:
        """A SEEK may come too late for a consumer that the broker has closed for another reason. Then, as
        where the connection was lost, it is for the next attachment to try."""
        self._pending = None
        too_late = self._connection is None and isinstance(error, BrokerError) and error.retryable
        if isinstance(error, ConnectionLost) or too_late:
            self._last_error = error
        elif self.current is not None and self.current.required:
            self._lost(error)
        else:
            self._finish(error)

    def _timed_out(self) -> None:
        last = self._last_error
        seconds = self._services.config.operation_timeout
        state = (
            "the position was moved, but the consumer has not come back" if self._answered else "no answer"
        )
        why = f"; the last attempt: {last}" if last is not None else ""
        error = TimedOut(f"seek was not done within {seconds:g} s: {state}{why}")
        error.__cause__ = last
        self._finish(error)

    def _finish(self, error: PulsarError | None) -> None:
        """The present one is over; on with the next."""
        seek = self.current
        assert seek is not None
        self._cancel()
        self._slot.clear()
        self.current = None
        if isinstance(error, TimedOut) and self.sent_on is not None and not self._answered:
            if self._connection is None:
                self._unsure(error)
            else:
                self._unanswered = error
        self._settle(seek, error)
        if error is not None and seek.required:
            self._lost(error)
            return
        if self.waiting:
            self._begin()
        elif self._connection is not None and not self._leaving:
            self._idle()

    def _settle(self, seek: Seek, error: PulsarError | None) -> None:
        if seek.request is not None:
            self._emit(
                RequestDone(seek.request, None) if error is None else RequestFailed(seek.request, error)
            )

    def _cancel(self) -> None:
        if self._pending is not None:
            self._services.requests.cancel(*self._pending)
            self._pending = None


def _command(wire_id: int, request_id: int, target: Target) -> proto.CommandSeek:
    """SEEK. The broker begins with the whole entry, or with its first chunk; of a batch it may leave out what
    is before the message, if it keeps track of that. The rest is left out on arrival."""
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
