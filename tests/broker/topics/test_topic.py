"""The entries that a topic keeps and for how long, and the state that a restarted broker finds."""

import pytest

from pulsar_sansio.broker import BrokerConfig
from pulsar_sansio.broker.records import EntryAdded
from pulsar_sansio.broker.storage.store import MemoryStore, StoredState
from pulsar_sansio.wire import CUMULATIVE
from tests.broker.peer import SECOND, TOPIC, WALL, Peer, SubType, Type, World, ids

SMALL = BrokerConfig(ledger_max_entries=10, keep_without_subscription=200)
"""Ledgers of ten entries, so that a short test has many."""


def publish(peer: Peer, count: int, start: int = 0, size: int = 1) -> None:
    for number in range(start, start + count):
        peer.publish(b"x" * size, number)
    peer.inbox.clear()


def ledgers(world: World) -> list[int]:
    return [each["entries"] for each in world.broker.topic_administration.internal_stats(TOPIC)["ledgers"]]


def stored_entries(world: World) -> int:
    return sum(len(ledger.entries) for ledger in world.store.load().topics[TOPIC].ledgers.values())


def test_consumed_ledgers_go_and_the_store_forgets_them_too() -> None:
    """Rule STORE-38."""
    world = World(SMALL)
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared)
    for round_number in range(10):
        for number in range(25):
            peer.publish(b"x", round_number * 25 + number)
        messages = [command for number, command in peer.inbox if number == Type.MESSAGE]
        peer.inbox.clear()
        peer.ack(*messages)
    assert ledgers(world) == [10]
    world.advance(1)
    assert stored_entries(world) == 10
    assert world.broker.topic_administration.internal_stats(TOPIC)["entriesAddedCounter"] == 250


def test_the_next_ledger_is_opened_after_a_time() -> None:
    """As a Java broker's, a ledger that is old is closed by the next message or by housekeeping, but not an
    empty one, and no ledger before its least time. Rule STORE-02."""
    world = World(
        BrokerConfig(
            ledger_max_entries=2, ledger_min_time=600.0, ledger_max_time=3600.0, keepalive_interval=10.0**6
        )
    )
    peer = world.connect()
    peer.producer()
    peer.subscribe(permits=0)
    publish(peer, 5)
    assert ledgers(world) == [5], "full, and too young"
    world.advance(599)
    publish(peer, 1, 5)
    assert ledgers(world) == [6]
    world.advance(1)
    publish(peer, 1, 6)
    assert ledgers(world) == [6, 1]
    world.advance(3599)
    assert ledgers(world) == [6, 1]
    world.advance(60)
    assert ledgers(world) == [6, 1, 0]
    world.advance(7200)
    assert ledgers(world) == [6, 1, 0], "an empty ledger stays open"
    publish(peer, 1, 7)
    assert ledgers(world) == [6, 1, 1]


def test_a_full_ledger_is_followed_by_the_next_one_also_when_wall_time_went_back() -> None:
    world = World(SMALL)
    peer = world.connect()
    peer.producer()
    peer.subscribe(permits=0)
    publish(peer, 5)
    world.wall -= 3_600_000
    world.start()
    peer = world.connect()
    peer.producer()
    publish(peer, 10, 5)
    assert ledgers(world) == [10, 5]


def test_the_slowest_subscription_keeps_what_it_needs() -> None:
    """STORE-30. Rules ACK-23 and GAP-23."""
    world = World(SMALL)
    peer = world.connect()
    peer.producer()
    peer.subscribe(subscription="slow", permits=0)
    peer.subscribe(consumer_id=1, subscription="quick")
    publish(peer, 35)
    peer.ack((3, 4, None), consumer_id=1, kind=CUMULATIVE)
    assert ledgers(world) == [10, 10, 10, 5]
    peer.close_consumer(1)
    world.broker.subscription_administration.reset_cursor(world.now, TOPIC, "slow", 2**62)
    assert ledgers(world) == [5]


