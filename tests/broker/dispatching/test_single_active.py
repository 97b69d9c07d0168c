"""Exclusive and Failover: one active consumer, in order."""

from random import Random
from typing import Any

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.dispatching.key_hash import murmur3_32, slot_of
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.wire import unpack_payload
from tests.broker.peer import TOPIC, Peer, SubType, Type, World, ids


def publisher(world: World, topic: str = TOPIC) -> Peer:
    peer = world.connect()
    peer.producer(topic)
    return peer


def active_changes(peer: Peer) -> list[tuple[int, bool]]:
    changes = []
    while peer.inbox and peer.inbox[0][0] == Type.ACTIVE_CONSUMER_CHANGE:
        change = peer.expect(Type.ACTIVE_CONSUMER_CHANGE)
        changes.append((change.consumer_id, change.is_active))
    return changes


def test_permits_are_messages_and_may_become_negative() -> None:
    """BROKER-30: an entry is delivered while permits > 0, and costs all its messages. Rules BROKER-32 and
    GAP-42."""
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe(permits=3)
    for number in range(4):
        producing.publish_batch([b"a", b"b"], number * 2)
    assert len(consuming.messages()) == 2, "3, 1, then -1"
    consuming.flow(1)
    consuming.nothing()
    consuming.flow(1)
    assert len(consuming.messages()) == 1
    stats = world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["consumers"][0]
    assert stats["available_permits"] == 3 + 1 + 1 - 6
    assert stats["unacked"] == 6


def test_a_consumer_that_comes_back_gets_what_is_not_acknowledged() -> None:
    """Rule BROKER-29."""
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe()
    for number in range(5):
        producing.publish(b"%d" % number, number)
    messages = consuming.messages()
    consuming.ack(messages[0], messages[2])
    consuming.drop()
    again = world.connect()
    again.subscribe()
    assert again.payloads() == [b"1", b"3", b"4"]


def test_redeliver_rewinds_and_carries_the_epoch() -> None:
    """REDEL-02; seen: java-redeliver-exclusive. Ids are ignored."""
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe(consumer_epoch=0)
    for number in range(3):
        producing.publish(b"%d" % number, number)
    messages = consuming.messages()
    assert [message.consumer_epoch for message in messages] == [0, 0, 0]
    consuming.ack(messages[0])
    consuming.redeliver(messages[2], epoch=1)
    again = consuming.messages()
    assert ids(again) == ids(messages[1:])
    assert [message.consumer_epoch for message in again] == [1, 1]
    assert [message.redelivery_count for message in again] == [0, 0]
    consuming.redeliver(epoch=0)
    assert [message.consumer_epoch for message in consuming.messages()] == [1, 1], "the epoch never goes back"


def test_a_client_without_epochs_gets_none() -> None:
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe()
    producing.publish(b"x")
    assert consuming.messages()[0].consumer_epoch is None


def test_the_partition_is_in_every_message() -> None:
    """WIRE-11."""
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 3)
    name = TOPIC + "-partition-2"
    producing, consuming = publisher(world, name), world.connect()
    consuming.subscribe(topic=name)
    producing.publish(b"x")
    assert consuming.messages()[0].partition == 2


# --- failover


def join(peer: Peer, consumer_id: int, name: str, topic: str = TOPIC, **fields: Any) -> None:
    peer.subscribe(SubType.Failover, consumer_id, topic, consumer_name=name, **fields)


def test_failover_as_it_was_recorded() -> None:
    """Seen: java-failover: no frame for a second after the choice changed."""
    world = World()
    producing, peer = publisher(world), world.connect()
    join(peer, 0, "a")
    join(peer, 1, "b")
    producing.publish(b"0", 0)
    producing.publish(b"1", 1)
    world.advance(0.9)
    peer.nothing()
    world.advance(0.2)
    changes = dict(active_changes(peer))
    assert sorted(changes.values()) == [False, True], "everybody is told, once"
    (active,) = (consumer_id for consumer_id, state in changes.items() if state)
    other = 1 - active
    messages = peer.messages()
    assert [message.consumer_id for message in messages] == [active, active]
    peer.ack(messages[0], consumer_id=active)
    peer.close_consumer(active)
    peer.nothing()
    world.advance(1.1)
    assert active_changes(peer) == [(other, True)]
    (again,) = peer.messages()
    assert (again.consumer_id, again.entry_id) == (other, 1)


def test_partitions_are_spread_over_the_consumers_by_name() -> None:
    """SUBT-04."""
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 4)
    peer = world.connect()
    for partition in range(4):
        for place, name in enumerate(("c", "a", "b")):
            join(peer, partition * 10 + place, name, f"{TOPIC}-partition-{partition}")
    world.advance(1.1)
    active = [consumer_id for consumer_id, state in active_changes(peer) if state]
    assert active == [1, 12, 20, 31], "a, b, c, a"


