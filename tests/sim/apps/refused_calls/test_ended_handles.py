"""Handles that are used after their end, or while they are being closed."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.client.acknowledging.ack_commands import AckCommands
from pulsar_sansio.client.closed_handles import ClosedHandles
from pulsar_sansio.client.commands.consumers import ConsumerCommands
from pulsar_sansio.client.consuming.consumer_requests import ConsumerRequests
from pulsar_sansio.model.errors import ClosedError
from pulsar_sim import World
from pulsar_sim.runs.scenarios import quiet_profile

Replaced = tuple[type, str, Callable[..., Any]]

WRONG: dict[str, Replaced] = {
    "a paused ended consumer": (ConsumerCommands, "pause", lambda self, now, consumer: None),
    "no cause": (ClosedHandles, "error", lambda self, kind, handle: ClosedError("")),
    "lost counts": (ClosedHandles, "add_statistics", lambda self, handle, statistics: None),
    "no explanation": (ClosedHandles, "explain", lambda self, handle: "fine"),
}

WRONG_IN_DRAWN_WORLDS: dict[str, Replaced] = {
    "acknowledged while closing": (AckCommands, "check_open", lambda self: None),
    "paused while closing": (ConsumerRequests, "pause", lambda self: None),
}


@pytest.mark.parametrize("what", WRONG)
def test_use_after_the_end_is_noticed(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """INV-N17"""
    monkeypatch.setattr(*WRONG[what])
    assert World(1, quiet_profile(messages=30)).run().rule == "INV-N17"


@pytest.mark.parametrize("what", WRONG_IN_DRAWN_WORLDS)
def test_use_of_drawn_handles_after_the_end_is_noticed(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """INV-N17"""
    monkeypatch.setattr(*WRONG_IN_DRAWN_WORLDS[what])
    assert any(World(seed).run().rule == "INV-N17" for seed in range(20))
