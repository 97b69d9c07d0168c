"""Runs of a compaction: steps, time, status, and the subscription that keeps uncompacted entries."""

from typing import Any, ClassVar

import pytest

from pulsar_sansio.broker import BrokerConfig, InUse, NotApplicable, NotFound
from pulsar_sansio.broker.topics.compaction import compaction as compaction_module
from tests.broker.peer import SECOND, TOPIC, WALL, SubType, World
from tests.broker.topics.compaction.compacting import (
    compact,
    data,
    publish,
    reader,
    world_with,
)


@pytest.mark.parametrize(("entries", "turns"), [(0, 1), (1, 1), (2, 3), (3, 3), (4, 5), (5, 5)])
def test_it_waits_after_so_many_entries(monkeypatch: pytest.MonkeyPatch, entries: int, turns: int) -> None:
    """A run reads all entries twice, and pauses after every second entry."""
    monkeypatch.setattr(compaction_module, "ENTRIES_PER_STEP", 2)
    world, producing = world_with()
    for number in range(entries):
        publish(producing, f"k{number}", b"x")
    world.broker.topic_administration.compact(world.now, TOPIC)
    taken = 0
    while world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING":
        world.broker.handle_deadline(world.now)
        world.pump()
        taken += 1
    assert taken == turns


def test_it_takes_time_from_its_command_on() -> None:
    """The run takes its time even where the broker has had no input for a while before."""
    world, producing = world_with()
    publish(producing, "k", b"x")
    world.now = 5 * SECOND
    compact(world)
    assert (
        world.broker.topic_administration.stats(TOPIC)["compaction"]["lastCompactionDurationTimeInMills"] == 0
    )
    world.broker.topic_administration.compact(world.now, TOPIC)
    world.now = 7 * SECOND
    world.advance(0)
    assert (
        world.broker.topic_administration.stats(TOPIC)["compaction"]["lastCompactionDurationTimeInMills"]
        == 2000
    )


def test_what_is_not_compacted_yet_is_kept_over_a_restart() -> None:
    """The subscription of compaction is durable, as with a Java broker. Rule COMPACT-03."""
    world, producing = world_with(ledger_max_entries=1, keep_without_subscription=0)
    compact(world)
    publish(producing, "k", b"x")
    publish(producing, "k", b"y")
    world.start()
    stats = world.broker.topic_administration.stats(TOPIC)["subscriptions"][compaction_module.SUBSCRIPTION]
    assert (stats["isDurable"], stats["msgBacklog"]) == (True, 2)


