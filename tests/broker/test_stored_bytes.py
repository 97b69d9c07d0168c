"""The memory that entries take: it is counted over all topics, and producers are closed beyond a limit."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.storage.stored_bytes import ENTRY_COST, StoredBytes
from pulsar_sansio.broker.topics.topic import Topic
from pulsar_sansio.wire import CUMULATIVE
from tests.broker.peer import TOPIC, Peer, Type, World

OTHER = "persistent://public/default/other"


def room_for(entries: int, **options: Any) -> BrokerConfig:
    """A limit for so many entries of a kilobyte, headers included."""
    return BrokerConfig(max_stored_bytes=entries * (1100 + ENTRY_COST), **options)


def fill(peer: Peer, start: int = 0) -> int:
    """Publish kilobytes until the broker closes the producer. Return the number of receipts."""
    for number in range(1000):
        peer.publish(b"x" * 1000, start + number)
        kinds = [kind for kind, _ in peer.inbox]
        peer.inbox.clear()
        if Type.CLOSE_PRODUCER in kinds:
            return number
        assert Type.SEND_RECEIPT in kinds
    raise AssertionError("the broker took everything")


def topic_of(world: World, name: str = TOPIC) -> Topic:
    topic = world.broker.topics.by_name[name]
    assert isinstance(topic, Topic)
    return topic


def acknowledge_all(world: World, peer: Peer, name: str = TOPIC, consumer_id: int = 0) -> None:
    ledger = topic_of(world, name).log.ledgers[-1]
    peer.ack((ledger.id, ledger.count - 1, None), kind=CUMULATIVE, consumer_id=consumer_id)


def used(world: World) -> int:
    return world.broker.services.stored_bytes.used


def counted(world: World) -> int:
    """Count what the broker's topics hold."""
    total = 0
    for name in world.broker.topics.by_name:
        topic = topic_of(world, name)
        held = [topic.log.entry(offset) for offset in range(topic.log.first, topic.log.end)]
        if topic.compaction.view is not None:
            held.extend(topic.compaction.view.entries)
        total += sum(len(entry.data) + ENTRY_COST for entry in held)
    return total


def test_at_a_message_beyond_the_limit_the_producer_is_closed() -> None:
    """BROKER-41: what has a receipt is delivered. A new producer is refused."""
    world = World(room_for(10))
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    stored = fill(peer)
    assert 10 <= stored <= 12
    assert 0 <= used(world) - world.config.max_stored_bytes < 1100 + ENTRY_COST
    assert used(world) == counted(world)
    peer.publish(b"x", 1000)
    peer.nothing()
    peer.ask_producer()
    text = peer.expect_error("PersistenceError").message
    assert f"they take {used(world)} bytes of memory, allowed are {world.config.max_stored_bytes}" in text
    assert peer.closed is None
    other = world.connect()
    other.subscribe(subscription="later")
    assert len(other.messages()) == stored


def test_a_message_larger_than_the_room_that_is_left_is_taken() -> None:
    """A producer whose message were refused for its size would connect and be closed without end."""
    world = World(BrokerConfig(max_stored_bytes=20_000))
    peer = world.connect()
    peer.subscribe()
    peer.producer()
    peer.publish(b"x" * 15_000, 1)
    peer.expect(Type.SEND_RECEIPT)
    peer.messages()
    peer.publish(b"x" * 15_000, 2)
    peer.expect(Type.SEND_RECEIPT)
    peer.messages()
    peer.publish(b"x", 3)
    peer.expect(Type.CLOSE_PRODUCER)
    peer.ask_producer()
    peer.expect_error("PersistenceError")
    acknowledge_all(world, peer)
    peer.producer()


def test_a_terminated_topic_says_so_though_there_is_no_room() -> None:
    """BROKER-43: a client that is refused for lack of room would try again for ever."""
    world = World(room_for(2))
    peer = world.connect()
    peer.producer()
    peer.subscribe(permits=0)
    fill(peer)
    world.broker.topic_administration.terminate(world.now, TOPIC)
    world.pump()
    peer.ask_producer()
    peer.expect_error("TopicTerminatedError")


