"""Key_Shared: each key has one consumer, and its order is kept while consumers come and go."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.dispatching.key_hash import slot_of
from pulsar_sansio.wire import MessageCommand, proto
from tests.broker.dispatching.scenes import (
    KEYS,
    by_consumer,
    key_of,
    keyed,
    world_with,
)
from tests.broker.peer import TOPIC, SubType, Type


def test_one_key_one_consumer() -> None:
    """SUBT-08."""
    _, producing, peer = world_with()
    for consumer_id in range(3):
        peer.subscribe(SubType.Key_Shared, consumer_id)
    keyed(producing, KEYS * 5)
    owners: dict[str, set[int]] = {}
    for message in peer.messages():
        owners.setdefault(key_of(message), set()).add(message.consumer_id)
    assert set(owners) == set(KEYS)
    assert all(len(each) == 1 for each in owners.values())
    assert len(set.union(*owners.values())) == 3, "all three have something"


def test_a_key_is_held_back_while_its_old_owner_has_some_of_it() -> None:
    """GAP-18: the range moved, and the order stays."""
    _, producing, peer = world_with()
    peer.subscribe(SubType.Key_Shared, 0)
    keyed(producing, KEYS)
    first = peer.messages()
    peer.subscribe(SubType.Key_Shared, 1)
    keyed(producing, KEYS, 10)
    second = peer.messages()
    moved = [message for message in first if slot_of(key_of(message).encode()) <= 32768]
    assert moved
    assert len(moved) < len(KEYS)
    assert {key_of(message) for message in second} == set(KEYS) - {key_of(message) for message in moved}
    for message in moved:
        peer.ack(message)
        (freed,) = peer.messages()
        assert (key_of(freed), freed.consumer_id) == (key_of(message), 1)


def test_a_key_without_room_holds_back_its_followers_only() -> None:
    _, producing, peer = world_with()
    peer.subscribe(SubType.Key_Shared, 0)
    peer.subscribe(SubType.Key_Shared, 1, permits=1)
    keyed(producing, KEYS * 2)
    messages = peer.messages()
    assert [message.consumer_id for message in messages].count(1) == 1
    peer.flow(100, 1)
    messages += peer.messages()
    for key in KEYS:
        numbers = [message.entry_id for message in messages if key_of(message) == key]
        assert numbers == sorted(numbers)
        assert len(numbers) == 2


def test_look_ahead_is_bounded() -> None:
    world, producing, peer = world_with(BrokerConfig(key_shared_look_ahead=5))
    peer.subscribe(SubType.Key_Shared, 0)
    peer.subscribe(SubType.Key_Shared, 1, permits=1)
    keyed(producing, KEYS * 10)
    before = len(peer.messages())
    assert before < 80
    stats: Any = world.broker.topic_administration.internal_stats(TOPIC)
    assert stats["cursors"]["s"]["readPosition"] != "0:100"
    peer.flow(1000, 1)
    assert before + len(peer.messages()) == 100


def test_sticky_ranges_and_keys_of_no_consumer() -> None:
    """Seen: java-key-shared-sticky."""
    _, producing, peer = world_with()

    def ranges(*pairs: tuple[int, int]) -> Any:
        return {"keySharedMode": "STICKY", "hashRanges": [{"start": a, "end": b} for a, b in pairs]}

    peer.subscribe(SubType.Key_Shared, 0, keySharedMeta=ranges((0, 20000)))
    keyed(producing, KEYS)
    below = {key for key in KEYS if slot_of(key.encode()) <= 20000}
    assert below
    assert {key_of(message) for message in peer.messages()} == below
    peer.ask_subscribe(SubType.Key_Shared, 1, keySharedMeta=ranges((20000, 65535)))
    peer.expect_error("ConsumerAssignError")
    peer.ask_subscribe(SubType.Key_Shared, 1)
    peer.expect_error("ConsumerBusy")
    peer.ask_subscribe(
        SubType.Key_Shared, 1, keySharedMeta={"keySharedMode": "AUTO_SPLIT", "allowOutOfOrderDelivery": True}
    )
    peer.expect_error("ConsumerBusy")
    peer.subscribe(SubType.Key_Shared, 1, keySharedMeta=ranges((20001, 65535)))
    assert {key_of(message) for message in peer.messages()} == set(KEYS) - below


@pytest.mark.parametrize("present", [False, True])
def test_ranges_of_the_first_consumer_are_checked(present: bool) -> None:
    """The check is independent of whether the subscription exists (BROKER-24)."""
    world, _, peer = world_with()
    if present:
        world.broker.subscription_administration.create_subscription(world.now, TOPIC, "s")
    for pairs in ([], [(0, 5), (5, 9)]):
        ranges = [{"start": start, "end": end} for start, end in pairs]
        meta = {"keySharedMode": "STICKY", "hashRanges": ranges}
        peer.ask_subscribe(SubType.Key_Shared, 0, keySharedMeta=meta)
        peer.expect_error("ConsumerAssignError")


def test_what_is_skipped_is_not_held_back_any_more() -> None:
    """No consumer takes the first keys, and they fill the look-ahead."""
    world, producing, peer = world_with(BrokerConfig(key_shared_look_ahead=5))
    ranges = {"keySharedMode": "STICKY", "hashRanges": [{"start": 0, "end": 20000}]}
    wanted = [key for key in KEYS if slot_of(key.encode()) <= 20000]
    unwanted = next(key for key in KEYS if key not in wanted)
    peer.subscribe(SubType.Key_Shared, 0, keySharedMeta=ranges)
    keyed(producing, unwanted * 8)
    assert peer.messages() == []
    world.broker.subscription_administration.skip_messages(0, TOPIC, "s")
    world.pump()
    keyed(producing, wanted[0] * 3, 10)
    assert len(peer.messages()) == 3


def test_what_is_acknowledged_one_by_one_is_not_held_back_any_more() -> None:
    """The look-ahead is for entries still to be delivered. A consumer may acknowledge an entry of an earlier
    delivery while no consumer can get that entry."""
    world, producing, peer = world_with(BrokerConfig(key_shared_look_ahead=5))
    wanted = [key for key in KEYS if slot_of(key.encode()) <= 20000]
    unwanted = next(key for key in KEYS if key not in wanted)
    everything = {"keySharedMode": "STICKY", "hashRanges": [{"start": 0, "end": 65535}]}
    below = {"keySharedMode": "STICKY", "hashRanges": [{"start": 0, "end": 20000}]}
    peer.subscribe(SubType.Key_Shared, 0, keySharedMeta=everything)
    keyed(producing, unwanted * 5)
    held = peer.messages()
    assert len(held) == 5
    peer.close_consumer(0)
    peer.subscribe(SubType.Key_Shared, 1, keySharedMeta=below)
    keyed(producing, wanted[0] * 3, 10)
    assert peer.messages() == []
    for left, message in zip(range(4, -1, -1), held, strict=True):
        peer.ack(message, consumer_id=1)
        delivered = len(peer.messages())
        assert delivered == (3 if left == 4 else 0)
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["msgBacklog"] == 3


def test_out_of_order_delivery_does_not_wait() -> None:
    _, producing, peer = world_with()
    relaxed = {"keySharedMode": "AUTO_SPLIT", "allowOutOfOrderDelivery": True}
    peer.subscribe(SubType.Key_Shared, 0, keySharedMeta=relaxed)
    keyed(producing, KEYS)
    peer.inbox.clear()
    peer.subscribe(SubType.Key_Shared, 1, keySharedMeta=relaxed)
    keyed(producing, KEYS, 10)
    assert len(peer.messages()) == 10


def test_a_batch_goes_by_the_key_of_its_metadata() -> None:
    _, producing, peer = world_with()
    for consumer_id in range(2):
        peer.subscribe(SubType.Key_Shared, consumer_id)
    for number in range(5):
        producing.publish_batch([b"x", b"y"], number * 2, partition_key="same")
    assert len(by_consumer(peer.messages())) == 1


@given(
    st.lists(st.sampled_from(["publish", "join", "leave", "ack", "nack"]), max_size=40), st.integers(0, 2**16)
)
@settings(max_examples=40)
def test_order_of_each_key_while_consumers_come_and_go(script: list[str], choice: int) -> None:
    """INV-C12: between acknowledgements no consumer sees a key's later entry before its earlier one."""
    _, producing, peer = world_with()
    held: dict[int, list[MessageCommand]] = {}
    done: set[int] = set()
    keys: dict[int, str] = {}
    published = joined = 0
    for action in script:
        if action == "publish":
            for key in "abc":
                producing.publish(b"x", published, partition_key=key)
                keys[published] = key
                published += 1
        elif action == "join":
            peer.subscribe(SubType.Key_Shared, joined, permits=0)
            held[joined] = []
            peer.flow(7, joined)
            joined += 1
        elif held:
            consumer_id = sorted(held)[choice % len(held)]
            if action == "leave":
                del held[consumer_id]
                command = proto.CommandCloseConsumer(consumer_id=consumer_id, request_id=1)
                peer.send(Type.CLOSE_CONSUMER, command)
                peer.inbox.remove(next(each for each in peer.inbox if each[0] == Type.SUCCESS))
            elif held[consumer_id]:
                message = held[consumer_id].pop(0)
                if action == "ack":
                    done.add(message.entry_id)
                    peer.ack(message, consumer_id=consumer_id)
                else:
                    # One negative acknowledgement breaks the order of later messages, so all are redelivered.
                    held[consumer_id].clear()
                    peer.redeliver(consumer_id=consumer_id)
        for message in peer.messages():
            key = keys[message.entry_id]
            for other, messages in held.items():
                same = [each.entry_id for each in messages if keys[each.entry_id] == key]
                assert not same or other == message.consumer_id, "one owner at a time"
            earlier = {number for number in range(message.entry_id) if keys[number] == key} - done
            has = {each.entry_id for each in held[message.consumer_id]}
            assert earlier <= has, "an earlier entry of the key is still on its way"
            held[message.consumer_id].append(message)


