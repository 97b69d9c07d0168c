"""Errors without a text."""

import pytest

from pulsar_sansio.broker.serving.connection import Connection
from pulsar_sansio.wire import proto
from pulsar_sim import World


def test_an_error_without_a_text_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-N18"""

    def refuse(self: Connection, request_id: int, error: Exception) -> None:
        command = proto.CommandError(request_id=request_id, error=proto.UnknownError, message="")
        self.send(proto.BaseCommand.ERROR, command)

    monkeypatch.setattr(Connection, "refuse", refuse)
    assert any(World(seed).run().rule == "INV-N18" for seed in range(40))
