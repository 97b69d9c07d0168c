"""Pending acknowledgements beside what else happens to their messages."""

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.dispatching.shared import Shared
from pulsar_sansio.broker.topics.topic import Topic
from tests.broker.peer import TOPIC, WALL, Peer, SubType, Type, World
from tests.broker.serving.stored_topics import backlog
from tests.broker.transacting import InTransaction


def scene(kind: SubType = SubType.Shared, config: BrokerConfig | None = None) -> tuple[World, Peer, Peer]:
    """Return a world, a producing peer and a consuming peer."""
    world = World(config)
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe(kind)
    world.advance(1)
    consuming.inbox.clear()
    return world, producing, consuming


def stored_topic(world: World) -> Topic:
    topic = world.broker.topics.by_name[TOPIC]
    assert isinstance(topic, Topic)
    return topic


def shared_dispatcher(world: World) -> Shared:
    dispatcher = stored_topic(world).subscriptions["s"].dispatcher
    assert isinstance(dispatcher, Shared)
    return dispatcher


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("restart", [True, False])
def test_messages_whose_ledger_was_removed(commits: bool, restart: bool) -> None:
    """STORE-30: a seek may go to compacted entries before the first ledger."""
    world, producing, consuming = scene(config=BrokerConfig(ledger_max_entries=1))
    for number in range(3):
        producing.publish(b"%d" % number, number)
    first, *_ = consuming.messages()
    transaction = InTransaction(consuming, timeout=3_600_000)
    transaction.join_subscription()
    assert transaction.ack(first) == ""
    world.broker.subscription_administration.skip_messages(world.now, TOPIC, "s", 2)
    world.pump()
    topic = stored_topic(world)
    assert topic.log.first > 0
    topic.subscriptions["s"].seek(-1, None)
    world.pump()
    if restart:
        world.advance(60)
        world.start()
        consuming = transaction.peer = world.connect()
    consuming.inbox.clear()
    consuming.subscribe(SubType.Shared)
    consuming.inbox.clear()
    assert (transaction.end() if commits else transaction.abort()) == ""
    consuming.redeliver()
    assert [each.entry_id for each in consuming.messages()] == [0]


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
def test_a_delayed_message_stays_delayed_after_an_abort(kind: SubType) -> None:
    """DELAY-01"""
    world, producing, consuming = scene(kind)
    producing.publish(b"later", 0, deliver_at_time=WALL + 60_000)
    consuming.nothing()
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack((0, 0, None)) == ""
    assert transaction.abort() == ""
    world.advance(25)
    consuming.nothing()
    world.advance(50)
    assert [number for number, _ in consuming.inbox if number == Type.MESSAGE] == [Type.MESSAGE]


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
@pytest.mark.parametrize("commits", [True, False])
def test_messages_of_a_batch_acknowledged_in_and_outside_of_a_transaction(
    kind: SubType, commits: bool
) -> None:
    """BROKER-27: each message counts once as unacknowledged."""
    world, producing, consuming = scene(kind)
    producing.publish_batch([b"0", b"1", b"2", b"3"])
    (message,) = consuming.messages()
    place = message.ledger_id, message.entry_id
    dispatcher = shared_dispatcher(world)
    assert dispatcher.outstanding == 4
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack((*place, 0b1100)) == ""
    assert dispatcher.outstanding == 2
    consuming.ack((*place, 0b1101))
    assert dispatcher.outstanding == 2, "the transaction has it"
    consuming.ack((*place, 0b1011))
    assert dispatcher.outstanding == 1
    held = [len(each.pending) for each in dispatcher.consumers]
    assert held == [1]
    consuming.inbox.clear()
    assert (transaction.end() if commits else transaction.abort()) == ""
    if commits:
        assert dispatcher.outstanding == 1
        consuming.ack((*place, 0b0111))
    else:
        (again,) = consuming.messages()
        assert again.ack_set == 0b1001, "1 and 2 were acknowledged outside of the transaction"
        assert dispatcher.outstanding == 2
        consuming.ack((*place, 0b0110))
    assert dispatcher.outstanding == 0
    assert backlog(world) == 0


def test_messages_that_were_acknowledged_before_are_not_counted_again() -> None:
    """BROKER-27"""
    world, producing, consuming = scene()
    producing.publish_batch([b"0", b"1", b"2"])
    (message,) = consuming.messages()
    place = message.ledger_id, message.entry_id
    dispatcher = shared_dispatcher(world)
    first, second = InTransaction(consuming), InTransaction(consuming)
    for each in (first, second):
        each.join_subscription()
    assert first.ack((*place, 0b110)) == ""
    assert second.ack((*place, 0b101)) == ""
    assert dispatcher.outstanding == 1
    assert second.ack((*place, 0b011)) == ""
    assert dispatcher.outstanding == 0
    assert first.end() == ""
    assert second.end() == ""
    assert (dispatcher.outstanding, backlog(world)) == (0, 0)


@pytest.mark.parametrize("outside", [True, False])
def test_a_message_of_a_batch_that_is_acknowledged_already(outside: bool) -> None:
    """TXN-01: a broker that accepted it would let two transactions use one message."""
    _, producing, consuming = scene()
    producing.publish_batch([b"0", b"1", b"2"])
    (message,) = consuming.messages()
    place = message.ledger_id, message.entry_id
    first, second = InTransaction(consuming), InTransaction(consuming)
    for each in (first, second):
        each.join_subscription()
    if outside:
        consuming.ack((*place, 0b110))
    else:
        assert first.ack((*place, 0b110)) == ""
        assert first.end() == ""
    consuming.inbox.clear()
    assert second.ack((*place, 0b100)) == "TransactionConflict"
    assert second.ack((*place, 0b101)) == ""


@pytest.mark.parametrize("commits", [True, False])
def test_a_batch_that_is_acknowledged_in_part_and_taken_for_the_rest(commits: bool) -> None:
    """SUBT-08: its key is at no consumer while the transaction is open."""
    world, producing, consuming = scene(SubType.Key_Shared)
    producing.publish_batch([b"0", b"1"])
    (message,) = consuming.messages()
    place = message.ledger_id, message.entry_id
    transaction = InTransaction(consuming)
    transaction.join_subscription()
    assert transaction.ack((*place, 0b10)) == ""
    consuming.ack((*place, 0b01))
    (consumer,) = world.broker.topics.by_name[TOPIC].subscriptions["s"].consumers
    assert (consumer.pending, consumer.unacked) == ({}, 0)
    consuming.inbox.clear()
    assert (transaction.end() if commits else transaction.abort()) == ""
    assert [each.ack_set for each in consuming.messages()] == ([] if commits else [0b01])
    assert backlog(world) == (0 if commits else 1)
