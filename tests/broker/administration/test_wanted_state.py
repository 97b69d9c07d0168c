"""Numbers that tests of applications wait for."""

from typing import Any

import pytest

from pulsar_sansio import InvalidConfiguration, WantedState
from tests.broker.peer import SubType, Type, World


def differences(world: World, **wanted: Any) -> str:
    return world.broker.topic_administration.differences(WantedState(**wanted))


def test_numbers_of_an_empty_broker() -> None:
    world = World()
    assert differences(world, producers=0, consumers=0) == ""
    assert differences(world, backlog=0) == "backlog: no subscription, not 0"


def test_numbers_by_topic_and_subscription() -> None:
    world = World()
    peer = world.connect()
    peer.producer(topic="a", producer_id=0)
    peer.producer(topic="b", producer_id=1)
    peer.subscribe(SubType.Shared, 0, "a", "s", permits=0)
    peer.subscribe(SubType.Shared, 1, "a", "other", permits=0)
    peer.subscribe(SubType.Shared, 2, "b", "s", permits=0)
    peer.publish(b"x", 0, producer_id=0)
    peer.expect(Type.SEND_RECEIPT)
    assert differences(world, producers=2, consumers=3, backlog=2) == ""
    assert differences(world, topic="a", producers=1, consumers=2, backlog=2) == ""
    assert differences(world, topic="*", subscription="s", consumers=2, backlog=1) == ""
    assert differences(world, topic="b*", subscription="s", consumers=1, backlog=0) == ""
    assert differences(world, topic="b", subscription="none", consumers=0) == ""
    assert differences(world, topic="b", subscription="none", backlog=0) == "backlog: no subscription, not 0"
    assert differences(world, producers=1, consumers=2, backlog=7) == (
        "producers: 2, not 1; consumers: 3, not 2; backlog: 2, not 7"
    )


def test_partitions_are_counted_by_the_name_of_their_topic() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, "p", 3)
    world.pump()
    peer = world.connect()
    for index in range(3):
        peer.producer(topic=f"p-partition-{index}", producer_id=index)
    assert differences(world, topic="p", producers=3) == ""


def test_a_producer_that_waits_is_not_open() -> None:
    world = World()
    peer = world.connect()
    peer.producer(producer_id=0, producer_access_mode=1)
    peer.ask_producer(producer_id=1, producer_access_mode=2)
    assert differences(world, producers=1) == ""


def test_the_subscription_of_a_compaction_does_not_count() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.publish(b"x", partition_key="k")
    peer.expect(Type.SEND_RECEIPT)
    world.broker.topic_administration.compact(world.now, "t")
    world.pump()
    assert list(world.broker.topics.by_name["persistent://public/default/t"].subscriptions) == [
        "__compaction"
    ]
    assert differences(world, backlog=0) == "backlog: no subscription, not 0"


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"producers": -1},
        {"consumers": True},
        {"backlog": 1.0},
        {"backlog": 0, "topic": ""},
        {"backlog": 0, "subscription": 5},
    ],
)
def test_what_cannot_be_waited_for(wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration):
        WantedState(**wanted)
