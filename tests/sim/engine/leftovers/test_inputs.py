"""Inputs after which a machine has the wrong moment, or keeps what it should write."""

import pytest

from pulsar_sansio.broker.broker import Broker
from pulsar_sansio.client.client import Client
from pulsar_sansio.core.context import Context
from pulsar_sim import World
from pulsar_sim.engine.failures import ViolationError
from pulsar_sim.engine.leftovers.inputs import check_moment
from pulsar_sim.runs.scenarios import quiet_profile


def test_a_machine_that_believes_in_another_moment_is_noticed() -> None:
    """INV-L3"""
    context: Context[str] = Context(5, 0)
    check_moment("client", context, 6)
    context.emit("output")
    check_moment("client", context, 5)
    with pytest.raises(ViolationError, match="believes it is 5"):
        check_moment("client", context, 6)


def test_an_input_that_does_not_set_the_clock_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-L3"""

    def connected(self: Client, now: int, link: int) -> None:
        self._links.open[link].opened()

    monkeypatch.setattr(Client, "connected", connected)
    assert World(1, quiet_profile(messages=10)).run().rule == "INV-L3"


def test_records_that_a_broker_keeps_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-L3"""
    receive = Broker.receive_data

    def receive_data(self: Broker, now: int, link: int, data: bytes) -> None:
        settle, self._journal.settle = self._journal.settle, lambda: None  # type: ignore[method-assign]
        receive(self, now, link, data)
        self._journal.settle = settle  # type: ignore[method-assign]

    monkeypatch.setattr(Broker, "receive_data", receive_data)
    assert World(1, quiet_profile(messages=10)).run().rule == "INV-L3"
