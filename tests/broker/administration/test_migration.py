"""A topic migrates to another cluster (TOPIC_MIGRATED)."""

from typing import Any

import pytest

from pulsar_sansio import InvalidConfiguration, InvalidServiceUrl
from pulsar_sansio.broker import NotApplicable, NotFound
from pulsar_sansio.wire import proto
from tests.broker.peer import SECOND, TOPIC, Peer, SubType, Type, World

GREEN = "pulsar://green:6650"
GREEN_TLS = "pulsar+ssl://green:6651"
Migrated = proto.CommandTopicMigrated


def migrate(world: World, topic: str = TOPIC, url: str | None = GREEN, tls: str | None = GREEN_TLS) -> None:
    world.broker.topic_administration.migrate(world.now, topic, url, tls)
    world.pump()


def expect_move(peer: Peer, kind: Any, resource_id: int = 0) -> None:
    """Expect TOPIC_MIGRATED, then the CLOSE of that producer or consumer, which names no broker of this
    cluster."""
    moved = peer.expect(Type.TOPIC_MIGRATED)
    assert (moved.resource_type, moved.resource_id) == (kind, resource_id)
    assert (moved.brokerServiceUrl, moved.brokerServiceUrlTls) == (GREEN, GREEN_TLS)
    if kind == Migrated.Producer:
        close = peer.expect(Type.CLOSE_PRODUCER)
        assert close.producer_id == resource_id
    else:
        close = peer.expect(Type.CLOSE_CONSUMER)
        assert close.consumer_id == resource_id
    assert (close.request_id, close.assignedBrokerServiceUrl) == (2**64 - 1, "")
    peer.nothing()


def test_producers_go_at_once_after_their_receipts() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    world.hold_writes = True
    peer.publish(b"x")
    migrate(world)
    peer.publish(b"ignored", 1)
    peer.nothing()
    world.hold_writes = False
    world.sync()
    peer.expect(Type.SEND_RECEIPT)
    expect_move(peer, Migrated.Producer)
    peer.publish(b"ignored", 2)
    peer.nothing()
    assert peer.closed is None


def test_late_messages_are_ignored_for_one_interval_from_the_migration_on() -> None:
    """GAP-37: also where the broker has had no input for a while before."""
    world = World()
    peer = world.connect()
    peer.producer()
    world.now = 20 * SECOND
    migrate(world)
    expect_move(peer, Migrated.Producer)
    world.now = 49 * SECOND
    peer.publish(b"late")
    assert peer.closed is None
    peer.nothing()
    world.now = 51 * SECOND
    peer.publish(b"too late")
    assert peer.closed is not None


def test_a_producer_waiting_for_exclusive_access_goes_too() -> None:
    world = World()
    first, second = world.connect(), world.connect()
    first.producer(producer_access_mode=proto.Exclusive)
    second.producer(producer_access_mode=proto.WaitForExclusive)
    migrate(world)
    expect_move(first, Migrated.Producer)
    expect_move(second, Migrated.Producer)


def test_producers_that_come_later_are_sent_on() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.close_producer()
    peer.inbox.clear()
    migrate(world)
    peer.ask_producer(producer_id=1)
    expect_move(peer, Migrated.Producer, 1)


@pytest.mark.parametrize("kind", [SubType.Exclusive, SubType.Shared, SubType.Key_Shared])
def test_consumers_go_when_everything_is_acknowledged(kind: SubType) -> None:
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe(kind)
    for number in range(3):
        producing.publish(b"x", number)
    messages = consuming.messages()
    migrate(world)
    consuming.nothing()
    consuming.ack(*messages[1:])
    consuming.nothing()
    consuming.ack(messages[0])
    expect_move(consuming, Migrated.Consumer)


def test_consumers_go_when_what_they_acknowledged_is_durable() -> None:
    """A crash would bring entries back after their consumers had moved."""
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe()
    producing.publish(b"x")
    (message,) = consuming.messages()
    migrate(world)
    world.hold_writes = True
    consuming.ack(message)
    consuming.nothing()
    world.hold_writes = False
    world.sync()
    expect_move(consuming, Migrated.Consumer)


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared])
def test_a_blocked_consumer_goes_when_what_it_acknowledged_is_durable(kind: SubType) -> None:
    """The acknowledgements let the broker dispatch again, which also checks for the end of the topic."""
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    world.broker.administration.set_policy(world.now, TOPIC, "max_unacked_messages_per_consumer", 2)
    consuming.subscribe(kind)
    for number in range(2):
        producing.publish(b"x", number)
    messages = consuming.messages()
    migrate(world)
    world.hold_writes = True
    consuming.ack(*messages)
    consuming.nothing()
    world.hold_writes = False
    world.sync()
    expect_move(consuming, Migrated.Consumer)