def test_a_seek_of_a_key_shared_subscription_begins_anew() -> None:
    _, producing, peer = world_with()
    peer.subscribe(SubType.Key_Shared, 0)
    peer.subscribe(SubType.Key_Shared, 1, permits=1)
    keyed(producing, KEYS)
    before = {message.entry_id for message in peer.messages()}
    assert len(before) < len(KEYS), "something is held back"
    peer.send(Type.SEEK, proto.CommandSeek(consumer_id=0, request_id=1, message_publish_time=0))
    peer.inbox.clear()
    peer.subscribe(SubType.Key_Shared, 2)
    assert [message.entry_id for message in peer.messages()] == list(range(len(KEYS)))


def test_what_is_held_back_may_be_acknowledged_by_an_administrator() -> None:
    """An entry skipped on the consumers' behalf is not delivered when a consumer becomes available."""
    world, producing, peer = world_with()
    peer.subscribe(SubType.Key_Shared, 0)
    peer.subscribe(SubType.Key_Shared, 1, permits=1)
    keyed(producing, KEYS)
    peer.inbox.clear()
    world.broker.administration.set_policy(world.now, TOPIC, "message_ttl", 1.0)
    world.advance(61)
    peer.inbox.clear()
    peer.flow(100, 1)
    peer.nothing()
