"""The account of dead letters beside transactions: what may become one, and what the topic must hold."""

import pytest

from pulsar_sansio.model.transaction_id import TransactionId
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.model.transactions.letter_account import LetterAccount
from pulsar_sim.model.transactions.transaction_record import (
    SentMessage,
    TransactionOutcome,
    TransactionRecord,
)


def message(number: int = 0, transaction: TransactionRecord | None = None) -> SentMessage:
    return SentMessage(b"<<%d>>" % number, number, "x0", 0, None, transaction)


def account() -> LetterAccount:
    return LetterAccount("x0-DLQ", most=2)


def test_a_letter_was_delivered_too_often() -> None:
    """INV-C10"""
    letters, letter = account(), message()
    letters.is_delivered([letter], 2)
    with pytest.raises(ViolationError, match="message 0 becomes a letter in x0-DLQ too early"):
        letters.is_copied(letter)
    letters.is_delivered([letter], 3)
    letters.is_copied(letter)


@pytest.mark.parametrize("outcome", TransactionOutcome)
def test_a_letter_is_of_no_open_or_aborted_transaction(outcome: TransactionOutcome) -> None:
    """INV-T4: a commit whose end is not known may be done."""
    transaction = TransactionRecord(TransactionId(0, 1), 0, 1)
    transaction.outcome = outcome
    letters, letter = account(), message(1, transaction)
    letters.due.add(letter)
    visible = (TransactionOutcome.COMMITTING, TransactionOutcome.COMMITTED, TransactionOutcome.UNKNOWN)
    if outcome in visible:
        letters.is_copied(letter)
    else:
        with pytest.raises(ViolationError, match="becomes a letter and is not committed"):
            letters.is_copied(letter)


def test_the_topic_holds_what_was_confirmed() -> None:
    """INV-C10: a copy without a receipt may be there, too."""
    letters, first, second = account(), message(0), message(1)
    letters.stored.add(first)
    letters.check_rest([first, second])
    with pytest.raises(ViolationError, match="x0-DLQ does not hold message 0"):
        letters.check_rest([second])
