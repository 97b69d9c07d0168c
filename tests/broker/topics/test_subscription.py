"""A subscription's own decisions: its first reason to refuse, the dispatcher that it keeps, its counts."""

from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import CUMULATIVE, proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World
from tests.broker.serving.stored_topics import batch_topic, topic_with

NOTICE = 2**64 - 1
CHOSEN = 1.1
"""Seconds after which the active consumer of a Failover subscription is chosen."""

STICKY = {"keySharedMode": proto.STICKY, "hashRanges": [{"start": 0, "end": 65_535}]}
AUTO_SPLIT = {"keySharedMode": proto.AUTO_SPLIT}


def stats(world: World, subscription: str = "s") -> dict[str, Any]:
    found: dict[str, Any] = world.broker.topic_administration.stats(TOPIC)["subscriptions"][subscription]
    return found


def seek(peer: Peer, consumer_id: int = 0, **position: Any) -> None:
    peer.send(Type.SEEK, proto.CommandSeek(consumer_id=consumer_id, request_id=7, **position))


# --- consumers ----------------------------------------------------------------------------------------

DURABILITY = "Subscription s is durable, a non-durable consumer cannot use it"
OTHER_LIFE = "Subscription s is non-durable, a durable consumer cannot use it"
OTHER_TYPE = "Subscription is of different type"
FULL = "Subscription reached max consumers limit"


@pytest.mark.parametrize(
    ("present", "newcomer", "code", "text"),
    [
        ({"kind": SubType.Shared}, {"kind": SubType.Failover, "durable": False}, "NotAllowed", DURABILITY),
        (
            {"kind": SubType.Shared, "durable": False},
            {"kind": SubType.Shared},
            "NotAllowed",
            OTHER_LIFE,
        ),
        ({"kind": SubType.Shared}, {"kind": SubType.Failover}, "ConsumerBusy", OTHER_TYPE),
        (
            {"kind": SubType.Key_Shared, "keySharedMeta": STICKY},
            {"kind": SubType.Key_Shared, "keySharedMeta": STICKY},
            "ConsumerAssign",
            "Ranges conflict",
        ),
        ({"kind": SubType.Shared}, {"kind": SubType.Shared}, "ConsumerBusy", FULL),
    ],
)
def test_the_first_reason_is_given(
    present: dict[str, Any], newcomer: dict[str, Any], code: str, text: str
) -> None:
    """The subscription is full in every row, which is the last reason. Rule BROKER-24."""
    world, peer = topic_with()
    peer.subscribe(**present)
    world.broker.administration.set_policy(world.now, TOPIC, "max_consumers_per_subscription", 1)
    peer.ask_subscribe(consumer_id=1, **newcomer)
    assert text in peer.expect_error(f"{code}Error" if code != "ConsumerBusy" else code).message
    assert len(stats(world)["consumers"]) == 1


def test_a_full_subscription_has_room_again() -> None:
    world, peer = topic_with()
    peer.subscribe(SubType.Shared)
    world.broker.administration.set_policy(world.now, TOPIC, "max_consumers_per_subscription", 1)
    peer.close_consumer()
    peer.subscribe(SubType.Shared, consumer_id=1)


@pytest.mark.parametrize(
    ("before", "after", "redelivered"),
    [
        ({"kind": SubType.Shared}, {"kind": SubType.Shared}, 1),
        ({"kind": SubType.Shared}, {"kind": SubType.Key_Shared, "keySharedMeta": AUTO_SPLIT}, 0),
        ({"kind": SubType.Shared}, {"kind": SubType.Exclusive}, 0),
        (
            {"kind": SubType.Key_Shared, "keySharedMeta": AUTO_SPLIT},
            {"kind": SubType.Key_Shared, "keySharedMeta": AUTO_SPLIT},
            1,
        ),
        (
            {"kind": SubType.Key_Shared, "keySharedMeta": AUTO_SPLIT},
            {"kind": SubType.Key_Shared, "keySharedMeta": STICKY},
            0,
        ),
        (
            {"kind": SubType.Key_Shared, "keySharedMeta": AUTO_SPLIT},
            {
                "kind": SubType.Key_Shared,
                "keySharedMeta": {**AUTO_SPLIT, "allowOutOfOrderDelivery": True},
            },
            0,
        ),
        ({"kind": SubType.Key_Shared, "keySharedMeta": AUTO_SPLIT}, {"kind": SubType.Shared}, 0),
    ],
)
def test_redelivery_counts_stay_with_consumers_of_the_same_type(
    before: dict[str, Any], after: dict[str, Any], redelivered: int
) -> None:
    """The subscription has no consumer in between, and the next one decides about its type."""
    _, peer = topic_with(b"0")
    peer.subscribe(**before)
    peer.redeliver(*peer.messages())
    (message,) = peer.messages()
    assert message.redelivery_count == 1
    peer.close_consumer()
    peer.subscribe(**after)
    (message,) = peer.messages()
    assert message.redelivery_count == redelivered


