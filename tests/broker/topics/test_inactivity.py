"""Topics that are deleted because nothing uses them."""

from typing import Any

import pytest

from pulsar_sansio import NotFound
from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.policies import INACTIVE_TOPIC_MODES, InactiveTopics
from tests.broker.peer import TOPIC, Peer, SubType, Type, World

LOOK = 1.0
CONFIG = BrokerConfig(housekeeping_interval=LOOK, keepalive_interval=10.0 * 365 * 86_400)
NO_SUBSCRIPTIONS, CAUGHT_UP = INACTIVE_TOPIC_MODES
MODES = pytest.mark.parametrize("mode", INACTIVE_TOPIC_MODES)


def world_with_topic(mode: str = NO_SUBSCRIPTIONS, scope: str = "public/default") -> World:
    """A topic that is deleted after five seconds without use."""
    world = World(CONFIG)
    world.broker.topic_administration.create_topic(world.now, TOPIC)
    set_policy(world, "inactive_topics", InactiveTopics(True, 5, mode), scope)
    return world


def set_policy(world: World, name: str, value: object, scope: str = TOPIC) -> None:
    world.broker.administration.set_policy(world.now, scope, name, value)
    world.pump()


def exists(world: World, topic: str = TOPIC) -> bool:
    return topic in world.broker.topics.by_name


def subscribed(world: World, *, acknowledged: bool) -> Peer:
    """A connection with an entry published, and a subscription without consumers."""
    peer = world.connect()
    peer.subscribe(SubType.Shared)
    peer.producer()
    peer.publish(b"x")
    peer.expect(Type.SEND_RECEIPT)
    message = peer.expect(Type.MESSAGE)
    if acknowledged:
        peer.ack(message)
    peer.close_consumer()
    return peer


@MODES
@pytest.mark.parametrize("scope", ["public/default", TOPIC])
def test_a_topic_without_use_is_deleted_when_its_time_is_over(mode: str, scope: str) -> None:
    """With what is kept for the topic alone. Rule TENANT-04."""
    world = world_with_topic(mode, scope)
    world.broker.administration.set_policy(world.now, TOPIC, "max_producers", 7)
    world.advance(4.9)
    assert exists(world)
    world.advance(1.1)
    assert not exists(world)
    with pytest.raises(NotFound):
        world.broker.administration.policies_of(TOPIC)
    world.start()
    assert not exists(world), "the deletion is stored"
    world.connect().producer()
    assert world.broker.administration.policies_of(TOPIC).max_producers is None


def test_no_topic_is_deleted_by_default() -> None:
    world = World(CONFIG)
    world.broker.topic_administration.create_topic(world.now, TOPIC)
    world.advance(3600.0)
    assert exists(world)
    set_policy(world, "inactive_topics", InactiveTopics(False, 0))
    world.advance(3600.0)
    assert exists(world)
    set_policy(world, "inactive_topics", InactiveTopics(True, 5))
    world.advance(4.0)
    assert exists(world), "the time counts from the policy on"
    world.advance(2.0)
    assert not exists(world)


@MODES
@pytest.mark.parametrize("use", ["producer", "consumer"])
def test_a_client_keeps_its_topic(mode: str, use: str) -> None:
    world = world_with_topic(mode)
    peer = world.connect()
    if use == "producer":
        peer.producer()
    else:
        peer.subscribe(durable=False)
    world.advance(60.0)
    assert exists(world)
    peer.drop()
    world.advance(4.0)
    assert exists(world), "the time counts from the last use on"
    world.advance(2.0)
    assert not exists(world)


@pytest.mark.parametrize(
    ("mode", "acknowledged", "deleted"),
    [
        (NO_SUBSCRIPTIONS, False, False),
        (NO_SUBSCRIPTIONS, True, False),
        (CAUGHT_UP, False, False),
        (CAUGHT_UP, True, True),
    ],
)
def test_which_subscriptions_keep_their_topic(mode: str, acknowledged: bool, deleted: bool) -> None:
    world = world_with_topic(mode)
    subscribed(world, acknowledged=acknowledged).drop()
    world.advance(60.0)
    assert exists(world) is not deleted


def test_compaction_alone_keeps_no_topic() -> None:
    world = world_with_topic()
    world.broker.topic_administration.compact(world.now, TOPIC)
    world.pump()
    world.advance(60.0)
    assert not exists(world)


@pytest.mark.parametrize(("retention", "deleted_after"), [(-1.0, None), (30.0, 30.0), (0.0, 5.0)])
def test_retention_keeps_a_topic_longer(retention: float, deleted_after: float | None) -> None:
    world = world_with_topic()
    world.broker.administration.set_policies(
        world.now, TOPIC, {"retention_time": retention, "retention_size": -1 if retention else 0}
    )
    world.advance((deleted_after or 1000.0) - LOOK)
    assert exists(world)
    world.advance(2 * LOOK)
    assert exists(world) is (deleted_after is None)


def test_a_partition_is_deleted_alone_and_comes_back_when_it_is_used() -> None:
    """The number of partitions stays, as in the Java broker."""
    world = world_with_topic()
    base = "persistent://public/default/p"
    world.broker.topic_administration.create_partitioned_topic(world.now, base, 2)
    peer = world.connect()
    peer.producer(f"{base}-partition-1")
    world.advance(10.0)
    assert (exists(world, f"{base}-partition-0"), exists(world, f"{base}-partition-1")) == (False, True)
    metadata: dict[str, Any] = world.broker.topic_administration.partitions_metadata(base)
    assert metadata["partitions"] == 2
    stats = world.broker.topic_administration.partitioned_stats(base)
    assert list(stats["partitions"]) == [f"{base}-partition-1"]
    peer.producer(f"{base}-partition-0", 1)
    assert exists(world, f"{base}-partition-0")


def test_the_schema_of_a_deleted_topic_is_gone() -> None:
    world = world_with_topic()
    world.broker.schema_administration.register_schema(world.now, TOPIC, "STRING")
    world.advance(10.0)
    assert world.broker.schema_administration.schema_versions(TOPIC) == []
