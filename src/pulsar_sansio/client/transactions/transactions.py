"""`Transactions`: the open transactions of a client."""

from typing import Any

from ...model.errors import LocalProtocolError, PulsarError, RemoteProtocolError, TransactionNotOpen
from ...model.transaction_id import TransactionId
from ...wire import encode_command, proto
from ..connecting.services import Services
from ..lookup.retried_lookup import RetriedLookup
from ..outputs import RequestDone, RequestFailed
from .coordinator import Coordinator
from .transaction import Transaction
from .transaction_coordinators import TransactionCoordinators

_Command = proto.BaseCommand


class Transactions:
    """The transactions, by their ids in commands and messages."""

    __slots__ = ("_coordinators", "_opening", "_services", "open")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._coordinators = TransactionCoordinators(services)
        self._opening: dict[int, RetriedLookup] = {}
        """Request for a new transaction -> what it waits for: the search for coordinators, or an answer."""
        self.open: dict[TransactionId, Transaction] = {}

    def get(self, id_: TransactionId) -> Transaction:
        """Return an open transaction. Raises `TransactionNotOpen`."""
        transaction = self.open.get(id_)
        if transaction is None:
            raise TransactionNotOpen(f"transaction {id_} has ended, or was never opened by this client")
        transaction.check_open()
        return transaction

    def get_to_end(self, id_: TransactionId) -> Transaction:
        """Return a transaction whose end the application may ask for. Raises `TransactionNotOpen`."""
        transaction = self.open.get(id_)
        return self.get(id_) if transaction is None or not transaction.ends_unasked else transaction

    def begin(self, request: int, timeout: int, exactly_once: bool) -> None:
        """Open a transaction of `timeout` nanoseconds. The answer has its id.

        The timeout counts from the last NEW_TXN that was written, in whole milliseconds as in that command
        (TXN-07). The coordinator counts from later. So it aborts no transaction that the client takes for
        open; a Pulsar broker would store a late message, and deliver nothing behind it.
        """
        emit = self._services.context.emit
        milliseconds = max(1, timeout // 1_000_000)

        def failed(error: PulsarError) -> None:
            self._opening.pop(request, None)
            emit(RequestFailed(request, error))

        def ask(coordinator: Coordinator) -> None:
            written = 0

            def encode(request_id: int) -> bytes:
                nonlocal written
                written = self._services.context.now
                return _new_transaction(request_id, coordinator.number, milliseconds)

            def opened(answer: Any) -> None:
                del self._opening[request]
                id_ = TransactionId(answer.txnid_most_bits, answer.txnid_least_bits)
                if id_ in self.open:
                    error = RemoteProtocolError(f"the broker gave the id {id_} to two transactions")
                    emit(RequestFailed(request, error))
                    if coordinator.connection is not None:
                        coordinator.connection.close(error)
                    return
                self.open[id_] = Transaction(
                    self._services,
                    self._coordinators,
                    coordinator,
                    id_,
                    request,
                    milliseconds * 1_000_000,
                    written,
                    exactly_once,
                    self._ended,
                )
                emit(RequestDone(request, id_))

            question = self._opening[request] = self._coordinators.question(
                coordinator,
                request,
                encode,
                _Command.NEW_TXN_RESPONSE,
                opened,
                failed,
            )
            question.ask()

        def begin() -> None:
            coordinator = self._coordinators.next()
            if coordinator is not None:
                ask(coordinator)
            else:
                search = self._opening[request] = self._coordinators.search(request, begin, failed)
                search.ask()

        begin()

    def join(self, request: int, transaction: Transaction, topic: str) -> None:
        """Let messages of a transaction go to a topic or partition; the answer follows."""
        emit = self._services.context.emit

        def settled(error: PulsarError | None) -> None:
            emit(RequestDone(request, None) if error is None else RequestFailed(request, error))

        if transaction.has_topic(topic):
            settled(None)
        else:
            transaction.join_topic(topic, settled)

    def end_released(self, request: int, id_: TransactionId, commits: bool) -> None:
        """End a transaction that another client has released.

        Raises `LocalProtocolError` for a transaction of this client.
        """
        if id_ in self.open:
            raise LocalProtocolError(f"transaction {id_} was opened by this client, and not released")
        coordinator = self._coordinators.numbered(id_.coordinator)
        machine = Transaction(
            self._services, self._coordinators, coordinator, id_, request, None, 0, False, self._ended
        )
        self.open[id_] = machine
        if commits:
            machine.commit(request)
        else:
            machine.abort(request)

    def forget_request(self, request: int) -> None:
        """Discard a request for a new transaction; one that the coordinator opens nevertheless times out."""
        question = self._opening.pop(request, None)
        if question is not None:
            question.cancel()

    def leave_cluster(self, error: PulsarError) -> None:
        """Fail all transactions: the client is closing, or uses another cluster from now on."""
        self._coordinators.forget()
        for question in list(self._opening.values()):
            question.fail(error)
        for transaction in list(self.open.values()):
            transaction.fail(error)

    def _ended(self, transaction: Transaction) -> None:
        del self.open[transaction.id]


def _new_transaction(request_id: int, coordinator: int, milliseconds: int) -> bytes:
    command = proto.CommandNewTxn(request_id=request_id, txn_ttl_millis=milliseconds, tc_id=coordinator)
    return encode_command(_Command.NEW_TXN, command)
