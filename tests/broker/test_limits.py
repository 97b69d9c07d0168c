"""Policies that limit a namespace or a topic: topics, subscriptions, their types and their expiration."""

import pytest

from pulsar_sansio.broker import BrokerConfig, LimitReached
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, SubType, Type, World

NAMESPACE = "public/default"
OTHER = "persistent://public/default/other"


def test_a_namespace_has_room_for_so_many_topics() -> None:
    world = World()
    world.broker.administration.set_policy(0, NAMESPACE, "max_topics", 3)
    world.broker.topic_administration.create_topic(0, TOPIC)
    with pytest.raises(InvalidConfiguration, match="only a namespace has it"):
        world.broker.administration.set_policy(0, TOPIC, "max_topics", 3)
    world.broker.topic_administration.delete_topic(0, TOPIC)
    world.pump()
    world.broker.topic_administration.create_partitioned_topic(0, OTHER, 2)
    with pytest.raises(LimitReached, match="Exceed maximum number of topics in namespace"):
        world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 2)
    world.broker.topic_administration.create_topic(0, TOPIC)
    with pytest.raises(LimitReached):
        world.broker.topic_administration.create_topic(0, TOPIC + "2")
    peer = world.connect()
    peer.ask_producer(TOPIC + "2")
    peer.expect_error("NotAllowedError")
    peer.ask_subscribe(topic=TOPIC + "2")
    peer.expect_error("NotAllowedError")
    with pytest.raises(LimitReached):
        world.broker.subscription_administration.create_subscription(0, TOPIC + "2", "s")
    world.broker.topic_administration.delete_topic(0, TOPIC)
    world.pump()
    world.broker.topic_administration.create_topic(0, TOPIC + "2")


def test_a_namespace_without_room_makes_no_partitioned_topics_of_itself() -> None:
    world = World()
    for policy, value in (("max_topics", 3), ("auto_topic_partitions", 4)):
        world.broker.administration.set_policy(0, NAMESPACE, policy, value)
    peer = world.connect()
    command = proto.CommandPartitionedTopicMetadata(
        topic=TOPIC, request_id=1, metadata_auto_creation_enabled=True
    )
    peer.send(Type.PARTITIONED_METADATA, command)
    answer = peer.expect(Type.PARTITIONED_METADATA_RESPONSE)
    assert answer.error == proto.ServerError.Value("NotAllowedError")
    assert world.broker.topic_administration.topics(NAMESPACE) == []


def test_a_topic_has_room_for_so_many_subscriptions() -> None:
    world = World()
    world.broker.topic_administration.create_topic(0, TOPIC)
    world.broker.administration.set_policy(0, TOPIC, "max_subscriptions", 1)
    world.broker.subscription_administration.create_subscription(0, TOPIC, "a")
    with pytest.raises(LimitReached, match="Exceed the maximum number of subscriptions"):
        world.broker.subscription_administration.create_subscription(0, TOPIC, "b")
    peer = world.connect()
    peer.ask_subscribe(subscription="b")
    peer.expect_error("NotAllowedError")
    peer.ask_producer(initial_subscription_name="b")
    peer.expect_error("NotAllowedError")
    peer.producer(initial_subscription_name="a")
    peer.subscribe(subscription="a")
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["a"]


def test_producers_create_no_more_subscriptions_than_the_configuration_allows() -> None:
    world = World(BrokerConfig(max_subscriptions_per_topic=1))
    peer = world.connect()
    peer.producer(initial_subscription_name="a")
    peer.ask_producer(producer_id=1, initial_subscription_name="b")
    peer.expect_error("NotAllowedError")
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["a"]


def test_producers_and_consumers_of_one_address_on_a_topic() -> None:
    """Another topic and another address have room of their own."""
    world = World(BrokerConfig(max_producers_per_address=1, max_consumers_per_address=2))
    peer, elsewhere = world.connect(), world.connect(address="10.0.0.1")
    peer.producer(name="a")
    peer.subscribe(subscription="a")
    world.connect().subscribe(subscription="b")
    peer.ask_producer(producer_id=1, name="b")
    refusal = peer.expect_error("ProducerBusy")
    assert refusal.message == f"Topic '{TOPIC}' reached max same address producers limit"
    peer.ask_subscribe(consumer_id=1, subscription="c")
    refusal = peer.expect_error("ConsumerBusy")
    assert refusal.message == "Topic reached max same address consumers limit"
    elsewhere.producer(name="c")
    elsewhere.subscribe(subscription="c")
    peer.producer(OTHER, producer_id=2)
    peer.subscribe(topic=OTHER, consumer_id=2)