class TestRunning:
    def test_in_steps_and_one_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compaction_module, "ENTRIES_PER_STEP", 2)
        world, producing = world_with()
        for number in range(6):
            publish(producing, f"k{number % 2}", b"%d" % number)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("NOT_RUN", "")
        world.broker.topic_administration.compact(world.now, TOPIC)
        steps = 0
        while world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING":
            with pytest.raises(InUse):
                world.broker.topic_administration.compact(world.now, TOPIC)
            world.broker.handle_deadline(world.now)
            world.pump()
            steps += 1
            if steps == 2:
                publish(producing, "k0", b"new")  # after the horizon
        assert steps > 2, "the run went on after the message behind its horizon"
        assert data(reader(world).messages()) == [b"4", b"5", b"new"]

    def test_what_goes_meanwhile_is_gone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An administrator skips entries that are still to be compacted."""
        monkeypatch.setattr(compaction_module, "ENTRIES_PER_STEP", 2)
        world, producing = world_with(ledger_max_entries=2, keep_without_subscription=0)
        compact(world)
        for number in range(10):
            publish(producing, f"k{number}", b"%d" % number)
        world.broker.topic_administration.compact(world.now, TOPIC)
        world.broker.handle_deadline(world.now)
        world.broker.subscription_administration.delete_subscription(world.now, TOPIC, "__compaction")
        world.pump()
        world.advance(0)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("SUCCESS", "")
        assert data(reader(world).messages()) == [b"8", b"9"]

    def test_it_is_read_when_it_is_durable(self) -> None:
        world, producing = world_with()
        publish(producing, "k", b"0")
        publish(producing, "k", b"1")
        world.hold_writes = True
        compact(world)
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING"
        world.sync()
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "SUCCESS"

    def test_it_outlives_the_broker(self) -> None:
        world, producing = world_with()
        for number in range(4):
            publish(producing, "k", b"%d" % number)
        compact(world)
        world.start()
        assert data(reader(world).messages()) == [b"3"]
        again = world.connect()
        again.producer()
        publish(again, "k", b"4")
        compact(world)
        assert data(reader(world).messages()) == [b"4"]

    @pytest.mark.parametrize("away", ["unload", "delete_topic"])
    def test_a_topic_that_goes_away_meanwhile(self, away: str) -> None:
        world, producing = world_with()
        publish(producing, "k", b"0")
        publish(producing, "k", b"1")
        world.broker.topic_administration.compact(world.now, TOPIC)
        if away == "unload":
            world.broker.topic_administration.unload(world.now, TOPIC)
        else:
            world.broker.topic_administration.delete_topic(world.now, TOPIC, force=True)
        world.pump()
        world.advance(1)
        if away == "unload":
            assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "NOT_RUN"
            assert data(reader(world).messages()) == [b"0", b"1"]

    def test_one_that_was_stopped_does_not_end_the_next(self) -> None:
        """Not even when its result becomes durable then."""
        world, producing = world_with()
        publish(producing, "k", b"0")
        publish(producing, "k", b"1")
        world.hold_writes = True
        compact(world)
        world.broker.topic_administration.unload(world.now, TOPIC)
        world.pump()
        world.broker.topic_administration.compact(world.now, TOPIC)
        world.sync()
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "RUNNING"
        world.advance(0)
        world.sync()
        assert world.broker.topic_administration.compaction_status(TOPIC)[0] == "SUCCESS"
        assert data(reader(world).messages()) == [b"1"]

    def test_partitions_all_at_once(self) -> None:
        world, _ = world_with()
        world.broker.topic_administration.create_partitioned_topic(world.now, "parts", 2)
        world.broker.topic_administration.compact(world.now, "parts")
        world.advance(0)
        for partition in range(2):
            assert (
                world.broker.topic_administration.compaction_status(f"parts-partition-{partition}")[0]
                == "SUCCESS"
            )
        with pytest.raises(NotApplicable):
            world.broker.topic_administration.compaction_status("parts")

    def test_topics_that_cannot_be(self) -> None:
        world, producing = world_with()
        producing.producer("non-persistent://public/default/n", 1)
        with pytest.raises(NotApplicable):
            world.broker.topic_administration.compact(world.now, "non-persistent://public/default/n")
        with pytest.raises(NotFound):
            world.broker.topic_administration.compact(world.now, "nowhere")

    def test_stats(self) -> None:
        world, producing = world_with()
        for number in range(5):
            publish(producing, "k", b"%d" % number)
        assert world.broker.topic_administration.internal_stats(TOPIC)["compactedLedger"]["ledgerId"] == -1
        compact(world)
        stats = world.broker.topic_administration.stats(TOPIC)
        assert stats["compaction"]["lastCompactionRemovedEventCount"] == 4
        assert stats["compaction"]["lastCompactionSucceedTimestamp"] >= WALL
        assert stats["subscriptions"]["__compaction"]["msgBacklog"] == 0
        ledger = world.broker.topic_administration.internal_stats(TOPIC)["compactedLedger"]
        assert ledger["entries"] == 1
        assert ledger["size"] > 0


def test_what_expires_is_compacted_all_the_same() -> None:
    """The message TTL (STORE-32) does not apply to the subscription of compaction."""
    world, producing = world_with()
    other = world.connect()
    other.subscribe(SubType.Shared, permits=0)
    publish(producing, "a", b"1")
    compact(world)
    publish(producing, "b", b"2")
    world.broker.administration.set_policy(world.now, TOPIC, "message_ttl", 1.0)
    world.advance(70)
    backlogs = {
        name: stats["backlog"]
        for name, stats in world.broker.topic_administration.stats(TOPIC)["subscriptions"].items()
    }
    assert backlogs == {"s": 0, compaction_module.SUBSCRIPTION: 1}


class TestByItself:
    """Compaction of topics whose policies have a threshold."""

    CONFIG: ClassVar[dict[str, Any]] = {"housekeeping_interval": 60.0}
    HOUSE = 61.0

    def test_when_more_than_that_is_not_compacted(self) -> None:
        world, producing = world_with(**self.CONFIG)
        world.broker.administration.set_policy(world.now, TOPIC, "compaction_threshold", 1000)
        for number in range(4):
            publish(producing, "k", b"%d" % number * 150)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("NOT_RUN", "")
        for number in range(4, 8):
            publish(producing, "k", b"%d" % number * 150)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("SUCCESS", "")
        assert data(reader(world).messages()) == [b"7" * 150]
        before = world.broker.topic_administration.stats(TOPIC)["compaction"][
            "lastCompactionSucceedTimestamp"
        ]
        publish(producing, "k", b"8")
        world.advance(self.HOUSE)
        assert (
            world.broker.topic_administration.stats(TOPIC)["compaction"]["lastCompactionSucceedTimestamp"]
            == before
        )

    def test_nothing_goes_before_it_was_compacted(self) -> None:
        """A broker with a threshold keeps entries that no other subscription needs."""
        world, producing = world_with(ledger_max_entries=2, **self.CONFIG)
        world.broker.administration.set_policy(world.now, "public/default", "compaction_threshold", 10_000)
        for number in range(10):
            publish(producing, "k", b"%d" % number)
        world.advance(self.HOUSE)
        assert (
            world.broker.topic_administration.stats(TOPIC)["subscriptions"]["__compaction"]["backlog"] == 10
        )
        world.broker.administration.set_policy(world.now, "public/default", "compaction_threshold", 1)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.stats(TOPIC)["subscriptions"]["__compaction"]["backlog"] == 0
        assert data(reader(world).messages()) == [b"9"]

    def test_a_topic_made_later(self) -> None:
        world = World(BrokerConfig(keepalive_interval=10.0 * 365 * 86_400, **self.CONFIG))
        world.broker.administration.set_policy(world.now, "public/default", "compaction_threshold", 100)
        producing = world.connect()
        producing.producer()
        for number in range(5):
            publish(producing, "k", b"%d" % number * 50)
        world.advance(self.HOUSE)
        assert data(reader(world).messages()) == [b"4" * 50]

    def test_none_by_default(self) -> None:
        world, producing = world_with(**self.CONFIG)
        publish(producing, "k", b"x" * 1000)
        world.advance(self.HOUSE)
        assert world.broker.topic_administration.compaction_status(TOPIC) == ("NOT_RUN", "")
        assert "__compaction" not in world.broker.topic_administration.stats(TOPIC)["subscriptions"]
