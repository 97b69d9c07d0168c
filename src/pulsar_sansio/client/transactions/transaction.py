"""`Transaction`: one transaction, from its opening to its end.

It owns the state, which topics and subscriptions take part, and the operations under way: messages and
acknowledgements whose outcome is not known yet. A commit waits for all of them. When one has failed, the
transaction is aborted, and the request for the commit fails with that error. An end is never asked for while
an operation is open, so none outlives it.

With `exactly_once`, the end is known before it is reported. The coordinator is asked until it has carried
out the end, or has no such transaction any more. So nothing of the transaction is pending at a broker
afterwards. And no message is sent again in it: stored twice, both copies would take effect.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from ...model.errors import (
    InvalidTransactionStatus,
    LocalProtocolError,
    PulsarError,
    TransactionNotFound,
    TransactionNotOpen,
    TransactionOutcomeUnknown,
    TransactionTimedOut,
)
from ...model.transaction_id import TransactionId
from ...wire import encode_command, proto
from ..connecting.services import Services
from ..lookup.retried_lookup import RetriedLookup
from ..outputs import RequestDone, RequestFailed
from . import transaction_states as states
from .coordinator import Coordinator
from .transaction_coordinators import TransactionCoordinators
from .transaction_states import TRANSITIONS, TransactionInput, TransactionState

_Command = proto.BaseCommand

Settled = Callable[[PulsarError | None], None]
"""Called once: with None for a participant that has joined, else with the reason why it cannot."""


class Transaction:
    """One transaction of a client. `ended` is called at its end; `committed` tells whether it took effect."""

    __slots__ = (
        "_asked_twice",
        "_coordinator",
        "_coordinators",
        "_before_abort",
        "_before_end",
        "_end_asked",
        "_ended",
        "_expiry",
        "_failure",
        "_flushes",
        "_handle",
        "_joined",
        "_joining",
        "_on_end",
        "_open_operations",
        "_questions",
        "_request",
        "_services",
        "_timeout",
        "exactly_once",
        "id",
        "is_over",
        "state",
    )

    def __init__(
        self,
        services: Services,
        coordinators: TransactionCoordinators,
        coordinator: Coordinator,
        id_: TransactionId,
        handle: int,
        timeout: int | None,
        since: int,
        exactly_once: bool,
        ended: Callable[["Transaction"], None],
    ) -> None:
        """`timeout`: nanoseconds from the time `since`; None where another client opened it. `handle`: the
        request that opened it, or that ends it here."""
        self._services = services
        self._coordinators = coordinators
        self._coordinator = coordinator
        self.id = id_
        self._handle = handle
        self._timeout = timeout
        self.exactly_once = exactly_once
        self._ended = ended
        self.state: TransactionState = states.Open()
        self._joined: dict[object, None] = {}
        """The participants that the coordinator knows: names of topics, (topic, subscription)."""
        self._joining: dict[object, list[Settled]] = {}
        self._questions: dict[RetriedLookup, None] = {}
        self._asked_twice = False
        """The question whose refusal is being handled was sent more than once."""
        self._open_operations = 0
        self._failure: PulsarError | None = None
        """The error of the first operation that failed."""
        self._end_asked = False
        """END_TXN was written."""
        self._request: int | None = None
        """The request for the end that the application made."""
        self._flushes: list[int] = []
        """Requests that wait until no operation is under way."""
        self.is_over = False
        """Nothing more of the transaction may be sent, as its end is asked for, or was reported (TXN-06).
        A Pulsar broker would store a later message, and deliver nothing behind it."""
        self._before_end: list[Callable[[], None]] = []
        self._before_abort: list[Callable[[], None]] = []
        self._on_end: list[Callable[[bool], None]] = []
        self._expiry = services.context.deadlines.slot(self._expired)
        if timeout is not None:
            self._expiry.set(since + timeout)

    @property
    def is_open(self) -> bool:
        return isinstance(self.state, states.Open)

    @property
    def is_awaited(self) -> bool:
        """True while its end or a flush waits for its operations: what is collected has to be sent."""
        return bool(self._flushes) or isinstance(self.state, states.Committing | states.Aborting)

    def check_open(self) -> None:
        """Raise `TransactionNotOpen` unless messages and acknowledgements may join."""
        if not self.is_open:
            raise TransactionNotOpen(f"transaction {self.id} is {self.described}")

    @property
    def ends_unasked(self) -> bool:
        """True while the client aborts it because its timeout is over; the application may ask for the
        end."""
        return isinstance(self.state, states.Aborting) and self._request is None

    @property
    def described(self) -> str:
        """The state in a word."""
        return {
            states.Open: "open",
            states.Committing: "committing",
            states.Committed: "committed",
            states.Aborting: "aborting",
            states.Aborted: "aborted",
            states.InDoubt: "in doubt",
            states.Released: "released to another client",
        }[type(self.state)]

    # --- participants ---------------------------------------------------------------------------------

    def has_topic(self, topic: str) -> bool:
        return topic in self._joined

    def has_subscription(self, topic: str, subscription: str) -> bool:
        return (topic, subscription) in self._joined

    def join_topic(self, topic: str, settled: Settled) -> None:
        """Let messages of the transaction go to a topic or partition; `settled` follows, later and once."""
        command = proto.CommandAddPartitionToTxn(partitions=[topic])
        self._join(
            topic,
            settled,
            _Command.ADD_PARTITION_TO_TXN,
            command,
            _Command.ADD_PARTITION_TO_TXN_RESPONSE,
        )

    def join_subscription(self, topic: str, subscription: str, settled: Settled) -> None:
        """Let acknowledgements on a subscription be in the transaction; `settled` follows, later and once."""
        command = proto.CommandAddSubscriptionToTxn()
        command.subscription.add(topic=topic, subscription=subscription)
        self._join(
            (topic, subscription),
            settled,
            _Command.ADD_SUBSCRIPTION_TO_TXN,
            command,
            _Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        )

    def _join(self, participant: object, settled: Settled, number: int, command: Any, reply: int) -> None:
        waiting = self._joining.get(participant)
        if waiting is not None:
            waiting.append(settled)
            return
        self._joining[participant] = [settled]
        self._ask(
            number,
            command,
            reply,
            lambda _: self._settle(participant, None),
            partial(self._settle, participant),
        )

    def _settle(self, participant: object, error: PulsarError | None) -> None:
        if error is None:
            self._joined[participant] = None
        for settled in self._joining.pop(participant):
            settled(error)
        self._end_if_settled()

    # --- operations -----------------------------------------------------------------------------------

    def began(self) -> None:
        """A message or acknowledgement is under way."""
        self._open_operations += 1

    def over(self, error: PulsarError | None, count: int = 1) -> None:
        """Messages or acknowledgements are confirmed, or have failed with `error`. `count`: how many of them
        have begun."""
        self._open_operations -= count
        if not isinstance(self.state, states.Aborting):
            self._failure = self._failure or error
        self._end_if_settled()

    def flush(self, request: int) -> None:
        """Answer `request` when all messages and acknowledgements so far are confirmed, or have failed."""
        self._open_operations += 1
        for callback in self._before_end:
            callback()
        self._flushes.append(request)
        self.over(None)

    def before_end(self, callback: Callable[[], None]) -> None:
        """Call `callback` at each `flush`, and when the end was asked for: it sends what waits."""
        self._before_end.append(callback)

    def before_abort(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the coordinator is about to be asked for the abort: it drops what was not sent
        before the timeout."""
        self._before_abort.append(callback)

    def at_end(self, callback: Callable[[bool], None]) -> None:
        """Call `callback` at the end of the transaction, with True when it was committed."""
        self._on_end.append(callback)

    # --- the end --------------------------------------------------------------------------------------

    def commit(self, request: int) -> None:
        """Commit once every operation is confirmed. Raises `TransactionNotOpen`."""
        if self.ends_unasked:
            self._request = request
            return
        self.check_open()
        self._request = request
        self._move(TransactionInput.COMMIT, states.Committing())
        self._finish()

    def abort(self, request: int) -> None:
        """Abort once the outcome of every operation is known. Raises `TransactionNotOpen`."""
        if self.ends_unasked:
            self._request = request
            return
        self.check_open()
        self._request = request
        self._answer_flushes(TransactionNotOpen(f"transaction {self.id} is aborted"))
        self._failure = None  # An operation that failed takes no effect, as the application wants it.
        self._move(TransactionInput.ABORT, states.Aborting())
        self._finish()

    def release(self) -> None:
        """Leave the end to another client.

        Raises `TransactionNotOpen`, the error of a message that has failed, and `LocalProtocolError` where
        the outcome of a message is not known or there are acknowledgements.
        """
        self.check_open()
        if self._failure is not None:
            raise self._failure
        if self._open_operations or self._joining:
            raise LocalProtocolError(f"transaction {self.id} has messages that are not confirmed")
        if any(isinstance(participant, tuple) for participant in self._joined):
            raise LocalProtocolError(f"transaction {self.id} has acknowledgements, which end in this client")
        self._end(TransactionInput.RELEASE)

    def _finish(self) -> None:
        """Have everything sent that waits, and end when its outcome is known."""
        self._open_operations += 1
        for callback in self._before_end:
            callback()
        self._before_end.clear()
        self.over(None)

    def _end_if_settled(self) -> None:
        if self._open_operations or self._joining:
            return
        self._answer_flushes(self._failure)
        if isinstance(self.state, states.Open):
            return
        if isinstance(self.state, states.Committing) and self._failure is not None:
            self._move(TransactionInput.ABORT, states.Aborting())
        if isinstance(self.state, states.Committing | states.Aborting) and not self._questions:
            self._ask_for_end()

    def _ask_for_end(self) -> None:
        commits = isinstance(self.state, states.Committing)
        self.is_over = True
        if not commits:
            self._open_operations += 1
            for callback in self._before_abort:
                callback()
            self._open_operations -= 1
        self._ask(
            _Command.END_TXN,
            proto.CommandEndTxn(txn_action=proto.COMMIT if commits else proto.ABORT),
            _Command.END_TXN_RESPONSE,
            lambda _: self._end(TransactionInput.ENDED),
            self._not_ended,
            (TransactionNotFound,) if self.exactly_once else None,
        )

    def _answer_flushes(self, error: PulsarError | None) -> None:
        emit = self._services.context.emit
        flushes, self._flushes = self._flushes, []
        for request in flushes:
            emit(RequestDone(request, None) if error is None else RequestFailed(request, error))

    def _not_ended(self, error: PulsarError) -> None:
        """The coordinator refused the end, or did not answer.

        A first answer that the transaction is not open tells that it was aborted. After an attempt that was
        lost it may tell that this attempt has succeeded. Where another client opened the transaction, that
        client or a third one may have ended it either way.
        """
        refused = isinstance(error, TransactionNotFound | InvalidTransactionStatus)
        if not self._end_asked:  # The coordinator aborts it after the timeout.
            self._failure = self._failure or error
            self._end(TransactionInput.GONE)
        elif not refused or self._asked_twice:
            self._lose(error)
        elif self._timeout is None:
            self._failure = error
            self._end(TransactionInput.LOST)
        else:
            self._failure = self._failure or self._timed_out(error)
            self._end(TransactionInput.GONE)

    def _lose(self, cause: PulsarError) -> None:
        """The end was asked for, and its answer will not come. An abort takes effect at the timeout."""
        error = cause
        if isinstance(self.state, states.Committing):
            error = self._unknown(cause)
        self._failure = self._failure or error
        self._end(TransactionInput.LOST)

    def _unknown(self, cause: PulsarError) -> TransactionOutcomeUnknown:
        error = TransactionOutcomeUnknown(f"transaction {self.id} may be committed or not: {cause}")
        error.__cause__ = cause
        return error

    def _timed_out(self, cause: PulsarError | None) -> TransactionTimedOut:
        assert self._timeout is not None
        seconds = self._timeout / 1_000_000_000
        reason = f"after its timeout of {seconds:g} s"
        if cause is not None:  # The coordinator does not tell which of the two it was.
            reason += " or by an administrator"
        error = TransactionTimedOut(f"transaction {self.id} was aborted {reason}")
        error.__cause__ = cause
        return error

    def _expired(self) -> None:
        """The coordinator aborts the transaction about now, unless it has been asked for the end.

        A commit may still wait for receipts then, for which a producer without a send timeout waits on.
        """
        if self._end_asked:
            return
        self._failure = self._failure or self._timed_out(None)
        if self.exactly_once:
            if not isinstance(self.state, states.Aborting):
                self._move(TransactionInput.ABORT, states.Aborting())
            self._stop_joining()
            if not self._questions:
                self._ask_for_end()
        else:
            self._end(TransactionInput.GONE)

    def fail(self, error: PulsarError) -> None:
        """Give up: the client is closing, or uses another cluster. The coordinator aborts at the timeout."""
        if self._end_asked:
            self._lose(error)
        else:
            self._failure = self._failure or error
            self._end(TransactionInput.GONE)

    def _stop_joining(self) -> None:
        """Ask nothing more; what waits to join fails."""
        for question in self._questions:
            question.cancel()
        self._questions.clear()
        joining, self._joining = self._joining, {}
        for settled in [each for waiting in joining.values() for each in waiting]:
            settled(self._failure)

    def _end(self, event: TransactionInput) -> None:
        following = TRANSITIONS.table[type(self.state), event]()
        self._move(event, following)
        self.is_over = True
        self._expiry.clear()
        self._stop_joining()
        self._answer_flushes(self._failure)
        self._ended(self)
        committed = isinstance(following, states.Committed)
        for callback in self._on_end:
            callback(committed)
        self._on_end.clear()
        if self._request is None:
            return
        emit = self._services.context.emit
        if committed or (self._failure is None and isinstance(following, states.Aborted)):
            emit(RequestDone(self._request, None))
        else:
            assert self._failure is not None
            emit(RequestFailed(self._request, self._failure))

    # --- inside ---------------------------------------------------------------------------------------

    def _ask(
        self,
        number: int,
        command: Any,
        reply: int,
        known: Callable[[Any], None],
        failed: Callable[[PulsarError], None],
        answers: tuple[type[PulsarError], ...] | None = None,
    ) -> None:
        command.txnid_most_bits, command.txnid_least_bits = self.id
        attempts = 0

        def encode(request_id: int) -> bytes:
            nonlocal attempts
            attempts += 1
            self._end_asked = self._end_asked or number == _Command.END_TXN
            command.request_id = request_id
            return encode_command(number, command)

        def done(answer: Any) -> None:
            del self._questions[question]
            known(answer)

        def refused(error: PulsarError) -> None:
            del self._questions[question]
            self._asked_twice = attempts > 1
            failed(error)

        question = self._coordinators.question(
            self._coordinator, self._handle, encode, reply, done, refused, answers
        )
        self._questions[question] = None
        question.ask()

    def _move(self, event: TransactionInput, following: TransactionState) -> None:
        TRANSITIONS.check(self.state, event, following)
        self.state = following