def test_the_broker_has_room_for_so_many_tenants_and_namespaces() -> None:
    """The first tenants and namespaces of every broker count, too."""
    world = World(BrokerConfig(max_tenants=3, max_namespaces_per_tenant=2))
    administration = world.broker.administration
    administration.create_tenant(0, "a")
    with pytest.raises(LimitReached, match="Exceed the maximum number of tenants"):
        administration.create_tenant(0, "b")
    administration.create_namespace(0, "public/a")
    with pytest.raises(LimitReached, match="Exceed the maximum number of namespace in tenant :public"):
        administration.create_namespace(0, "public/b")
    administration.create_namespace(0, "a/b")
    administration.delete_namespace(0, "public/a")
    administration.create_namespace(0, "public/b")


def test_a_namespace_without_a_limit_has_that_of_the_broker() -> None:
    world = World(BrokerConfig(max_topics_per_namespace=1))
    world.broker.topic_administration.create_topic(0, TOPIC)
    with pytest.raises(LimitReached):
        world.broker.topic_administration.create_topic(0, OTHER)
    world.broker.administration.set_policy(0, NAMESPACE, "max_topics", 0)
    world.broker.topic_administration.create_topic(0, OTHER)


def test_a_topic_has_so_many_partitions_at_most() -> None:
    """The limit holds for administrators, for growth, and for topics that clients create."""
    world = World(BrokerConfig(max_partitions_per_topic=2))
    administration = world.broker.topic_administration
    with pytest.raises(InvalidConfiguration, match="1 to 2, not 3"):
        administration.create_partitioned_topic(0, TOPIC, 3)
    administration.create_partitioned_topic(0, TOPIC, 1)
    with pytest.raises(InvalidConfiguration, match="1 to 2, not 3"):
        administration.update_partitions(0, TOPIC, 3)
    administration.update_partitions(0, TOPIC, 2)
    world.broker.administration.set_policy(0, NAMESPACE, "auto_topic_partitions", 3)
    command = proto.CommandPartitionedTopicMetadata(
        topic=OTHER, request_id=1, metadata_auto_creation_enabled=True
    )
    peer = world.connect()
    peer.send(Type.PARTITIONED_METADATA, command)
    answer = peer.expect(Type.PARTITIONED_METADATA_RESPONSE)
    assert answer.error == proto.ServerError.Value("NotAllowedError")


def test_types_of_subscriptions() -> None:
    """Rules BROKER-14 and CFG-506."""
    world = World()
    world.broker.administration.set_policy(0, NAMESPACE, "subscription_types", ("Shared",))
    peer = world.connect()
    peer.ask_subscribe(subscription="a")
    assert (
        peer.expect_error("NotAllowedError").message
        == f"Topic[{{{TOPIC}}}] doesn't support Exclusive sub type!"
    )
    peer.subscribe(subscription="a", kind=SubType.Shared)
    wrong: object
    for wrong in (("shared",), ["Shared"], "Shared", ([],)):
        with pytest.raises(InvalidConfiguration):
            world.broker.administration.set_policy(0, NAMESPACE, "subscription_types", wrong)


def test_a_subscription_that_no_consumer_uses_expires() -> None:
    world = World(BrokerConfig(keepalive_interval=100_000))
    world.broker.administration.set_policy(0, NAMESPACE, "subscription_expiration", 300)
    peer = world.connect()
    peer.subscribe(subscription="used")
    peer.subscribe(consumer_id=1, subscription="left")
    world.advance(1000)
    peer.close_consumer(1)
    world.advance(240)
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["left", "used"]
    world.advance(180)
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["used"]
    world.start()
    world.advance(240)
    assert world.broker.subscription_administration.subscriptions(TOPIC) == ["used"], (
        "counted from the start of the broker"
    )
    world.advance(180)
    assert world.broker.subscription_administration.subscriptions(TOPIC) == []


def test_schemas_of_topics_that_are_not_there_have_a_limit() -> None:
    world = World(BrokerConfig(max_topics=2))
    broker = world.broker
    assert broker.schema_administration.register_schema(0, TOPIC, "STRING") == 0
    assert broker.schema_administration.delete_schema(0, OTHER) == 0
    for call in (
        broker.schema_administration.delete_schema,
        lambda now, topic: broker.schema_administration.register_schema(now, topic, "STRING"),
    ):
        with pytest.raises(LimitReached, match="delete some with force"):
            call(0, TOPIC + "3")
    assert broker.schema_administration.register_schema(0, OTHER, "STRING") == 1, "known topics go on"
    assert broker.schema_administration.delete_schema(0, TOPIC + "3", force=True) == -1
    broker.schema_administration.delete_schema(0, OTHER, force=True)
    assert broker.schema_administration.register_schema(0, TOPIC + "3", "STRING") == 0
