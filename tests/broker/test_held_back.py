"""Entries that Shared and Key_Shared hold back: how far they read, what waits in replay, and when the wait
ends.
"""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.dispatching.key_hash import slot_of
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import proto
from tests.broker.dispatching.scenes import KEYS, keyed, publish, world_with
from tests.broker.peer import SECOND, TOPIC, WALL, SubType, Type, World

LOW = {"keySharedMode": "STICKY", "hashRanges": [{"start": 0, "end": 20_000}]}
"""Hash ranges of a consumer that takes none of `UNWANTED`."""

WANTED = next(key for key in KEYS if slot_of(key.encode()) <= 20_000)
UNWANTED = next(key for key in KEYS if slot_of(key.encode()) > 20_000)


def read_position(world: World) -> str:
    position: str = world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]["readPosition"]
    return position


def in_replay(world: World) -> Any:
    return world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["msgInReplay"]


def test_what_is_delivered_leaves_room_in_the_look_ahead() -> None:
    """For each held entry that is delivered, one more is read, and no more."""
    world, producing, peer = world_with(BrokerConfig(key_shared_look_ahead=5))
    high = {"keySharedMode": "STICKY", "hashRanges": [{"start": 20_001, "end": 65_535}]}
    peer.subscribe(SubType.Key_Shared, 0, keySharedMeta=LOW)
    peer.subscribe(SubType.Key_Shared, 1, permits=0, keySharedMeta=high)
    keyed(producing, UNWANTED * 20)
    assert read_position(world) == "0:5"
    for delivered in range(3, 13, 3):
        peer.flow(3, 1)
        assert [message.consumer_id for message in peer.messages()] == [1, 1, 1]
        assert read_position(world) == f"0:{5 + delivered}"


def test_nothing_is_read_for_consumers_without_room() -> None:
    world, producing, peer = world_with()
    peer.subscribe(SubType.Key_Shared, 0, permits=0)
    keyed(producing, KEYS)
    assert read_position(world) == "0:0"
    peer.flow(1, 0)
    assert len(peer.messages()) == 1
    assert read_position(world) == "0:1"


def test_what_is_acknowledged_while_it_is_held_back_is_not_in_replay() -> None:
    world, producing, peer = world_with()
    everything = {"keySharedMode": "STICKY", "hashRanges": [{"start": 0, "end": 65_535}]}
    peer.subscribe(SubType.Key_Shared, 0, keySharedMeta=everything)
    keyed(producing, UNWANTED * 3)
    held = peer.messages()
    peer.close_consumer(0)
    peer.subscribe(SubType.Key_Shared, 1, keySharedMeta=LOW)
    for left, message in zip((2, 1, 0), held, strict=True):
        peer.ack(message, consumer_id=1)
        assert in_replay(world) == left


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
def test_what_waits_for_room_to_be_delivered_again_is_in_replay(kind: SubType) -> None:
    world, producing, peer = world_with()
    peer.subscribe(kind, permits=3)
    publish(producing, 3)
    messages = peer.messages()
    peer.redeliver(*messages[:2])
    assert in_replay(world) == 2
    peer.flow(1)
    assert [message.entry_id for message in peer.messages()] == [0]
    assert in_replay(world) == 1
    peer.flow(1)
    assert [message.entry_id for message in peer.messages()] == [1]
    assert in_replay(world) == 0


@pytest.mark.parametrize("command", ["skip", "expire"])
def test_what_is_skipped_makes_room_for_the_entries_behind_it(command: str) -> None:
    """The later entries are delivered at once, not only with the next message."""
    world, producing, peer = world_with(BrokerConfig(key_shared_look_ahead=5))
    peer.subscribe(SubType.Key_Shared, 0, keySharedMeta=LOW)
    keyed(producing, UNWANTED * 5)
    keyed(producing, WANTED * 3, 5)
    peer.nothing()
    if command == "skip":
        world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s", 5)
    else:
        world.broker.subscription_administration.expire_messages(world.now, TOPIC, "s", MessageId(0, 4))
    world.pump()
    assert [message.entry_id for message in peer.messages()] == [5, 6, 7]


def test_what_is_skipped_stays_acknowledged_over_a_restart() -> None:
    world, producing, peer = world_with()
    peer.subscribe(SubType.Shared, permits=0)
    publish(producing, 3)
    world.now = 5 * SECOND
    world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s", 2)
    stats = world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]
    assert stats["lastMarkDeleteAdvancedTimestamp"] == WALL + 5000
    world.advance(1)
    world.start()
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 1


@pytest.mark.parametrize("end", ["unsubscribe", "other type"])
def test_delayed_messages_wake_no_broker_whose_subscription_does_not_wait_for_them(end: str) -> None:
    """The subscription was deleted, or has consumers of another type without permits."""
    world, producing, peer = world_with()
    peer.subscribe(SubType.Shared)
    producing.publish(b"x", deliver_at_time=WALL + 5000)
    assert world.broker.next_deadline() == 5 * SECOND
    if end == "unsubscribe":
        peer.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=1))
        peer.expect(Type.SUCCESS)
    else:
        peer.close_consumer()
        peer.subscribe(SubType.Exclusive, permits=0)
    due = world.broker.next_deadline()
    assert due is not None
    assert due > 5 * SECOND
