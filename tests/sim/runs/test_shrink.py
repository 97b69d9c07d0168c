"""The shrinker on planted bugs, cases as plain values, and the archive of worlds that once failed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.model.config import BatchingPolicy, ProducerAccessMode, SubscriptionType
from pulsar_sim import Case, Outcome, SeedReport, Streams, World, draw
from pulsar_sim.engine.profile import BrokerPlan, EndPlan, MigrationPlan, Profile, SubscriptionPlan
from pulsar_sim.runs.baseline import PLAIN_PRODUCER, PLAIN_PROFILE
from pulsar_sim.runs.case import Strike
from pulsar_sim.runs.scenarios import quiet_profile
from pulsar_sim.runs.shrink import Shrinker, describe, readable, shrink
from pulsar_trio_command.command import main
from tests.sim.runs.sweeps.test_sweep import without_the_oldest

ARCHIVE = sorted((Path(__file__).parents[1] / "seeds").glob("*.json"))


# --- cases ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_case_is_the_world_of_its_seed(seed: int) -> None:
    """The case equals its world also with its faults written down, and after a way through JSON."""
    original = World(seed).run()
    recorded, report = Case.of_seed(seed).recorded()
    assert report == original
    assert recorded.strikes is not None
    again = Case.from_json(json.loads(json.dumps(recorded.as_json())))
    assert again == recorded
    assert again.run().trace_hash == original.trace_hash
    if recorded.strikes:
        assert replace(recorded, strikes=[]).run().trace_hash != original.trace_hash


def test_a_case_without_a_field_gets_a_plain_one() -> None:
    found = Case(1, quiet_profile(messages=1)).as_json()
    del found["profile"]["jitter"]
    assert Case.from_json(found).profile.jitter == 0
    found["profile"]["gravity"] = 1
    with pytest.raises(ValueError, match="Profile has no field 'gravity'"):
        Case.from_json(found)


def test_a_case_names_faults_that_there_are() -> None:
    found = Case(1, quiet_profile(messages=1), [Strike(1, "earthquake", ())]).as_json()
    with pytest.raises(ValueError, match="no such fault kind: earthquake"):
        Case.from_json(found)


# --- shrinking ------------------------------------------------------------


def first_failure(rule: str) -> int:
    """A seed with one broker and shared producers that breaks the rule, with the bug that is planted at the
    moment: no producer is needed to fence another one."""
    shared = ProducerAccessMode.SHARED
    for world in map(World, range(200)):
        producers, brokers = world.profile.producers, world.profile.brokers
        plain = len(brokers) == 1 and all(each.access is shared for each in producers)
        if plain and world.run().rule == rule:
            return world.seed
    raise AssertionError(f"no seed breaks {rule}")


@pytest.mark.slow
def test_a_failing_seed_gets_small_enough_to_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A producer that forgets to send the oldest message again needs one producer, two messages and one
    fault."""
    with monkeypatch.context() as planted:
        planted.setattr(Producer, "_send_again", without_the_oldest(Producer._send_again))
        seed = first_failure("INV-P6")
        file = tmp_path / "case.json"
        assert main(["simulate", "shrink", "--seed", str(seed), "--seconds", "600", "--save", str(file)]) == 2
        shown = capsys.readouterr().out.splitlines()
        case = Case.from_json(json.loads(file.read_text()))
        assert case.run().rule == case.rule == "INV-P6"
    assert len(case.profile.producers) == 1
    assert case.profile.consumers == []
    assert case.profile.messages <= 6
    assert case.strikes is not None
    assert len(case.strikes) <= 2
    assert len(shown) < 60
    assert "overtakes" in shown[-2]
    assert "worlds were tried" in shown[-1]
    assert any(" SEND " in line for line in shown)
    assert str(case.run()) == f"seed {seed} passed", "without the bug"