def test_the_best_priority_counts_first() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 1)
    name = TOPIC + "-partition-0"
    peer = world.connect()
    join(peer, 0, "a", name, priority_level=1)
    join(peer, 1, "b", name, priority_level=0)
    world.advance(1.1)
    assert active_changes(peer) == [(0, False), (1, True)]


@pytest.mark.parametrize("partition", [-1, 0, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_equals_that_of_looking_at_every_consumer(partition: int, seed: int) -> None:
    """SUBT-04, in any order of attaching and detaching: priority, then rank by name or on the ring; equal
    names in order of arrival."""
    rng = Random(seed)
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 6)
    name = f"{TOPIC}-partition-{partition}" if partition >= 0 else TOPIC + "-alone"
    peer = world.connect()
    present: dict[int, tuple[int, str]] = {}
    for consumer_id in range(60):
        if present and rng.random() < 0.4:
            gone = rng.choice(sorted(present))
            del present[gone]
            peer.close_consumer(gone)
        else:
            present[consumer_id] = rng.randrange(3), rng.choice("abcdefgh")
            priority, consumer_name = present[consumer_id]
            join(peer, consumer_id, consumer_name, name, priority_level=priority)
        world.advance(1.1)
        peer.inbox.clear()
        if present:
            assert world.broker.topic_administration.stats(name)["subscriptions"]["s"][
                "activeConsumerName"
            ] == naive(name, partition, list(present.values()))


def naive(topic: str, partition: int, consumers: list[tuple[int, str]]) -> str:
    best = min(priority for priority, _ in consumers)
    names = sorted(name for priority, name in consumers if priority == best)
    if partition >= 0:
        return names[partition % len(names)]
    mark = murmur3_32(topic.encode())

    def distance(name: str) -> int:
        return min((murmur3_32(name.encode() + b"%d" % point) - mark) % 2**31 for point in range(100))

    return min(names, key=distance)


def test_only_the_active_one_can_ask_for_redelivery() -> None:
    """SUBT-05."""
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 1)
    name = TOPIC + "-partition-0"
    producing, peer = publisher(world, name), world.connect()
    join(peer, 0, "a", name)
    join(peer, 1, "b", name)
    world.advance(1.1)
    active_changes(peer)
    producing.publish(b"x")
    peer.messages()
    peer.redeliver(consumer_id=1)
    peer.nothing()
    peer.redeliver(consumer_id=0)
    assert len(peer.messages()) == 1


def test_a_consumer_that_does_not_become_active_is_told_so() -> None:
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 1)
    name = TOPIC + "-partition-0"
    peer = world.connect()
    join(peer, 0, "a", name)
    world.advance(1.1)
    assert active_changes(peer) == [(0, True)]
    join(peer, 1, "b", name)
    assert active_changes(peer) == [(1, False)]


def test_an_old_client_is_not_told() -> None:
    world = World()
    peer = world.connect(version=11)
    join(peer, 0, "a")
    world.advance(1.1)
    peer.nothing()


def test_what_the_old_active_consumer_had_comes_to_the_new_one() -> None:
    """SUBT-03: while both are connected; duplicates are possible."""
    world = World()
    world.broker.topic_administration.create_partitioned_topic(0, TOPIC, 1)
    name = TOPIC + "-partition-0"
    producing, peer = publisher(world, name), world.connect()
    join(peer, 0, "b", name)
    world.advance(1.1)
    producing.publish(b"x")
    active_changes(peer)
    assert [message.consumer_id for message in peer.messages()] == [0]
    join(peer, 1, "a", name)
    world.advance(1.1)
    assert active_changes(peer) == [(0, False), (1, True)]
    assert [message.consumer_id for message in peer.messages()] == [1]


@pytest.mark.parametrize("kind", [SubType.Exclusive, SubType.Failover, SubType.Shared, SubType.Key_Shared])
def test_unloading_disconnects_all_clients_and_loses_nothing(kind: Any) -> None:
    """Seen: java-unload."""
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe(kind)
    world.advance(1.1)
    active_changes(consuming)
    for number in range(4):
        producing.publish(b"%d" % number, number)
    producing.inbox.clear()
    messages = consuming.messages()
    consuming.ack(messages[1])
    world.broker.topic_administration.unload(world.now, TOPIC)
    world.pump()
    producing.expect(Type.CLOSE_PRODUCER)
    closed = consuming.expect(Type.CLOSE_CONSUMER)
    assert (closed.consumer_id, closed.request_id) == (0, 2**64 - 1)
    consuming.nothing()
    assert producing.producer(name="standalone-1-0", epoch=1).producer_ready
    consuming.subscribe(kind)
    world.advance(1.1)
    active_changes(consuming)
    again = consuming.messages()
    assert ids(again) == ids([messages[0], *messages[2:]])
    assert all(message.redelivery_count == 0 for message in again), "counts are in memory only"


