"""Dispatch rates on the wire: which messages consumers of each kind receive, and when."""

from gc import collect
from typing import Any
from weakref import ref

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.policies import MessageRate, SubscriptionRates
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World

KINDS = pytest.mark.parametrize(
    "kind", [SubType.Exclusive, SubType.Failover, SubType.Shared, SubType.Key_Shared], ids=SubType.Name
)
POLICIES = pytest.mark.parametrize("policy", ["dispatch_rate", "subscription_dispatch_rate"])
SCOPES = pytest.mark.parametrize("scope", [TOPIC, "public/default"])


def world_with_messages(count: int = 10) -> tuple[World, Peer]:
    """The messages have the payloads b"0", b"1", and so on, and a key each. No client has to answer PING."""
    world = World(BrokerConfig(keepalive_interval=100_000))
    producing = world.connect()
    producing.producer()
    for number in range(count):
        producing.publish(b"%d" % number, number, partition_key=f"key{number}")
    assert len(producing.receipts()) == count
    return world, producing


def set_rate(world: World, policy: str, rate: MessageRate | None, scope: str = TOPIC) -> None:
    world.broker.administration.set_policy(world.now, scope, policy, rate)
    world.pump()


def consumer(world: World, kind: Any, subscription: str = "s", permits: int = 1000) -> Peer:
    """A consumer that is told that it is the active one has received that notice."""
    peer = world.connect()
    peer.subscribe(kind, subscription=subscription, permits=permits)
    if kind == SubType.Failover:
        world.advance(world.config.failover_delay)
        peer.expect(Type.ACTIVE_CONSUMER_CHANGE)
    return peer


def payloads(peer: Peer) -> list[int]:
    return sorted(map(int, peer.payloads()))


@KINDS
@POLICIES
@SCOPES
def test_messages_come_as_the_rate_allows(kind: Any, policy: str, scope: str) -> None:
    """Rules TENANT-05 and CFG-517."""
    world, _ = world_with_messages(10)
    set_rate(world, policy, MessageRate(messages=2, period=10), scope)
    peer = consumer(world, kind)
    assert payloads(peer) == [0, 1]
    world.advance(4.9)
    peer.nothing()
    world.advance(0.1)
    assert payloads(peer) == [2]
    world.advance(5.0)
    assert payloads(peer) == [3]
    set_rate(world, policy, None, scope)
    assert payloads(peer) == [4, 5, 6, 7, 8, 9], "without a rate the others follow at once"


@KINDS
def test_bytes_count_as_they_are_stored(kind: Any) -> None:
    """A message is taken whole, and what it is too large by is paid for before the next one."""
    world, producing = world_with_messages(0)
    for number in range(3):
        producing.publish(b"x" * 4000, number)
    set_rate(world, "dispatch_rate", MessageRate(size=1000))
    peer = consumer(world, kind)
    peer.expect(Type.MESSAGE)
    world.advance(2.9)
    peer.nothing()
    world.advance(0.2)
    peer.expect(Type.MESSAGE)
    peer.nothing()


@KINDS
def test_every_message_of_a_batch_counts(kind: Any) -> None:
    world, producing = world_with_messages(0)
    for number in range(0, 9, 3):
        producing.publish_batch([b"a", b"b", b"c"], number)
    set_rate(world, "dispatch_rate", MessageRate(messages=4))
    peer = consumer(world, kind)
    assert len(peer.messages()) == 2
    world.advance(0.7)
    peer.nothing()
    world.advance(0.1)
    assert len(peer.messages()) == 1


def test_subscriptions_share_the_rate_of_their_topic_in_turn() -> None:
    world, _ = world_with_messages(10)
    set_rate(world, "dispatch_rate", MessageRate(messages=1))
    first, second = (consumer(world, SubType.Shared, name) for name in ("a", "b"))
    received = []
    for _ in range(5):
        world.advance(1.0)
        received.append((payloads(first), payloads(second)))
    assert received == [([0, 1], []), ([], [0]), ([2], []), ([], [1]), ([3], [])]


