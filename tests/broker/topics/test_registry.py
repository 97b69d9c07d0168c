"""The topics that a broker serves: how many partitions each has, and the first reason not to create one."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.topics.registry import TopicRegistry
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.model.errors import BrokerError, NotAllowed, TopicNotFound
from pulsar_sansio.model.topic_name import TopicName
from tests.broker.peer import World

NAMESPACE = "public/default"


def name(local: str) -> TopicName:
    return TopicName.parse(local)


def given(config: BrokerConfig | None = None, **policies: Any) -> tuple[World, TopicRegistry]:
    """A broker with the topic `plain`, the topic `parted` in two partitions, and these policies."""
    world = World(config)
    topics = world.broker.topic_administration
    topics.create_topic(0, "plain")
    topics.create_partitioned_topic(0, "parted", 2)
    world.broker.administration.set_policies(0, NAMESPACE, policies)
    world.pump()
    return world, world.broker.topics


@pytest.mark.parametrize(("topic", "partitions"), [("plain", 0), ("parted", 2), ("parted-partition-1", 0)])
def test_the_number_of_partitions(topic: str, partitions: int) -> None:
    """Rule WIRE-03."""
    _, registry = given()
    assert registry.partitions_for(name(topic), create=False) == partitions


@pytest.mark.parametrize("topic", ["parted-partition-7", "new-partition-0"])
def test_a_partition_that_does_not_exist_is_not_found_unless_it_may_be_created(topic: str) -> None:
    """Rule WIRE-03."""
    _, registry = given()
    with pytest.raises(TopicNotFound):
        registry.partitions_for(name(topic), create=False)
    assert registry.partitions_for(name(topic), create=True) == 0


@pytest.mark.parametrize(
    ("policies", "create", "partitions"),
    [
        ({}, True, 0),
        ({}, False, None),
        ({"auto_topic_creation": False}, True, None),
        ({"auto_topic_partitions": 3}, True, 3),
        ({"auto_topic_partitions": 3}, False, None),
    ],
)
def test_a_question_for_partitions_creates_them_where_that_is_the_policy(
    policies: dict[str, Any], create: bool, partitions: int | None
) -> None:
    """A topic without partitions is created by its first producer or consumer."""
    _, registry = given(**policies)
    if partitions is None:
        with pytest.raises(TopicNotFound):
            registry.partitions_for(name("new"), create)
    else:
        assert registry.partitions_for(name("new"), create) == partitions
    made = [each for each in registry.by_name if "/new" in each]
    assert made == [str(name("new").partition_name(index)) for index in range(partitions or 0)]


CASES: list[tuple[dict[str, Any], str, bool, type[BrokerError] | None]] = [
    ({}, "plain", False, None),
    ({}, "new", True, None),
    ({}, "non-persistent://public/default/new", True, None),
    ({}, "parted-partition-1", False, None),
    ({}, "new", False, TopicNotFound),
    ({}, "parted", True, NotAllowed),
    ({}, "parted-partition-2", True, TopicNotFound),
    ({}, "new-partition-0", True, None),
    ({"auto_topic_creation": False}, "new", True, TopicNotFound),
    ({"auto_topic_creation": False}, "plain", True, None),
    ({"max_topics": 3}, "new", True, NotAllowed),
    ({"max_topics": 4}, "new", True, None),
    ({"max_topics": 3}, "plain", True, None),
    ({"max_topics": 3}, "non-persistent://public/default/new", True, NotAllowed),
    ({"max_topics": 3, "auto_topic_creation": False}, "new", True, TopicNotFound),
]


@pytest.mark.parametrize(("policies", "topic", "create", "refusal"), CASES)
def test_a_topic_for_a_producer_or_consumer(
    policies: dict[str, Any], topic: str, create: bool, refusal: type[BrokerError] | None
) -> None:
    _, registry = given(**policies)
    before = list(registry.by_name)
    if refusal is None:
        made = registry.for_use(name(topic), create)
        assert registry.by_name[str(name(topic))] is made
        assert isinstance(made, Topic) == name(topic).persistent
        assert registry.for_use(name(topic), create=False) is made
    else:
        with pytest.raises(refusal):
            registry.for_use(name(topic), create)
        assert list(registry.by_name) == before


@pytest.mark.parametrize(("most", "room"), [(3, False), (4, True)])
def test_the_broker_as_a_whole_has_room_for_so_many_topics(most: int, room: bool) -> None:
    _, registry = given(BrokerConfig(max_topics=most))
    if room:
        registry.for_use(name("new"), create=True)
    else:
        with pytest.raises(NotAllowed, match="Exceed maximum number of topics"):
            registry.for_use(name("new"), create=True)


@pytest.mark.parametrize(
    ("policies", "topic", "found"),
    [
        ({}, "plain", True),
        ({}, "new", True),
        ({"auto_topic_creation": False}, "plain", True),
        ({"auto_topic_creation": False}, "parted", True),
        ({"auto_topic_creation": False}, "parted-partition-1", True),
        ({"auto_topic_creation": False}, "parted-partition-2", False),
        ({"auto_topic_creation": False}, "new", False),
    ],
)
def test_topics_that_are_there_or_may_be_created(policies: dict[str, Any], topic: str, found: bool) -> None:
    _, registry = given(**policies)
    assert registry.has_or_may_create(name(topic)) == found


def test_new_partitions_get_the_durable_subscriptions_of_the_first() -> None:
    """A consumer of the new partitions misses nothing that is published before it subscribes."""
    world, registry = given()
    peer = world.connect()
    first = str(name("parted").partition_name(0))
    properties = [{"key": "a", "value": "b"}]
    peer.subscribe(topic=first, subscription="kept", subscription_properties=properties)
    peer.subscribe(topic=first, subscription="read", consumer_id=1, durable=False)
    registry.create_partitions(name("parted"), 3)
    world.pump()
    stats = world.broker.topic_administration.stats(str(name("parted").partition_name(2)))
    assert list(stats["subscriptions"]) == ["kept"]
    assert stats["subscriptions"]["kept"]["subscriptionProperties"] == {"a": "b"}
    assert registry.partitions_for(name("parted"), create=False) == 3
