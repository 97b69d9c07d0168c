"""The administrator's commands, and the frames that clients receive because of them."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.broker import (
    AlreadyExists,
    Broker,
    BrokerConfig,
    InUse,
    NotFound,
    Policies,
)
from pulsar_sansio.model.errors import InvalidConfiguration, InvalidTopicName, LocalProtocolError
from pulsar_sansio.model.message_id import MessageId
from tests.broker.peer import TOPIC, WALL, SubType, Type, World


def test_tenants_and_namespaces_survive() -> None:
    world = World()
    world.broker.administration.create_tenant(0, "a")
    world.broker.administration.create_namespace(0, "a/b")
    world.broker.topic_administration.create_partitioned_topic(0, "persistent://a/b/t", 2)
    world.broker.administration.set_policy(0, "a/b", "deduplication", True)
    world.pump()
    world.start()
    assert len(world.broker.topic_administration.topics("a/b")) == 2
    peer = world.connect()
    peer.producer("persistent://a/b/t-partition-0", name="n")
    assert (
        world.broker.topic_administration.stats("persistent://a/b/t-partition-0")["deduplicationStatus"]
        == "Enabled"
    )
    with pytest.raises(AlreadyExists):
        world.broker.administration.create_tenant(0, "a")
    with pytest.raises(AlreadyExists):
        world.broker.administration.create_namespace(0, "a/b")


MISTAKES: dict[str, tuple[type[LocalProtocolError], Callable[[Broker], object]]] = {
    "tenant's name": (InvalidTopicName, lambda broker: broker.administration.create_tenant(0, "a/b")),
    "no tenant": (NotFound, lambda broker: broker.administration.create_namespace(0, "x/y")),
    "no namespace": (
        NotFound,
        lambda broker: broker.topic_administration.create_topic(0, "persistent://x/y/t"),
    ),
    "no namespace to list": (NotFound, lambda broker: broker.topic_administration.topics("x/y")),
    "topic exists": (AlreadyExists, lambda broker: broker.topic_administration.create_topic(0, TOPIC)),
    "partitioned topic exists": (
        AlreadyExists,
        lambda broker: broker.topic_administration.create_partitioned_topic(0, TOPIC, 2),
    ),
    "no partitions": (
        InvalidConfiguration,
        lambda broker: broker.topic_administration.create_partitioned_topic(0, "p", 0),
    ),
    "a partition": (
        InvalidConfiguration,
        lambda broker: broker.topic_administration.create_partitioned_topic(0, "p-partition-1", 2),
    ),
    "not partitioned": (NotFound, lambda broker: broker.topic_administration.update_partitions(0, TOPIC, 2)),
    "no topic": (NotFound, lambda broker: broker.topic_administration.unload(0, "other")),
    "no topic's stats": (NotFound, lambda broker: broker.topic_administration.stats("other")),
    "no subscription": (
        NotFound,
        lambda broker: broker.subscription_administration.reset_cursor(0, TOPIC, "x", 0),
    ),
    "no such policy": (
        InvalidConfiguration,
        lambda broker: broker.administration.set_policy(0, TOPIC, "colour", 1),
    ),
    "a wrong value": (
        InvalidConfiguration,
        lambda broker: broker.administration.set_policy(0, TOPIC, "max_consumers", "2"),
    ),
    "a wrong bool": (
        InvalidConfiguration,
        lambda broker: broker.administration.set_policy(0, TOPIC, "deduplication", 1),
    ),
    "negative": (
        InvalidConfiguration,
        lambda broker: broker.administration.set_policy(0, TOPIC, "max_consumers", -1),
    ),
    "a retention time below -1": (
        InvalidConfiguration,
        lambda broker: broker.administration.set_policy(0, TOPIC, "retention_time", -2),
    ),
    "a retention size below -1": (
        InvalidConfiguration,
        lambda broker: broker.administration.set_policy(0, TOPIC, "retention_size", -2),
    ),
    "policy of nothing": (
        NotFound,
        lambda broker: broker.administration.set_policy(0, "x/y", "deduplication", True),
    ),
    "policy of no topic": (
        NotFound,
        lambda broker: broker.administration.set_policy(
            0, "persistent://public/default/x", "deduplication", True
        ),
    ),
}


@pytest.mark.parametrize(("error", "mistake"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_change_nothing(
    error: type[LocalProtocolError], mistake: Callable[[Broker], object]
) -> None:
    world = World()
    world.broker.topic_administration.create_topic(0, TOPIC)
    world.pump()
    with pytest.raises(error):
        mistake(world.broker)
    assert not world.broker.has_output
    assert world.broker.topic_administration.topics("public/default") == [TOPIC]


def test_more_partitions() -> None:
    """New partitions get the subscriptions of the present ones, so that no message is missed."""
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 1)
    peer = world.connect()
    peer.subscribe(topic=TOPIC + "-partition-0")
    world.broker.topic_administration.update_partitions(0, TOPIC, 2)
    peer.producer(TOPIC + "-partition-1")
    peer.publish(b"x")
    peer.expect(Type.SEND_RECEIPT)
    assert (
        world.broker.topic_administration.stats(TOPIC + "-partition-1")["subscriptions"]["s"]["backlog"] == 1
    )
    with pytest.raises(InvalidConfiguration):
        world.broker.topic_administration.update_partitions(0, TOPIC, 2)


def test_deleting() -> None:
    """Rule CFG-523."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.publish(b"x")
    peer.inbox.clear()
    with pytest.raises(LocalProtocolError):
        world.broker.topic_administration.delete_topic(0, TOPIC)
    world.broker.topic_administration.delete_topic(0, TOPIC, force=True)
    world.pump()
    assert {number for number, _ in peer.inbox} == {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}
    assert world.broker.topic_administration.topics("public/default") == []
    world.start()
    assert world.broker.topic_administration.topics("public/default") == []


