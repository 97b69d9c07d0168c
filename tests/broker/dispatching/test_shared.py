"""Shared (SUBT-06, SUBT-07) and Key_Shared (SUBT-08)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.dispatching.key_hash import slot_of
from pulsar_sansio.wire import MessageCommand, proto, unpack_payload
from tests.broker.peer import TOPIC, Peer, SubType, Type, World, ids


def world_with(config: BrokerConfig | None = None, **policies: Any) -> tuple[World, Peer, Peer]:
    world = World(config)
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    for name, value in policies.items():
        world.broker.administration.set_policy(0, TOPIC, name, value)
    world.pump()
    return world, producing, consuming


def publish(peer: Peer, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        peer.publish(b"%d" % number, number)
    peer.inbox.clear()


def by_consumer(messages: list[MessageCommand]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for message in messages:
        found.setdefault(message.consumer_id, []).append(message.entry_id)
    return found


def consumer_stats(world: World, place: int = 0) -> Any:
    return world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["consumers"][place]


# --- shared


def test_round_robin_with_priorities() -> None:
    """SUBT-06, and the example of SUBT-07."""
    _, producing, peer = world_with()
    for consumer_id, priority, permits in ((1, 0, 2), (2, 0, 1), (3, 0, 1), (4, 1, 2), (5, 1, 1)):
        peer.subscribe(SubType.Shared, consumer_id, permits=permits, priority_level=priority)
    publish(producing, 9)
    assert [message.consumer_id for message in peer.messages()] == [1, 2, 3, 1, 4, 5, 4]


def test_a_turn_is_several_entries_but_leaves_some_for_the_others() -> None:
    """SUBT-06: up to 20 entries at a time."""
    world, producing, peer = world_with()
    for consumer_id in (0, 1):
        peer.subscribe(SubType.Shared, consumer_id)
    world.hold_writes = True
    publish(producing, 61)
    world.sync()
    assert by_consumer(peer.messages()) == {
        0: [0, *range(21, 41)],
        1: [*range(1, 21), *range(41, 61)],
    }
    publish(producing, 11, 61)
    world.sync()
    assert {consumer: len(entries) for consumer, entries in by_consumer(peer.messages()).items()} == {
        0: 6,
        1: 5,
    }


def test_messages_of_a_closed_consumer_go_to_the_others_first() -> None:
    """Seen: java-shared-two: the redelivery count does not change."""
    world, producing, peer = world_with()
    other = world.connect()
    peer.subscribe(SubType.Shared)
    publish(producing, 4)
    messages = peer.messages()
    peer.ack(messages[1])
    other.subscribe(SubType.Shared, permits=2)
    peer.drop()
    publish(producing, 1, 4)
    got = other.messages()
    assert [message.entry_id for message in got] == [0, 2]
    assert [message.redelivery_count for message in got] == [0, 0]
    other.flow(10)
    assert [message.entry_id for message in other.messages()] == [3, 4]


def test_redelivery_counts_how_often_it_was_asked_for() -> None:
    """BROKER-31; seen: java-negative-ack."""
    world, producing, peer = world_with()
    peer.subscribe(SubType.Shared, permits=10)
    publish(producing, 3)
    messages = peer.messages()
    for count in (1, 2):
        peer.redeliver(messages[1])
        (again,) = peer.messages()
        assert (again.entry_id, again.redelivery_count) == (1, count)
    assert consumer_stats(world)["available_permits"] == 10 - 5, "permits are not returned"
    peer.redeliver(epoch=0)
    assert [(each.entry_id, each.redelivery_count) for each in peer.messages()] == [(0, 1), (1, 3), (2, 1)]
    assert consumer_stats(world)["unacked"] == 3
    peer.ack(*messages)
    assert consumer_stats(world)["unacked"] == 0


def test_no_consumer_gets_an_entry_pending_at_another() -> None:
    _, producing, peer = world_with()
    peer.subscribe(SubType.Shared, 0, permits=1)
    peer.subscribe(SubType.Shared, 1, permits=10)
    publish(producing, 1)
    (message,) = peer.messages()
    peer.redeliver(message, consumer_id=1)
    peer.nothing()


def test_any_consumer_may_acknowledge() -> None:
    """Also a consumer that has not received the message."""
    world, producing, peer = world_with()
    peer.subscribe(SubType.Shared, 0, permits=1)
    peer.subscribe(SubType.Shared, 1, permits=10)
    publish(producing, 1)
    (message,) = peer.messages()
    peer.ack(message, consumer_id=1)
    assert consumer_stats(world)["unacked"] == 0
    peer.redeliver(consumer_id=0)
    peer.nothing()


def test_a_consumer_is_blocked_by_what_it_does_not_acknowledge() -> None:
    """BROKER-27, BROKER-28, GAP-21: released at half the limit, with the permits granted meanwhile."""
    world, producing, peer = world_with(max_unacked_messages_per_consumer=4)
    peer.subscribe(SubType.Shared, permits=5)
    publish(producing, 20)
    messages = peer.messages()
    assert len(messages) == 4
    assert consumer_stats(world)["blockedConsumerOnUnackedMsgs"]
    peer.flow(100)
    peer.nothing()
    peer.ack(messages[0])
    peer.nothing()
    peer.ack(messages[1])
    assert len(peer.messages()) == 2
    assert consumer_stats(world)["available_permits"] == 5 + 100 - 6


def test_a_subscription_is_blocked_as_a_whole() -> None:
    world, producing, peer = world_with(max_unacked_messages_per_subscription=4)
    for consumer_id in (0, 1):
        peer.subscribe(SubType.Shared, consumer_id)
    publish(producing, 20)
    messages = peer.messages()
    assert len(messages) == 4
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"][
        "blockedSubscriptionOnUnackedMsgs"
    ]
    peer.ack(messages[0])
    peer.nothing()
    peer.ack(messages[2], consumer_id=1)
    assert len(peer.messages()) == 2


def test_a_blocked_consumer_that_closes_frees_the_subscription() -> None:
    world, producing, peer = world_with(max_unacked_messages_per_subscription=4)
    other = world.connect()
    peer.subscribe(SubType.Shared)
    other.subscribe(SubType.Shared, permits=0)
    publish(producing, 6)
    assert len(peer.messages()) == 4
    other.flow(100)
    other.nothing()
    peer.drop()
    assert len(other.messages()) == 4


def test_readers_and_exclusive_consumers_are_never_blocked() -> None:
    """SUBT-13, BROKER-18."""
    _, producing, peer = world_with(max_unacked_messages_per_consumer=1)
    peer.subscribe(SubType.Exclusive, 0, subscription="e")
    peer.subscribe(SubType.Shared, 1, subscription="r", durable=False)
    publish(producing, 5)
    assert len(peer.messages()) == 10


steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 4)),
        st.tuples(st.just("flow"), st.integers(0, 2), st.integers(1, 5)),
        st.tuples(st.just("ack"), st.integers(0, 2)),
        st.tuples(st.just("nack"), st.integers(0, 2)),
        st.tuples(st.just("leave"), st.integers(0, 2)),
        st.tuples(st.just("join"), st.integers(0, 2)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
@given(steps)
@settings(max_examples=40)
def test_permits_add_up_and_nothing_is_lost(kind: Any, script: list[Any]) -> None:
    """Granted = left + delivered for every consumer; one consumer for every entry; all entries arrive in the
    end."""
    world, producing, peer = world_with()
    granted: dict[int, int] = {}
    held: dict[int, list[MessageCommand]] = {}
    delivered: dict[int, int] = {}
    acknowledged: set[int] = set()
    published = 0

    def collect() -> None:
        nonlocal held
        for message in peer.messages():
            holders = [each for each, some in held.items() if message.entry_id in {m.entry_id for m in some}]
            assert not holders, "delivered to one while another holds it"
            assert message.entry_id not in acknowledged
            held[message.consumer_id].append(message)
            delivered[message.consumer_id] += 1

    for step in [*script, ("join", 0), ("flow", 0, 5), ("publish", 1)]:
        action, consumer_id = step[0], step[1]
        if action == "publish":
            for _ in range(step[1]):
                producing.publish(b"x", published, partition_key=f"k{published % 5}")
                published += 1
        elif action == "join" and consumer_id not in granted:
            peer.subscribe(kind, consumer_id, permits=0)
            granted[consumer_id], held[consumer_id], delivered[consumer_id] = 0, [], 0
        elif consumer_id in granted:
            if action == "flow":
                peer.flow(step[2], consumer_id)
                granted[consumer_id] += step[2]
            elif action == "leave":
                del granted[consumer_id], held[consumer_id]
                peer.send(
                    Type.CLOSE_CONSUMER, proto.CommandCloseConsumer(consumer_id=consumer_id, request_id=1)
                )
                peer.inbox.remove(next(each for each in peer.inbox if each[0] == Type.SUCCESS))
            elif held[consumer_id]:
                message = held[consumer_id].pop(0)
                if action == "ack":
                    acknowledged.add(message.entry_id)
                    peer.ack(message, consumer_id=consumer_id)
                else:
                    peer.redeliver(message, consumer_id=consumer_id)
        collect()
        stats = world.broker.topic_administration.stats(TOPIC)["subscriptions"].get("s", {"consumers": []})
        for each in stats["consumers"]:
            number = int(each["consumerName"][1:])
            assert each["available_permits"] == granted[number] - delivered[number]
            assert each["unacked"] == len(held[number])
    for consumer_id in list(granted):
        peer.flow(10_000, consumer_id)
    for _ in range(1000):
        collect()
        if not any(held.values()):
            break
        for consumer_id, messages in held.items():
            acknowledged.update(message.entry_id for message in messages)
            peer.ack(*messages, consumer_id=consumer_id)
            messages.clear()
    assert acknowledged == set(range(published))
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["backlog"] == 0


# --- key shared


def keyed(peer: Peer, keys: str, start: int = 0) -> None:
    for number, key in enumerate(keys, start):
        peer.publish(b"%d" % number, number, partition_key=key)
    peer.inbox.clear()


def key_of(message: MessageCommand) -> str:
    return unpack_payload(message.payload).metadata.partition_key or ""


KEYS = "abcdefghij"


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


def test_ids_of_redelivery_may_be_strange() -> None:
    _, producing, peer = world_with()
    peer.subscribe(SubType.Shared)
    publish(producing, 1)
    assert ids(peer.messages()) == [(0, 0)]
    command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=0)
    command.message_ids.add(ledgerId=2**64 - 1, entryId=2**64 - 1)
    command.message_ids.add(ledgerId=5, entryId=5)
    peer.send(Type.REDELIVER_UNACKNOWLEDGED_MESSAGES, command)
    peer.nothing()


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


def test_replay_over_several_ledgers() -> None:
    for kind in (SubType.Shared, SubType.Key_Shared):
        _, producing, peer = world_with(BrokerConfig(ledger_max_entries=3))
        peer.subscribe(kind)
        keyed(producing, KEYS)
        messages = peer.messages()
        peer.ack(messages[4])
        peer.redeliver()
        again = peer.messages()
        assert ids(again) == ids([*messages[:4], *messages[5:]])
        assert all(message.redelivery_count == 1 for message in again)


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


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
def test_how_often_a_message_came_is_forgotten_when_its_time_is_over(kind: SubType) -> None:
    """Also for an entry that is pending at no consumer then."""
    world, producing, peer = world_with()
    peer.subscribe(kind, permits=2)
    publish(producing, 2)
    peer.redeliver(*peer.messages())
    dispatcher: Any = world.broker.topics.by_name[TOPIC].subscriptions["s"].dispatcher
    assert dispatcher.redeliveries == {0: 1, 1: 1}
    world.broker.administration.set_policy(world.now, TOPIC, "message_ttl", 1.0)
    world.advance(61)
    assert dispatcher.redeliveries == {}
