"""Backlog quotas and the refusal of producers."""

from typing import Any

import pytest

from pulsar_sansio import EARLIEST, InvalidConfiguration
from pulsar_sansio.broker import BacklogQuota, BrokerConfig
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type, World

HOUSE = 1.0
CONFIG = BrokerConfig(housekeeping_interval=HOUSE, keepalive_interval=10.0 * 365 * 86_400)

BLOCKING = {
    "producer_request_hold": "ProducerBlockedQuotaExceededError",
    "producer_exception": "ProducerBlockedQuotaExceededException",
}
EVICTION = "consumer_backlog_eviction"
blocking = pytest.mark.parametrize(("policy", "code"), BLOCKING.items())


def world_with_backlog(messages: int = 20) -> tuple[World, Peer, Peer]:
    """A topic with that many unacknowledged entries of a little more than 100 bytes."""
    world = World(CONFIG)
    producing, consuming = world.connect(), world.connect()
    consuming.subscribe(SubType.Shared, permits=0)
    producing.producer()
    publish(world, producing, messages)
    return world, producing, consuming


def publish(world: World, peer: Peer, count: int) -> None:
    for number in range(count):
        peer.publish(b"x" * 100, number)
    assert len(peer.receipts()) == count


def limit_size(world: World, policy: str, size: int = 1000, scope: str = TOPIC) -> None:
    world.broker.administration.set_policy(
        world.now, scope, "backlog_quota_size", BacklogQuota(policy, limit_size=size)
    )
    world.pump()


def limit_time(world: World, policy: str, seconds: int) -> None:
    world.broker.administration.set_policy(
        world.now, TOPIC, "backlog_quota_time", BacklogQuota(policy, limit_time=seconds)
    )
    world.pump()


def backlog(world: World, subscription: str = "s") -> Any:
    return world.broker.topic_administration.stats(TOPIC)["subscriptions"][subscription]["msgBacklog"]


@blocking
def test_newcomers_are_refused_at_once(policy: str, code: str) -> None:
    """The code and the text were seen on a Pulsar 4.0.7. Rules STORE-35 and CFG-509. Rule BROKER-44."""
    world, _, _ = world_with_backlog()
    limit_size(world, policy)
    peer = world.connect()
    peer.ask_producer(name="new")
    error = peer.expect_error(code)
    assert error.message == "Cannot create producer on topic with backlog quota exceeded"


@blocking
def test_those_there_are_sent_away_at_the_next_look(policy: str, code: str) -> None:
    """CLOSE_PRODUCER is sent, and later messages of the producers are ignored. Rules STORE-36 and
    STORE-38. Rule STORE-34."""
    world, producing, _ = world_with_backlog()
    limit_size(world, policy)
    producing.publish(b"taken", 20)
    producing.expect(Type.SEND_RECEIPT)
    world.advance(HOUSE)
    assert producing.expect(Type.CLOSE_PRODUCER).producer_id == 0
    producing.publish(b"ignored", 21)
    producing.nothing()
    assert producing.closed is None
    assert backlog(world) == 21


def test_a_waiting_producer_is_refused_too() -> None:
    world = World(CONFIG)
    exclusive, waiting, consuming = world.connect(), world.connect(), world.connect()
    consuming.subscribe(permits=0)
    exclusive.producer(producer_access_mode=proto.Exclusive)
    waiting.producer(producer_access_mode=proto.WaitForExclusive)
    publish(world, exclusive, 20)
    limit_size(world, "producer_exception")
    world.advance(HOUSE)
    exclusive.expect(Type.CLOSE_PRODUCER)
    waiting.expect_error("ServiceNotReady")


@blocking
def test_when_enough_is_acknowledged_producers_come_in_again(policy: str, code: str) -> None:
    world, producing, consuming = world_with_backlog()
    limit_size(world, policy)
    world.advance(HOUSE)
    producing.expect(Type.CLOSE_PRODUCER)
    consuming.flow(100)
    messages = consuming.messages()
    consuming.ack(*messages[:10])
    producing.ask_producer()
    producing.expect_error(code)
    consuming.ack(*messages[10:13])
    producing.producer()