def test_reading_over_several_ledgers() -> None:
    world = World(BrokerConfig(ledger_max_entries=3))
    producing, consuming = publisher(world), world.connect()
    for number in range(10):
        producing.publish(b"%d" % number, number)
    consuming.subscribe()
    assert consuming.payloads() == [b"%d" % number for number in range(10)]


def test_large_messages_arrive_whole() -> None:
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe()
    sizes = [16 * 1024 - 30, 16 * 1024, 100_000, 1]
    for number, size in enumerate(sizes):
        producing.publish(bytes([number]) * size, number)
    assert [len(payload) for payload in consuming.payloads()] == sizes


def part(*pairs: tuple[int, int]) -> Any:
    return {"keySharedMode": "STICKY", "hashRanges": [{"start": first, "end": last} for first, last in pairs]}


@pytest.mark.parametrize("durable", [False, True])
def test_a_key_filter_selects_the_entries_of_its_keys(durable: bool) -> None:
    """A reader asks for a range of key hashes; the other entries are not acknowledged for it."""
    world = World()
    producing = publisher(world)
    keys = [f"k{number}" for number in range(30)]
    for number, key in enumerate(keys):
        producing.publish(key.encode(), number, partition_key=key)
    read = []
    for number, pairs in enumerate(
        [((0, 20_000),), ((20_001, 50_000), (60_000, 65_535)), ((50_001, 59_999),)]
    ):
        reading = world.connect()
        start: Any = {} if durable else {"start_message_id": {"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}}
        reading.subscribe(
            subscription=f"s{number}", durable=durable, earliest=True, keySharedMeta=part(*pairs), **start
        )
        found = [unpack_payload(message.payload).payload.decode() for message in reading.messages()]
        hashes = [slot_of(key.encode()) for key in found]
        assert all(any(first <= each <= last for first, last in pairs) for each in hashes)
        read += found
    assert sorted(read) == sorted(keys)
    producing.publish(b"new", 30, partition_key=read[-1])
    assert len(reading.messages()) == 1
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s2"]["msgBacklog"] == 31


@pytest.mark.parametrize("pairs", [[(5, 4)], [(0, 65_536)], [(0, 5), (5, 6)]])
def test_parts_that_cannot_be(pairs: Any) -> None:
    peer = World().connect()
    peer.ask_subscribe(durable=False, keySharedMeta=part(*pairs))
    peer.expect_error("ConsumerAssignError")


def test_other_types_ignore_hash_ranges() -> None:
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe(SubType.Failover, keySharedMeta=part((0, 1)))
    producing.publish(b"x", 0, partition_key="k")
    world.advance(2)
    active_changes(consuming)
    assert len(consuming.messages()) == 1


def read_position(world: World) -> tuple[str, int]:
    """The offset of the next entry to read, and its distance from the mark-delete position."""
    cursor = world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]
    return cursor["readPosition"], cursor["numberOfEntriesSinceFirstNotAckedMessage"]


@pytest.mark.parametrize("kind", [SubType.Exclusive, SubType.Failover])
def test_without_a_consumer_the_cursor_stands_at_the_first_entry_that_is_not_acknowledged(kind: Any) -> None:
    world = World()
    producing, consuming = publisher(world), world.connect()
    consuming.subscribe(kind)
    world.advance(1.1)
    active_changes(consuming)
    for number in range(3):
        producing.publish(b"x", number)
    consuming.ack(consuming.messages()[0])
    assert read_position(world) == ("0:3", 3)
    consuming.close_consumer()
    assert read_position(world) == ("0:1", 1)
    world.broker.subscription_administration.reset_cursor(world.now, TOPIC, "s", MessageId(0, 2))
    assert read_position(world) == ("0:2", 1)
    world.broker.subscription_administration.reset_cursor(world.now, TOPIC, "s", MessageId(0, 0))
    assert read_position(world) == ("0:0", 1)


def test_the_active_consumer_is_the_one_that_a_java_broker_chooses() -> None:
    """Rule SUBT-04. On a ring of 32 bits the choice would be c2: hashes have 31."""
    world = World()
    world.broker.administration.create_namespace(0, "public/9240394")
    peer = world.connect()
    for consumer_id in (2, 3, 4):
        peer.ask_subscribe(SubType.Failover, consumer_id, "persistent://public/9240394/a")
        world.advance(1.5)
    changes = [command for number, command in peer.inbox if number == Type.ACTIVE_CONSUMER_CHANGE]
    assert {each.consumer_id: each.is_active for each in changes} == {2: False, 3: False, 4: True}