def test_failover_replaces_exclusive_and_knows_which_consumer_is_active() -> None:
    world, peer = topic_with(b"0")
    peer.subscribe(SubType.Exclusive)
    peer.inbox.clear()
    peer.close_consumer()
    peer.subscribe(SubType.Failover, permits=0)
    world.advance(CHOSEN)
    assert peer.expect(Type.ACTIVE_CONSUMER_CHANGE).is_active


@pytest.mark.parametrize("durable", [True, False])
def test_only_a_durable_subscription_outlives_its_last_consumer(durable: bool) -> None:
    world, peer = topic_with(b"0")
    for consumer_id in (0, 1):
        peer.subscribe(SubType.Shared, consumer_id, durable=durable, permits=0)
    peer.close_consumer(0)
    assert "s" in world.broker.topic_administration.stats(TOPIC)["subscriptions"]
    peer.close_consumer(1)
    assert ("s" in world.broker.topic_administration.stats(TOPIC)["subscriptions"]) == durable


def test_counts_include_consumers_that_left_and_subscriptions_that_were_deleted() -> None:
    world, peer = topic_with(b"0", b"11")
    peer.subscribe(SubType.Shared)
    size = sum(len(message.payload) for message in peer.messages())
    peer.close_consumer()
    peer.subscribe(SubType.Shared)
    peer.inbox.clear()
    assert (stats(world)["msgOutCounter"], stats(world)["bytesOutCounter"]) == (4, 2 * size)
    peer.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=2))
    peer.expect(Type.SUCCESS)
    topic = world.broker.topic_administration.stats(TOPIC)
    assert (topic["msgOutCounter"], topic["bytesOutCounter"]) == (4, 2 * size)


# --- permits ------------------------------------------------------------------------------------------


def test_permits_of_a_blocked_consumer_count_when_it_goes_on() -> None:
    """Rule BROKER-28."""
    world, peer = topic_with(b"0", b"1", b"2")
    world.broker.administration.set_policy(world.now, TOPIC, "max_unacked_messages_per_consumer", 1)
    peer.subscribe(SubType.Shared, permits=1)
    (message,) = peer.messages()
    peer.flow(2)
    peer.nothing()
    assert stats(world)["consumers"][0]["availablePermits"] == 0
    peer.ack(message)
    (second,) = peer.messages()
    assert second.entry_id == 1
    peer.ack(second)
    (third,) = peer.messages()
    peer.ack(third)
    assert stats(world)["consumers"][0]["availablePermits"] == 0, "each permit was used once"


# --- acknowledgements ---------------------------------------------------------------------------------


def test_one_ack_may_name_entries_that_are_there_and_others() -> None:
    world, peer = topic_with(b"0", b"1", b"2")
    peer.subscribe(SubType.Shared)
    peer.inbox.clear()
    peer.ack((9, 9, None), (0, 2, None), (0, 77, None), (0, 0, None))
    cursor = world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]
    assert (cursor["markDeletePosition"], cursor["individuallyDeletedMessages"]) == ("0:0", "[(0:1..0:2]]")


def test_an_ack_of_what_is_acknowledged_writes_nothing() -> None:
    world, peer = topic_with(b"0", b"1")
    peer.subscribe(SubType.Shared)
    messages = peer.messages()
    peer.ack(*messages)
    world.advance(10)
    world.hold_writes = True
    peer.ack(*messages)
    world.advance(10)
    assert not world.held


def test_the_rest_of_a_batch_acknowledges_its_entry() -> None:
    world, peer = batch_topic()
    peer.subscribe(SubType.Shared)
    peer.inbox.clear()
    peer.ack((0, 0, 0b1100))
    assert stats(world)["msgBacklog"] == 1
    peer.ack((0, 0, 0b0011))
    assert stats(world)["msgBacklog"] == 0
    assert stats(world)["consumers"][0]["unackedMessages"] == 0
    peer.redeliver()
    peer.nothing()


