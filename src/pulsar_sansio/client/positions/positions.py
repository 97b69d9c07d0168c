"""`Positions`: a consumer's position in its topic: where it began or was moved to, and whether more messages
follow.

The broker forgets a subscription that is not durable with the connection, so the client must know after which
message to continue (rules CONS-16, READER-03). The consumer begins where the application chose. If only the
broker knows that position (the end of the topic, a publish time), the broker is asked first. Otherwise
messages published from then on would be skipped if the connection were lost before the first message arrived.

More messages follow when the topic's last message lies behind the last one that was delivered or dropped.
Before the first message, it is compared with the position where the consumer began.
"""

from operator import attrgetter
from typing import Protocol

from ...model.config import nanoseconds_of
from ...model.errors import BrokerError, LocalProtocolError, PulsarError, TimedOut
from ...model.message_id import EARLIEST, LATEST, EntryPosition, MessageId
from ...wire import proto
from ..arrival.arrival import Arrival
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..delivery.receiver_queue import ReceiverQueue, before, message_id_of
from ..outputs import RequestDone
from .last_message import LastMessage, LastPosition, Question
from .position_requests import PositionRequests
from .seeking import SEEK_VERSION, Seeking, SeekTarget, Target, check_target

_UINT64 = 2**64 - 1

ASKING_INTERVAL = 1_000_000_000
"""Nanoseconds between two questions for the position, after the first one failed."""


class PositionsOwner(Protocol):
    """The consumer, as its positions see it."""

    def on_moved(self) -> None:
        """Everything known precedes a seek."""
        ...

    def on_perhaps_moved(self, error: PulsarError) -> None:
        """A seek failed, and the broker may have moved the subscription all the same."""
        ...

    def on_positioned(self) -> None:
        """Permits may be granted."""
        ...

    def on_position_failed(self, error: PulsarError) -> None:
        """The consumer cannot reach its position, and would deliver unwanted messages."""
        ...