def test_without_subscriptions_the_recent_past_is_kept() -> None:
    world = World(SMALL)
    peer = world.connect()
    peer.producer()
    publish(peer, 100, size=5)
    assert world.broker.topic_administration.stats(TOPIC)["storageSize"] <= 200 + 10 * 40
    assert sum(ledgers(world)) < 30
    world.start()
    later = world.connect()
    later.subscribe()
    assert 0 < len(later.messages()) < 30, "and it survives"


def test_retention_keeps_entries_that_all_subscriptions_acknowledged() -> None:
    """STORE-31."""
    world = World(SMALL)
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    world.broker.administration.set_policy(0, TOPIC, "retention_time", 300.0)
    publish(peer, 35)
    peer.ack((3, 4, None), kind=CUMULATIVE)
    assert len(ledgers(world)) == 4
    for _ in range(13):
        world.advance(25)
        peer.publish(b"alive", 0)
    peer.inbox.clear()
    peer.ack((3, 9, None), kind=CUMULATIVE)
    world.advance(100)
    assert len(ledgers(world)) < 4, "by time alone"


def test_old_messages_expire() -> None:
    """STORE-32: expired messages count as acknowledged, also while they are pending at a consumer. Rule
    STORE-38."""
    world = World()
    peer, other = world.connect(), world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared)
    other.subscribe(SubType.Shared, permits=0)
    publish(peer, 3)
    world.broker.administration.set_policy(0, TOPIC, "message_ttl", 30.0)
    world.advance(29)
    for each in (peer, other):
        each.inbox.clear()
        each.flow(1)
    world.advance(32)
    stats = world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]
    assert (stats["backlog"], stats["unackedMessages"]) == (0, 0)


def test_a_new_broker_finds_everything_that_was_confirmed() -> None:
    world = World(SMALL)
    world.broker.topic_administration.create_partitioned_topic(0, "parted", 2)
    peer = world.connect()
    peer.producer(name="p")
    peer.subscribe(SubType.Shared, subscription_properties=[{"key": "a", "value": "b"}])
    publish(peer, 25)
    peer.ack((2, 1, None), (2, 2, None), (3, 0, None), request_id=1)
    peer.inbox.clear()
    before = world.broker.topic_administration.internal_stats(TOPIC)
    world.start()
    after = world.broker.topic_administration.internal_stats(TOPIC)
    assert after["ledgers"] == before["ledgers"]
    for key in ("markDeletePosition", "individuallyDeletedMessages"):
        assert after["cursors"]["s"][key] == before["cursors"]["s"][key]
    assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["s"]["subscriptionProperties"] == {
        "a": "b"
    }
    assert len(world.broker.topic_administration.topics("public/default")) == 3
    peer = world.connect()
    peer.subscribe(SubType.Shared)
    assert len(peer.messages()) == 22
    peer.producer(name="p")
    peer.publish(b"new")
    assert peer.expect(Type.SEND_RECEIPT).ledger_id == 4, "the open ledger goes on"


def test_what_was_not_confirmed_may_be_gone_and_its_ids_are_used_again() -> None:
    world = World()
    peer = world.connect()
    peer.producer(name="p")
    publish(peer, 2)
    world.hold_writes = True
    peer.publish(b"lost", 2)
    peer.nothing()
    world.hold_writes = False
    world.start()
    peer = world.connect()
    peer.producer(name="p")
    peer.publish(b"again", 2)
    assert peer.receipts() == [(2, 0, 2)]
    peer.subscribe()
    assert peer.payloads() == [b"x", b"x", b"again"]


def test_unconfirmed_acknowledgements_are_written_after_a_while() -> None:
    world = World(BrokerConfig(cursor_flush_interval=0.5))
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.publish(b"x")
    peer.inbox.clear()
    peer.ack((0, 0, None))
    assert world.store.load().topics[TOPIC].cursors["s"].mark_delete == -1
    world.advance(0.6)
    assert world.store.load().topics[TOPIC].cursors["s"].mark_delete == 0


def test_shutting_down_writes_what_is_known_and_ends_every_link() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.publish(b"x")
    peer.ack((0, 0, None))
    world.broker.shutdown(world.now)
    world.pump()
    assert peer.closed == "the broker shuts down"
    assert not world.broker.links
    assert world.store.load().topics[TOPIC].cursors["s"].mark_delete == 0


