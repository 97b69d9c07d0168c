"""Stats: counters that outlive consumers and producers, moments, sums over partitions."""

from typing import Any

from pulsar_sansio.broker import BrokerConfig, StatsOptions
from pulsar_sansio.broker.administration.inspection import sum_of_stats
from tests.broker.peer import SECOND, TOPIC, WALL, SubType, World


def subscription(world: World, name: str = "s") -> dict[str, Any]:
    found: dict[str, Any] = world.broker.topic_administration.stats(TOPIC)["subscriptions"][name]
    return found


def test_counters_outlive_consumers_and_subscriptions() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    for number in range(2):
        peer.subscribe(consumer_id=number)
        peer.publish(b"x", number)
        before = subscription(world)["msgOutCounter"]
        assert before >= number + 1
        peer.inbox.clear()
        peer.close_consumer(number)
        assert subscription(world)["msgOutCounter"] == before
    total = world.broker.topic_administration.stats(TOPIC)["msgOutCounter"]
    world.broker.subscription_administration.delete_subscription(0, TOPIC, "s")
    assert world.broker.topic_administration.stats(TOPIC)["msgOutCounter"] == total > 0


def test_moments_are_milliseconds_since_1970_and_0_is_never() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(permits=0)
    names = ("lastConsumedFlowTimestamp", "lastConsumedTimestamp", "lastAckedTimestamp")
    assert [subscription(world)[name] for name in names] == [0, 0, 0]
    assert subscription(world)["lastMarkDeleteAdvancedTimestamp"] == 0
    world.now = 5 * SECOND
    peer.flow(10)
    world.now = 6 * SECOND
    peer.publish(b"x")
    world.now = 7 * SECOND
    peer.ack((0, 0, None))
    assert [subscription(world)[name] for name in names] == [WALL + 5000, WALL + 6000, WALL + 7000]
    assert subscription(world)["lastMarkDeleteAdvancedTimestamp"] == WALL + 7000
    consumer = subscription(world)["consumers"][0]
    assert consumer["lastConsumedTime"] == "2023-11-14T22:13:26Z"
    assert consumer["connectedSince"] == "2023-11-14T22:13:20Z"


def test_expiry_is_counted() -> None:
    world = World(BrokerConfig(housekeeping_interval=10.0))
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.publish(b"x")
    assert (subscription(world)["totalMsgExpired"], subscription(world)["lastExpireTimestamp"]) == (0, 0)
    world.broker.administration.set_policy(world.now, TOPIC, "message_ttl", 1)
    world.advance(20)
    assert (subscription(world)["totalMsgExpired"], subscription(world)["msgBacklog"]) == (1, 0)
    assert subscription(world)["lastExpireTimestamp"] == WALL + 20_000


def test_the_size_of_a_backlog_is_from_the_mark_delete_position_on() -> None:
    world = World(BrokerConfig(ledger_max_entries=2))
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    for number in range(5):
        peer.publish(b"x" * 10, number)
    each = world.broker.topic_administration.stats(TOPIC)["storageSize"] // 5
    assert subscription(world)["backlogSize"] == 5 * each
    peer.ack((0, 0, None), (1, 0, None))
    assert subscription(world)["backlogSize"] == 4 * each, "1:0 is acknowledged, and counted"
    assert subscription(world)["msgBacklog"] == 3
    assert world.broker.topic_administration.stats(TOPIC)["backlogSize"] == 4 * each


def test_the_oldest_of_a_backlog_if_it_is_asked_for() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe()
    peer.publish(b"x")
    assert world.broker.topic_administration.stats(TOPIC)["earliestMsgPublishTimeInBacklogs"] == 0
    options = StatsOptions(publishers=False, consumers=False, earliest_time=True)
    stats = world.broker.topic_administration.stats(TOPIC, options)
    expected = world.broker.topic_administration.stats(TOPIC, options)["subscriptions"]["s"][
        "earliestMsgPublishTimeInBacklog"
    ]
    assert stats["earliestMsgPublishTimeInBacklogs"] == expected > 0
    assert stats["publishers"] == stats["subscriptions"]["s"]["consumers"] == []


def test_a_cursor_seen_from_inside() -> None:
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(SubType.Shared)
    for number in range(6):
        peer.publish(b"x", number)
    peer.ack((0, 0, None), (0, 2, None), (0, 4, None))
    cursor = world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]
    assert cursor["markDeletePosition"] == "0:0"
    assert cursor["readPosition"] == "0:6"
    assert cursor["individuallyDeletedMessages"] == "[(0:1..0:2],(0:3..0:4]]"
    assert cursor["messagesConsumedCounter"] == 3
    assert (cursor["waitingReadOp"], cursor["active"]) == (True, True)
    peer.inbox.clear()
    peer.close_consumer()
    cursor = world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]
    assert (cursor["waitingReadOp"], cursor["active"]) == (False, False)


