"""A consumer as the broker serves it: the epoch that its messages show, its key ranges, and its counts."""

from typing import Any

import pytest

from pulsar_sansio.broker.dispatching.key_hash import slot_of
from pulsar_sansio.wire import proto
from tests.broker.dispatching.scenes import consumer_stats, keyed, publish, world_with
from tests.broker.peer import SECOND, SubType

STICKY = proto.STICKY


@pytest.mark.parametrize(
    ("kind", "fields", "epoch"),
    [
        (SubType.Exclusive, {"consumer_epoch": 3}, 3),
        (SubType.Failover, {"consumer_epoch": 3}, 3),
        (SubType.Exclusive, {"consumer_epoch": 0}, 0),
        (SubType.Exclusive, {}, None),
        (SubType.Exclusive, {"consumer_epoch": 3, "read_compacted": True}, None),
        (SubType.Shared, {"consumer_epoch": 3}, None),
        (SubType.Key_Shared, {"consumer_epoch": 3}, None),
    ],
)
def test_messages_show_the_epoch_of_a_consumer_that_has_the_topic_alone(
    kind: SubType, fields: dict[str, Any], epoch: int | None
) -> None:
    """Rule REDEL-02; seen: java-table-view, without an epoch."""
    world, producing, peer = world_with()
    peer.subscribe(kind, **fields)
    world.advance(1.1)
    peer.inbox.clear()
    publish(producing, 2)
    first, second = peer.messages()
    assert [first.consumer_epoch, second.consumer_epoch] == [epoch, epoch]


def test_a_redelivered_message_shows_the_epoch_too() -> None:
    _, producing, peer = world_with()
    peer.subscribe(consumer_epoch=3)
    publish(producing, 1)
    peer.messages()
    peer.redeliver(epoch=4)
    assert [message.consumer_epoch for message in peer.messages()] == [4]


RANGES = [{"start": 10, "end": 5}]


@pytest.mark.parametrize(
    ("kind", "mode", "checked"),
    [
        (SubType.Exclusive, proto.AUTO_SPLIT, True),
        (SubType.Exclusive, STICKY, True),
        (SubType.Key_Shared, STICKY, True),
        (SubType.Key_Shared, proto.AUTO_SPLIT, False),
        (SubType.Shared, STICKY, False),
        (SubType.Failover, STICKY, False),
    ],
)
def test_ranges_are_those_of_sticky_and_of_exclusive_consumers(
    kind: SubType, mode: int, checked: bool
) -> None:
    """The ranges of this SUBSCRIBE cannot be, and other types do not look at theirs."""
    _, _, peer = world_with()
    shared = {"keySharedMode": mode, "hashRanges": RANGES}
    if checked:
        peer.ask_subscribe(kind, keySharedMeta=shared)
        peer.expect_error("ConsumerAssignError")
    else:
        peer.subscribe(kind, keySharedMeta=shared, permits=0)


@pytest.mark.parametrize("kind", [SubType.Key_Shared, SubType.Exclusive])
def test_a_consumer_with_ranges_gets_the_keys_in_them(kind: SubType) -> None:
    _, producing, peer = world_with()
    slot = slot_of(b"a")
    ranges = [{"start": slot, "end": slot}]
    peer.subscribe(kind, keySharedMeta={"keySharedMode": STICKY, "hashRanges": ranges})
    keyed(producing, "aba")
    assert [message.entry_id for message in peer.messages()] == [0, 2]


def test_a_consumer_counts_what_it_was_sent_and_when() -> None:
    world, producing, peer = world_with()
    peer.subscribe(SubType.Shared, permits=10)
    world.now = 5 * SECOND
    keyed(producing, "aab")
    messages = peer.messages()
    stats = consumer_stats(world)
    assert (stats["msgOutCounter"], stats["availablePermits"], stats["unackedMessages"]) == (3, 7, 3)
    assert stats["bytesOutCounter"] == sum(len(message.payload) for message in messages)
    assert stats["lastConsumedTimestamp"] == world.wall + 5_000
    producing.publish_batch([b"0", b"1"], 3)
    stats = consumer_stats(world)
    assert (stats["msgOutCounter"], stats["availablePermits"], stats["unackedMessages"]) == (5, 5, 5)


def test_a_large_message_counts_as_a_small_one_does() -> None:
    """A large message is written without a copy of its payload."""
    world, producing, peer = world_with()
    peer.subscribe(permits=10)
    producing.publish(b"x" * 100_000)
    (message,) = peer.messages()
    stats = consumer_stats(world)
    assert (stats["msgOutCounter"], stats["bytesOutCounter"]) == (1, len(message.payload))
    assert stats["availablePermits"] == 9