def test_a_store_gives_copies() -> None:
    """A broker's changes to its state do not reach the store."""
    store = MemoryStore()
    world = World(store=store)
    peer = world.connect()
    peer.producer()
    publish(peer, 1)
    state = store.load()
    state.topics[TOPIC].ledgers[0].entries.clear()
    state.topics.clear()
    assert len(store.load().topics[TOPIC].ledgers[0].entries) == 1


def test_a_record_of_a_topic_that_is_not_there_is_a_bug() -> None:
    with pytest.raises(KeyError):
        StoredState().apply(EntryAdded("t", 0, 0, 1, 0, b""))


def test_messages_of_one_input_are_written_together() -> None:
    """Group commit: at most one write is outstanding."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    world.hold_writes = True
    publish(peer, 50)
    assert len(world.held) == 1
    assert len(world.held[0].records) == 1
    persist = world.held.popleft()
    world.store.write(persist.records)
    world.broker.persisted(world.now, persist.write)
    world.broker.persisted(world.now, persist.write)
    world.pump()
    assert len(peer.inbox) == 2, "said twice, counts once"
    assert len(world.held[0].records) == 49


def test_publish_times_are_the_clients() -> None:
    """SEEK-05: a seek by time compares publish_time."""
    world = World()
    peer = world.connect()
    peer.producer()
    publish(peer, 2)
    peer.subscribe(start_message_rollback_duration_sec=1)
    assert len(ids(peer.messages())) == 2
    assert world.broker.wall_time == WALL


def test_a_policy_that_keeps_less_trims_at_once() -> None:
    world = World(BrokerConfig(ledger_max_entries=1))
    world.broker.administration.set_policies(
        world.now, "public/default", {"retention_time": -1, "retention_size": -1}
    )
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    for number in range(3):
        peer.publish(b"x", number)
    peer.ack((0, 0, None), (1, 0, None), (2, 0, None))
    world.pump()
    kept = len(world.broker.topic_administration.internal_stats(TOPIC)["ledgers"])
    assert kept > 1
    world.broker.administration.set_policies(
        world.now, "public/default", {"retention_time": 0, "retention_size": 0}
    )
    world.pump()
    assert len(world.broker.topic_administration.internal_stats(TOPIC)["ledgers"]) < kept


@pytest.mark.parametrize(("policy", "value"), [("retention_time", 300.0), ("retention_size", 100_000)])
def test_a_retention_policy_that_is_not_set_is_no_limit(policy: str, value: float) -> None:
    """STORE-31: the other policy alone limits retention."""
    world = World(BrokerConfig(ledger_max_entries=1))
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    world.broker.administration.set_policy(world.now, TOPIC, policy, value)
    publish(peer, 3)
    peer.ack((2, 0, None), kind=CUMULATIVE)
    assert ledgers(world) == [1, 1, 1]


def test_a_retention_time_counts_up_to_the_moment_when_it_is_set() -> None:
    """STORE-31: also where the broker has had no input for longer than that."""
    world = World(BrokerConfig(ledger_max_entries=1))
    world.broker.administration.set_policies(
        world.now, "public/default", {"retention_time": -1, "retention_size": -1}
    )
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    publish(peer, 3)
    peer.ack((2, 0, None), kind=CUMULATIVE)
    assert ledgers(world) == [1, 1, 1]
    world.now = 400 * SECOND
    world.broker.administration.set_policy(world.now, "public/default", "retention_time", 300)
    assert ledgers(world) == [1]


def test_a_cumulative_acknowledgement_of_part_of_a_batch_counts_for_what_comes_before_it() -> None:
    """The position survives the broker, also where that part of the batch was acknowledged before."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    publish(peer, 2)
    peer.publish_batch([b"a", b"b"], 2)
    peer.ack((0, 2, 0b10))
    world.advance(1)
    peer.ack((0, 2, 0b10), kind=CUMULATIVE)
    world.advance(1)
    world.start()
    cursor = world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]
    assert cursor["markDeletePosition"] == "0:1"
    later = world.connect()
    later.subscribe()
    (message,) = later.messages()
    assert (message.entry_id, message.ack_set) == (2, 0b10)
