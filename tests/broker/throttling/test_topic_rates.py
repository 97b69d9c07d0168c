"""The rates of a topic on the wire: publishing and subscribing."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.policies import MessageRate, SubscribeRate
from pulsar_sansio.model.errors import InvalidConfiguration
from tests.broker.peer import TOPIC, Peer, Type, World

NAMESPACE = "public/default"
LEVELS = pytest.mark.parametrize("scope", [TOPIC, NAMESPACE])


def world_with_topic() -> tuple[World, Peer]:
    world = World()
    peer = world.connect()
    peer.producer()
    return world, peer


def set_policy(world: World, scope: str, policy: str, value: object) -> None:
    world.broker.administration.set_policy(world.now, scope, policy, value)
    world.pump()


def is_read(world: World, peer: Peer) -> bool:
    return world.broker.wants_read(peer.link)


# --- publishing ---------------------------------------------------------------------------------------


@LEVELS
def test_a_connection_that_publishes_too_much_is_not_read_for_a_while(scope: str) -> None:
    """The messages themselves are stored and confirmed. Rules TENANT-05 and CFG-516."""
    world, peer = world_with_topic()
    assert is_read(world, peer), "no rate is set by default"
    set_policy(world, scope, "publish_rate", MessageRate(messages=2))
    peer.publish(b"first", 0)
    assert is_read(world, peer)
    peer.publish(b"second", 1)
    assert not is_read(world, peer)
    assert [sequence for sequence, _, _ in peer.receipts()] == [0, 1]
    world.advance(0.499)
    assert not is_read(world, peer)
    world.advance(0.001)
    assert is_read(world, peer)
    assert peer.resumed == 1
    assert world.broker.topic_administration.stats(TOPIC)["publishRateLimitedTimes"] == 1


def test_a_large_entry_is_taken_and_paid_for_later() -> None:
    world, peer = world_with_topic()
    set_policy(world, TOPIC, "publish_rate", MessageRate(size=1000))
    peer.publish(b"x" * 4900, 0)
    peer.expect(Type.SEND_RECEIPT)
    world.advance(3.8)
    assert not is_read(world, peer)
    world.advance(0.3)
    assert is_read(world, peer)


def test_every_message_of_a_batch_counts() -> None:
    world, peer = world_with_topic()
    set_policy(world, TOPIC, "publish_rate", MessageRate(messages=3))
    peer.publish_batch([b"a", b"b", b"c"])
    assert not is_read(world, peer)


def test_every_connection_with_a_producer_waits_and_goes_on() -> None:
    world, first = world_with_topic()
    second = world.connect()
    second.producer(name="other")
    set_policy(world, TOPIC, "publish_rate", MessageRate(messages=1))
    first.publish(b"a", 0)
    second.publish(b"b", 0, producer_name="other")
    assert (is_read(world, first), is_read(world, second)) == (False, False)
    world.advance(2.0)
    assert (is_read(world, first), is_read(world, second)) == (True, True)


def test_a_connection_waits_for_all_its_topics() -> None:
    world, peer = world_with_topic()
    peer.producer(f"{TOPIC}2", 1)
    set_policy(world, TOPIC, "publish_rate", MessageRate(messages=1))
    set_policy(world, f"{TOPIC}2", "publish_rate", MessageRate(messages=1))
    peer.publish(b"a", 0)
    world.advance(0.5)
    peer.publish(b"b", 0, producer_id=1)
    world.advance(0.5)
    assert not is_read(world, peer)
    world.advance(0.5)
    assert is_read(world, peer)


@LEVELS
@pytest.mark.parametrize("value", [None, MessageRate(messages=5), MessageRate(messages=0, size=-1)])
def test_another_rate_holds_at_once(scope: str, value: MessageRate | None) -> None:
    world, peer = world_with_topic()
    set_policy(world, scope, "publish_rate", MessageRate(size=1))
    peer.publish(b"x" * 1000, 0)
    assert not is_read(world, peer)
    set_policy(world, scope, "max_producers", 5)
    assert not is_read(world, peer), "a change of another policy changes nothing"
    set_policy(world, scope, "publish_rate", value)
    assert is_read(world, peer)


def test_no_limit_on_a_topic_goes_before_the_rate_of_its_namespace() -> None:
    world, peer = world_with_topic()
    set_policy(world, NAMESPACE, "publish_rate", MessageRate(messages=1))
    set_policy(world, TOPIC, "publish_rate", MessageRate())
    peer.publish(b"a", 0)
    assert is_read(world, peer)


ENDS: dict[str, Any] = {
    "unloaded": lambda world: world.broker.topic_administration.unload(world.now, TOPIC),
    "deleted": lambda world: world.broker.topic_administration.delete_topic(world.now, TOPIC, True),
    "released": lambda world: world.broker.ownership.release(world.now, TOPIC),
    "lost": lambda world: world.broker.ownership.lose(world.now, TOPIC),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_nobody_waits_for_a_topic_that_is_gone(end: Any) -> None:
    world, peer = world_with_topic()
    set_policy(world, NAMESPACE, "publish_rate", MessageRate(size=1))
    peer.publish(b"x" * 1000, 0)
    peer.expect(Type.SEND_RECEIPT)
    assert not is_read(world, peer)
    end(world)
    world.pump()
    assert is_read(world, peer)
    peer.expect(Type.CLOSE_PRODUCER)


def test_an_unloaded_topic_has_new_limiters() -> None:
    world, peer = world_with_topic()
    set_policy(world, TOPIC, "publish_rate", MessageRate(messages=2))
    peer.publish(b"a", 0)
    peer.expect(Type.SEND_RECEIPT)
    ENDS["unloaded"](world)
    world.pump()
    peer.expect(Type.CLOSE_PRODUCER)
    peer.producer()
    peer.publish(b"b", 1)
    assert is_read(world, peer)
    peer.publish(b"c", 2)
    assert not is_read(world, peer)


def test_a_connection_that_ends_while_it_waits() -> None:
    world, peer = world_with_topic()
    set_policy(world, TOPIC, "publish_rate", MessageRate(messages=1))
    peer.publish(b"a", 0)
    peer.drop()
    world.advance(2.0)
    assert peer.resumed == 0


def test_a_non_persistent_topic_has_a_publish_rate_too() -> None:
    world = World()
    topic = TOPIC.replace("persistent", "non-persistent")
    peer = world.connect()
    peer.producer(topic)
    set_policy(world, NAMESPACE, "publish_rate", MessageRate(messages=1))
    peer.publish(b"a", 0)
    assert not is_read(world, peer)
    world.advance(1.0)
    assert is_read(world, peer)
    peer.publish(b"b", 1)
    assert not is_read(world, peer)
    world.broker.topic_administration.unload(world.now, topic)
    world.pump()
    assert is_read(world, peer)


# --- subscribing --------------------------------------------------------------------------------------


@LEVELS
def test_a_consumer_that_subscribes_too_often_is_refused(scope: str) -> None:
    """The code and the text are those of a Java broker. Rules BROKER-15 and CFG-504."""
    world = World()
    peer = world.connect()
    world.connect().producer()
    for _ in range(3):
        peer.subscribe()
        peer.close_consumer()
    set_policy(world, scope, "subscribe_rate", SubscribeRate(2, 10))
    for _ in range(2):
        peer.subscribe()
        peer.close_consumer()
    set_policy(world, scope, "max_producers", 5)
    peer.ask_subscribe()
    error = peer.expect_error("NotAllowedError")
    assert error.message == "Subscribe limited by subscribe rate limit per consumer."
    peer.subscribe(consumer_id=1, subscription="s1")
    peer.subscribe(consumer_id=0, subscription="s2", consumer_name="another")
    world.connect().subscribe(consumer_id=0, subscription="s3")
    peer.close_consumer()
    world.advance(9.999)
    peer.ask_subscribe()
    peer.expect_error("NotAllowedError")
    world.advance(0.001)
    peer.subscribe()


def test_a_subscribe_that_probes_the_present_consumer_counts_once() -> None:
    world = World()
    present, newcomer = world.connect(), world.connect()
    present.subscribe()
    set_policy(world, TOPIC, "subscribe_rate", SubscribeRate(1, 30))
    newcomer.ask_subscribe()
    present.expect(Type.PING)
    present.reads = False
    world.advance(world.config.liveness_timeout)
    newcomer.expect(Type.SUCCESS)


# --- of all topics together ---------------------------------------------------------------------------


def test_the_producers_of_all_topics_share_the_rate_of_the_broker() -> None:
    """A topic's own rate, which is lower, holds as well."""
    world = World(BrokerConfig(broker_publish_rate=MessageRate(messages=2)))
    first, second = world.connect(), world.connect()
    first.producer()
    second.producer("non-persistent://public/default/v")
    first.publish(b"a", 0)
    assert is_read(world, first)
    second.publish(b"b", 0)
    assert not is_read(world, second)
    first.publish(b"c", 1)
    assert not is_read(world, first)
    world.advance(1.5)
    assert (is_read(world, first), is_read(world, second)) == (True, True)
    set_policy(world, TOPIC, "publish_rate", MessageRate(messages=1, period=100))
    first.publish(b"d", 2)
    world.advance(99.0)
    assert not is_read(world, first)
    world.advance(2.0)
    assert is_read(world, first)


def test_a_topic_that_is_unloaded_still_has_the_rate_of_the_broker() -> None:
    world = World(BrokerConfig(broker_publish_rate=MessageRate(messages=1)))
    peer = world.connect()
    peer.producer()
    world.broker.topic_administration.unload(0, TOPIC)
    world.pump()
    peer.expect(Type.CLOSE_PRODUCER)
    peer.producer(producer_id=1)
    peer.publish(b"a", 0, producer_id=1)
    assert not is_read(world, peer)


@pytest.mark.parametrize("option", ["broker_publish_rate", "broker_dispatch_rate"])
@pytest.mark.parametrize("wrong", [1, MessageRate(messages=1, relative=True)])
def test_what_is_no_rate_of_a_broker(option: str, wrong: object) -> None:
    fields: dict[str, Any] = {option: wrong}
    with pytest.raises(InvalidConfiguration, match=option):
        BrokerConfig(**fields)