def test_receipts_come_before_the_producer_is_closed() -> None:
    world = World(room_for(2))
    peer = world.connect()
    peer.producer()
    world.hold_writes = True
    for number in range(5):
        peer.publish(b"x" * 1000, number)
    peer.nothing()
    world.sync()
    kinds = [kind for kind, _ in peer.inbox]
    assert kinds == [Type.SEND_RECEIPT] * 3 + [Type.CLOSE_PRODUCER]


def test_acknowledged_entries_of_the_open_ledger_make_room() -> None:
    """STORE-33: only closed ledgers are removed, so a broker without room closes the ledger."""
    world = World(room_for(10))
    peer = world.connect()
    peer.subscribe()
    for round_number in range(3):
        peer.producer()
        fill(peer, round_number * 100)
        acknowledge_all(world, peer)
    peer.producer()
    assert used(world) == counted(world) == 0


def test_housekeeping_makes_room_in_topics_without_producers() -> None:
    world = World(room_for(10))
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    fill(peer)
    acknowledge_all(world, peer)
    peer.ask_producer(OTHER)
    peer.expect_error("PersistenceError")
    world.advance(61)
    assert used(world) == 0
    later = world.connect()
    later.producer(OTHER)
    later.subscribe(topic=OTHER, permits=0)
    assert fill(later) >= 10


def test_messages_that_no_subscription_needs_give_way() -> None:
    """STORE-30: they are kept while there is room, so that they keep no other topic from taking messages."""
    world = World(room_for(10))
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.producer(OTHER, 1)
    for number in range(9):
        peer.publish(b"x" * 1000, number, 1)
    peer.inbox.clear()
    assert used(world) == topic_of(world, OTHER).log.size + 9 * ENTRY_COST
    fill(peer)
    world.advance(61)
    assert topic_of(world, OTHER).empty
    assert not topic_of(world).empty
    world.connect().producer()


def test_a_full_broker_takes_messages_again_when_a_tenth_is_free() -> None:
    stored = StoredBytes(100 * ENTRY_COST)
    stored.add(99, 0)
    assert stored.has_room()
    stored.add(1, 0)
    assert not stored.has_room()
    stored.add(-9, 0)
    assert not stored.has_room()
    stored.add(-1, 0)
    assert stored.has_room()
    stored.add(9, 0)
    assert stored.has_room()
    stored.add(1, 0)
    assert not stored.has_room()


def test_without_a_limit_nothing_is_refused() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    for number in range(100):
        peer.publish(b"x" * 1000, number)
    assert len(peer.receipts()) == 100


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["publish", "publish", "acknowledge", "compact", "delete_topic", "unload", "restart", "wait"]
        ),
        st.sampled_from([TOPIC, OTHER]),
        st.integers(1, 5),
    ),
    max_size=30,
)


@given(STEPS)
@settings(max_examples=60, deadline=None)
def test_what_is_counted_is_what_topics_hold(steps: list[tuple[str, str, int]]) -> None:
    world = World(BrokerConfig(ledger_max_entries=3))
    for what, topic, size in steps:
        peer = world.connect()
        if what == "publish":
            peer.producer(topic)
            for number in range(size):
                peer.publish(b"x" * size, number, partition_key=str(number % 2))
        elif what == "acknowledge":
            peer.subscribe(topic=topic)
            acknowledge_all(world, peer, topic)
        elif what == "restart":
            world.start()
        elif what == "wait":
            world.advance(61)
        elif topic in world.broker.topics.by_name:
            force = (True,) if what == "delete_topic" else ()
            getattr(world.broker.topic_administration, what)(world.now, topic, *force)
            world.pump()
            world.advance(1)
        if peer.link in world.peers:
            peer.drop()
        assert used(world) == counted(world)