def test_deleting_with_messages_on_their_way() -> None:
    world = World()
    peer = world.connect()
    peer.producer(name="a")
    world.broker.administration.set_policy(0, TOPIC, "deduplication", True)
    world.pump()
    world.hold_writes = True
    for sequence in range(3):
        peer.publish(b"x", sequence)
    world.broker.topic_administration.delete_topic(0, TOPIC, force=True)
    world.pump()
    world.sync()
    assert [number for number, _ in peer.inbox] == [Type.SEND_RECEIPT] * 3 + [Type.CLOSE_PRODUCER]
    world.start()
    assert world.broker.topic_administration.topics("public/default") == []


def test_deleting_a_partitioned_topic() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 3)
    world.broker.topic_administration.delete_topic(0, TOPIC)
    assert world.broker.topic_administration.topics("public/default") == []
    world.broker.topic_administration.create_topic(0, TOPIC)


def test_terminating_an_empty_topic() -> None:
    world = World()
    world.broker.topic_administration.create_topic(0, TOPIC)
    assert world.broker.topic_administration.terminate(0, TOPIC) == MessageId(0, -1)
    world.broker.topic_administration.create_partitioned_topic(0, "p", 2)
    with pytest.raises(LocalProtocolError):
        world.broker.topic_administration.terminate(0, "p")


def test_resetting_a_cursor() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    for number in range(3):
        peer.publish(b"%d" % number, number)
    peer.inbox.clear()
    world.broker.subscription_administration.reset_cursor(0, TOPIC, "s", MessageId(0, 2))
    world.pump()
    peer.expect(Type.CLOSE_CONSUMER)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["backlog"] == 1
    world.broker.subscription_administration.reset_cursor(0, TOPIC, "s", WALL)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["backlog"] == 3


def test_policies_are_looked_up_topic_first() -> None:
    world = World(BrokerConfig(deduplication=True))
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 1)
    name = TOPIC + "-partition-0"

    def deduplication() -> str:
        status: str = world.broker.topic_administration.stats(name)["deduplicationStatus"]
        return status

    assert deduplication() == "Enabled", "the broker's"
    world.broker.administration.set_policy(0, "public/default", "deduplication", False)
    assert deduplication() == "Disabled", "the namespace's"
    world.broker.administration.set_policy(0, TOPIC, "deduplication", True)
    assert deduplication() == "Enabled", "the partitioned topic's"
    world.broker.administration.set_policy(0, name, "deduplication", False)
    assert deduplication() == "Disabled", "the partition's"
    world.broker.administration.set_policy(0, name, "deduplication", None)
    assert deduplication() == "Enabled"


