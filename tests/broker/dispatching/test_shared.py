"""Shared: entries go round among the consumers with permits."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.wire import MessageCommand, proto
from tests.broker.dispatching.scenes import (
    KEYS,
    by_consumer,
    consumer_stats,
    keyed,
    publish,
    world_with,
)
from tests.broker.peer import TOPIC, SubType, Type, ids


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
    """A consumer that has not received the message may acknowledge it too."""
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


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
def test_how_often_a_message_came_is_forgotten_when_its_time_is_over(kind: SubType) -> None:
    """The count is forgotten for an entry that is pending at no consumer then, too."""
    world, producing, peer = world_with()
    peer.subscribe(kind, permits=2)
    publish(producing, 2)
    peer.redeliver(*peer.messages())
    dispatcher: Any = world.broker.topics.by_name[TOPIC].subscriptions["s"].dispatcher
    assert dispatcher.redeliveries == {0: 1, 1: 1}
    world.broker.administration.set_policy(world.now, TOPIC, "message_ttl", 1.0)
    world.advance(61)
    assert dispatcher.redeliveries == {}
