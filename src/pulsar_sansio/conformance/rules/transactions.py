"""Rules about transactions: their coordinators, what takes part in them, and their ends."""

from typing import Any

from ...model.errors import InvalidTopicName
from ...model.topic_name import TopicName
from ...wire import proto
from .. import commands as c
from ..findings import Finding
from ..memory import TransactionMemory
from ..registry import rule
from ..state.state import State
from ..traits import TRANSACTION

INTRODUCTION_VERSION = 19
"""The protocol version from which a client introduces itself to a coordinator."""


def _of_transaction(command: Any) -> bool:
    """Tell whether a SEND or an ACK belongs to a transaction."""
    return command.txnid_most_bits is not None and command.txnid_least_bits is not None


def _transaction(state: State, command: Any) -> TransactionMemory | None:
    return state.memory.transactions.get((command.txnid_most_bits, command.txnid_least_bits))


def _name(command: Any) -> str:
    return f"transaction {command.txnid_most_bits}:{command.txnid_least_bits}"


# --- coordinators ----------------------------------------------------------------------------------


@rule("CHECK-90", c.TC_CLIENT_CONNECT, c.NEW_TXN)
def coordinators_exist(state: State, command: Any) -> Finding:
    """A client asks only coordinators that the cluster has."""
    count = state.memory.coordinators
    if count is None or command.tc_id < count:
        return None
    return f"coordinator {command.tc_id}, the cluster has {count}"


@rule("CHECK-91", c.NEW_TXN, c.ADD_PARTITION_TO_TXN, c.ADD_SUBSCRIPTION_TO_TXN, c.END_TXN)
def coordinators_know_the_connection(state: State, command: Any) -> Finding:
    """From protocol version 19 on, TC_CLIENT_CONNECT_RESPONSE precedes a coordinator's other commands."""
    coordinator = command.tc_id if state.kind == c.NEW_TXN else command.txnid_most_bits
    known = state.coordinators
    if state.version < INTRODUCTION_VERSION or coordinator in known or known.overflowed:
        return None
    return f"coordinator {coordinator} has not answered TC_CLIENT_CONNECT_REQUEST on this connection"


@rule("CHECK-92", c.NEW_TXN)
def transactions_have_a_timeout(state: State, command: Any) -> Finding:
    """NEW_TXN has a timeout above 0."""
    return None if command.txn_ttl_millis else "a timeout of 0 ms"


@rule(
    "CHECK-93",
    c.NEW_TXN_RESPONSE, c.ADD_PARTITION_TO_TXN_RESPONSE, c.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    c.END_TXN_RESPONSE, c.END_TXN_ON_PARTITION_RESPONSE, c.END_TXN_ON_SUBSCRIPTION_RESPONSE,
)  # fmt: skip
def answers_name_the_transaction(state: State, answer: Any) -> Finding:
    """An answer about a transaction that is no error has both halves of its id."""
    if answer.HasField("error"):
        return None
    missing = [name for name in ("txnid_most_bits", "txnid_least_bits") if not answer.HasField(name)]
    return f"no {missing[0]}" if missing else None


@rule("CHECK-94", c.NEW_TXN_RESPONSE)
def ids_are_given_once(state: State, answer: Any) -> Finding:
    """A coordinator gives each id to one transaction."""
    if answer.HasField("error") or state.request is None:
        return None
    id_ = (answer.txnid_most_bits, answer.txnid_least_bits)
    return f"{_name(answer)} was opened before" if id_ in state.transactions else None


# --- participants ----------------------------------------------------------------------------------


@rule("CHECK-74", c.SEND, c.ACK, traits=TRANSACTION)
def transaction_ids_are_whole(state: State, command: Any) -> Finding:
    """A transaction's id has both halves, and the metadata of a SEND have no other id."""
    most, least = command.txnid_most_bits, command.txnid_least_bits
    if (most is None) != (least is None):
        return "one half of a transaction's id"
    if state.kind == c.ACK:
        return None
    metadata = state.entry.metadata
    if metadata is None:
        return None
    inner = (metadata.txnid_most_bits, metadata.txnid_least_bits)
    if inner in ((most, least), (None, None)):
        return None
    return f"SEND has transaction {most}:{least}, the metadata {inner[0]}:{inner[1]}"


@rule(
    "CHECK-75",
    c.SEND,
    c.ACK,
    c.ADD_PARTITION_TO_TXN,
    c.ADD_SUBSCRIPTION_TO_TXN,
    traits=TRANSACTION,
)
def transactions_were_begun(state: State, command: Any) -> Finding:
    """A transaction that is used was given by NEW_TXN_RESPONSE; any client may end one by its id."""
    if not _of_transaction(command) or _transaction(state, command) is not None:
        return None
    return None if state.memory.transactions.overflowed else f"{_name(command)} is unknown"