def test_what_is_beyond_is_evicted_oldest_first() -> None:
    """STORE-37: eviction leaves nine tenths of the quota; producers get no notice."""
    world, producing, consuming = world_with_backlog()
    limit_size(world, EVICTION)
    assert backlog(world) == 20, "not before the next look"
    world.advance(HOUSE)
    producing.nothing()
    stats = world.broker.topic_administration.stats(TOPIC)
    assert 600 < stats["backlogSize"] <= 900
    consuming.flow(100)
    assert [message.entry_id for message in consuming.messages()] == list(range(20 - backlog(world), 20))
    producing.publish(b"x", 20)
    assert len(producing.receipts()) == 1


def test_the_slowest_subscription_counts_and_others_lose_nothing_they_do_not_share() -> None:
    world, _, _ = world_with_backlog()
    quick = world.connect()
    quick.subscribe(subscription="quick", consumer_id=1)
    quick.ack(*quick.messages()[:18], consumer_id=1)
    limit_size(world, EVICTION)
    world.advance(HOUSE)
    assert backlog(world) < 9
    assert backlog(world, "quick") == 2


def test_without_a_durable_subscription_there_is_no_backlog() -> None:
    world = World(CONFIG)
    producing, reading = world.connect(), world.connect()
    reading.subscribe(durable=False)
    producing.producer()
    publish(world, producing, 20)
    limit_size(world, "producer_exception")
    world.advance(HOUSE)
    producing.nothing()


@blocking
def test_messages_that_are_too_old(policy: str, code: str) -> None:
    world, producing, consuming = world_with_backlog(1)
    limit_time(world, policy, 60)
    world.advance(60)
    producing.nothing()
    world.advance(HOUSE)
    producing.expect(Type.CLOSE_PRODUCER)
    producing.ask_producer()
    producing.expect_error(code)
    consuming.flow(1)
    consuming.ack(*consuming.messages())
    producing.producer()


def test_messages_that_are_too_old_are_evicted() -> None:
    world, producing, _ = world_with_backlog(2)
    limit_time(world, EVICTION, 60)
    world.advance(30)
    producing.publish(b"younger", 2, publish_time=WALL + 30_000)
    world.advance(30)
    assert backlog(world) == 3
    world.advance(HOUSE)
    assert backlog(world) == 1
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["totalMsgExpired"] == 2


def test_a_namespaces_quota_and_a_topics_own() -> None:
    world, _, _ = world_with_backlog()
    limit_size(world, "producer_exception", scope="public/default")
    peer = world.connect()
    peer.ask_producer(name="new")
    peer.expect_error("ProducerBlockedQuotaExceededException")
    limit_size(world, "producer_exception", size=-1)
    peer.producer(name="new")
    assert world.broker.topic_administration.stats(TOPIC)["backlogQuotaLimitSize"] == -1


def test_quotas_survive_a_restart() -> None:
    world, _, _ = world_with_backlog()
    limit_size(world, "producer_request_hold")
    world.start()
    peer = world.connect()
    peer.ask_producer(name="new")
    peer.expect_error("ProducerBlockedQuotaExceededError")


@pytest.mark.parametrize(
    "make",
    [
        lambda: BacklogQuota("drop_everything"),
        lambda: BacklogQuota("producer_exception", limit_size="x"),  # type: ignore[arg-type]
        lambda: BacklogQuota("producer_exception", limit_time=True),
    ],
)
def test_what_is_no_quota(make: Any) -> None:
    with pytest.raises(InvalidConfiguration):
        make()


def test_a_quota_is_given_as_one() -> None:
    world = World(CONFIG)
    with pytest.raises(InvalidConfiguration, match="BacklogQuota"):
        world.broker.administration.set_policy(world.now, "public/default", "backlog_quota_size", 1000)


@pytest.mark.parametrize("by", ["size", "time"])
def test_what_is_to_be_compacted_is_no_backlog_and_stays(by: str) -> None:
    world, _, consuming = world_with_backlog()
    world.broker.topic_administration.compact(world.now, TOPIC)
    world.pump()
    world.advance(0)
    world.broker.subscription_administration.reset_cursor(world.now, TOPIC, "__compaction", EARLIEST)
    if by == "size":
        limit_size(world, EVICTION)
    else:
        limit_time(world, EVICTION, 10)
        world.advance(12)
    world.advance(HOUSE)
    assert backlog(world) < 20
    assert backlog(world, "__compaction") == 20
    consuming.flow(100)
    consuming.ack(*consuming.messages())
    left = world.connect()
    limit_size(world, "producer_exception", 100)
    left.producer(name="p2")  # no other subscription is over the quota
