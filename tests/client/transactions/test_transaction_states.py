"""The table of a transaction's states."""

from itertools import product

import pytest

from pulsar_sansio.client.transactions import transaction_states as states
from pulsar_sansio.client.transactions.transaction_states import TRANSITIONS, TransactionInput
from pulsar_sansio.core.transitions import IllegalMove

KINDS = (
    states.Open,
    states.Committing,
    states.Committed,
    states.Aborting,
    states.Aborted,
    states.InDoubt,
    states.Released,
)


@pytest.mark.parametrize(("kind", "event"), list(product(KINDS, TransactionInput)))
def test_the_table_is_exhaustive(kind: type, event: TransactionInput) -> None:
    for following in KINDS:
        if TRANSITIONS.table.get((kind, event)) is following:
            TRANSITIONS.check(kind(), event, following())
        else:
            with pytest.raises(IllegalMove):
                TRANSITIONS.check(kind(), event, following())


def test_an_end_is_an_end() -> None:
    ends = {states.Committed, states.Aborted, states.InDoubt, states.Released}
    assert TRANSITIONS.states == set(KINDS)
    assert not [pair for pair in TRANSITIONS.table if pair[0] in ends]
    assert {event for _, event in TRANSITIONS.table} == set(TransactionInput)