@rule("CHECK-95", c.ADD_PARTITION_TO_TXN, c.ADD_SUBSCRIPTION_TO_TXN)
def participants_are_named(state: State, command: Any) -> Finding:
    """Topics and subscriptions that join a transaction are given, with the full names of the topics."""
    if state.kind == c.ADD_PARTITION_TO_TXN:
        topics = list(command.partitions)
    else:
        topics = [each.topic for each in command.subscription]
    if not topics:
        return f"nothing joins {_name(command)}"
    for topic in topics:
        try:
            TopicName.parse(topic)
        except InvalidTopicName as error:
            return str(error)
        if "://" not in topic:
            return f"the topic {topic!r} is a short name"
    return None


@rule("GAP-40", c.SEND, c.ACK, traits=TRANSACTION)
def registered_before_use(state: State, command: Any) -> Finding:
    """Partitions and subscriptions are registered with a transaction before it uses them first."""
    if not _of_transaction(command):
        return None
    transaction = _transaction(state, command)
    if transaction is None:
        return None
    if state.kind == c.SEND:
        producer = state.producer
        partitions = transaction.partitions
        if producer is None or producer.topic in partitions or partitions.overflowed:
            return None
        return f"{producer.topic} is not registered with the transaction"
    consumer = state.consumer
    subscriptions = transaction.subscriptions
    if consumer is None or subscriptions.overflowed:
        return None
    if (consumer.topic, consumer.memory.subscription) in subscriptions:
        return None
    return f"{consumer.topic} ({consumer.memory.subscription}) is not registered with the transaction"


@rule("CHECK-76", c.ACK, traits=TRANSACTION)
def transactional_acknowledgements_are_confirmed(state: State, ack: Any) -> Finding:
    """An ACK of a transaction has a request id: it is always answered."""
    return (
        "an ACK of a transaction without request id"
        if _of_transaction(ack) and ack.request_id is None
        else None
    )


# --- the end ---------------------------------------------------------------------------------------


@rule("CHECK-96", c.END_TXN, c.END_TXN_ON_PARTITION, c.END_TXN_ON_SUBSCRIPTION)
def ends_say_which(state: State, end: Any) -> Finding:
    """The end of a transaction is a commit or an abort."""
    return None if end.HasField("txn_action") else f"no txn_action for {_name(end)}"


@rule("CHECK-97", c.END_TXN)
def ends_stay_the_same(state: State, end: Any) -> Finding:
    """A client that asks for the end of a transaction again asks for the same end."""
    transaction = _transaction(state, end)
    if transaction is None or transaction.action in (None, end.txn_action):
        return None
    before, now = ("commit", "abort") if transaction.action == proto.COMMIT else ("abort", "commit")
    return f"the {now} of {_name(end)} after its {before}"


@rule("INV-T1", c.END_TXN)
def commits_follow_their_operations(state: State, end: Any) -> Finding:
    """A commit follows the confirmation of every message and acknowledgement of its transaction."""
    transaction = _transaction(state, end)
    if transaction is None or end.txn_action != proto.COMMIT or transaction.unconfirmed.overflowed:
        return None
    for operation in transaction.unconfirmed.values():
        return f"{_name(end)} is committed, and {operation} is not confirmed"
    return None


@rule("CHECK-98", c.SEND, c.ACK, c.ADD_PARTITION_TO_TXN, c.ADD_SUBSCRIPTION_TO_TXN, traits=TRANSACTION)
def nothing_after_the_end(state: State, command: Any) -> Finding:
    """Nothing joins a transaction after its end was asked for."""
    if not _of_transaction(command):
        return None
    transaction = _transaction(state, command)
    if transaction is None or transaction.action is None:
        return None
    return f"{_name(command)} has ended"


@rule("TXN-01", c.MESSAGE, traits=TRANSACTION)
def delivered_after_the_commit(state: State, message: Any) -> Finding:
    """A message of a transaction is delivered only after its commit was asked for.

    The transactions of other clients are unknown here. A message that was replicated has the id of its own
    cluster.
    """
    metadata = state.entry.metadata
    if metadata is None or metadata.replicated_from is not None or not _of_transaction(metadata):
        return None
    transaction = _transaction(state, metadata)
    if transaction is None or transaction.action == proto.COMMIT:
        return None
    return (
        f"a message of {_name(metadata)}, which {'is open' if transaction.action is None else 'was aborted'}"
    )
