"""The handlers of the commands of transactions (rule TXN-01, exchange GAP-40).

Every answer names the transaction, because clients find the request of an answer by it. A broker without
coordinators answers as a Java broker with its transaction coordinator disabled.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from ...model.errors import BrokerError, NotAllowed
from ...model.transaction_id import TransactionId
from ...wire import proto
from ...wire.fields import signed_64
from .connection import Connection, Handler, Refusal, Type
from .lookups import check_name, code, parse_topic

NO_TRANSACTIONS = "Transactions are not enabled on this broker"
ONE_NODE = "This broker is the only one of its cluster: it ends its transactions by itself"


def _with_coordinators(handler: Handler) -> Handler:
    """Refuse the command where the broker has no coordinators."""

    @wraps(handler)
    def checked(connection: Connection, command: Any) -> None:
        if connection.broker.coordinators.count:
            handler(connection, command)
        else:
            connection.refuse(command.request_id, NotAllowed(NO_TRANSACTIONS))

    return checked


def on_connect(connection: Connection, command: proto.CommandTcClientConnectRequest) -> None:
    answer = proto.CommandTcClientConnectResponse(request_id=command.request_id)
    try:
        connection.broker.coordinators.check_coordinator(command.tc_id)
    except BrokerError as error:
        answer.error = code(error)
        answer.message = error.text
    connection.send(Type.TC_CLIENT_CONNECT_RESPONSE, answer)


def on_new(connection: Connection, command: proto.CommandNewTxn) -> None:
    """Open a transaction of this client's role."""
    owner = connection.roles[-1] if connection.roles else ""
    answer = proto.CommandNewTxnResponse(request_id=command.request_id, txnid_most_bits=command.tc_id)

    # A timeout is signed, as in Pulsar: 2^63 ms and more are over at once, as is 0.
    timeout = max(0, signed_64(command.txn_ttl_millis))

    def begin() -> None:
        id_ = connection.broker.coordinators.begin(command.tc_id, timeout, owner)
        answer.txnid_least_bits = id_.number

    _carry_out(connection, Type.NEW_TXN_RESPONSE, answer, begin)


def on_add_partitions(connection: Connection, command: proto.CommandAddPartitionToTxn) -> None:
    answer = proto.CommandAddPartitionToTxnResponse(request_id=command.request_id)

    def join() -> None:
        topics = [str(parse_topic(each)) for each in command.partitions]
        connection.broker.coordinators.join(_id_of(command), connection.roles, topics)

    _carry_out(connection, Type.ADD_PARTITION_TO_TXN_RESPONSE, _about(answer, command), join)


def on_add_subscriptions(connection: Connection, command: proto.CommandAddSubscriptionToTxn) -> None:
    answer = proto.CommandAddSubscriptionToTxnResponse(request_id=command.request_id)

    def join() -> None:
        subscriptions = []
        for each in command.subscription:
            check_name("subscription", each.subscription)
            subscriptions.append((str(parse_topic(each.topic)), each.subscription))
        connection.broker.coordinators.join(_id_of(command), connection.roles, (), subscriptions)

    _carry_out(connection, Type.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, _about(answer, command), join)


def on_end(connection: Connection, command: proto.CommandEndTxn) -> None:
    """Commit or abort; the answer leaves once that is durable in every topic and subscription."""
    answer = proto.CommandEndTxnResponse(request_id=command.request_id)

    def end() -> None:
        if not command.HasField("txn_action"):  # An unknown action must not count as the first one, COMMIT.
            raise NotAllowed("The transaction is neither to be committed nor to be aborted")
        commits = command.txn_action == proto.COMMIT
        connection.broker.coordinators.end(_id_of(command), connection.roles, commits)

    _carry_out(connection, Type.END_TXN_RESPONSE, _about(answer, command), end)


def on_end_elsewhere(connection: Connection, command: Any) -> None:
    """Refuse to end the part of a transaction: coordinators of other brokers ask for that."""
    connection.refuse(command.request_id, NotAllowed(ONE_NODE))


def _id_of(command: Any) -> TransactionId:
    return TransactionId(command.txnid_most_bits, command.txnid_least_bits)


def _about(answer: Any, command: Any) -> Any:
    """Return the answer with the transaction of the command."""
    answer.txnid_most_bits = command.txnid_most_bits
    answer.txnid_least_bits = command.txnid_least_bits
    return answer


def _carry_out(connection: Connection, number: int, answer: Any, change: Callable[[], None]) -> None:
    """Make the change, and answer once it is durable; or answer with the refusal."""
    try:
        change()
    except BrokerError as error:
        answer.error = code(error)
        answer.message = error.text
    connection.services.journal.confirm(lambda: connection.send(number, answer))


HANDLERS: dict[int, Handler] = {
    Type.TC_CLIENT_CONNECT_REQUEST: _with_coordinators(on_connect),
    Type.NEW_TXN: _with_coordinators(on_new),
    Type.ADD_PARTITION_TO_TXN: _with_coordinators(on_add_partitions),
    Type.ADD_SUBSCRIPTION_TO_TXN: _with_coordinators(on_add_subscriptions),
    Type.END_TXN: _with_coordinators(on_end),
    Type.END_TXN_ON_PARTITION: _with_coordinators(on_end_elsewhere),
    Type.END_TXN_ON_SUBSCRIPTION: _with_coordinators(on_end_elsewhere),
}


def _refusal(number: int, kind: Callable[..., Any]) -> Refusal:
    """Return the function that answers with an error. `number`, `kind`: type and class of the answer."""

    def refuse(connection: Connection, command: Any, error: BrokerError) -> None:
        answer = kind(request_id=command.request_id, error=code(error), message=error.text)
        if number == Type.NEW_TXN_RESPONSE:
            answer.txnid_most_bits = command.tc_id
        elif number != Type.TC_CLIENT_CONNECT_RESPONSE:
            _about(answer, command)
        connection.services.journal.confirm(lambda: connection.send(number, answer))

    return refuse


REFUSALS: dict[int, Refusal] = {
    Type.TC_CLIENT_CONNECT_REQUEST: _refusal(
        Type.TC_CLIENT_CONNECT_RESPONSE, proto.CommandTcClientConnectResponse
    ),
    Type.NEW_TXN: _refusal(Type.NEW_TXN_RESPONSE, proto.CommandNewTxnResponse),
    Type.ADD_PARTITION_TO_TXN: _refusal(
        Type.ADD_PARTITION_TO_TXN_RESPONSE, proto.CommandAddPartitionToTxnResponse
    ),
    Type.ADD_SUBSCRIPTION_TO_TXN: _refusal(
        Type.ADD_SUBSCRIPTION_TO_TXN_RESPONSE, proto.CommandAddSubscriptionToTxnResponse
    ),
    Type.END_TXN: _refusal(Type.END_TXN_RESPONSE, proto.CommandEndTxnResponse),
}
"""Command -> its answer with an error, as a rule of faults gives it."""
