"""Several brokers: topics move, are stolen and taken over, and the checks notice wrong machines."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from pulsar_sansio.broker.storage.journal import Journal
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import proto
from pulsar_sim import Outcome, SeedReport, Streams, draw
from pulsar_sim.engine.nodes.cluster import Cluster
from pulsar_sim.engine.profile import BrokerPlan, Profile
from pulsar_sim.runs.coverage import Recorder
from pulsar_sim.runs.scenarios import SCENARIOS, Scenario, ScenarioWorld, quiet_profile

T = proto.BaseCommand


def several(count: int = 3, **shape: Any) -> Profile:
    profile = quiet_profile(**{"consumers": 1, "messages": 8, "kind": SubscriptionType.SHARED, **shape})
    profile.brokers = [BrokerPlan() for _ in range(count)]
    profile.all_addresses = True
    return profile


def world_of(profile: Profile, script: Any, keep_trace: bool = True) -> ScenarioWorld:
    return ScenarioWorld(Scenario("test", "", lambda: profile, script), keep_trace)


def passed(world: ScenarioWorld) -> SeedReport:
    report = world.run()
    assert report.outcome is Outcome.PASSED, "\n".join([*report.transcript[-30:], str(report)])
    return report


def test_what_is_drawn() -> None:
    profiles = [draw(Streams(seed)) for seed in range(300)]
    brokers = Counter(len(profile.brokers) for profile in profiles)
    assert set(brokers) == {1, 2, 3}
    assert {profile.clients for profile in profiles} == set(range(1, 9))
    plans = [plan for profile in profiles for plan in profile.brokers]
    assert {12, 13, 15, 16, 17, 19, 20, 21} == {plan.protocol_version for plan in plans}
    assert {plan.feature_flags for plan in plans} == {False, True}
    assert any(plan.slowness for plan in plans)
    assert any(profile.ends for profile in profiles)
    assert {visitor.durable for profile in profiles for visitor in profile.transient_subscribers} == {
        False,
        True,
    }


def test_the_number_of_brokers_shifts_no_other_draw() -> None:
    """The number has a stream of its own."""
    streams = Streams(5)
    first, second = draw(streams), draw(streams)
    assert first == second
    assert first.producers == draw(Streams(5)).producers


def _after(lines: list[str], mark: str) -> list[str]:
    at = next(number for number, line in enumerate(lines) if mark in line)
    return lines[at:]


def test_a_topic_moves_to_where_clients_are_sent() -> None:
    """GAP-37: with an address no lookup is needed."""

    def script(world: ScenarioWorld) -> None:
        stream = world.streams.stream("move")
        world.when_written(T.SEND, 3, lambda: world.cluster.move(world.topics.names[0], stream, "where"))

    world = world_of(several(), script)
    report = passed(world)
    after = _after(report.transcript, "releases persistent://public/default/t0")
    target = after[0].split(" for ")[1].split(",")[0]
    assert world.cluster.owners[world.topics.names[0]] == target
    notices = [line for line in after if "<- CLOSE_" in line and "assignedBrokerServiceUrl" in line]
    assert len(notices) == 2, notices
    assert all(f"assignedBrokerServiceUrl=pulsar://{target}:6650" in line for line in notices)
    come_back = _after(after, "<- PRODUCER ")
    assert not any("<- LOOKUP" in line for line in after[: len(after) - len(come_back)])
    assert f"{target}   wire" in next(line for line in come_back if "<- SEND_RECEIPT" in line)


def test_a_topic_moves_and_clients_find_it_by_a_redirect() -> None:
    def script(world: ScenarioWorld) -> None:
        stream = world.streams.stream("move")
        world.when_written(T.SEND, 3, lambda: world.cluster.move(world.topics.names[0], stream, "nothing"))

    profile = several()
    profile.redirect_permille = 1000
    report = passed(world_of(profile, script))
    after = _after(report.transcript, "releases persistent://public/default/t0")
    assert not any("assignedBrokerServiceUrl=" in line for line in after)
    assert any("<- LOOKUP " in line for line in after)


@pytest.mark.parametrize("keep", [False, True])
def test_what_was_confirmed_survives_the_death_of_a_broker_while_it_writes(keep: bool) -> None:
    """Another broker takes over what was durable; the first never comes back during the test."""
    killed: list[int] = []

    def script(world: ScenarioWorld) -> None:
        def kill() -> None:
            node = world.cluster.node_of(world.topics.names[0])
            assert world.cluster.kill_while_writing(node, keep, 3_600_000_000_000)
            killed.append(len(world.model.topics[world.topics.names[0]].log))

        world.when_written(T.SEND_RECEIPT, 3, kill)

    profile = several()
    profile.run_time *= 10
    world = world_of(profile, script)
    report = passed(world)
    assert killed == [3]
    assert report.faults["topic_taken_over"] == 1
    assert report.faults["store_kept_unreported" if keep else "store_lost_unsynced"] == 1
    assert report.sent == 8


def test_a_store_that_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker that takes over finds less than was confirmed, and that is noticed."""
    write = Cluster.write

    def forgetful(self: Cluster, node: Any, records: Any) -> set[str]:
        entries = [each for each in records if type(each).__name__ == "EntryAdded"]
        return write(self, node, [each for each in records if each not in entries[-1:]])

    def script(world: ScenarioWorld) -> None:
        node = world.cluster.node_of(world.topics.names[0])
        world.when_written(T.SEND_RECEIPT, 4, lambda: world.cluster.kill(node, False, False, 10**12))

    monkeypatch.setattr(Cluster, "write", forgetful)
    report = world_of(several(), script).run()
    assert report.outcome is not Outcome.PASSED


