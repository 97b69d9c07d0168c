"""Each policy holds at each level: set in the broker's configuration, for a namespace, for a topic."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig, Policies
from pulsar_sansio.broker.policies import BacklogQuota, InactiveTopics, MessageRate, SubscribeRate
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World

NAMESPACE = "public/default"


def refused(peer: Peer) -> bool:
    """True where the last request got ERROR."""
    number, _ = peer.inbox.pop()
    peer.inbox.clear()
    return bool(number == Type.ERROR)


def second_producer(world: World, peer: Peer) -> bool:
    peer.producer(name="a")
    peer.ask_producer(producer_id=1, name="b")
    return refused(peer)


def second_consumer(world: World, peer: Peer) -> bool:
    peer.subscribe(SubType.Shared, subscription="a")
    peer.ask_subscribe(SubType.Shared, consumer_id=1, subscription="a")
    return refused(peer)


def second_subscription(world: World, peer: Peer) -> bool:
    peer.subscribe(subscription="a")
    peer.ask_subscribe(consumer_id=1, subscription="b")
    return refused(peer)


def new_subscription(world: World, peer: Peer) -> bool:
    peer.ask_subscribe(subscription="a")
    return refused(peer)


def plain_producer(world: World, peer: Peer) -> bool:
    peer.ask_producer()
    return refused(peer)


def plain_producer_beside_a_schema(world: World, peer: Peer) -> bool:
    world.broker.schema_administration.register_schema(world.now, TOPIC, "STRING")
    return plain_producer(world, peer)


def other_schema(world: World, peer: Peer) -> bool:
    """A string is no boolean, whatever the strategy is, unless all versions are compatible."""
    world.broker.schema_administration.register_schema(world.now, TOPIC, "STRING")
    peer.ask_producer(schema=proto.Schema(name="", type=proto.Schema.Bool, schema_data=b""))
    return refused(peer)


def large_message(world: World, peer: Peer) -> bool:
    peer.producer()
    peer.publish(b"x" * 2001, 0)
    number, _ = peer.inbox.pop()
    return bool(number == Type.SEND_ERROR)


def repeated_message(world: World, peer: Peer) -> bool:
    """The receipt of a duplicate has no id."""
    peer.producer(name="a")
    for _ in range(2):
        peer.publish(b"x", 0, producer_name="a")
    _, second = peer.receipts()
    return second == (0, -1, -1)


def distant_message(world: World, peer: Peer) -> bool:
    peer.producer()
    peer.publish(b"x", 0, publish_time=world.wall, deliver_at_time=world.wall + 60_000)
    number, _ = peer.inbox.pop()
    return bool(number == Type.SEND_ERROR)


def published(world: World, peer: Peer, count: int) -> Peer:
    """The messages are published by `peer`. A consumer of `a`, which is there since before, is returned."""
    consumer = world.connect()
    consumer.subscribe(SubType.Shared, subscription="a", permits=0)
    peer.producer()
    for number in range(count):
        peer.publish(b"%d" % number, number)
    peer.inbox.clear()
    return consumer


def delayed_message(world: World, peer: Peer) -> bool:
    consumer = published(world, peer, 0)
    peer.publish(b"x", 0, publish_time=world.wall, deliver_at_time=world.wall + 60_000)
    consumer.flow(10)
    return len(consumer.payloads()) == 1


def held_back(world: World, peer: Peer) -> bool:
    consumer = published(world, peer, 5)
    consumer.flow(10)
    return len(consumer.payloads()) < 5


def acknowledged_by_time(world: World, peer: Peer) -> bool:
    published(world, peer, 3)
    world.advance(600.0)
    return backlog(world) == 0


def backlog(world: World) -> int:
    stats = world.broker.topic_administration.stats(TOPIC)
    return int(stats["subscriptions"]["a"]["msgBacklog"])


def ledgers_are_kept(world: World, peer: Peer) -> bool:
    published(world, peer, 5)
    world.broker.subscription_administration.skip_messages(world.now, TOPIC, "a")
    world.pump()
    stats = world.broker.topic_administration.internal_stats(TOPIC)
    return bool(stats["numberOfEntries"] == 5)


def producer_beyond_the_quota(world: World, peer: Peer) -> bool:
    published(world, peer, 3)
    world.advance(600.0)
    late = world.connect()
    late.ask_producer(producer_id=5, name="late")
    return refused(late)


def subscription_is_gone(world: World, peer: Peer) -> bool:
    peer.subscribe(subscription="a")
    peer.close_consumer(0)
    world.advance(600.0)
    return world.broker.subscription_administration.subscriptions(TOPIC) == []


def topic_is_gone(world: World, peer: Peer) -> bool:
    world.advance(600.0)
    return world.broker.topic_administration.topics(NAMESPACE) == []


def connection_waits(world: World, peer: Peer) -> bool:
    peer.producer()
    peer.publish(b"x", 0)
    return not world.broker.wants_read(peer.link)


def second_subscribe(world: World, peer: Peer) -> bool:
    peer.subscribe(subscription="a")
    peer.close_consumer(0)
    peer.ask_subscribe(subscription="a")
    return refused(peer)


def compacted(world: World, peer: Peer) -> bool:
    published(world, peer, 3)
    world.advance(600.0)
    return world.broker.topic_administration.compaction_status(TOPIC)[0] == "SUCCESS"


EXCEPTION = "producer_exception"
EFFECTS: dict[str, tuple[object, Callable[[World, Peer], bool]]] = {
    "deduplication": (True, repeated_message),
    "auto_subscription_creation": (False, new_subscription),
    "max_unacked_messages_per_consumer": (2, held_back),
    "max_unacked_messages_per_subscription": (2, held_back),
    "max_producers": (1, second_producer),
    "max_consumers": (1, second_consumer),
    "max_consumers_per_subscription": (1, second_consumer),
    "max_message_size": (2000, large_message),
    "message_ttl": (100, acknowledged_by_time),
    "retention_time": (100_000, ledgers_are_kept),
    "retention_size": (100_000, ledgers_are_kept),
    "encryption_required": (True, plain_producer),
    "delayed_delivery": (False, delayed_message),
    "delayed_delivery_max": (30, distant_message),
    "backlog_quota_size": (BacklogQuota(EXCEPTION, limit_size=1), producer_beyond_the_quota),
    "backlog_quota_time": (BacklogQuota(EXCEPTION, limit_time=1), producer_beyond_the_quota),
    "compaction_threshold": (1, compacted),
    "max_subscriptions": (1, second_subscription),
    "subscription_types": (("Shared",), new_subscription),
    "subscription_expiration": (100, subscription_is_gone),
    "inactive_topics": (InactiveTopics(True, 100), topic_is_gone),
    "publish_rate": (MessageRate(messages=1, period=1000), connection_waits),
    "dispatch_rate": (MessageRate(messages=1, period=1000), held_back),
    "subscription_dispatch_rate": (MessageRate(messages=1, period=1000), held_back),
    "subscribe_rate": (SubscribeRate(1, 1000), second_subscribe),
    "schema_compatibility": ("ALWAYS_INCOMPATIBLE", other_schema),
    "schema_auto_update": (False, other_schema),
    "schema_validation_enforced": (True, plain_producer_beside_a_schema),
}
"""Policy -> a value, and what it brings about."""

OF_OTHERS = {
    "auto_topic_creation": "topics that do not exist have no policies",
    "auto_topic_partitions": "topics that do not exist have no policies",
    "max_topics": "a topic has none",
    "dispatch_rates": "only a topic has them",
    "delayed_delivery_tick": "how exact deliveries are",
}
"""Policies that tests of their own show, and why they are not here."""

OPTIONS = {field.name for field in fields(BrokerConfig)}
ALWAYS_REFUSED = {"schema_compatibility", "schema_auto_update"}
"""Without the policy the effect is there, too: the default strategy refuses a boolean after a string."""


def world_with(policy: str, value: object, level: str) -> World:
    config: dict[str, Any] = {"keepalive_interval": 100_000, "ledger_max_entries": 1}
    if level == "broker":
        config |= {policy: value} if policy in OPTIONS else {"default_policies": policies(policy, value)}
    world = World(BrokerConfig(**config))
    world.broker.topic_administration.create_topic(world.now, TOPIC)
    if level != "broker":
        scope = NAMESPACE if level == "namespace" else TOPIC
        values = {field: getattr(policies(policy, value), field) for field in set_in(policy)}
        world.broker.administration.set_policies(world.now, scope, values)
    world.pump()
    return world


def set_in(policy: str) -> tuple[str, ...]:
    """Retention needs both of its limits: one that is not set keeps nothing."""
    return ("retention_time", "retention_size") if policy.startswith("retention") else (policy,)


def policies(policy: str, value: object) -> Policies:
    other = {name: -1 for name in set_in(policy) if name != policy}
    return Policies().with_policies({policy: value, **other})


LEVELS = [
    (policy, level)
    for policy in EFFECTS
    for level in ("broker", "namespace", "topic")
    if (policy, level) != ("max_message_size", "broker")
]
"""The option `max_message_size` is a limit of frames, which a policy only lowers."""


@pytest.mark.parametrize(("policy", "level"), LEVELS)
def test_a_policy_has_its_effect_at_each_level(policy: str, level: str) -> None:
    """Rules TENANT-01 and TENANT-04."""
    value, effect = EFFECTS[policy]
    world = world_with(policy, value, level)
    assert effect(world, world.connect())


@pytest.mark.parametrize("policy", sorted(EFFECTS.keys() - ALWAYS_REFUSED))
def test_the_effect_is_that_of_the_policy(policy: str) -> None:
    world = World(BrokerConfig(keepalive_interval=100_000, ledger_max_entries=1))
    world.broker.topic_administration.create_topic(world.now, TOPIC)
    assert not EFFECTS[policy][1](world, world.connect())


def test_every_policy_is_here() -> None:
    assert {field.name for field in fields(Policies)} == EFFECTS.keys() | OF_OTHERS.keys()
