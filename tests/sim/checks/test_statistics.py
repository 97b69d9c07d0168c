"""Counters that are wrong at the end of a world."""

from dataclasses import replace

import pytest

from pulsar_sansio.client.commands.producers import ProducerCommands
from pulsar_sansio.client.statistics import ProducerStatistics
from pulsar_sim import World
from pulsar_sim.runs.scenarios import quiet_profile


def test_a_counter_that_missed_a_message_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-L2"""
    original = ProducerCommands.producer_statistics

    def producer_statistics(self: ProducerCommands, producer: int) -> ProducerStatistics:
        found = original(self, producer)
        return replace(found, confirmed=found.confirmed - 1)

    monkeypatch.setattr(ProducerCommands, "producer_statistics", producer_statistics)
    assert World(1, quiet_profile(messages=30)).run().rule == "INV-L2"
