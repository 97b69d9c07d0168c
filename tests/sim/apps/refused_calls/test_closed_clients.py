"""Clients that are used after they were closed."""

import pytest

from pulsar_sansio.client.client import Client
from pulsar_sansio.client.commands.open_handles import OpenHandles
from pulsar_sansio.client.outputs import RequestDone
from pulsar_sim import World
from pulsar_sim.runs.scenarios import quiet_profile


def test_a_closed_client_that_opens_something_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-N17"""
    monkeypatch.setattr(OpenHandles, "check_open", lambda self: None)
    assert World(1, quiet_profile(messages=10)).run().rule == "INV-N17"


def test_a_closed_client_that_answers_a_late_fact_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-N17"""
    disconnected = Client.disconnected

    def talkative(self: Client, now: int, link: int, reason: str) -> None:
        disconnected(self, now, link, reason)
        if self._handles.closed_client:
            self._context.emit(RequestDone(link, None))

    monkeypatch.setattr(Client, "disconnected", talkative)
    assert World(1, quiet_profile(messages=10)).run().rule in ("INV-N17", "INV-N1")