def test_consumers_of_a_terminated_topic_go_without_hearing_of_its_end() -> None:
    """The topic ended here; in the other cluster it may have more messages."""
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe()
    producing.publish(b"x")
    (message,) = consuming.messages()
    world.broker.topic_administration.terminate(world.now, TOPIC)
    migrate(world)
    consuming.ack(message)
    world.advance(1)
    expect_move(consuming, Migrated.Consumer)


def test_a_client_that_connects_before_it_is_durable_goes_after_it() -> None:
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe(SubType.Shared)
    producing.publish(b"x")
    (message,) = consuming.messages()
    migrate(world)
    world.hold_writes = True
    consuming.ack(message)
    consuming.drop()
    later = world.connect()
    later.ask_subscribe(SubType.Shared)
    later.nothing()
    world.hold_writes = False
    world.sync()
    expect_move(later, Migrated.Consumer)


def test_all_consumers_of_a_subscription_go_once() -> None:
    world = World()
    producing, *consuming = [world.connect() for _ in range(4)]
    producing.producer()
    for number, peer in enumerate(consuming):
        peer.subscribe(SubType.Shared, number)
    producing.publish(b"x")
    migrate(world)
    holder = next(peer for peer in consuming if peer.inbox)
    holder.ack(*holder.messages(), consumer_id=consuming.index(holder))
    for number, peer in enumerate(consuming):
        expect_move(peer, Migrated.Consumer, number)


def test_consumers_with_nothing_to_do_go_at_once_and_later_ones_are_sent_on() -> None:
    world = World()
    peer = world.connect()
    peer.subscribe()
    migrate(world)
    expect_move(peer, Migrated.Consumer)
    peer.ask_subscribe()
    expect_move(peer, Migrated.Consumer)


def test_a_backlog_is_still_delivered_to_new_consumers() -> None:
    world = World()
    producing, consuming = world.connect(), world.connect()
    producing.producer()
    consuming.subscribe()
    producing.publish(b"x")
    consuming.drop()
    migrate(world)
    later = world.connect()
    later.subscribe()
    messages = later.messages()
    assert len(messages) == 1
    later.ack(*messages)
    expect_move(later, Migrated.Consumer)


def test_it_is_not_forgotten_in_a_restart() -> None:
    world = World()
    world.connect().producer()
    migrate(world)
    world.start()
    peer = world.connect()
    peer.ask_producer()
    expect_move(peer, Migrated.Producer)


def test_all_partitions_go() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 2)
    world.pump()
    peer = world.connect()
    for partition in (0, 1):
        peer.producer(f"{TOPIC}-partition-{partition}", partition)
    migrate(world)
    gone = [command.resource_id for number, command in peer.inbox if number == Type.TOPIC_MIGRATED]
    assert sorted(gone) == [0, 1]


def test_clients_that_do_not_know_it() -> None:
    """Protocol 19 and lower: producers are refused, consumers stay connected."""
    world = World()
    producing, consuming = world.connect(19), world.connect(19)
    producing.producer()
    consuming.subscribe()
    migrate(world)
    producing.expect(Type.CLOSE_PRODUCER)
    producing.ask_producer()
    producing.expect_error("ServiceNotReady")
    consuming.nothing()


def test_what_cannot_migrate() -> None:
    world = World()
    volatile = TOPIC.replace("persistent", "non-persistent", 1)
    world.connect().producer(volatile)
    with pytest.raises(NotFound):
        migrate(world)
    with pytest.raises(NotApplicable):
        migrate(world, volatile)
    world.broker.topic_administration.create_topic(0, TOPIC)
    world.pump()
    with pytest.raises(InvalidConfiguration):
        migrate(world, url=None, tls=None)
    with pytest.raises(InvalidServiceUrl):
        migrate(world, url="http://green")
    world.connect().producer()


def test_either_url_is_enough() -> None:
    for url, tls in ((GREEN, None), (None, GREEN_TLS)):
        world = World()
        peer = world.connect()
        peer.producer()
        migrate(world, url=url, tls=tls)
        moved = peer.expect(Type.TOPIC_MIGRATED)
        assert (moved.brokerServiceUrl, moved.brokerServiceUrlTls) == (url or "", tls or "")
