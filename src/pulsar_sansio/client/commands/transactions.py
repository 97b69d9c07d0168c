"""`TransactionCommands`: the commands of `Client` that open and end transactions."""

from ...model.config import nanoseconds_of
from ...model.errors import InvalidConfiguration, LocalProtocolError
from ...model.transaction_id import TransactionId
from ..connecting.services import Services
from .open_handles import OpenHandles

LONGEST = 10.0 * 365 * 86_400
"""Seconds: the longest timeout of a transaction."""


class TransactionCommands:
    """A transaction is named by its id, in these commands as in messages and acknowledgements."""

    __slots__ = ("_context", "_enabled", "_handles", "_transactions")

    def __init__(self, services: Services, handles: OpenHandles) -> None:
        self._context = services.context
        self._handles = handles
        self._enabled = services.config.transactions
        self._transactions = services.transactions

    def begin_transaction(self, now: int, timeout: float = 60.0, *, exactly_once: bool = False) -> int:
        """Open a transaction: the `result` of `RequestDone` is its `TransactionId`.

        The coordinator aborts it after `timeout` seconds, 0.001 to ten years. `exactly_once`: `commit` and
        `abort` are answered when the transaction is over at its coordinator, its topics and subscriptions.
        The client asks without a limit, and after the timeout it asks for the abort by itself. A message
        whose receipt was lost with a connection is not sent again: it fails with `ConnectionLost`, and the
        transaction with it. Raises `ClosedError`,
        `InvalidConfiguration`, and `LocalProtocolError` for a client without `transactions`.
        """
        self._check()
        if (
            isinstance(timeout, bool)
            or not isinstance(timeout, (int, float))
            or not 0.001 <= timeout <= LONGEST
        ):
            raise InvalidConfiguration(f"timeout: seconds from 0.001 to {LONGEST:g}, not {timeout!r}")
        self._context.now = now
        request = self._context.new_id()
        self._transactions.begin(request, nanoseconds_of(timeout), exactly_once)
        return request

    def flush_transaction(self, now: int, transaction: TransactionId) -> int:
        """Send the messages and acknowledgements of the transaction that wait.

        `RequestDone` follows when all of them are confirmed. When one has failed, `RequestFailed` has its
        error, and the transaction can only abort. Raises `TransactionNotOpen`.
        """
        machine = self._transactions.get(transaction)
        self._context.now = now
        request = self._context.new_id()
        machine.flush(request)
        return request

    def join_transaction(self, now: int, transaction: TransactionId, topic: str) -> int:
        """Let messages of the transaction go to a topic or partition, given by its full name.

        The first message to a topic does that, too, and waits for it. `RequestDone` or `RequestFailed`
        follows. Raises `TransactionNotOpen`.
        """
        machine = self._transactions.get(transaction)
        self._context.now = now
        request = self._context.new_id()
        self._transactions.join(request, machine, topic)
        return request

    def release_transaction(self, now: int, transaction: TransactionId) -> None:
        """Leave the end of a transaction to another client, which calls `end_released_transaction`.

        The transaction stays open until then, or until its timeout. Call this when every message is
        confirmed. Raises the error of a message that has failed, `TransactionNotOpen`, and
        `LocalProtocolError` where messages are unconfirmed or acknowledgements are part of it.
        """
        machine = self._transactions.get(transaction)
        self._context.now = now
        machine.release()

    def end_released_transaction(self, now: int, transaction: TransactionId, *, commits: bool) -> int:
        """Commit or abort a transaction that another client has released.

        `RequestDone` follows when it has ended that way. `RequestFailed` has `TransactionNotFound` or
        `InvalidTransactionStatus` where it had ended before, by its timeout or another client's request. It
        has `TransactionOutcomeUnknown` where the coordinator did not answer the commit. Raises `ClosedError`,
        and `LocalProtocolError` for a transaction of this client or a client without `transactions`.
        """
        self._check()
        self._context.now = now
        request = self._context.new_id()
        self._transactions.end_released(request, transaction, commits)
        return request

    def commit(self, now: int, transaction: TransactionId) -> int:
        """Commit once every message and acknowledgement of the transaction is confirmed.

        `RequestDone` follows when all of it has taken effect. When one of them has failed, the transaction is
        aborted, and `RequestFailed` has the error of that one. It has `TransactionTimedOut` where the timeout
        came first, and `TransactionOutcomeUnknown` where the coordinator did not answer. Raises
        `TransactionNotOpen`.
        """
        machine = self._transactions.get_to_end(transaction)
        self._context.now = now
        request = self._context.new_id()
        machine.commit(request)
        return request

    def abort(self, now: int, transaction: TransactionId) -> int:
        """Abort: nothing of the transaction takes effect, and its acknowledged messages are delivered again.

        `RequestDone` follows. `RequestFailed` has `TransactionTimedOut` where the coordinator had aborted it
        before. Where the coordinator did not answer, `RequestFailed` has the cause, and the coordinator
        aborts the transaction after its timeout. Raises `TransactionNotOpen`.
        """
        machine = self._transactions.get_to_end(transaction)
        self._context.now = now
        request = self._context.new_id()
        machine.abort(request)
        return request

    def _check(self) -> None:
        self._handles.check_open()
        if not self._enabled:
            raise LocalProtocolError("the client has no transactions: it was made without transactions=True")