@pytest.mark.slow
def test_a_bug_that_needs_no_fault_is_left_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    def deliver(self: Any, *arguments: Any) -> None:
        raise RuntimeError(f"never seen one: {self!r}")

    monkeypatch.setattr("pulsar_sansio.client.producing.send_window.SendWindow.on_receipt", deliver)
    seed = first_failure("exception")
    found = shrink(seed, limit=150)
    assert found.report.outcome is Outcome.EXCEPTION
    assert "RuntimeError: never seen one" in found.report.text
    assert found.case.strikes == []
    assert found.case.profile.messages == 1
    assert found.case.profile.clients == found.case.profile.topics == 1
    assert found.runs <= 151


@pytest.mark.slow
def test_another_failure_is_not_taken_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world with fewer messages raises something else."""

    def run(self: Any) -> Any:
        report = original(self)
        report.outcome = Outcome.EXCEPTION
        report.rule = "exception"
        report.text = "KeyError: 1" if self.profile.messages > 40 else "IndexError: 1"
        return report

    original = World.run
    monkeypatch.setattr(World, "run", run)
    case = Case(1, quiet_profile(messages=100))
    assert 40 < Shrinker(case, limit=60).shrink().case.profile.messages < 60


def fails_where(monkeypatch: pytest.MonkeyPatch, needed: Callable[[Profile], object]) -> None:
    """Worlds are not run; they fail where they have what is needed."""

    def run(self: World) -> SeedReport:
        report = SeedReport(self.seed)
        if needed(self.profile):
            report.outcome, report.rule = Outcome.INVARIANT, "INV-X"
        return report

    monkeypatch.setattr(World, "run", run)


def rich_profile() -> Profile:
    """Everything there is, whatever comes of it together."""
    profile = next(
        found
        for seed in range(2000)
        if (found := draw(Streams(seed))).partitioned
        and len(found.brokers) > 1
        and found.transient_subscribers
        and found.topics > 1
        and found.partitioned[0].partitions > 1
        and found.partitioned[0].growth
    )
    producer = profile.producers[0]
    profile.producers[0] = replace(
        producer,
        partitioned=0,
        batching=BatchingPolicy(by_key=True),
        chunk_size=100,
        access=ProducerAccessMode.EXCLUSIVE,
        contested=True,
        explicit=True,
        initial=7,
        delayed_permille=50,
        interceptors=["watches", "changes", "raises"],
    )
    profile.memory_limit = 1000
    profile.migrations = [MigrationPlan(0, 1), MigrationPlan(1, 1)]
    profile.ends = [EndPlan(1, 1)]
    return profile


def test_what_is_not_needed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fails_where(monkeypatch, lambda profile: True)
    left = Shrinker(Case(1, rich_profile(), [])).shrink().case.profile
    for name in (
        "partitioned",
        "transient_subscribers",
        "ends",
        "migrations",
        "brokers",
        "consumers",
        "subscriptions",
    ):
        assert getattr(left, name) == []
    assert {name: getattr(left, name) for name in PLAIN_PROFILE} == PLAIN_PROFILE
    [producer] = left.producers
    assert {name: getattr(producer, name) for name in PLAIN_PRODUCER} == PLAIN_PRODUCER
    assert (left.clients, left.topics, left.messages) == (1, 1, 0)


@pytest.mark.parametrize(
    ("needed", "left"),
    [
        (
            lambda p: p.partitioned and p.partitioned[0].partitions > 1,
            "partitioned: PartitionedPlan(partitions=2, ",
        ),
        (lambda p: any(plan.chunk_size for plan in p.producers), " chunk_size=100"),
        (lambda p: any(plan.contested for plan in p.producers), " contested=True"),
        (lambda p: any("changes" in plan.interceptors for plan in p.producers), " interceptors=['changes']"),
        (lambda p: len(p.migrations) == 1, "migrations: MigrationPlan(topic="),
        (lambda p: p.memory_limit, " memory_limit=1000"),
        (lambda p: len(p.brokers) == 2, "brokers: "),
        (lambda p: any(plan.delayed_permille for plan in p.producers), " delayed_permille=50"),
        (lambda p: any(plan.topic >= p.topics for plan in p.subscriptions), "partitioned: "),
    ],
    ids=[
        "partitions",
        "chunks",
        "contested",
        "changes",
        "migration",
        "memory",
        "brokers",
        "delays",
        "partition",
    ],
)
def test_what_is_needed_stays_and_is_told(
    monkeypatch: pytest.MonkeyPatch, needed: Callable[[Profile], object], left: str
) -> None:
    fails_where(monkeypatch, needed)
    profile = rich_profile()
    if len(profile.migrations) != 1 and "Migration" in left:
        profile.migrations.pop()
    profile.brokers = profile.brokers[:2]
    if not any(plan.topic >= profile.topics for plan in profile.subscriptions):
        profile.subscriptions.append(SubscriptionPlan(profile.topics, SubscriptionType.SHARED))
        consumer = quiet_profile(consumers=1).consumers[0]
        profile.consumers.append(
            replace(consumer, topic=profile.topics, subscription=len(profile.subscriptions) - 1)
        )
    found = Shrinker(Case(1, profile, []), limit=600).shrink().case
    assert needed(found.profile)
    told = "\n".join(describe(found))
    if left == "brokers: ":
        assert found.profile.brokers == [BrokerPlan(), BrokerPlan()], "two of the latest kind"
    else:
        assert left in told, told
    features = [
        part for line in told.splitlines() if "producer" in line for part in line.split(": ")[1].split()
    ]
    assert len(features) <= 1, told


def test_a_seed_that_passes_is_not_shrunk(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="seed 1 passes"):
        Shrinker(Case(1, quiet_profile(messages=1)))
    assert main(["simulate", "shrink", "--seed", "5"]) == 0
    assert capsys.readouterr().out == "seed 5 passes\n"


def test_the_shrinker_stops_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Producer, "_send_again", without_the_oldest(Producer._send_again))
    profile = quiet_profile(messages=40)
    profile.producers[0] = replace(profile.producers[0], burst=1)
    profile.latency = 10_000_000
    case = Case(1, profile, [Strike(200_000_000, "reset_everything", ())])
    assert case.run().rule == "INV-P6"
    assert Shrinker(case, limit=1).shrink().case is case
    stopped = Shrinker(case, enough=lambda: True).shrink()
    assert (stopped.runs, stopped.complete) == (1, False)
    assert str(stopped).endswith("1 worlds were tried: more could perhaps be left out")


# --- what people read ------------------------------------------------------------


def test_a_case_is_told_in_a_few_lines() -> None:
    profile = quiet_profile(consumers=1, messages=3)
    lines = describe(Case(7, profile, [Strike(5_000_000, "reset", ())]))
    assert lines[0].startswith("seed 7: 1 clients, 1 topics, 3 messages; ")
    assert "subscription sub-0 of t0: exclusive" in lines
    assert lines[-1] == "fault 5.000 ms reset"


def test_a_transcript_is_told_from_the_first_application_on() -> None:
    world = World(1, quiet_profile(messages=3), keep_trace=True)
    lines = readable(world.run().transcript)
    assert lines[0].split() == [lines[0].split()[0], "ms", "world", "phase", "run"]
    assert lines[-1].endswith("PASSED")
    assert not any(line.endswith(" wake") for line in lines)
    many = ["0 world phase run", *(f"{n} a   wire 1 <- SEND producer_id=0 sequence_id={n}" for n in range(9))]
    assert len(readable(many)) == 4
    assert "… 7 more …" in readable(many)[2]


# --- the archive ------------------------------------------------------------


def test_there_is_an_archive() -> None:
    assert ARCHIVE


@pytest.mark.parametrize("file", ARCHIVE, ids=lambda file: file.stem)
def test_what_once_failed_passes(file: Path) -> None:
    case = Case.from_json(json.loads(file.read_text()))
    assert case.rule
    assert case.note
    report = case.run()
    assert str(report) == f"seed {case.seed} passed"
    assert case.strikes is not None
    assert {strike.name for strike in case.strikes} <= set(report.faults), "what made it fail still happens"
