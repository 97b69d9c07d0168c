"""The ids of transactions."""

from pulsar_sansio.model.transaction_id import TransactionId, transaction_id


def test_both_halves_make_a_transaction() -> None:
    """CHECK-74: 0 is a value like any other."""
    assert transaction_id(0, 0) == TransactionId(0, 0)
    assert transaction_id(None, 5) is None
    assert transaction_id(5, None) is None
    assert str(TransactionId(1, 2)) == "(1,2)"
