"""`Positions`: where in its topic a consumer is: where it began or was moved to, and whether there is more.

What a subscription that is not durable has to know, because its broker forgets it with the connection: after
which message it goes on (rules CONS-16, READER-03). It begins where the application said; where that is only
known to the broker (the end of the topic, a publish time), the broker is asked for the place before anything
else, so that nothing that is published from then on is passed over should the connection be lost before the
first message came.

Whether there are more messages is told by comparing the last one of the topic with the last one that was
handed out or found to be of no use, and where neither is, with the place it began at.
"""

from collections.abc import Callable
from typing import Any

from ...model.config import ConsumerSpec, nanoseconds_of
from ...model.errors import BrokerError, LocalProtocolError, PulsarError, TimedOut
from ...model.message import Source
from ...model.message_id import EARLIEST, LATEST, EntryPosition, MessageId
from ...wire import proto
from ..connecting.connection import Connection
from ..connecting.services import ClientContext, Services
from ..delivery.receiver_queue import ReceiverQueue, before, message_id_of
from ..outputs import Output, RequestDone, RequestFailed
from .arrival import Arrival
from .last_message import LastMessage, LastPosition, Question
from .seeking import SEEK_VERSION, Seeking, SeekTarget, Target, check_target

_UINT64 = 2**64 - 1

ASKING_INTERVAL = 1_000_000_000
"""Nanoseconds between two questions where it is, the first of which came to nothing."""


