"""The administrator's commands on topics: partitions, properties, subscriptions, connected clients."""

import pytest

from pulsar_sansio.broker import AlreadyExists, InUse, NotApplicable, NotFound, StatsOptions
from pulsar_sansio.model.errors import InvalidConfiguration, InvalidTopicName
from pulsar_sansio.model.message_id import EARLIEST, MessageId
from tests.broker.peer import TOPIC, Type, World

P = "persistent://public/default/p"


def test_properties_survive_and_go_with_the_topic() -> None:
    world = World()
    world.broker.topic_administration.create_topic(0, TOPIC, {"a": "b"})
    world.broker.topic_administration.create_partitioned_topic(0, P, 2, {"c": "d"})
    world.pump()
    world.start()
    assert world.broker.administration.topic_properties(TOPIC) == {"a": "b"}
    assert world.broker.topic_administration.partitions_metadata(P) == {
        "partitions": 2,
        "deleted": False,
        "properties": {"c": "d"},
    }
    for topic in (TOPIC, P):
        world.broker.topic_administration.delete_topic(0, topic)
        world.pump()
        world.start()
        with pytest.raises(NotFound):
            world.broker.administration.topic_properties(topic)
        world.broker.topic_administration.create_topic(0, topic)
        assert world.broker.administration.topic_properties(topic) == {}


@pytest.mark.parametrize("properties", [{"a": 1}, {1: "a"}, {"a": "b" * 70_000}])
def test_properties_that_cannot_be(properties: dict[str, str]) -> None:
    world = World()
    with pytest.raises(InvalidConfiguration):
        world.broker.topic_administration.create_topic(0, TOPIC, properties)
    with pytest.raises(InvalidConfiguration):
        world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 2, properties)
    assert world.broker.topic_administration.topics("public/default") == []


def test_names_of_partitions_belong_to_a_partitioned_topic() -> None:
    world = World()
    with pytest.raises(InvalidConfiguration):
        world.broker.topic_administration.create_topic(0, P + "-partition-0")
    world.broker.topic_administration.create_partitioned_topic(0, P, 2)
    with pytest.raises(AlreadyExists):
        world.broker.topic_administration.create_topic(0, P + "-partition-0")
    with pytest.raises(InvalidConfiguration):
        world.broker.topic_administration.create_topic(0, P + "-partition-2")
    world.broker.topic_administration.delete_topic(0, P + "-partition-1")
    world.broker.topic_administration.create_topic(0, P + "-partition-1")
    assert len(world.broker.topic_administration.topics("public/default")) == 2


@pytest.mark.parametrize(
    "name", ["persistent://public/default/a\nb", "persistent://public/default/" + "a" * 5000]
)
def test_names_that_clients_could_not_use(name: str) -> None:
    world = World()
    with pytest.raises(InvalidTopicName):
        world.broker.topic_administration.create_topic(0, name)


def test_partitions_of_a_topic_are_there_for_clients_also_where_topics_are_not_made_by_use() -> None:
    world = World()
    world.broker.administration.set_policy(0, "public/default", "auto_topic_creation", False)
    world.broker.topic_administration.create_partitioned_topic(0, P, 2)
    world.broker.topic_administration.delete_topic(0, P + "-partition-1")
    world.pump()
    peer = world.connect()
    peer.producer(P + "-partition-1")
    assert P + "-partition-1" in world.broker.topic_administration.topics("public/default")


def test_the_number_of_partitions_of_a_topic_about_to_be_used() -> None:
    world = World()
    world.broker.administration.create_namespace(
        0, "public/n", {"auto_topic_partitions": 3, "auto_topic_creation": True}
    )
    assert world.broker.topic_administration.partitions_for_use(0, "public/n/t")["partitions"] == 3
    assert len(world.broker.topic_administration.topics("public/n")) == 3
    assert world.broker.topic_administration.partitions_for_use(0, "public/default/t") == {
        "partitions": 0,
        "deleted": False,
    }
    assert world.broker.topic_administration.topics("public/default") == [], "it is made when it is used"
    world.broker.administration.set_policy(0, "public/n", "auto_topic_creation", False)
    with pytest.raises(NotFound):
        world.broker.topic_administration.partitions_for_use(0, "public/n/other")
    with pytest.raises(NotFound):
        world.broker.topic_administration.partitions_for_use(0, "public/none/t")


