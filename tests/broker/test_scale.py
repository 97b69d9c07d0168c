"""The cost of an event does not grow with unrelated objects. It is counted in operations, not in time.

Each case is run with some consumers, topics or messages, and with four times as many. Where the event
concerns one of them, the count may hardly grow. Where it concerns all, the count may grow four times, with
room for logarithms.
"""

from collections.abc import Callable
from functools import partial

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.dispatching.consumer import Consumer
from pulsar_sansio.broker.dispatching.key_ring import ConsistentHash
from pulsar_sansio.wire import proto
from tests.broker.peer import TOPIC, Peer, SubType, Type, World
from tests.operations import each, operations

FEW = 80

SAME = 1.15
"""The growth allowed where the count should stay equal."""

FOUR_TIMES = 5.0
"""The growth allowed where the count may grow four times."""


def growth(case: Callable[[int], Callable[[], object]]) -> float:
    """The ratio of the counts with four times as many objects. `case` prepares, and returns the action to
    count."""
    few, many = (operations(case(count)) for count in (FEW, 4 * FEW))
    return many / few


def consumers(world: World, count: int, kind: SubType, permits: int) -> list[Peer]:
    """Consumers of one subscription, each on a connection of its own."""
    peers = [world.connect() for _ in range(count)]
    for number, peer in enumerate(peers):
        peer.subscribe(kind, permits=permits, consumer_name=f"c{number}")
    return peers


def publisher(world: World) -> Peer:
    peer = world.connect()
    peer.producer()
    return peer


@pytest.mark.parametrize("kind", [SubType.Shared, SubType.Key_Shared, SubType.Failover])
def test_an_entry_costs_no_look_at_consumers_without_room(kind: SubType) -> None:
    def case(count: int) -> Callable[[], object]:
        world = World()
        consumers(world, count, kind, 1)
        producing = publisher(world)
        for number in range(5 * count):
            producing.publish(b"x", number, partition_key=f"k{number}")
        producing.publish(b"x", 9_999, partition_key="same")
        return each(partial(producing.publish, b"x", partition_key="same"), range(10_000, 10_020))

    assert growth(case) < SAME


def test_an_entry_costs_nothing_for_subscriptions_without_consumers() -> None:
    def case(count: int) -> Callable[[], object]:
        world = World()
        for number in range(count):
            peer = world.connect()
            peer.subscribe(subscription=f"s{number}")
            peer.drop()
        producing = publisher(world)
        return each(partial(producing.publish, b"x"), range(20))

    assert growth(case) < SAME


def test_an_acknowledgement_behind_a_slow_subscription_costs_no_look_at_the_others() -> None:
    def case(count: int) -> Callable[[], object]:
        world = World(BrokerConfig(ledger_max_entries=2))
        for number in range(count):
            world.connect().subscribe(subscription=f"slow{number}", permits=0)
        peer = world.connect()
        peer.subscribe(subscription="fast")
        producing = publisher(world)
        for number in range(20):
            producing.publish(b"x", number)
        messages = peer.messages()
        assert len(messages) == 20
        return each(peer.ack, messages)

    assert growth(case) < SAME


def test_each_consumer_hears_once_of_the_end_of_the_topic() -> None:
    world = World()
    peers = consumers(world, 20, SubType.Shared, 10)
    world.broker.topic_administration.terminate(world.now, TOPIC)
    world.pump()
    for peer in peers:
        peer.flow(1)
    for peer in peers:
        peer.expect(Type.REACHED_END_OF_TOPIC)
        peer.nothing()


def test_producers_of_one_connection_that_are_all_closed_cost_once_each() -> None:
    def case(count: int) -> Callable[[], object]:
        world = World()
        peer = world.connect()
        for number in range(count):
            peer.producer(producer_id=number)

        def unload() -> None:
            world.broker.topic_administration.unload(world.now, TOPIC)
            assert not world.broker.topics.by_name[TOPIC].producers.by_name

        return unload

    assert growth(case) < FOUR_TIMES


def test_connections_that_time_out_together_cost_once_each() -> None:
    def case(count: int) -> Callable[[], object]:
        world = World()
        for _ in range(count):
            world.raw()
        return lambda: world.advance(31)

    assert growth(case) < FOUR_TIMES


def consumer(name: str, priority: int = 0) -> Consumer:
    command = proto.CommandSubscribe(
        topic=TOPIC, subscription="s", subType=SubType.Shared, consumer_id=1, request_id=1
    )
    command.consumer_name, command.priority_level = name, priority
    world = World()
    peer = world.connect()
    return Consumer(world.broker.links[peer.link], command, 0)


def test_a_ring_of_namesakes_comes_and_goes_at_one_price_each() -> None:
    def case(count: int) -> Callable[[], object]:
        everyone = [consumer("same") for _ in range(count)]

        def come_and_go() -> None:
            ring = ConsistentHash()
            for consumer in everyone:
                ring.add(consumer)
            for consumer in everyone:
                ring.remove(consumer)
            assert ring.owner(1) is None

        return come_and_go

    assert growth(case) < FOUR_TIMES