@pytest.mark.parametrize("indexes", [True, False])
def test_a_cumulative_ack_inside_a_batch_acknowledges_the_entries_before_it(indexes: bool) -> None:
    """A broker without batch indexes takes the entry before the batch, and no message of the batch."""
    world, peer = topic_with(b"0", config=BrokerConfig(batch_index_acknowledgement=indexes))
    producing = world.connect()
    producing.producer(name="p")
    producing.publish_batch([b"1", b"2"], 1)
    peer.subscribe()
    peer.inbox.clear()
    peer.ack((0, 1, 0b10), kind=CUMULATIVE)
    peer.redeliver()
    (message,) = peer.messages()
    assert (message.entry_id, message.ack_set) == (1, 0b10 if indexes else None)


# --- seek, and the end --------------------------------------------------------------------------------


def test_a_seek_of_a_failover_subscription_closes_its_active_consumer_alone() -> None:
    world, peer = topic_with(b"0")
    waiting = world.connect()
    peer.subscribe(SubType.Failover, consumer_name="b")
    waiting.subscribe(SubType.Failover, consumer_id=1, consumer_name="a")
    world.advance(CHOSEN)
    peer.ack(*[each for number, each in peer.inbox if number == Type.MESSAGE])
    for each in (peer, waiting):
        each.inbox.clear()
    seek(peer, message_id={"ledgerId": 0, "entryId": 0})
    assert peer.expect(Type.CLOSE_CONSUMER).request_id == NOTICE
    peer.expect(Type.SUCCESS)
    peer.nothing()
    world.advance(CHOSEN)
    assert waiting.expect(Type.ACTIVE_CONSUMER_CHANGE).is_active
    assert [message.entry_id for message in waiting.messages()] == [0]


@pytest.mark.breaks("BROKER-43", "another consumer's SEEK moved the subscription back after the notice")
def test_after_a_seek_the_end_of_the_topic_is_told_again() -> None:
    """The other consumer of a Failover subscription stays attached. Rule BROKER-43."""
    world, peer = topic_with(b"0")
    waiting = world.connect()
    peer.subscribe(SubType.Failover, consumer_name="b")
    waiting.subscribe(SubType.Failover, consumer_id=1, consumer_name="a")
    world.advance(CHOSEN)
    world.broker.topic_administration.terminate(world.now, TOPIC)
    world.pump()
    peer.ack((0, 0, None))
    waiting.inbox.clear()
    seek(peer, message_id={"ledgerId": 0, "entryId": 0})
    world.advance(CHOSEN)
    waiting.expect(Type.ACTIVE_CONSUMER_CHANGE)
    waiting.ack(*waiting.messages(), consumer_id=1)
    assert waiting.expect(Type.REACHED_END_OF_TOPIC).consumer_id == 1


def test_the_end_of_the_topic_is_told_once() -> None:
    world, peer = topic_with(b"0")
    peer.subscribe(SubType.Shared)
    world.broker.topic_administration.terminate(world.now, TOPIC)
    world.pump()
    peer.ack(*peer.messages())
    peer.expect(Type.REACHED_END_OF_TOPIC)
    peer.subscribe(SubType.Shared, consumer_id=1, permits=0)
    assert peer.expect(Type.REACHED_END_OF_TOPIC).consumer_id == 1
    peer.nothing()


def test_only_a_consumer_without_others_may_unsubscribe() -> None:
    """The refused consumer goes on. Rule WIRE-14."""
    world, peer = topic_with(b"0")
    peer.subscribe(SubType.Shared, permits=0)
    peer.subscribe(SubType.Shared, consumer_id=1, permits=0)
    peer.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=2))
    assert peer.expect_error("MetadataError").request_id == 2
    peer.flow(1)
    assert [message.consumer_id for message in peer.messages()] == [0]
    peer.close_consumer(1)
    peer.send(Type.UNSUBSCRIBE, proto.CommandUnsubscribe(consumer_id=0, request_id=3))
    peer.expect(Type.SUCCESS)
    assert "s" not in world.broker.topic_administration.stats(TOPIC)["subscriptions"]


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Exclusive])
def test_an_unloaded_topic_forgets_deliveries_and_the_type(kind: SubType) -> None:
    world, peer = topic_with(b"0")
    peer.subscribe(SubType.Shared)
    peer.redeliver(*peer.messages())
    peer.inbox.clear()
    world.broker.topic_administration.unload(world.now, TOPIC)
    world.pump()
    assert peer.expect(Type.CLOSE_CONSUMER).request_id == NOTICE
    peer.subscribe(kind)
    (message,) = peer.messages()
    assert message.redelivery_count == 0