def test_what_a_partitioned_topic_has_not() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, P, 2)
    for command in (
        world.broker.topic_administration.stats,
        world.broker.topic_administration.internal_stats,
        world.broker.topic_administration.last_message_id,
    ):
        with pytest.raises(NotApplicable):
            command(P)
    with pytest.raises(NotApplicable):
        world.broker.topic_administration.terminate(0, P)
    world.broker.topic_administration.create_topic(0, TOPIC)
    for command in (
        world.broker.topic_administration.partitioned_stats,
        world.broker.topic_administration.partitioned_internal_stats,
    ):
        with pytest.raises(NotApplicable):
            command(TOPIC)


def test_stats_of_all_partitions() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, P, 2)
    peer = world.connect()
    for index in range(2):
        peer.producer(f"{P}-partition-{index}", producer_id=index, name="p")
        peer.publish(b"x", producer_id=index)
        peer.inbox.clear()
    stats = world.broker.topic_administration.partitioned_stats(P)
    assert stats["msgInCounter"] == 2
    assert [each["producerName"] for each in stats["publishers"]] == ["p"], "one, with two attachments"
    assert set(stats["partitions"]) == {f"{P}-partition-0", f"{P}-partition-1"}
    alone = world.broker.topic_administration.partitioned_stats(
        P, StatsOptions(publishers=False), per_partition=False
    )
    assert (alone["partitions"], alone["publishers"], alone["msgInCounter"]) == ({}, [], 2)


def test_only_the_connected_are_in_the_way() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    with pytest.raises(InUse, match="2 connected"):
        world.broker.topic_administration.delete_topic(0, TOPIC)
    peer.close_consumer()
    with pytest.raises(InUse, match="1 connected"):
        world.broker.topic_administration.delete_topic(0, TOPIC)
    peer.close_producer()
    world.broker.topic_administration.delete_topic(0, TOPIC)
    assert world.broker.topic_administration.topics("public/default") == []


def test_a_subscription_made_and_deleted() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    for number in range(4):
        peer.publish(b"x", number)
    world.broker.subscription_administration.create_subscription(0, TOPIC, "early", EARLIEST)
    world.broker.subscription_administration.create_subscription(0, TOPIC, "middle", MessageId(0, 3))
    world.broker.subscription_administration.create_subscription(0, TOPIC, "late")
    backlogs = {
        name: each["msgBacklog"]
        for name, each in world.broker.topic_administration.stats(TOPIC)["subscriptions"].items()
    }
    assert backlogs == {"early": 4, "middle": 1, "late": 0}
    with pytest.raises(AlreadyExists):
        world.broker.subscription_administration.create_subscription(0, TOPIC, "early")
    for name in ("", " ", "a" * 5000):
        with pytest.raises(InvalidConfiguration):
            world.broker.subscription_administration.create_subscription(0, TOPIC, name)
    world.pump()
    world.start()
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["early", "late", "middle"]
    peer = world.connect()
    peer.subscribe(subscription="late")
    with pytest.raises(InUse):
        world.broker.subscription_administration.delete_subscription(0, TOPIC, "late")
    peer.inbox.clear()
    world.broker.subscription_administration.delete_subscription(0, TOPIC, "late", force=True)
    world.pump()
    peer.expect(Type.CLOSE_CONSUMER)
    with pytest.raises(NotFound):
        world.broker.subscription_administration.delete_subscription(0, TOPIC, "late")
    world.start()
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["early", "middle"]