def test_each_subscription_has_its_own_rate() -> None:
    world, _ = world_with_messages(10)
    set_rate(world, "subscription_dispatch_rate", MessageRate(messages=1))
    first, second = (consumer(world, SubType.Shared, name) for name in ("a", "b"))
    assert (payloads(first), payloads(second)) == ([0], [0])
    world.advance(1.0)
    assert (payloads(first), payloads(second)) == ([1], [1])


def test_both_rates_hold_together() -> None:
    world, _ = world_with_messages(10)
    set_rate(world, "dispatch_rate", MessageRate(messages=3, period=100))
    set_rate(world, "subscription_dispatch_rate", MessageRate(messages=2, period=100))
    first, second = (consumer(world, SubType.Shared, name) for name in ("a", "b"))
    assert (payloads(first), payloads(second)) == ([0, 1], [0])


@KINDS
def test_what_is_published_meanwhile_waits_too(kind: Any) -> None:
    world, producing = world_with_messages(1)
    set_rate(world, "dispatch_rate", MessageRate(messages=1))
    peer = consumer(world, kind)
    assert payloads(peer) == [0]
    producing.publish(b"1", 1)
    producing.publish(b"2", 2)
    peer.flow(10)
    peer.nothing()
    world.advance(1.0)
    assert payloads(peer) == [1]


def test_a_subscription_without_permits_keeps_no_other_waiting() -> None:
    world, _ = world_with_messages(10)
    set_rate(world, "dispatch_rate", MessageRate(messages=1))
    first = consumer(world, SubType.Shared, "a", permits=1)
    second = consumer(world, SubType.Shared, "b")
    assert payloads(first) == [0]
    world.advance(3.0)
    assert payloads(second) == [0, 1, 2]
    first.flow(1)
    world.advance(2.0)
    assert (payloads(second), payloads(first)) == ([3], [1])


@KINDS
def test_redelivered_messages_count(kind: Any) -> None:
    world, _ = world_with_messages(2)
    set_rate(world, "dispatch_rate", MessageRate(messages=2, period=10))
    peer = consumer(world, kind)
    assert payloads(peer) == [0, 1]
    peer.redeliver()
    peer.nothing()
    world.advance(5.0)
    assert payloads(peer) == [0]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (1, [[[0], []], [[1], []], [[2], []], [[9], []]]),
        (2, [[[0, 1], []], [[2], []], [[9], []], [[], []]]),
        (3, [[[0, 1, 2], []], [[9], []], [[], []], [[], []]]),
    ],
)
def test_chunks_of_a_message_wait_too(rate: int, expected: list[list[list[int]]]) -> None:
    """The chunks stay in order and go to the consumer that has the first one; a later entry waits, too."""
    world, producing = world_with_messages(0)
    for number in range(3):
        producing.publish(
            b"%d" % number, 0, uuid="u", chunk_id=number, num_chunks_from_msg=3, total_chunk_msg_size=3
        )
    producing.publish(b"9", 1)
    set_rate(world, "dispatch_rate", MessageRate(messages=rate, period=rate))
    first, second = consumer(world, SubType.Shared, permits=10), world.connect()
    received = [[payloads(first), []]]
    second.subscribe(SubType.Shared, permits=0)
    for _ in range(3):
        world.advance(1.0)
        received.append([payloads(first), payloads(second)])
    assert received == expected


def test_a_reader_of_a_compacted_topic_waits_too() -> None:
    world, _ = world_with_messages(5)
    world.broker.topic_administration.compact(world.now, TOPIC)
    world.pump()
    while world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING":
        world.advance(1.0)
    set_rate(world, "dispatch_rate", MessageRate(messages=2, period=10))
    peer = world.connect()
    peer.subscribe(subscription="r", durable=False, read_compacted=True)
    assert payloads(peer) == [0, 1]
    world.advance(5.0)
    assert payloads(peer) == [2]


