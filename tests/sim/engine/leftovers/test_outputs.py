"""Outputs of machines whose values are of other types than declared."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import Closed, Detached, RequestDone, Retrying
from pulsar_sansio.model.errors import ConnectionLost
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.leftovers.outputs import check_output

LOST = ConnectionLost("lost")
MIXED_UP: Any = LOST


@pytest.mark.parametrize("right", [Detached(1, LOST), Closed(1, None), Closed(1, LOST), RequestDone(1, {})])
def test_declared_types_pass(right: object) -> None:
    """INV-L4"""
    check_output("client", right)


@pytest.mark.parametrize(
    "wrong",
    [
        Detached(MIXED_UP, MIXED_UP),
        Closed(MIXED_UP, LOST),
        RequestDone(MIXED_UP, None),
        Retrying(1, MIXED_UP, LOST, 1, True),
    ],
)
def test_other_types_are_noticed(wrong: object) -> None:
    """INV-L4"""
    with pytest.raises(ViolationError, match="client"):
        check_output("client", wrong)
