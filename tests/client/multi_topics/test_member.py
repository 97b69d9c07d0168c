"""`Member`: outputs of one consumer, as the group of several topics gets them."""

from typing import Any, cast

import pytest

from pulsar_sansio.client import outputs
from pulsar_sansio.client.counters import ArrivalCounters
from pulsar_sansio.client.multi_topics.member import Member
from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType
from pulsar_sansio.model.errors import ConnectionLost
from pulsar_sansio.model.message import Source
from tests.client.script import Script

TOPIC = "persistent://public/default/demo-partition-2"


class Group:
    """A group that writes down what its members report."""

    def __init__(self) -> None:
        self.handle = 1
        self.counters = ArrivalCounters()
        self.reports: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_member_"):
            raise AttributeError(name)
        return lambda member, *rest: self.reports.append((name.removeprefix("on_member_"), *rest))


@pytest.fixture
def script() -> Script:
    return Script()


def member_of(script: Script, group: Group, wire_id: int | None = None) -> Member:
    spec = ConsumerSpec(TOPIC, "s", SubscriptionType.SHARED)
    services = script.client._services
    return Member(services, cast(Any, group), cast(Any, None), spec, wire_id, create_topic=True)


CAUSE = ConnectionLost("gone")


@pytest.mark.parametrize(
    ("output", "report"),
    [
        (outputs.Deliverable(1), ("deliverable",)),
        (outputs.RequestDone(5, None), ("answered", outputs.RequestDone(5, None))),
        (outputs.RequestFailed(5, CAUSE), ("answered", outputs.RequestFailed(5, CAUSE))),
        (outputs.ConsumerReady(1, TOPIC), ("ready",)),
        (outputs.Detached(1, CAUSE), ("detached", CAUSE)),
        (outputs.Attached(1), ("attached",)),
        (outputs.EndOfTopic(1), ("end_of_topic",)),
        (outputs.ConsumerFailed(1, CAUSE), ("ended", CAUSE)),
        (outputs.Closed(1, None), ("ended", None)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_output_is_reported_once(script: Script, output: Any, report: tuple[Any, ...]) -> None:
    group = Group()
    member_of(script, group).on_output(output)
    assert group.reports == [report]
    assert script.said() == []


def test_its_state_follows_the_outputs(script: Script) -> None:
    member = member_of(script, Group())
    assert (member.ready, member.detached, member.end_of_topic) == (False, None, False)
    member.on_output(outputs.ConsumerReady(1, TOPIC))
    member.on_output(outputs.EndOfTopic(1))
    assert (member.ready, member.end_of_topic) == (True, True)
    member.on_output(outputs.Detached(1, CAUSE))
    assert (member.ready, member.detached, member.end_of_topic) == (True, CAUSE, False)
    member.on_output(outputs.Attached(1))
    assert member.detached is None


def test_other_outputs_go_to_the_application_and_an_active_change_names_the_topic(script: Script) -> None:
    member = member_of(script, Group())
    member.on_output(outputs.ActiveChanged(1, True))
    script.expect(outputs.ActiveChanged(1, True, TOPIC))
    retrying = outputs.Retrying(1, "consumer on demo", CAUSE, 5, False)
    member.on_output(retrying)
    assert script.said() == []
    assert script.notices == [retrying]


def test_its_source_equals_any_source_of_its_topic(script: Script) -> None:
    group = Group()
    member = member_of(script, group)
    assert member.source == Source(TOPIC, 2)
    assert member.source.group is group
    assert member.counters is group.counters
    assert repr(member) == f"<Member {TOPIC}>"


def test_a_wire_id_that_no_broker_has_seen_is_used(script: Script) -> None:
    first = member_of(script, Group(), 77)
    second = member_of(script, Group())
    third = member_of(script, Group())
    assert first.consumer.wire_id == 77
    assert third.consumer.wire_id == second.consumer.wire_id + 1


def test_a_member_that_closes_says_so(script: Script) -> None:
    group = Group()
    member = member_of(script, group)
    member.close()
    assert member.closing
    assert [report[0] for report in group.reports] == ["ended"]