@pytest.mark.parametrize("durable", [True, False])
def test_a_subscription_that_is_gone_waits_for_nothing(durable: bool) -> None:
    world, _ = world_with_messages(3)
    set_rate(world, "dispatch_rate", MessageRate(messages=1))
    gone, other = world.connect(), world.connect()
    gone.subscribe(subscription="gone", durable=durable)
    assert payloads(gone) == [0]
    gone.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=gone.request()))
    gone.expect(Type.SUCCESS)
    other.subscribe()
    world.advance(1.0)
    gone.nothing()
    assert payloads(other) == [0]


@POLICIES
def test_a_subscription_that_is_gone_takes_no_memory(policy: str) -> None:
    """A client could otherwise fill the memory of a broker with readers that wait for a slow rate."""
    world, _ = world_with_messages(3)
    set_rate(world, policy, MessageRate(messages=1, period=100_000))
    peer = world.connect()
    peer.subscribe(subscription="reader", durable=False)
    assert payloads(peer) == [0]
    gone = ref(world.broker.topics.by_name[TOPIC].subscriptions["reader"])
    set_rate(world, policy, MessageRate(messages=1, period=200_000))
    assert payloads(peer) == [1], "a new limiter is full"
    peer.close_consumer()
    world.advance(1.0)
    collect()
    assert gone() is None


@POLICIES
def test_a_topic_that_another_broker_serves_takes_no_memory(policy: str) -> None:
    world, producing = world_with_messages(3)
    set_rate(world, policy, MessageRate(messages=1, period=100_000))
    peer = consumer(world, SubType.Shared)
    assert payloads(peer) == [0]
    gone = ref(world.broker.topics.by_name[TOPIC])
    world.broker.ownership.release(world.now, TOPIC)
    world.pump()
    for each in (peer, producing):
        each.drop()
    world.advance(60.0)
    collect()
    assert gone() is None


@POLICIES
def test_an_unloaded_topic_has_new_limiters(policy: str) -> None:
    world, _ = world_with_messages(3)
    set_rate(world, policy, MessageRate(messages=2, period=100))
    peer = consumer(world, SubType.Shared)
    assert payloads(peer) == [0, 1]
    world.broker.topic_administration.unload(world.now, TOPIC)
    world.pump()
    peer.expect(Type.CLOSE_CONSUMER)
    peer.subscribe(SubType.Shared)
    assert payloads(peer) == [0, 1]


def test_a_change_of_one_rate_keeps_the_tokens_of_the_other() -> None:
    world, _ = world_with_messages(10)
    set_rate(world, "dispatch_rate", MessageRate(messages=1, period=100))
    set_rate(world, "subscription_dispatch_rate", MessageRate(messages=5, period=100))
    peer = consumer(world, SubType.Shared)
    assert payloads(peer) == [0]
    set_rate(world, "subscription_dispatch_rate", MessageRate(messages=9, period=100))
    peer.nothing()
    set_rate(world, "dispatch_rate", MessageRate(messages=4, period=100))
    assert payloads(peer) == [1, 2, 3, 4]


def test_a_non_persistent_topic_has_no_dispatch_rate() -> None:
    """The Java broker has none there either."""
    world = World()
    topic = TOPIC.replace("persistent", "non-persistent")
    producing, consuming = world.connect(), world.connect()
    set_rate(world, "dispatch_rate", MessageRate(messages=1), "public/default")
    producing.producer(topic)
    consuming.subscribe(topic=topic)
    for number in range(3):
        producing.publish(b"%d" % number, number)
    assert payloads(consuming) == [0, 1, 2]


# --- rates relative to what is published, and of one subscription -------------------------------------


@POLICIES
def test_a_relative_rate_grows_with_what_is_published(policy: str) -> None:
    """60 messages in the 60 s of a housekeeping interval are one more in each second."""
    world, _ = world_with_messages(60)
    world.advance(60.0)
    set_rate(world, policy, MessageRate(messages=1, relative=True))
    peer = consumer(world, SubType.Exclusive)
    assert payloads(peer) == [0, 1]
    world.advance(1.0)
    assert payloads(peer) == [2, 3]
    set_rate(world, policy, MessageRate(messages=1))
    assert payloads(peer) == [4]
    world.advance(1.0)
    assert payloads(peer) == [5]


