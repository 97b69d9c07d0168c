"""Brokers with rare options: worlds pass with each, and the checks notice wrong brokers."""

from dataclasses import replace
from typing import Any

import pytest

from pulsar_sansio.broker.dispatching import consumer as broker_consumer
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.wire import pack_broker_entry_metadata
from pulsar_sim.engine.failures import Outcome
from pulsar_sim.engine.profile import BrokerPlan
from pulsar_sim.engine.randomness import Streams
from pulsar_sim.generate import draw
from pulsar_sim.generate.brokers import UNUSUAL
from pulsar_sim.world.world import SeedReport, World

SEED = 6000


def world_with(options: dict[str, Any], seed: int = SEED) -> SeedReport:
    profile = draw(Streams(seed))
    profile.broker = replace(profile.broker, **options)
    return World(seed, profile).run()


@pytest.mark.parametrize("options", UNUSUAL, ids=str)
def test_worlds_pass(options: dict[str, Any]) -> None:
    """All messages sent arrive, even where a limit is reached at once."""
    report = world_with(options)
    assert report.outcome is Outcome.PASSED, report
    assert report.messages


def test_drawn_worlds_have_all_of_them() -> None:
    """Each option occurs in at least one of a hundred worlds."""
    brokers = [draw(Streams(seed)).broker for seed in range(100)]
    for options in UNUSUAL:
        assert any(replace(each, **options) == each for each in brokers), options


def test_the_block_in_front_of_an_entry_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one byte too many behind the block, the bytes differ from those stored."""

    def longer(broker_timestamp: int, index: int) -> bytes:
        return pack_broker_entry_metadata(broker_timestamp, index) + b"\0"

    monkeypatch.setattr(broker_consumer, "pack_broker_entry_metadata", longer)
    report = world_with({"broker_entry_metadata": True})
    assert (report.outcome, report.rule) == (Outcome.INVARIANT, "INV-C2")


def test_clients_that_create_no_topics_ask_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some drawn worlds have such clients. The checks notice one that uses the request with a broker too old
    for it."""
    seed = next(seed for seed in range(100) if not draw(Streams(seed)).create_topics)
    assert World(seed).run().outcome is Outcome.PASSED
    profile = draw(Streams(seed))
    profile.brokers = [BrokerPlan(feature_flags=False)]
    assert World(seed, profile).run().outcome is Outcome.PASSED
    ready = Connection._on_connected

    def as_if_it_could(connection: Connection, command: Any) -> None:
        ready(connection, command)
        connection.asks_without_creation = True

    monkeypatch.setattr(Connection, "_on_connected", as_if_it_could)
    assert World(seed, profile).run().rule == "CHECK-11"