class Positions:
    """Of one consumer. `forget()`: what is here is from before a seek. `go_on()`: permits may be granted.
    `lost(error)`: it cannot get to where it has to be, and would hand out what it was not asked for."""

    __slots__ = (
        "_arrival",
        "_ask_again",
        "_compacted",
        "_connection",
        "_context",
        "_durable",
        "_emit",
        "_first_attached",
        "_forget",
        "_go_on",
        "_held",
        "_last",
        "_known_last",
        "_patience",
        "_patient_until",
        "_question",
        "_queue",
        "_requests",
        "_rollback",
        "_seeking",
        "_source",
        "_sought_time",
        "_to_last",
        "_unknown",
        "_where",
    )

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        wire_id: int,
        spec: ConsumerSpec,
        source: Source,
        emit: Callable[[Output], None],
        arrival: Arrival,
        queue: ReceiverQueue,
        forget: Callable[[], None],
        unsure: Callable[[PulsarError], None],
        go_on: Callable[[], None],
        lost: Callable[[PulsarError], None],
    ) -> None:
        self._context = context
        self._emit = emit
        self._source = source
        self._arrival = arrival
        self._queue = queue
        self._forget = forget
        self._go_on = go_on
        self._last = LastMessage(context, services, wire_id, source.partition)
        """What the application asks: after the seeks that it asked for before."""
        self._where = LastMessage(context, services, wire_id, source.partition)
        """What has to be known before a seek is done."""
        self._connection: Connection | None = None
        self._held = False
        """Attached, and `go_on` is still to come."""
        self._requests: set[int] = set()
        """Questions of the application that have no answer yet."""
        self._known_last: EntryPosition = EARLIEST[:2]
        """The last message of the topic when the broker was asked last."""
        self._compacted = spec.read_compacted
        """That one may be gone since."""
        persistent = source.topic.startswith("persistent://")
        self._durable = spec.durable or not persistent
        """Whether the broker keeps the place, or there is none."""
        self._seeking = Seeking(
            context,
            services,
            wire_id,
            self._durable,
            emit,
            self._moved,
            unsure,
            self._arrived,
            self._idle,
            lost,
        )
        self._rollback = 0
        """Nanoseconds before it was attached first, where it begins so; it still matters."""
        self._first_attached: int | None = None
        self._sought_time: int | None = None
        """Where it was moved by time, and where that is is not known."""
        self._to_last = False
        """To begin with the last message of the topic, whichever that is."""
        self._unknown = False
        """The broker has put it somewhere, and where that is is not known here."""
        self._question: Question | None = None
        """The broker is asked where."""
        self._ask_again = context.deadlines.slot(self._ask_once_more)
        self._patient_until = 0
        """So long the broker may refuse to say where before messages are let in all the same."""
        self._patience = services.durations.operation_timeout
        if not self._durable:
            start = spec.start_message_id
            self._rollback = nanoseconds_of(spec.start_message_rollback)
            arrival.start_at(EARLIEST if self._rollback else start, spec.start_message_id_inclusive)
            self._unknown = start is None or start == LATEST
            self._to_last = start == LATEST and spec.start_message_id_inclusive

    # --- the application's commands --------------------------------------------------------------

    def check(self, target: SeekTarget) -> Target:
        """See `check_target`."""
        return check_target(target, self._source)

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
            self._last.detach()
            if not self._seeking.answered:
                self._where.detach()

    def check_memory(self) -> None:
        """Raise `LocalProtocolError` where no message is ever the last."""
        if not self._source.topic.startswith("persistent://"):
            raise LocalProtocolError(f"{self._source.topic} is not persistent: it has no last message")

    def last_message_id(self, request: int) -> None:
        """`RequestDone(request, id)`; entry -1 where the topic is empty."""
        self._requests.add(request)
        self._last.ask(
            lambda answer: self._settle(RequestDone(request, answer.last)),
            lambda error: self._settle(RequestFailed(request, error)),
        )

    def last_position(self, request: int, deadline: int | None = None) -> None:
        """`RequestDone(request, LastPosition)`. `deadline`: see `LastMessage.ask`."""
        self._requests.add(request)
        self._last.ask(
            lambda answer: self._settle(RequestDone(request, answer)),
            lambda error: self._settle(RequestFailed(request, error)),
            deadline,
        )

    def has_message_available(self, request: int, deadline: int | None = None) -> None:
        """`RequestDone(request, whether there is a message that was not handed out)`."""
        reached = self._reached()
        known = not self._compacted and reached is not None and self._known_last > reached
        if self._seeking.current is None and (self._queue.available or known):
            self._emit(RequestDone(request, True))
            return
        self._requests.add(request)

        def answered(answer: LastPosition) -> None:
            self._known_last = answer.last[:2]
            self._settle(RequestDone(request, self._is_more(answer)))

        self._last.ask(answered, lambda error: self._settle(RequestFailed(request, error)), deadline)

    def checkpoint(self) -> MessageId:
        """The message behind which it goes on: the last one handed out, else where it begins. What is not
        known better is the end of the topic."""
        last = self._queue.last
        if last is not None:
            entry, index = last
            return message_id_of(entry, index)
        start = self._arrival.start
        if start is None or self._arrival.resumed or start in (EARLIEST, LATEST):
            return LATEST if start is None else start
        return before(start) if self._arrival.inclusive else start

    def forget_request(self, request: int) -> None:
        """Nobody wants its outcome any more."""
        self._requests.discard(request)
        self._seeking.forget(request)

    @property
    def has_to_move(self) -> bool:
        """Whether nothing can begin before it is somewhere else."""
        seek = self._seeking.current
        return seek is not None and seek.required

    # --- attachment ------------------------------------------------------------------------------

    def prepare(self, command: proto.CommandSubscribe) -> None:
        """Say in SUBSCRIBE where to begin; what is queued will come again."""
        if self._queue.available:
            self._arrival.passed = self._arrival.counters.last_chunk = None
        if self._durable:
            return
        self._seeking.prepare()
        resume_after = self._queue.resume_after()
        # Who went back to the first chunk of a message and did not get all of it has to go as far back again.
        if resume_after is None or self._arrival.is_returning_past(resume_after):
            self._arrival.begin_again()
        else:
            self._arrival.resume_after(resume_after)
            self._known()
        start = self._arrival.start
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
        """The topic goes on in another cluster, from its beginning there: places of this one mean nothing."""
        self._arrival.forget()
        self._queue.forget()
        self._known()
        self._known_last = EARLIEST[:2]
        if not self._durable:
            self._arrival.start_at(EARLIEST, True)

    def attach(self, connection: Connection) -> None:
        """Subscribed. `go_on` follows, now or when what is to be sought is found."""
        self._connection = connection
        self._held = True
        self._patient_until = self._context.now + self._patience
        if self._first_attached is None:
            self._first_attached = self._context.now
        sought = self._sought_time
        if sought is not None and self._seeking.current is None:
            # What the SEEK has moved is gone with the connection, or with the topic's broker.
            self._seeking.require(sought, False)
        self._seeking.attach(connection)

    def detach(self) -> None:
        self._connection = None
        self._ask_again.clear()
        self._seeking.detach()
        self._last.detach()
        self._where.detach()

    def leave(self, error: PulsarError) -> None:
        """The consumer is being closed: no answer lets messages in any more."""
        self._connection = None
        self._ask_again.clear()
        if self._question is not None:
            self._where.withdraw(self._question)
            self._question = None
        self._seeking.leave(error)

    def end(self, error: PulsarError) -> None:
        """The consumer is gone."""
        self._connection = None
        self._ask_again.clear()
        self._seeking.end(error)
        self._last.end(error)

    # --- inside ----------------------------------------------------------------------------------

    def _idle(self) -> None:
        """Nothing is being sought."""
        connection = self._connection
        assert connection is not None
        self._last.attach(connection)
        if not self._asks_where(connection):
            self._release()

    def _arrived(self) -> None:
        """Attached where a seek has led to. It is done when a lost connection cannot undo it any more."""
        connection = self._connection
        assert connection is not None
        if not self._asks_where(connection):
            self._seeking.finish()

    def _asks_where(self, connection: Connection) -> bool:
        """Whether the broker has to say, and can, where it has put the subscription."""
        if not (self._unknown or self._rollback) or connection.protocol_version < SEEK_VERSION:
            return False
        self._where.attach(connection)
        if self._question is None:
            self._question = self._where.ask(self._found_out, self._not_found_out)
        return True

    def _release(self) -> None:
        """Where it is is known, or will not be."""
        if self._connection is None:
            return
        if self._seeking.answered:
            self._seeking.finish()
        elif self._held and self._seeking.current is None:
            self._held = False
            self._go_on()

    def _moved(self, target: Target, inclusive: bool) -> None:
        self._forget()
        self._arrival.forget()
        self._queue.forget()
        self._known()
        self._known_last = EARLIEST[:2]
        if isinstance(target, MessageId):
            self._arrival.start_at(target, inclusive)
            self._unknown = target == LATEST and not self._durable
        elif not self._durable:
            self._arrival.start_at(EARLIEST, True)
            self._unknown = True
            self._sought_time = target

    def _known(self) -> None:
        """From now on it is known where to go on."""
        self._unknown = self._to_last = False
        self._rollback = 0
        self._sought_time = None
        self._ask_again.clear()
        if self._question is not None:
            self._where.withdraw(self._question)
            self._question = None

    def _found_out(self, answer: LastPosition) -> None:
        """Where the cursor is: everything after that is still to come, unless something has come already.

        Before the first message it is where a time was sought that lies before all, and also where the topic
        was unloaded since the SEEK, so that SUBSCRIBE made another subscription there (see `Seeking`)."""
        self._question = None
        mark_delete = answer.mark_delete
        if self._reached() is not None or self._queue.available or mark_delete is None:
            self._release()
            return
        to_last = self._to_last and answer.last.entry_id >= 0 and mark_delete >= answer.last[:2]
        at_beginning = mark_delete[1] < 0 and mark_delete < answer.last[:2]
        since = self._sought_time if at_beginning else None
        self._known()
        if to_last:
            self.require(answer.last, True)
        else:
            self._arrival.resume_after(MessageId(*mark_delete, self._source.partition), since)
            self._release()

    def _not_found_out(self, error: PulsarError) -> None:
        """The broker goes on being asked: what it says later is as good. Where it does not answer at all, or
        has refused for too long, messages are let in meanwhile."""
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
        """Not while it is being moved: then it is asked once it is there."""
        connection = self._connection
        if connection is not None and (self._seeking.current is None or self._seeking.answered):
            self._asks_where(connection)

    def _reached(self) -> EntryPosition | None:
        """The furthest entry that was handed out, or of which nothing is to be handed out."""
        reached, handed_out = self._arrival.reached, self._queue.last_handed_out
        return reached if handed_out is None else handed_out if reached is None else max(reached, handed_out)

    def _is_more(self, answer: LastPosition) -> bool:
        """Whether the topic's last message is still to come."""
        if self._queue.available:
            return True
        last = answer.last
        if last.entry_id < 0:
            return False
        reached = self._reached()
        if reached is not None:
            return last[:2] > reached
        start = self._arrival.start
        if start is None or start == LATEST or self._unknown or self._rollback:
            if answer.mark_delete is None:  # a broker that does not say
                return start != LATEST
            return answer.mark_delete < last[:2]
        if self._arrival.resumed and start.batch_index < 0:
            return last[:2] > start[:2]
        # An id without index is before all messages of its batch.
        begin, end = (*start[:2], start.batch_index), (*last[:2], last.batch_index)
        return end >= begin if self._arrival.inclusive else end > begin

    def _settle(self, outcome: Any) -> None:
        if outcome.request in self._requests:
            self._requests.discard(outcome.request)
            self._emit(outcome)
