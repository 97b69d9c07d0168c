"""Change the state for the commands of transaction coordinators, and for what takes part in transactions."""

from typing import Any

from .. import commands as c
from ..memory import TransactionMemory
from ..questions import answered, ask
from ..state.request import ObservedRequest
from ..state.state import State, Step

ASSIGN_TOPIC = "persistent://pulsar/system/transaction_coordinator_assign"
"""The topic whose partitions stand for the coordinators (GAP-40)."""


def transaction_of(state: State, command: Any) -> TransactionMemory | None:
    """The known transaction of a SEND or an ACK."""
    if command.txnid_most_bits is None:
        return None
    return state.memory.transactions.get((command.txnid_most_bits, command.txnid_least_bits))


def _partitions(state: State, answer: Any) -> None:
    request = answered(state, answer)
    if request is not None and request.command.topic == ASSIGN_TOPIC and answer.HasField("partitions"):
        state.memory.coordinators = max(state.memory.coordinators or 0, answer.partitions)


def _introduced(state: State, answer: Any) -> None:
    request = answered(state, answer)
    if request is not None and request.kind == c.TC_CLIENT_CONNECT and not answer.HasField("error"):
        state.coordinators[request.command.tc_id] = None


def _opened(state: State, answer: Any) -> None:
    if answered(state, answer) is not None and not answer.HasField("error"):
        id_ = (answer.txnid_most_bits, answer.txnid_least_bits)
        state.transactions[id_] = None
        state.memory.transactions[id_] = TransactionMemory()


def _joined(state: State, answer: Any) -> None:
    request = answered(state, answer)
    if request is None or answer.HasField("error"):
        return
    asked = request.command
    transaction = state.memory.transactions.get((asked.txnid_most_bits, asked.txnid_least_bits))
    if transaction is None:
        return
    if request.kind == c.ADD_PARTITION_TO_TXN:
        for topic in asked.partitions:
            transaction.partitions[topic] = None
    elif request.kind == c.ADD_SUBSCRIPTION_TO_TXN:
        for each in asked.subscription:
            transaction.subscriptions[each.topic, each.subscription] = None


def acknowledges(state: State, ack: Any, request: ObservedRequest | None) -> None:
    """An ACK in a transaction, which is a request where it has an id."""
    transaction = transaction_of(state, ack)
    if transaction is not None and request is not None:
        request.transaction = transaction
        transaction.unconfirmed[request] = f"an ACK of consumer {ack.consumer_id}"


def _end(state: State, end: Any) -> None:
    ask(state, c.END_TXN, end)
    transaction = state.memory.transactions.get((end.txnid_most_bits, end.txnid_least_bits))
    if transaction is None:
        # It was opened before the checker listened, so any subscription may have had acknowledgements in it.
        state.memory.topics.transactional.overflowed = True
    elif transaction.action is None:
        transaction.action = end.txn_action
        transaction.unconfirmed.clear()


STEPS: dict[int, Step] = {
    c.PARTITIONED_METADATA_RESPONSE: _partitions,
    c.TC_CLIENT_CONNECT_RESPONSE: _introduced,
    c.NEW_TXN_RESPONSE: _opened,
    c.ADD_PARTITION_TO_TXN_RESPONSE: _joined,
    c.ADD_SUBSCRIPTION_TO_TXN_RESPONSE: _joined,
    c.END_TXN: _end,
}