def test_a_stale_owner_is_told_by_the_store() -> None:
    def script(world: ScenarioWorld) -> None:
        stream = world.streams.stream("steal")
        world.when_written(T.SEND, 3, lambda: world.cluster.steal(world.topics.names[0], stream))

    report = passed(world_of(several(), script))
    after = _after(report.transcript, "serves persistent://public/default/t0")
    assert any("loses persistent://public/default/t0" in line for line in after)
    assert report.sent == 8


def test_a_stale_owner_that_confirms_all_the_same_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(world: ScenarioWorld) -> None:
        stream = world.streams.stream("steal")
        world.when_written(T.SEND, 3, lambda: world.cluster.steal(world.topics.names[0], stream))

    def write(self: Cluster, node: Any, records: Any) -> set[str]:
        original(self, node, records)
        return set()

    original = Cluster.write
    monkeypatch.setattr(Cluster, "write", write)
    monkeypatch.setattr(Journal, "discard_topic", lambda self, topic: None)
    report = world_of(several(), script).run()
    assert report.outcome is not Outcome.PASSED


@pytest.mark.parametrize("version", [12, 15, 16, 17])
def test_older_brokers(version: int) -> None:
    """Brokers before version 17 answer no ACK; consumers that ask for receipts work all the same."""
    profile = several(1)
    profile.brokers = [BrokerPlan(protocol_version=version, feature_flags=False)]
    profile.consumers[0] = replace(profile.consumers[0], receipts=True, confirm_permille=500)
    report = passed(world_of(profile, lambda world: None))
    assert report.messages == 8
    answered = any("<- ACK_RESPONSE" in line for line in report.transcript)
    assert answered is (version >= 17)
    assert any(
        f"<- CONNECTED server_version=pulsar-trio protocol_version={version}" in line
        and "feature_flags" not in line
        for line in report.transcript
    )


def test_a_slow_broker_is_late() -> None:
    profile = several(1)
    quick = passed(world_of(replace(profile), lambda world: None))
    profile.brokers = [BrokerPlan(slowness=20_000_000)]
    slow = passed(world_of(profile, lambda world: None))
    assert slow.virtual_ns > quick.virtual_ns


@pytest.mark.parametrize("name", ["move-to-a-given-address", "move-without-an-address", "stale-owner"])
def test_the_scenarios_move_a_topic(name: str) -> None:
    world = ScenarioWorld(SCENARIOS[name], keep_trace=True)
    report = passed(world)
    assert any(" serves persistent://" in line for line in report.transcript)


def reached(script: Any, **options: Any) -> set[str]:
    """Return the coverage points of a world of three brokers that passes."""
    profile = several()
    for name, value in options.items():
        setattr(profile, name, value)
    with Recorder() as recorder:
        passed(world_of(profile, script))
        return set(recorder.take().points)


def test_what_moving_topics_reaches() -> None:
    def move(world: ScenarioWorld) -> None:
        stream = world.streams.stream("move")
        world.when_written(T.SEND, 3, lambda: world.cluster.move(world.topics.names[0], stream, "where"))

    def steal(world: ScenarioWorld) -> None:
        stream = world.streams.stream("steal")

        def when_written() -> None:
            node = world.cluster.node_of(world.topics.names[0])
            world.cluster.steal(world.topics.names[0], stream)
            node.learn_owners()

        world.when_written(T.SEND_RECEIPT, 2, when_written)

    assert {"assigned broker", "topic adopted"} <= reached(move)
    found = reached(move, store_delay=40_000_000)
    assert "moved while sending" in found
    assert "topic adopted" in reached(steal)
    assert "redirect followed" in reached(move, redirect_permille=1000, all_addresses=False) | reached(
        steal, redirect_permille=1000
    )
