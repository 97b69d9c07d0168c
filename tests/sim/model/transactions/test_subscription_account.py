"""`SubscriptionAccount`: the order of first deliveries, and acknowledgements that are owed again."""

import pytest

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.transactions.subscription_account import SubscriptionAccount
from pulsar_sim.model.transactions.transaction_record import (
    SentMessage,
    TransactionOutcome,
    TransactionRecord,
)

TOPIC = "persistent://public/default/x0"
FIRST, SECOND = (0, 0, 0), (0, 1, 0)


def message(number: int, key: str = "k") -> SentMessage:
    return SentMessage(b"<<%d>>" % number, number, TOPIC, 1, key, None)


def account(kind: SubscriptionType = SubscriptionType.EXCLUSIVE) -> SubscriptionAccount:
    return SubscriptionAccount("s", TOPIC, kind)


def transaction(number: int) -> TransactionRecord:
    return TransactionRecord(TransactionId(0, number), 0, 1000)


def test_first_deliveries_are_in_order() -> None:
    """INV-T5"""
    subscription = account()
    subscription.receives(SECOND, message(1))
    with pytest.raises(ViolationError, match="INV-T5"):
        subscription.receives(FIRST, message(0))


def test_a_message_that_is_received_again_may_be_behind_others() -> None:
    subscription = account()
    for position in (FIRST, SECOND, FIRST):
        subscription.receives(position, message(position[1]))
    assert list(subscription.received) == [FIRST, SECOND]


@pytest.mark.parametrize(("key", "allowed"), [("other", True), ("k", False)])
def test_key_shared_has_an_order_of_each_key(key: str, allowed: bool) -> None:
    subscription = account(SubscriptionType.KEY_SHARED)
    subscription.receives(SECOND, message(1, key))
    if allowed:
        subscription.receives(FIRST, message(0))
    else:
        with pytest.raises(ViolationError, match="INV-T5"):
            subscription.receives(FIRST, message(0))


def test_shared_has_no_order() -> None:
    subscription = account(SubscriptionType.SHARED)
    subscription.receives(SECOND, message(1))
    subscription.receives(FIRST, message(0))


def test_what_an_aborted_transaction_acknowledged_is_owed() -> None:
    """INV-T6"""
    subscription, first = account(), transaction(1)
    subscription.receives(FIRST, message(0))
    subscription.acknowledges(FIRST, first)
    assert subscription.lost() == []
    first.outcome = TransactionOutcome.ABORTED
    assert subscription.lost() == [FIRST]
    subscription.receives(FIRST, message(0))
    assert subscription.lost() == []


@pytest.mark.parametrize("outcome", [TransactionOutcome.COMMITTED, TransactionOutcome.UNKNOWN])
def test_what_another_transaction_acknowledged_is_not_owed(outcome: TransactionOutcome) -> None:
    subscription, first, second = account(), transaction(1), transaction(2)
    subscription.receives(FIRST, message(0))
    for each in (first, second):
        subscription.acknowledges(FIRST, each)
    first.outcome, second.outcome = outcome, TransactionOutcome.ABORTED
    assert subscription.lost() == []


def test_what_was_acknowledged_outside_of_transactions_is_not_owed() -> None:
    subscription, first = account(), transaction(1)
    subscription.receives(FIRST, message(0))
    subscription.acknowledges(FIRST, first)
    first.outcome = TransactionOutcome.ABORTED
    subscription.plain.add(FIRST)
    assert subscription.lost() == []


def test_acknowledgements_of_one_message_contend() -> None:
    subscription, first, second, third = account(), transaction(1), transaction(2), transaction(3)
    subscription.acknowledges(FIRST, first)
    subscription.acknowledges(SECOND, third)
    assert not subscription.is_contended(first)
    subscription.acknowledges(FIRST, second)
    assert subscription.is_contended(first)
    assert not subscription.is_contended(third)
    subscription.plain.add(SECOND)
    assert subscription.is_contended(third)


def test_messages_of_a_batch_contend_with_those_acknowledged_before() -> None:
    subscription, first = account(), transaction(1)
    subscription.acknowledges(FIRST, first)
    subscription.plain.add((0, 0, 1))
    assert subscription.is_contended(first)


def test_cumulative_acknowledgements_contend() -> None:
    subscription, first, second = account(), transaction(1), transaction(2)
    for each, position in ((first, FIRST), (second, SECOND)):
        subscription.acknowledges(position, each)
        each.acknowledges_through("s", "x", position)
    assert subscription.is_contended(first)


def test_a_message_that_is_acknowledged_twice_in_a_transaction_is_noticed() -> None:
    subscription, first = account(), transaction(1)
    subscription.acknowledges(FIRST, first)
    assert not first.repeats
    subscription.acknowledges(FIRST, first)
    assert first.repeats