def test_stats_show_the_connected_clients() -> None:
    world = World()
    peer = world.connect()
    peer.producer(name="p", metadata=[{"key": "k", "value": "v"}])
    peer.subscribe(SubType.Key_Shared)
    peer.publish(b"x")
    stats = world.broker.topic_administration.stats(TOPIC)
    assert stats["publishers"][0]["producerName"] == "p"
    assert stats["publishers"][0]["metadata"] == {"k": "v"}
    assert stats["subscriptions"]["s"]["type"] == "Key_Shared"
    assert stats["subscriptions"]["s"]["consumers"][0]["keyHashRangeArrays"] == [[0, 65535]]
    inside = world.broker.topic_administration.internal_stats(TOPIC)
    assert inside["lastConfirmedEntry"] == "0:0"
    assert inside["cursors"]["s"]["markDeletePosition"] == "0:-1"


@given(st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1)))
def test_wall_text_is_the_calendar(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    assert Broker.wall_text(round(moment.timestamp()) * 1000) == f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def test_wall_text() -> None:
    assert Broker.wall_text(WALL) == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize(
    "options",
    [
        {"keepalive_interval": 0},
        {"max_connections": 0},
        {"max_message_size": "1"},
        {"service_url": "http://x"},
        {"reached_end_of_topic": "always"},
        {"ledger_max_entries": True},
        {"keep_without_subscription": -1},
        {"keep_without_subscription": 2**40 + 1},
    ],
)
def test_options_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(InvalidConfiguration):
        BrokerConfig(**options)  # type: ignore[arg-type]


def test_tenants_come_and_go() -> None:
    """Rule TENANT-01."""
    world = World()
    world.broker.administration.create_tenant(0, "a", ["y", "x", "x"])
    assert list(world.broker.metadata.tenants["a"]) == ["x", "y"]
    world.broker.administration.update_tenant(0, "a", ["z"])
    world.pump()
    world.start()
    assert list(world.broker.metadata.tenants["a"]) == ["z"]
    world.broker.administration.create_namespace(0, "a/b")
    with pytest.raises(InUse):
        world.broker.administration.delete_tenant(0, "a")
    world.broker.administration.delete_namespace(0, "a/b")
    world.broker.administration.delete_tenant(0, "a")
    world.pump()
    world.start()
    assert "a" not in world.broker.metadata.tenants
    for command in (
        lambda: world.broker.administration.delete_tenant(0, "a"),
        lambda: world.broker.administration.update_tenant(0, "a", []),
        lambda: world.broker.administration.namespaces("a"),
    ):
        with pytest.raises(NotFound):
            command()
    with pytest.raises(InvalidConfiguration):
        world.broker.administration.create_tenant(0, "c", [1])  # type: ignore[list-item]


def test_namespaces_come_and_go() -> None:
    world = World()
    world.broker.administration.create_namespace(0, "public/n", {"deduplication": True, "message_ttl": 5})
    assert world.broker.administration.namespaces("public") == ["public/default", "public/n"]
    assert world.broker.administration.policies_of("public/n").deduplication is True
    with pytest.raises(InvalidConfiguration):
        world.broker.administration.create_namespace(0, "public/m", {"colour": 1})
    assert world.broker.administration.namespaces("public") == ["public/default", "public/n"]
    world.broker.topic_administration.create_partitioned_topic(0, "non-persistent://public/n/p", 1)
    with pytest.raises(InUse):
        world.broker.administration.delete_namespace(0, "public/n")
    world.broker.topic_administration.delete_topic(0, "non-persistent://public/n/p")
    world.broker.administration.delete_namespace(0, "public/n")
    world.pump()
    world.start()
    assert world.broker.administration.namespaces("public") == ["public/default"]
    with pytest.raises(NotFound):
        world.broker.administration.delete_namespace(0, "public/n")


def test_a_name_of_a_topic_is_none_of_a_namespace() -> None:
    world = World()
    world.broker.topic_administration.create_topic(0, TOPIC)
    world.broker.administration.set_policy(0, TOPIC, "deduplication", True)
    with pytest.raises(NotFound):
        world.broker.topic_administration.topics(TOPIC)
    with pytest.raises(NotFound):
        world.broker.administration.unload_namespace(0, TOPIC)
    assert world.broker.administration.namespaces("public") == ["public/default"]


def test_unloading_a_namespace() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.inbox.clear()
    world.broker.administration.unload_namespace(0, "pulsar/system")
    world.pump()
    assert not peer.inbox
    world.broker.administration.unload_namespace(0, "public/default")
    world.pump()
    assert {number for number, _ in peer.inbox} == {Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER}


def test_several_policies_are_set_together_or_not_at_all() -> None:
    world = World()
    world.broker.administration.set_policies(
        0, "public/default", {"retention_time": 60, "retention_size": 1000}
    )
    with pytest.raises(InvalidConfiguration):
        world.broker.administration.set_policies(
            0, "public/default", {"retention_time": 70, "retention_size": "much"}
        )
    set_ = world.broker.administration.policies_of("public/default")
    assert (set_.retention_time, set_.retention_size) == (60, 1000)


def test_policies_that_are_set_and_policies_that_count() -> None:
    world = World(BrokerConfig(deduplication=True))
    world.broker.topic_administration.create_topic(0, TOPIC)
    world.broker.administration.set_policy(0, "public/default", "max_producers", 3)
    assert world.broker.administration.policies_of(TOPIC) == Policies()
    applied = world.broker.administration.policies_of(TOPIC, applied=True)
    assert (applied.deduplication, applied.max_producers) == (True, 3)
    assert world.broker.administration.policies_of("public/default", applied=True).deduplication is True
    with pytest.raises(NotFound):
        world.broker.administration.policies_of("public/none")


@pytest.mark.parametrize("odd", [None, 5, True, b"public/default", ["public/default"], object()])
def test_what_is_no_name_changes_nothing(odd: Any) -> None:
    """An administrator's mistake does not end the broker."""
    world = World()
    world.connect().subscribe(SubType.Shared)
    broker = world.broker
    calls: list[Callable[[], object]] = [
        lambda: broker.administration.create_tenant(world.now, odd),
        lambda: broker.administration.create_namespace(world.now, odd),
        lambda: broker.administration.set_policy(world.now, odd, "message_ttl", 5),
        lambda: broker.administration.set_policy(world.now, TOPIC, odd, 5),
        lambda: broker.topic_administration.create_topic(world.now, odd),
        lambda: broker.topic_administration.create_partitioned_topic(world.now, odd, 2),
        lambda: broker.topic_administration.unload(world.now, odd),
        lambda: broker.topic_administration.terminate(world.now, odd),
        lambda: broker.topic_administration.delete_topic(world.now, odd),
        lambda: broker.subscription_administration.reset_cursor(world.now, odd, "s", 0),
        lambda: broker.subscription_administration.reset_cursor(world.now, TOPIC, odd, 0),
        lambda: broker.topic_administration.topics(odd),
        lambda: broker.topic_administration.stats(odd),
    ]
    for call in calls:
        with pytest.raises(LocalProtocolError):
            call()
    for position in (None, "0", 1.5, True, MessageId("1", 2)):  # type: ignore[arg-type]
        with pytest.raises(InvalidConfiguration, match="position: "):
            broker.subscription_administration.reset_cursor(world.now, TOPIC, "s", position)  # type: ignore[arg-type]
    broker.subscription_administration.reset_cursor(world.now, TOPIC, "s", 0)


@pytest.mark.parametrize("name", ["cluster", "server_version", "feature_flags", "deduplication"])
@pytest.mark.parametrize("odd", [None, 1.5, b"", "\ud800", ""])
def test_wrong_options_of_a_broker(name: str, odd: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=f"{name}: "):
        BrokerConfig(**{name: odd})
