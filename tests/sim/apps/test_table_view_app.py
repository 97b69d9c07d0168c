"""Worlds with table views and compaction are drawn and pass, and the checks notice wrong tables."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest

from pulsar_sansio.client.schemas.value_table import ValueTable
from pulsar_sansio.client.table_view import TableView
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.errors import SchemaDecodingError, SchemaUnavailable
from pulsar_sansio.schemas import KeyValue
from pulsar_sim.apps.table_view_app import ViewedSubscription
from pulsar_sim.engine.failures import Outcome
from pulsar_sim.engine.profile import CompactionPlan, Profile, SchemaPlan
from pulsar_sim.engine.randomness import Streams
from pulsar_sim.generate import draw
from pulsar_sim.model.compaction import Compacted
from pulsar_sim.model.records.entry import StoredEntry
from pulsar_sim.model.records.producer_record import ProducerRecord
from pulsar_sim.model.records.sent import Sent
from pulsar_sim.model.records.topic_record import TopicRecord
from pulsar_sim.runs.case import Case
from pulsar_sim.world.world import World


@cache
def with_tables(count: int) -> list[tuple[int, Profile]]:
    found = ((seed, draw(Streams(seed))) for seed in range(2000))
    return list(islice((each for each in found if each[1].tables), count))


def test_they_are_drawn() -> None:
    tables = [profile for _, profile in with_tables(80)]
    assert any(profile.compactions for profile in tables)
    assert any(seeker.compacted for profile in tables for seeker in profile.single_topic_seekers)


def test_they_pass() -> None:
    for seed, profile in with_tables(20)[:4]:
        report = World(seed, profile).run()
        assert report.outcome is Outcome.PASSED, str(report)


def typed_world(seed: int, kind: str) -> World:
    """A world with a table view whose messages have values of that kind."""
    profile = deepcopy(with_tables(1)[0][1])
    profile.schemas, profile.encryption, profile.transactions = SchemaPlan(kind), None, None
    profile.faults, profile.fault_gap = [], 0
    return World(seed, profile)


@pytest.mark.parametrize("kind", ["avro", "json", "text", "pairs"])
def test_tables_of_values_pass(kind: str) -> None:
    """INV-C18, INV-S2"""
    worlds = [typed_world(seed, kind) for seed in range(4)]
    for world in worlds:
        report = world.run()
        assert report.outcome is Outcome.PASSED, str(report)
    assert any(table.schema is not None for world in worlds for table in world.apps.tables)


@pytest.mark.parametrize("kind", ["avro", "json", "pairs"])
def test_a_table_of_other_values_is_noticed(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """INV-S2"""
    value = {"name": "another", "number": -1}
    wrong = KeyValue("key-1", value) if kind == "pairs" else value
    monkeypatch.setattr(ValueTable, "__getitem__", lambda self, key: wrong)
    assert "INV-S2" in [typed_world(seed, kind).run().rule for seed in range(4)]


@pytest.mark.parametrize(
    ("error", "rule"), [(SchemaUnavailable("no"), "INV-S3"), (SchemaDecodingError("no"), "INV-S2")]
)
@pytest.mark.parametrize("kind", ["avro", "json"])
def test_a_table_without_values_is_noticed(
    monkeypatch: pytest.MonkeyPatch, kind: str, error: SchemaDecodingError, rule: str
) -> None:
    """INV-S2, INV-S3: no question has failed, and the reader reads every definition."""

    def failing(self: ValueTable, key: str) -> None:
        raise error

    monkeypatch.setattr(ValueTable, "__getitem__", failing)
    assert rule in [typed_world(seed, kind).run().rule for seed in range(4)]


def test_what_a_view_has_read_for_certain() -> None:
    """INV-C18: an entry that waits for its definition is not read, nor is one behind it."""
    subscription = ViewedSubscription(TopicRecord("t", False), "s")
    subscription.arrived((0, 0))
    assert subscription.read == (0, 0)
    settled: set[int] = {1}
    subscription.waits = lambda position: lambda: position[1] in settled
    for number in (1, 2, 3):
        subscription.arrived((0, number))
    settled.add(3)
    assert subscription.read == (0, 1)
    assert subscription.last_arrived == (0, 3)
    settled.add(2)
    assert subscription.read == (0, 3)
    subscription.arrived((0, 4))
    subscription.detached()
    settled.add(4)
    assert subscription.read == (0, 3)


def test_a_case_with_tables_can_be_written_down() -> None:
    seed, profile = with_tables(20)[0]
    case = Case(seed, replace(profile, compactions=[CompactionPlan(0, 5)]))
    again = Case.from_json(case.as_json())
    assert again.profile.tables == profile.tables
    assert again.profile.compactions == [CompactionPlan(0, 5)]


def test_of_a_partitioned_topic_that_grows() -> None:
    for seed in range(3000):
        profile = draw(Streams(seed))
        if any(plan.partitioned is not None for plan in profile.tables) and profile.partitioned[0].growth:
            world = World(seed, profile)
            report = world.run()
            assert report.outcome is Outcome.PASSED, str(report)
            topic = world.model.partitioned[world.topics.partitioned[0]]
            if len(topic.counts) == 1:  # everything was sent before
                continue
            tables = [table for table in world.apps.tables if table.plan.partitioned is not None]
            assert all(len(table.parts) > profile.partitioned[0].partitions for table in tables)
            return
    raise AssertionError("none is drawn")


def a_log(*messages: tuple[str | None, bytes]) -> TopicRecord:
    """A log with one message in each entry: key and value."""
    topic = TopicRecord("t", False)
    for number, (key, value) in enumerate(messages):
        sent = Sent(_producer_of(topic), number, value, key, {}, 0)
        topic.stored((0, number), StoredEntry(b"%d" % number, (sent,)))
    return topic


def _producer_of(topic: TopicRecord) -> ProducerRecord:
    return ProducerRecord("p", topic, ProducerSpec(topic="t"))


def test_what_may_be_left_out() -> None:
    topic = a_log(("a", b"1"), ("a", b"2"), (None, b"3"), ("b", b"4"), ("b", b""), ("c", b"5"), ("c", b"6"))
    compacted: Compacted = topic.compacted
    places = [(0, number, 0) for number in range(7)]
    assert not any(compacted.may_lack(place) for place in places), "nothing was compacted"
    compacted.begins((0, 5))
    assert [compacted.may_lack(place) for place in places] == [True, False, True, True, True, False, False]
    compacted.begins((0, 3))
    assert compacted.may_lack((0, 4, 0)), "what was compacted once stays so"


def run_until_noticed(rule: str) -> str:
    for seed, profile in with_tables(20):
        report = World(seed, profile).run()
        if report.rule == rule:
            return report.text
    raise AssertionError(f"no check notices: {rule}")


def test_a_refresh_that_does_not_wait_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TableView, "_look", lambda self, what: self._done(what))
    assert "has" in run_until_noticed("INV-C18")
