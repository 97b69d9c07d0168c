"""Acknowledgements that wait for the end of their transaction."""

import pytest

from pulsar_sansio import TransactionConflict
from pulsar_sansio.broker.records import AcknowledgedInTransaction
from pulsar_sansio.broker.topics.transactions.pending_acks import PendingAcks
from pulsar_sansio.model.transaction_id import TransactionId

ONE, TWO = TransactionId(0, 1), TransactionId(0, 2)


def test_messages_are_taken_by_bits() -> None:
    pending = PendingAcks(())
    pending.acknowledge(ONE, {5: 0b001, 6: 0b1})
    pending.acknowledge(TWO, {5: 0b100})
    pending.acknowledge(ONE, {5: 0b010})
    assert pending.taken == {5: 0b111, 6: 0b1}
    with pytest.raises(TransactionConflict):
        pending.check({5: 0b010})
    acks = pending.end(ONE)
    assert acks is not None
    assert (acks.individual, acks.cumulative) == ({5: 0b011, 6: 0b1}, None)
    assert pending.taken == {5: 0b100}
    pending.check({5: 0b010})


def test_one_transaction_acknowledges_cumulatively() -> None:
    pending = PendingAcks(())
    pending.acknowledge_cumulative(ONE, 5, None)
    pending.check_cumulative(ONE, 5)
    for transaction, offset in ((ONE, 4), (TWO, 9)):
        with pytest.raises(TransactionConflict):
            pending.check_cumulative(transaction, offset)
    acks = pending.end(ONE)
    assert acks is not None
    assert acks.cumulative == (5, None)
    pending.check_cumulative(TWO, 1)


def test_a_transaction_without_acknowledgements() -> None:
    pending = PendingAcks(())
    pending.acknowledge_cumulative(ONE, 5, None)
    assert pending.end(TWO) is None
    with pytest.raises(TransactionConflict):
        pending.check_cumulative(TWO, 9)


def test_stored_acknowledgements_are_taken_again() -> None:
    stored = [
        AcknowledgedInTransaction("t", "s", ONE, ((5, 0b01),)),
        AcknowledgedInTransaction("t", "s", ONE, ((5, 0b10),), (9, 0b1)),
    ]
    pending = PendingAcks(stored)
    acks = pending.end(ONE)
    assert acks is not None
    assert (acks.individual, acks.cumulative) == ({5: 0b11}, (9, 0b1))
