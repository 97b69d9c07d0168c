"""Topics migrate to another cluster: all clients follow, nothing is lost, and the checks notice one that
stays."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.broker.serving import publishing
from pulsar_sansio.broker.topics.subscription import Subscription
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.client.acknowledging.ack_grouping import AckGrouping
from pulsar_sansio.client.attaching.attachment import Attachment
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import proto
from pulsar_sim import Outcome
from pulsar_sim.engine.clock import MILLISECOND
from pulsar_sim.engine.nodes.far_cluster import FAR_BROKER
from pulsar_sim.engine.profile import MigrationPlan, Profile
from pulsar_sim.runs.scenarios import SCENARIOS, Scenario, ScenarioWorld, quiet_profile
from tests.sim.engine.nodes.test_cluster import passed

T = proto.BaseCommand


def migrating(kind: SubscriptionType = SubscriptionType.SHARED) -> Profile:
    profile = quiet_profile(consumers=2, clients=2, kind=kind, messages=8)
    profile.migrations = [MigrationPlan(0, 15 * MILLISECOND)]
    return profile


def world_of(script: Callable[[ScenarioWorld], None], profile: Profile | None = None) -> ScenarioWorld:
    found = profile or migrating()
    return ScenarioWorld(Scenario("test", "", lambda: found, script), keep_trace=True)


def nothing(world: ScenarioWorld) -> None:
    pass


def test_everybody_follows_and_nothing_is_lost() -> None:
    report = passed(ScenarioWorld(SCENARIOS["migrate"], keep_trace=True))
    assert report.faults == {"topic_migrated": 1}
    told = [line for line in report.transcript if "<- TOPIC_MIGRATED" in line and "auditor" not in line]
    assert len(told) == 3  # the producer, the consumer, and the auditor
    sent_to = [line.split()[1] for line in report.transcript if "<- MESSAGE" in line]
    assert set(sent_to) == {"broker-0", FAR_BROKER}


@pytest.mark.parametrize("kind", list(SubscriptionType), ids=lambda kind: kind.value)
def test_consumers_go_when_they_have_acknowledged_everything(kind: SubscriptionType) -> None:
    world = world_of(nothing, migrating(kind))
    passed(world)
    assert world.model.delivered >= 8
    assert {position[0] >= 1_000_000 for position in world.model.topics[world.topics.names[0]].order} == {
        False,
        True,
    }


def test_with_connections_lost_on_the_way() -> None:
    def script(world: ScenarioWorld) -> None:
        world.when_written(T.TOPIC_MIGRATED, 1, world.reset_everything)
        world.when_written(T.TOPIC_MIGRATED, 2, world.reset_everything)

    passed(world_of(script))


def test_a_broker_that_dies_knows_it_when_it_comes_back() -> None:
    """The cluster keeps the fact that a topic has migrated."""

    def script(world: ScenarioWorld) -> None:
        node = world.cluster.nodes[0]

        def kill() -> None:
            world.cluster.kill(node, False, False, MILLISECOND)

        world.when_written(T.TOPIC_MIGRATED, 1, lambda: world.clock.after(0, kill))

    report = passed(world_of(script))
    assert any("boots 2" in line for line in report.transcript)


def test_what_the_far_broker_holds_is_unloaded_too() -> None:
    def script(world: ScenarioWorld) -> None:
        world.when_written(T.TOPIC_MIGRATED, 2, lambda: world.clock.after(300 * MILLISECOND, unload, world))

    def unload(world: ScenarioWorld) -> None:
        assert world.unload(world.topics.names[0])

    report = passed(world_of(script))
    assert any(f"{FAR_BROKER} unload" in line for line in report.transcript)


def ignored(self: Any, command: Any) -> None:
    pass


def only_the_flag(self: Any, target: Any) -> None:
    self.migrated_to = target


def at_once(self: Any) -> Any:
    return self.topic.migrated_to


def later(world: ScenarioWorld) -> None:
    world.reset_everything()
    if publishing._create is to_any_broker:
        world.apps.producers[0].close_and_reopen()


def back_after_a_loss(self: Any, connection: Any, cause: Any) -> None:
    self.redirection.cluster = None
    lost(self, connection, cause)


def to_any_broker(connection: Any, command: Any, topic: Any, probe: bool) -> None:
    target, topic.migrated_to = topic.migrated_to, None
    try:
        create(connection, command, topic, probe)
    finally:
        topic.migrated_to = target


def kept(self: Any) -> None:
    pass


lost, create = Attachment.lost, publishing._create


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "rules"),
    [
        (Connection, "_on_topic_migrated", ignored, {"INV-N13"}),
        (Attachment, "lost", back_after_a_loss, {"INV-N13"}),
        (AckGrouping, "leave_cluster", kept, {"INV-N13"}),
        (publishing, "_create", to_any_broker, {"INV-N13"}),
        (Topic, "migrate", only_the_flag, {"INV-N5"}),
        (Subscription, "moves_to", property(at_once), {"INV-N5", "INV-C3"}),
    ],
    ids=["ignored", "back again", "acknowledged there", "taken anyway", "no client is told", "too early"],
)
def test_a_wrong_machine_is_noticed(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, wrong: Any, rules: set[str]
) -> None:
    monkeypatch.setattr(owner, name, wrong)
    found = set()
    for kind in (SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED):
        profile = migrating(kind)
        for consumer in profile.consumers:
            consumer.receipts, consumer.group_time = True, 0.0

        def script(world: ScenarioWorld) -> None:
            if owner in (Attachment, publishing):
                wait = 180 * MILLISECOND
                world.when_written(T.TOPIC_MIGRATED, 1, lambda: world.clock.after(wait, later, world))

        report = world_of(script, profile).run()
        if report.outcome is not Outcome.PASSED:
            found.add(report.rule)
    assert found & rules, found
