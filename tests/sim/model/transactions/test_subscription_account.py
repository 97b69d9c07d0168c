"""`SubscriptionAccount`: the order of first deliveries, and acknowledgements that are owed again."""

import pytest

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.records.message_position import MessagePosition
from pulsar_sim.model.transactions.letter_account import LetterAccount
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


def with_letters() -> SubscriptionAccount:
    return SubscriptionAccount("s", TOPIC, SubscriptionType.SHARED, letters=LetterAccount("dead", 1))


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


# --- loops and letters --------------------------------------------------------------------------------------


def handled(number: int, outcome: TransactionOutcome, *positions: MessagePosition) -> TransactionRecord:
    found = transaction(number)
    found.outcome = outcome
    found.handled += [("s", position) for position in positions]
    return found


def test_each_message_is_handled_in_one_committed_transaction() -> None:
    """TXN-02"""
    subscription = with_letters()
    subscription.receives(FIRST, message(0))
    subscription.receives(SECOND, message(1))
    aborted = handled(0, TransactionOutcome.ABORTED, FIRST, SECOND)
    committed = handled(1, TransactionOutcome.COMMITTED, FIRST, SECOND)
    subscription.check_handled([aborted, committed])
    with pytest.raises(ViolationError, match=r"message 0 at \(0, 0, 0\) is handled 0 times"):
        subscription.check_handled([aborted])
    again = handled(2, TransactionOutcome.COMMITTED, SECOND)
    with pytest.raises(ViolationError, match=r"message 1 at \(0, 1, 0\) is handled 2 times"):
        subscription.check_handled([committed, again])


def test_a_dead_letter_may_be_handled_by_no_transaction() -> None:
    """TXN-02"""
    subscription, letter = with_letters(), message(0)
    subscription.receives(FIRST, letter)
    assert subscription.letters is not None
    subscription.letters.stored.add(letter)
    subscription.check_handled([])


def test_an_output_may_be_handled_in_a_transaction_whose_end_is_unknown() -> None:
    """TXN-02: such a transaction has sent nothing, so no log tells its end."""
    for is_output in (True, False):
        subscription, found = account(), message(0)
        found.is_output = is_output
        subscription.receives(FIRST, found)
        subscription.acknowledges(FIRST, handled(0, TransactionOutcome.UNKNOWN, FIRST))
        if is_output:
            subscription.check_handled([])
        else:
            with pytest.raises(ViolationError, match="TXN-02"):
                subscription.check_handled([])


def test_a_dead_letter_is_not_owed_after_an_abort() -> None:
    """INV-T6"""
    subscription, letter = with_letters(), message(0)
    aborted = transaction(0)
    aborted.outcome = TransactionOutcome.ABORTED
    subscription.receives(FIRST, letter)
    subscription.acknowledges(FIRST, aborted)
    assert subscription.lost() == [FIRST]
    assert subscription.letters is not None
    subscription.letters.stored.add(letter)
    assert subscription.lost() == []


def test_a_dead_letter_may_be_refused_to_a_transaction() -> None:
    """INV-T7: its copy may have been stored before."""
    subscription, letter, open_ = with_letters(), message(0), transaction(0)
    subscription.receives(FIRST, letter)
    subscription.acknowledges(FIRST, open_)
    open_.acks["s"] = {FIRST}
    assert not subscription.is_contended(open_)
    assert subscription.letters is not None
    subscription.letters.due.add(letter)
    assert subscription.is_contended(open_)