class Positions:
    """The position of one consumer."""

    __slots__ = (
        "_arrival",
        "_ask_again",
        "_compacted",
        "_connection",
        "_context",
        "_first_attached",
        "_held",
        "_known_last",
        "_owner",
        "_patient_until",
        "_durable",
        "_question",
        "_queue",
        "_requests",
        "_rollback",
        "_seeking",
        "_services",
        "_sought_time",
        "_start",
        "_to_last",
        "_unknown",
        "_where",
    )

    def __init__(
        self, services: ConsumerServices, arrival: Arrival, queue: ReceiverQueue, owner: PositionsOwner
    ) -> None:
        spec = services.spec
        self._context = services.context
        self._services = services
        self._arrival = arrival
        self._start = arrival.start
        self._queue = queue
        self._owner = owner
        self._requests = PositionRequests(services)
        self._where = LastMessage(services.client, services.wire_id, services.source.partition)
        """Questions that must be answered before a seek is done."""
        self._connection: Connection | None = None
        self._held = False
        """True when attached and `on_positioned` of the owner was not called yet."""
        self._known_last: EntryPosition = EARLIEST[:2]
        """The last message of the topic, as the broker reported it last."""
        self._compacted = spec.read_compacted
        """True when compaction may have removed the last message since."""
        self._durable = services.position_is_kept
        self._seeking = Seeking(services, self)
        self._rollback = 0
        """The rollback from the first attachment, in nanoseconds, while it still matters."""
        self._first_attached: int | None = None
        self._sought_time: int | None = None
        """The publish time of the last seek by time, while its position is unknown."""
        self._to_last = False
        """True when the consumer begins with the last message of the topic."""
        self._unknown = False
        """True when the broker has set the position and the client does not know it."""
        self._question: Question | None = None
        """The question for the position, while under way."""
        self._ask_again = services.context.deadlines.slot(self._ask_once_more)
        self._patient_until = 0
        """The time until which the broker may refuse to tell the position before messages are let in
        anyway."""
        if not self._durable:
            start = spec.start_message_id
            self._rollback = nanoseconds_of(spec.start_message_rollback)
            self._start.start_at(EARLIEST if self._rollback else start, spec.start_message_id_inclusive)
            self._unknown = start is None or start == LATEST
            self._to_last = start == LATEST and spec.start_message_id_inclusive

    # --- the application's commands --------------------------------------------------------------

    def check(self, target: SeekTarget) -> Target:
        """See `check_target`."""
        return check_target(target, self._services.source)

    def seek(self, request: int, target: Target, inclusive: bool) -> None:
        """See `Seeking.seek`."""
        self._seeking.seek(request, target, inclusive)
        self._ask_later()

    def require(self, target: Target, inclusive: bool) -> None:
        """See `Seeking.require`."""
        self._seeking.require(target, inclusive)
        self._ask_later()

    def _ask_later(self) -> None:
        if self._seeking.current is not None:
            self._requests.detach()
            if not self._seeking.answered:
                self._where.detach()

    def check_memory(self) -> None:
        """Raise `LocalProtocolError` on a topic that keeps no last message."""
        if not self._services.topic.persistent:
            raise LocalProtocolError(
                f"{self._services.source.topic} is not persistent: it has no last message"
            )

    def last_message_id(self, request: int) -> None:
        """Emit `RequestDone(request, id)`; the entry id is -1 when the topic is empty."""
        self._requests.ask(request, attrgetter("last"))

    def last_position(self, request: int, deadline: int | None = None) -> None:
        """Emit `RequestDone(request, LastPosition)`. `deadline`: see `LastMessage.ask`."""
        self._requests.ask(request, lambda answer: answer, deadline)

    def has_message_available(self, request: int, deadline: int | None = None) -> None:
        """Emit `RequestDone(request, bool)`: True when a message was not delivered yet."""
        reached = self._reached()
        known = not self._compacted and reached is not None and self._known_last > reached
        if self._seeking.current is None and (self._queue.undelivered or known):
            self._services.emit(RequestDone(request, True))
            return

        def result(answer: LastPosition) -> bool:
            self._known_last = answer.last[:2]
            return self._is_more(answer)

        self._requests.ask(request, result, deadline)

    def checkpoint(self) -> MessageId:
        """Return the id of the message delivered last, or else the position where the consumer begins. An
        unknown position is the end of the topic."""
        last = self._queue.last
        if last is not None:
            entry, index = last
            return message_id_of(entry, index)
        start = self._start.message_id
        if start is None or self._start.resumed or start in (EARLIEST, LATEST):
            return LATEST if start is None else start
        return before(start) if self._start.inclusive else start

    def forget_request(self, request: int) -> None:
        """Cancel the answer to a request."""
        self._requests.forget(request)
        self._seeking.forget(request)

    @property
    def has_to_move(self) -> bool:
        """True when the consumer must be moved before messages may arrive."""
        seek = self._seeking.current
        return seek is not None and seek.required

    # --- attachment ------------------------------------------------------------------------------

    def prepare(self, command: proto.CommandSubscribe) -> None:
        """Set the start position in SUBSCRIBE; the broker redelivers queued messages."""
        if self._queue.undelivered:
            self._arrival.undelivered.forget()
        if self._durable:
            return
        self._seeking.prepare()
        resume_after = self._queue.resume_after()
        # After an incomplete message in chunks the consumer has to begin at its first chunk again.
        if resume_after is None or self._start.is_returning_past(resume_after):
            self._start.begin_again()
        else:
            self._start.resume_after(resume_after)
            self._known()
        start = self._start.message_id
        if start is not None:
            ledger_id, entry_id = start.first_chunk or start[:2]
            command.start_message_id.ledgerId = ledger_id & _UINT64
            command.start_message_id.entryId = entry_id & _UINT64
            command.start_message_id.batch_index = -1 if start.first_chunk else start.batch_index
        if self._rollback:
            now = self._context.now
            since = 0 if self._first_attached is None else now - self._first_attached
            command.start_message_rollback_duration_sec = -(-(self._rollback + since) // 1_000_000_000)

    def leave_cluster(self) -> None:
        """Begin at the start of the topic in another cluster: positions of this cluster mean nothing
        there."""
        self._arrival.forget()
        self._queue.forget()
        self._known()
        self._known_last = EARLIEST[:2]
        if not self._durable:
            self._start.start_at(EARLIEST, True)

    def attach(self, connection: Connection) -> None:
        """Record the new attachment. `on_positioned` of the owner follows, at once or when every seek is
        done."""
        self._connection = connection
        self._held = True
        self._patient_until = self._context.now + self._services.client.durations.operation_timeout
        if self._first_attached is None:
            self._first_attached = self._context.now
        sought = self._sought_time
        if sought is not None and self._seeking.current is None:
            # The effect of the SEEK is lost with the connection, or with the topic's broker.
            self._seeking.require(sought, False)
        self._seeking.attach(connection)

    def detach(self) -> None:
        self._connection = None
        self._ask_again.clear()
        self._seeking.detach()
        self._requests.detach()
        self._where.detach()

    def leave(self, error: PulsarError) -> None:
        """Let no answer admit messages any more: the consumer is closing."""
        self._connection = None
        self._ask_again.clear()
        if self._question is not None:
            self._where.withdraw(self._question)
            self._question = None
        self._seeking.leave(error)

    def end(self, error: PulsarError) -> None:
        """Fail all questions: the consumer has ended."""
        self._connection = None
        self._ask_again.clear()
        self._seeking.end(error)
        self._requests.end(error)

    # --- what the seeks tell: see `SeekingOwner` -------------------------------------------------

    def on_moved(self, target: Target, inclusive: bool) -> None:
        self._owner.on_moved()
        self._arrival.forget()
        self._queue.forget()
        self._known()
        self._known_last = EARLIEST[:2]
        if isinstance(target, MessageId):
            self._start.start_at(target, inclusive)
            self._unknown = target == LATEST and not self._durable
        elif not self._durable:
            self._start.start_at(EARLIEST, True)
            self._unknown = True
            self._sought_time = target

    def on_perhaps_moved(self, error: PulsarError) -> None:
        self._owner.on_perhaps_moved(error)

    def on_arrived(self) -> None:
        """Finish a seek whose position the consumer is attached at, once a lost connection cannot undo the
        seek any more."""
        connection = self._connection
        assert connection is not None
        if not self._asks_where(connection):
            self._seeking.finish()

    def on_idle(self) -> None:
        """Continue when no seek is under way."""
        connection = self._connection
        assert connection is not None
        self._requests.attach(connection)
        if not self._asks_where(connection):
            self._release()

    def on_position_failed(self, error: PulsarError) -> None:
        self._owner.on_position_failed(error)

    # --- inside ----------------------------------------------------------------------------------

    def _asks_where(self, connection: Connection) -> bool:
        """True when the broker has set the position, and can be asked for it."""
        if not (self._unknown or self._rollback) or connection.protocol_version < SEEK_VERSION:
            return False
        self._where.attach(connection)
        if self._question is None:
            self._question = self._where.ask(self._found_out, self._not_found_out)
        return True

    def _release(self) -> None:
        """Admit messages: the position is known, or will not be."""
        if self._connection is None:
            return
        if self._seeking.answered:
            self._seeking.finish()
        elif self._held and self._seeking.current is None:
            self._held = False
            self._owner.on_positioned()

    def _known(self) -> None:
        """Record that the position is known."""
        self._unknown = self._to_last = False
        self._rollback = 0
        self._sought_time = None
        self._ask_again.clear()
        if self._question is not None:
            self._where.withdraw(self._question)
            self._question = None

    def _found_out(self, answer: LastPosition) -> None:
        """Take the cursor's position from the answer: everything after it is still to come, unless a message
        has arrived already.

        A position before the first message has two causes: a seek to a time before all messages, or an
        unloaded topic after a SEEK, so that SUBSCRIBE created a new subscription there (see `Seeking`).
        """
        self._question = None
        mark_delete = answer.mark_delete
        if self._reached() is not None or self._queue.undelivered or mark_delete is None:
            self._release()
            return
        to_last = self._to_last and answer.last.entry_id >= 0 and mark_delete >= answer.last[:2]
        at_beginning = mark_delete[1] < 0 and mark_delete < answer.last[:2]
        since = self._sought_time if at_beginning else None
        self._known()
        if to_last:
            self.require(answer.last, True)
        else:
            self._start.resume_after(MessageId(*mark_delete, self._services.source.partition), since)
            self._release()

    def _not_found_out(self, error: PulsarError) -> None:
        """Ask the broker again: a later answer is as good. Admit messages meanwhile if the broker does not
        answer at all, or has refused for too long."""
        self._question = None
        if self._connection is None:
            return
        refused = isinstance(error, BrokerError)
        if isinstance(error, TimedOut) or (isinstance(error, BrokerError) and error.retryable):
            self._ask_again.set(self._context.now + ASKING_INTERVAL)
            if refused and self._context.now < self._patient_until:
                return
        self._release()

    def _ask_once_more(self) -> None:
        """Ask again, unless a seek is under way; the end of the seek asks again."""
        connection = self._connection
        if connection is not None and (self._seeking.current is None or self._seeking.answered):
            self._asks_where(connection)

    def _reached(self) -> EntryPosition | None:
        """Return the last entry that was delivered, or that had no messages to deliver."""
        reached, delivered = self._arrival.undelivered.reached, self._queue.last_delivered
        return reached if delivered is None else delivered if reached is None else max(reached, delivered)

    def _is_more(self, answer: LastPosition) -> bool:
        """True when the topic's last message is still to come."""
        if self._queue.undelivered:
            return True
        last = answer.last
        if last.entry_id < 0:
            return False
        reached = self._reached()
        if reached is not None:
            return last[:2] > reached
        start = self._start.message_id
        if start is None or start == LATEST or self._unknown or self._rollback:
            if answer.mark_delete is None:  # the broker does not tell
                return start != LATEST
            return answer.mark_delete < last[:2]
        if self._start.resumed and start.batch_index < 0:
            return last[:2] > start[:2]
        # An id without an index is before all messages of its batch.
        begin, end = (*start[:2], start.batch_index), (*last[:2], last.batch_index)
        return end >= begin if self._start.inclusive else end > begin