def test_sums_add_numbers_and_match_names() -> None:
    one: dict[str, Any] = {
        "msgInCounter": 1,
        "ownerBroker": "x",
        "publishers": [{"producerName": "p", "msgRateIn": 1.0, "producerId": 3, "metadata": {"a": "b"}}],
        "subscriptions": {"s": {"msgBacklog": 2, "isDurable": True, "type": "Shared", "consumers": []}},
        "compaction": {"removed": 0},
        "lastConsumedTime": "2023-11-14T22:13:26Z",
    }
    other: dict[str, Any] = {
        "msgInCounter": 10,
        "ownerBroker": "x",
        "publishers": [
            {"producerName": "p", "msgRateIn": 2.0, "producerId": 1, "metadata": {"a": "b"}},
            {"producerName": "q", "msgRateIn": 0.0, "producerId": 2, "metadata": {}},
        ],
        "subscriptions": {
            "s": {"msgBacklog": 3, "isDurable": True, "type": "Shared", "consumers": []},
            "t": {"msgBacklog": 7, "isDurable": False, "type": "Shared", "consumers": []},
        },
        "compaction": {"removed": 1},
        "lastConsumedTime": "2024-11-14T22:13:26Z",
    }
    assert sum_of_stats([one, other]) == {
        "msgInCounter": 11,
        "publishers": [
            {"producerName": "p", "msgRateIn": 3.0, "producerId": 3, "metadata": {"a": "b"}},
            {"producerName": "q", "msgRateIn": 0.0, "producerId": 2, "metadata": {}},
        ],
        "subscriptions": {
            "s": {"msgBacklog": 5, "isDurable": True, "type": "Shared", "consumers": []},
            "t": {"msgBacklog": 7, "isDurable": False, "type": "Shared", "consumers": []},
        },
        "compaction": {"removed": 1},
        "lastConsumedTime": "2024-11-14T22:13:26Z",
    }
    assert sum_of_stats([]) == {}


# --- zeros --------------------------------------------------------------------------------------------


def not_zero(found: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The numbers of statistics that are not 0, at any depth."""
    numbers: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            numbers |= not_zero(value, f"{path}{name}.")
        elif isinstance(value, list):
            for each in value:
                numbers |= not_zero(each, f"{path}{name}.") if isinstance(each, dict) else {}
        elif isinstance(value, int | float) and not isinstance(value, bool) and value:
            numbers[path + name] = value
    return numbers


def test_where_nothing_has_happened_every_number_is_0() -> None:
    """-1 stands for no limit, and for no age."""
    world = World()
    peer = world.connect()
    peer.producer()
    peer.subscribe(permits=0)
    unlimited = {
        "backlogQuotaLimitSize": -1,
        "backlogQuotaLimitTime": -1,
        "oldestBacklogMessageAgeSeconds": -1,
    }
    assert not_zero(world.broker.topic_administration.stats(TOPIC)) == unlimited
    inside = not_zero(world.broker.topic_administration.internal_stats(TOPIC))
    assert inside == {
        "cursors.s.cursorLedger": -1,
        "cursors.s.cursorLedgerLastEntry": -1,
        "cursors.s.numberOfEntriesSinceFirstNotAckedMessage": 1,
        "compactedLedger.ledgerId": -1,
        "compactedLedger.entries": -1,
        "compactedLedger.size": -1,
    }
    peer.close_consumer()
    assert not_zero(world.broker.topic_administration.stats(TOPIC)) == unlimited


def test_of_a_non_persistent_topic_nothing_is_limited_and_every_number_is_0() -> None:
    world = World()
    peer = world.connect()
    topic = TOPIC.replace("persistent", "non-persistent", 1)
    peer.producer(topic)
    peer.subscribe(topic=topic, permits=0)
    assert not_zero(world.broker.topic_administration.stats(topic)) == {}
    assert not_zero(world.broker.topic_administration.internal_stats(topic)) == {}
    world.now = 5 * SECOND
    peer.flow(3)
    found = world.broker.topic_administration.stats(topic)["subscriptions"]["s"]
    assert found["lastConsumedFlowTimestamp"] == WALL + 5000
    assert found["consumers"][0]["lastConsumedFlowTimestamp"] == WALL + 5000
    peer.publish(b"abc")
    stats = world.broker.topic_administration.stats(topic)
    assert stats["msgOutCounter"] == stats["subscriptions"]["s"]["msgOutCounter"] == 1
    assert stats["bytesOutCounter"] == stats["subscriptions"]["s"]["bytesOutCounter"] > 0
    assert stats["storageSize"] == 0


def test_the_newest_ledger_is_the_current_one() -> None:
    """A cursor waits where one of its consumers has permits."""
    world = World(BrokerConfig(ledger_max_entries=2))
    peer = world.connect()
    peer.producer()
    for number in range(3):
        peer.publish(b"x", number)
    inside = world.broker.topic_administration.internal_stats(TOPIC)
    assert [each["entries"] for each in inside["ledgers"]] == [2, 1]
    assert (inside["numberOfEntries"], inside["currentLedgerEntries"]) == (3, 1)
    assert inside["currentLedgerSize"] == inside["ledgers"][1]["size"]
    peer.inbox.clear()
    peer.subscribe(SubType.Shared, 0, permits=0)
    peer.subscribe(SubType.Shared, 1, permits=10)
    cursor = world.broker.topic_administration.internal_stats(TOPIC)["cursors"]["s"]
    assert (cursor["waitingReadOp"], cursor["subscriptionHavePendingRead"]) == (True, True)
