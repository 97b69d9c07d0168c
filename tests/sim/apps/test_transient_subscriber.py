"""Applications that leave no subscription behind, and topics that end: the checks notice wrong machines."""

from dataclasses import replace
from typing import Any

import pytest

from pulsar_sansio.broker.serving import subscribing
from pulsar_sansio.broker.topics.subscription import Subscription
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.model.errors import TopicTerminated
from pulsar_sansio.wire import proto
from pulsar_sim import Outcome
from pulsar_sim.apps.transient_subscriber import TransientSubscriber
from pulsar_sim.engine.profile import EndPlan, Profile
from pulsar_sim.runs.scenarios import SCENARIOS, Scenario, ScenarioWorld
from pulsar_sim.world.administrator import Administrator
from tests.sim.engine.nodes.test_cluster import passed

T = proto.BaseCommand


def reading(world: ScenarioWorld) -> None:
    world.when_written(T.MESSAGE, 2, world.reset_everything)


def read() -> Profile:
    profile = SCENARIOS["read-without-a-subscription"].profile()
    profile.transient_subscribers[0] = replace(profile.transient_subscribers[0], stay=1, queue=1)
    return profile


READING = Scenario("read", "", read, reading)


def test_a_reader_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker forgot the position with the connection; the client did not."""
    monkeypatch.setattr(TransientSubscriber, "leave", lambda self, incarnation: None)
    report = passed(ScenarioWorld(READING, keep_trace=True))
    subscribes = [line for line in report.transcript if "<- SUBSCRIBE" in line and "visit-0" in line]
    assert len(subscribes) > 1
    assert all("durable=False" in line for line in subscribes)
    assert "start_message_id" in subscribes[-1]


@pytest.mark.parametrize("step", [-1, 1, 2])
def test_a_reader_that_is_led_astray_is_noticed(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """A message left out is a gap. The client discards a message too many, as it must: the broker also sends
    the message of the start id."""

    def astray(topic: Any, command: Any, durable: bool) -> Any:
        subscription = begin(topic, command, durable)
        if command.HasField("start_message_id"):
            assert isinstance(subscription, Subscription)
            subscription.cursor.mark_delete += step
        return subscription

    monkeypatch.setattr(TransientSubscriber, "leave", lambda self, incarnation: None)
    begin = subscribing._new_subscription
    monkeypatch.setattr(subscribing, "_new_subscription", astray)
    report = ScenarioWorld(READING).run()
    assert report.outcome is (Outcome.PASSED if step < 2 else Outcome.INVARIANT), report
    assert report.rule == ("" if step < 2 else "INV-C3")


def test_a_visitor_removes_its_subscription() -> None:
    world = ScenarioWorld(SCENARIOS["unsubscribe"], keep_trace=True)
    report = passed(world)
    assert any("<- UNSUBSCRIBE" in line for line in report.transcript)
    broker = world.cluster.serving(world.topics.names[0])
    assert broker is not None
    assert "visit-0" not in broker.topic_administration.stats(world.topics.names[0])["subscriptions"]


def test_a_broker_that_keeps_the_subscription_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def keeps(self: Subscription, consumer: Any, force: bool) -> None:
        consumer.connection.detach_consumer(consumer)

    monkeypatch.setattr(Subscription, "unsubscribe", keeps)
    report = ScenarioWorld(SCENARIOS["unsubscribe"]).run()
    assert report.outcome is Outcome.LIVENESS


def ending() -> Profile:
    profile = SCENARIOS["consume-exclusive"].profile()
    profile.producers[0].messages = 12
    profile.ends = [EndPlan(0, 20_000_000)]
    return profile


ENDING = Scenario("end", "", ending)


def test_a_topic_ends() -> None:
    """BROKER-43: the producer is refused; the consumer reads to the end and is told."""
    world = ScenarioWorld(ENDING, keep_trace=True)
    report = passed(world)
    assert 0 < report.messages < 12
    assert report.faults["topic_terminated"] == 1
    assert world.apps.producers[0].ended
    assert world.apps.consumers[0].reached_end


def test_a_broker_that_goes_on_behind_the_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[int] = []

    def terminate(self: Topic) -> None:
        ends.append(self.log.end)
        self.producers.disconnect_all(TopicTerminated("ended"))

    monkeypatch.setattr(Topic, "terminate", terminate)
    profile = ending()
    world = ScenarioWorld(Scenario("end", "", lambda: profile))
    report = world.run()
    assert report.outcome is not Outcome.PASSED


def test_a_broker_that_does_not_say_that_a_topic_has_ended_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Subscription, "check_end_of_topic", lambda self: None)
    report = ScenarioWorld(ENDING).run()
    assert report.outcome is Outcome.LIVENESS
    assert "not told that a topic has ended" in report.text


def deleting() -> Profile:
    profile = SCENARIOS["consume-exclusive"].profile()
    profile.producers[0].messages = 12
    profile.ends = [EndPlan(0, 20_000_000, deleted=True)]
    return profile


DELETING = Scenario("delete", "", deleting)


def test_a_topic_is_deleted_and_begins_anew() -> None:
    """The old entries are gone, and no check demands them; the new ones are all there."""
    world = ScenarioWorld(DELETING, keep_trace=True)
    report = passed(world)
    assert report.faults["topic_deleted"] == 1
    assert report.sent == 12
    topic = world.model.topics[world.topics.names[0]]
    assert 0 < topic.expected < 12
    broker = world.cluster.serving(topic.name)
    assert broker is not None
    assert broker.topic_administration.internal_stats(topic.name)["numberOfEntries"] == topic.expected


def test_a_broker_that_loses_what_came_after_the_deletion_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new topic does not keep its log."""
    monkeypatch.setattr(Administrator, "booted", lambda self, node: None)
    profile = deleting()
    profile.broker = replace(profile.broker, ledger_max_entries=1)
    report = ScenarioWorld(Scenario("delete", "", lambda: profile)).run()
    assert (report.outcome, report.phase) in ((Outcome.LIVENESS, "check"), (Outcome.INVARIANT, "check"))