@POLICIES
def test_a_relative_rate_follows_each_interval(policy: str) -> None:
    """In the second interval nothing is published, and then only the rate itself is left."""
    world, producing = world_with_messages(0)
    set_rate(world, policy, MessageRate(messages=1, relative=True))
    for number in range(180):
        producing.publish(b"%d" % number, number)
    peer = consumer(world, SubType.Exclusive)
    assert payloads(peer) == [0]
    world.advance(59.0)
    assert len(peer.payloads()) == 59
    world.advance(11.0)
    assert len(peer.payloads()) == 41, "one of the first interval, then four in each second"
    world.advance(50.0)
    peer.payloads()
    for number in range(180, 200):
        producing.publish(b"%d" % number, number)
    world.advance(5.0)
    assert len(peer.payloads()) == 6, "a second's token was there"


def test_a_subscription_has_a_rate_of_its_own() -> None:
    """Its rate goes before the rate of all subscriptions; the rate of the topic holds in any case."""
    world, _ = world_with_messages(10)
    set_rate(world, "subscription_dispatch_rate", MessageRate(messages=2, period=10))
    rates = SubscriptionRates((("s", MessageRate(messages=5, period=10)),))
    world.broker.administration.set_policy(world.now, TOPIC, "dispatch_rates", rates)
    assert payloads(consumer(world, SubType.Exclusive)) == [0, 1, 2, 3, 4]
    assert payloads(consumer(world, SubType.Exclusive, "other")) == [0, 1]
    set_rate(world, "dispatch_rate", MessageRate(messages=1, period=100))
    unlimited = SubscriptionRates((("third", MessageRate(messages=0)),))
    world.broker.administration.set_policy(world.now, TOPIC, "dispatch_rates", unlimited)
    world.pump()
    third = consumer(world, SubType.Exclusive, "third")
    assert payloads(third) == [], "the first subscription took what the topic had"
    set_rate(world, "dispatch_rate", None)
    assert payloads(third) == list(range(10)), "0 is no limit, whatever holds for the others"


def test_rates_of_subscriptions_are_of_topics_and_not_too_many() -> None:
    world = World()
    rates = SubscriptionRates((("s", MessageRate(messages=1)),))
    with pytest.raises(InvalidConfiguration, match="only a topic has it"):
        world.broker.administration.set_policy(0, "public/default", "dispatch_rates", rates)
    with pytest.raises(InvalidConfiguration, match="at most 1000"):
        SubscriptionRates(tuple((f"s{number}", MessageRate(1)) for number in range(1001)))
    assert rates.replacing("s", None) is None
    assert rates.replacing("s", MessageRate(messages=2)) == SubscriptionRates((("s", MessageRate(2)),))
    assert rates.of("other") is None


def test_the_subscriptions_of_all_topics_share_the_rate_of_the_broker() -> None:
    world = World(
        BrokerConfig(keepalive_interval=100_000, broker_dispatch_rate=MessageRate(messages=3, period=30))
    )
    producing = world.connect()
    other = "persistent://public/default/other"
    for producer_id, topic in enumerate((TOPIC, other)):
        producing.producer(topic, producer_id=producer_id)
        for number in range(5):
            producing.publish(b"%d" % number, number, producer_id=producer_id)
        assert len(producing.receipts()) == 5
    first, second = world.connect(), world.connect()
    first.subscribe()
    second.subscribe(topic=other)
    assert (payloads(first), payloads(second)) == ([0, 1, 2], [])
    world.advance(10.0)
    world.advance(10.0)
    assert sorted((payloads(first), payloads(second))) == [[0], [3]], "they take turns"
    world.advance(1000.0)
    assert (payloads(first), payloads(second)) == ([4], [1, 2, 3, 4])