def test_a_subscription_makes_its_topic_where_that_is_allowed() -> None:
    world = World()
    world.broker.subscription_administration.create_subscription(0, TOPIC, "s")
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["s"]
    world.broker.administration.set_policy(0, "public/default", "auto_topic_creation", False)
    with pytest.raises(NotFound):
        world.broker.subscription_administration.create_subscription(0, P, "s")
    volatile = "non-persistent://public/default/v"
    world.broker.topic_administration.create_topic(0, volatile)
    with pytest.raises(NotApplicable):
        world.broker.subscription_administration.create_subscription(0, volatile, "s")


def test_skipping_counts_what_is_not_acknowledged() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    for number in range(6):
        peer.publish(b"x", number)
    peer.ack((0, 1, None))
    world.broker.subscription_administration.skip_messages(0, TOPIC, "s", 2)
    assert (
        world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]["markDeletePosition"] == "0:2"
    ), "0 and 2"
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 3
    world.broker.subscription_administration.skip_messages(0, TOPIC, "s", 10**18)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 0
    world.broker.subscription_administration.skip_messages(0, TOPIC, "s")
    with pytest.raises(NotFound):
        world.broker.subscription_administration.skip_messages(0, TOPIC, "other")


def test_the_last_message() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    assert world.broker.topic_administration.last_message_id(TOPIC) == MessageId(0, -1)
    peer.publish(b"x")
    assert world.broker.topic_administration.last_message_id(TOPIC) == MessageId(0, 0)
    with pytest.raises(NotFound):
        world.broker.topic_administration.last_message_id(P)


def test_what_is_too_old_expires_for_one_subscription() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    for name in ("s", "other"):
        world.broker.subscription_administration.create_subscription(world.now, TOPIC, name, EARLIEST)
    for number in range(3):
        peer.publish(b"x", number, publish_time=world.wall)
    peer.publish(b"x", 3, publish_time=world.wall + 60_000)

    def expire(subscription: str, older_than: float | MessageId) -> tuple[bool, int]:
        issued = world.broker.subscription_administration.expire_messages(
            world.now, TOPIC, subscription, older_than
        )
        stats = world.broker.topic_administration.stats(TOPIC)["subscriptions"][subscription]
        return issued, stats["msgBacklog"]

    world.advance(70)
    assert expire("s", 600) == (True, 4)  # no consumer is connected
    assert expire("s", 30) == (True, 1)
    assert expire("other", MessageId(0, 0)) == (True, 3)
    assert expire("other", MessageId(0, -1)) == (True, 3)
    assert expire("other", MessageId(0, 999)) == (False, 3)  # the topic ends before that id
    assert expire("other", MessageId(0, 3)) == (True, 0)
    assert expire("other", MessageId(0, 3)) == (True, 0)
    assert expire("other", 0) == (False, 0)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["other"]["totalMsgExpired"] == 4
    world.connect().subscribe()
    assert expire("s", 600) == (False, 1)
    assert expire("s", 5) == (True, 0)
    with pytest.raises(NotFound):
        world.broker.subscription_administration.expire_messages(world.now, TOPIC, "none", 0)


def test_properties_of_a_subscription_survive_the_broker() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(world.now, TOPIC, 2)
    world.broker.subscription_administration.create_subscription(world.now, TOPIC, "s", None, {"a": "b"})
    assert world.broker.subscription_administration.subscription_properties(TOPIC, "s") == {"a": "b"}
    world.broker.subscription_administration.set_subscription_properties(world.now, TOPIC, "s", {"c": "d"})
    with pytest.raises(InvalidConfiguration):
        world.broker.subscription_administration.set_subscription_properties(
            world.now, TOPIC, "s", {"c": "d" * 100_000}
        )
    with pytest.raises(NotFound):
        world.broker.subscription_administration.set_subscription_properties(world.now, TOPIC, "none", {})
    world.pump()
    world.start()
    assert world.broker.subscription_administration.subscription_properties(TOPIC, "s") == {"c": "d"}
