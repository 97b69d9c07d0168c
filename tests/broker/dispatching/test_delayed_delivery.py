"""Messages that Shared and Key_Shared deliver later."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.dispatching import delayed_delivery as delays
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type, World, ids

SHARED = [SubType.Shared, SubType.Key_Shared]
QUIET = BrokerConfig(keepalive_interval=10.0 * 365 * 86_400)
"""A keep-alive interval without PINGs."""

both = pytest.mark.parametrize("kind", SHARED, ids=["shared", "key-shared"])


def world_with(
    kind: SubType = SubType.Shared, config: BrokerConfig | None = None, permits: int = 1000
) -> tuple[World, Peer, Peer]:
    world = World(config or QUIET)
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe(kind, permits=permits)
    return world, producing, consuming


def publish(world: World, peer: Peer, payload: bytes, seconds: float, **metadata: Any) -> None:
    """Publish a message to be delivered in so many seconds."""
    now = WALL + world.now // 1_000_000
    peer.publish(payload, deliver_at_time=now + round(seconds * 1000), **metadata)
    peer.expect(Type.SEND_RECEIPT)


def subscription(world: World) -> Any:
    return world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]


@both
def test_a_message_comes_at_its_time_and_others_before_it(kind: SubType) -> None:
    """Rule DELAY-01."""
    world, producing, consuming = world_with(kind)
    publish(world, producing, b"later", 5)
    producing.publish(b"now", 1)
    assert consuming.payloads() == [b"now"]
    world.advance(4.9)
    consuming.nothing()
    world.advance(0.1)
    assert consuming.payloads() == [b"later"]


@both
def test_in_the_order_of_their_times(kind: SubType) -> None:
    world, producing, consuming = world_with(kind)
    for seconds in (9, 5, 7):
        publish(world, producing, b"%d" % seconds, seconds)
    world.advance(8.9)
    assert consuming.payloads() == [b"5", b"7"]
    world.advance(0.1)
    assert consuming.payloads() == [b"9"]


def test_a_tick_ahead_unless_it_has_to_be_strict() -> None:
    """Seen: java-delayed."""
    world, producing, consuming = world_with()
    publish(world, producing, b"soon", 1)
    assert consuming.payloads() == [b"soon"]
    world.broker.administration.set_policy(world.now, TOPIC, "delayed_delivery_tick", 0.2)
    publish(world, producing, b"soon", 1)
    consuming.nothing()
    world, producing, consuming = world_with(config=BrokerConfig(delayed_delivery_strict=True))
    publish(world, producing, b"soon", 0.001)
    consuming.nothing()
    world.advance(0.001)
    assert consuming.payloads() == [b"soon"]


@pytest.mark.parametrize("kind", [SubType.Exclusive, SubType.Failover])
def test_others_get_it_at_once(kind: SubType) -> None:
    world, producing, consuming = world_with(kind)
    world.advance(2)
    consuming.inbox.clear()
    publish(world, producing, b"later", 3600)
    assert consuming.payloads() == [b"later"]


@both
@pytest.mark.parametrize("date", [-(2**63), -1, 0, WALL - 1, WALL])
def test_a_time_that_is_over_is_now(kind: SubType, date: int) -> None:
    _, producing, consuming = world_with(kind)
    producing.publish(b"x", deliver_at_time=date)
    assert consuming.payloads() == [b"x"]


@both
def test_a_time_without_end_waits_for_ever(kind: SubType) -> None:
    """Rule DELAY-02."""
    world, producing, consuming = world_with(kind)
    producing.publish(b"never", deliver_at_time=2**63 - 1)
    world.advance(1000 * 3600)
    consuming.nothing()
    assert subscription(world)["msgDelayed"] == 1


@both
def test_they_are_backlog_and_counted_apart(kind: SubType) -> None:
    world, producing, consuming = world_with(kind)
    for number in range(3):
        publish(world, producing, b"later", 60 + number / 2)
    producing.publish(b"now", 3)
    [now] = consuming.messages()
    stats = subscription(world)
    assert (stats["msgBacklog"], stats["msgDelayed"], stats["msgBacklogNoDelayed"]) == (4, 3, 1)
    consuming.ack(now)
    world.advance(60.5)
    consuming.ack(*consuming.messages())
    stats = subscription(world)
    assert (stats["msgBacklog"], stats["msgDelayed"], stats["unackedMessages"]) == (0, 0, 0), "a tick ahead"
    assert subscription(world)["nonContiguousDeletedMessagesRanges"] == 0


@both
def test_they_take_no_permit_while_they_wait(kind: SubType) -> None:
    world, producing, consuming = world_with(kind, permits=1)
    publish(world, producing, b"later", 60)
    producing.publish(b"now", 1)
    assert consuming.payloads() == [b"now"]
    world.advance(60)
    consuming.nothing()
    consuming.flow(1)
    assert consuming.payloads() == [b"later"]


@both
def test_they_wait_while_no_consumer_is_attached(kind: SubType) -> None:
    world, producing, consuming = world_with(kind)
    publish(world, producing, b"later", 60)
    consuming.close_consumer()
    world.advance(30)
    consuming.subscribe(kind)
    world.advance(29.9)
    consuming.nothing()
    consuming.close_consumer()
    world.advance(10)
    consuming.subscribe(kind)
    assert consuming.payloads() == [b"later"]


@both
@pytest.mark.parametrize("how", ["unload", "restart", "other type", "seek"])
def test_they_wait_on_after(kind: SubType, how: str) -> None:
    world, producing, consuming = world_with(kind)
    publish(world, producing, b"later", 60)
    producing.publish(b"now", 1)
    consuming.ack(*consuming.messages())
    if how == "unload":
        world.broker.topic_administration.unload(world.now, TOPIC)
        world.pump()
    elif how == "restart":
        world.advance(1)  # acknowledgements are written after the flush interval
        world.start()
        consuming = world.connect()
    elif how == "seek":
        world.broker.subscription_administration.reset_cursor(world.now, TOPIC, "s", 0)
        world.pump()
    else:
        consuming.close_consumer()
    consuming.inbox.clear()
    if how == "other type":
        kind = SHARED[1 - SHARED.index(kind)]
    consuming.subscribe(kind)
    assert consuming.payloads() == ([b"now"] if how == "seek" else [])
    world.advance(58)
    consuming.nothing()
    world.advance(2)
    assert consuming.payloads() == [b"later"]


@both
def test_negatively_acknowledged_it_is_redelivered_at_once(kind: SubType) -> None:
    world, producing, consuming = world_with(kind)
    publish(world, producing, b"later", 60)
    world.advance(60)
    [message] = consuming.messages()
    consuming.redeliver(message)
    [again] = consuming.messages()
    assert (ids([again]), again.redelivery_count) == (ids([message]), 1)


@both
def test_what_an_administrator_skips_does_not_come(kind: SubType) -> None:
    world, producing, consuming = world_with(kind)
    publish(world, producing, b"later", 60)
    world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s")
    assert subscription(world)["msgDelayed"] == 0
    publish(world, producing, b"even later", 70)
    world.advance(70)
    assert consuming.payloads() == [b"even later"]


def test_a_topic_may_have_it_switched_off() -> None:
    world, producing, consuming = world_with()
    world.broker.administration.set_policy(world.now, TOPIC, "delayed_delivery", False)
    publish(world, producing, b"later", 60)
    assert consuming.payloads() == [b"later"]


def test_longer_than_is_allowed() -> None:
    world, producing, _ = world_with()
    world.broker.administration.set_policy(world.now, TOPIC, "delayed_delivery_max", 10)
    publish(world, producing, b"just", 10)
    producing.publish(b"too long", 1, deliver_at_time=WALL + 10_001)
    error = producing.expect(Type.SEND_ERROR)
    assert error.message == "Exceeds max allowed delivery delay of 10000 milliseconds"


def test_each_subscription_has_its_own_view() -> None:
    world, producing, shared = world_with()
    exclusive = world.connect()
    exclusive.subscribe(SubType.Exclusive, subscription="other")
    publish(world, producing, b"later", 60)
    assert exclusive.payloads() == [b"later"]
    shared.nothing()
    world.advance(60)
    assert shared.payloads() == [b"later"]


def test_after_the_end_of_the_topic_they_still_come() -> None:
    world, producing, consuming = world_with()
    publish(world, producing, b"later", 60)
    world.broker.topic_administration.terminate(world.now, TOPIC)
    world.pump()
    consuming.nothing()
    world.advance(60)
    [message] = consuming.messages()
    consuming.ack(message)
    consuming.expect(Type.REACHED_END_OF_TOPIC)


@both
def test_nothing_is_kept_of_what_was_skipped_long_before_its_time(
    kind: SubType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delays, "MAX_OVER", 10)
    world, producing, consuming = world_with(kind)
    dispatcher: Any = world.broker.topics.by_name[TOPIC].subscriptions["s"].dispatcher
    for number in range(30):
        publish(world, producing, b"%d" % number, 1e6 + number)
        if number < 29:
            world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s")
        assert len(dispatcher.delays) == (number == 29)
        assert len(dispatcher.delays._heap) <= 12
    world.advance(1e6 + 29)
    assert consuming.payloads() == [b"29"]
