"""How a compaction runs: its steps, its time, and the subscription that keeps what is not compacted yet."""

import pytest

from pulsar_sansio.broker.topics import compaction as compaction_module
from tests.broker.peer import SECOND, TOPIC
from tests.broker.topics.test_compaction import compact, publish, world_with


@pytest.mark.parametrize(("entries", "turns"), [(0, 1), (1, 1), (2, 3), (3, 3), (4, 5), (5, 5)])
def test_it_waits_after_so_many_entries(monkeypatch: pytest.MonkeyPatch, entries: int, turns: int) -> None:
    """It goes through all entries twice, and each time others have their turn after every second entry."""
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
    """Also where the broker has heard nothing for a while before."""
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
    """The subscription of compaction is durable, as with a Java broker."""
    world, producing = world_with(ledger_max_entries=1, keep_without_subscription=0)
    compact(world)
    publish(producing, "k", b"x")
    publish(producing, "k", b"y")
    world.start()
    stats = world.broker.topic_administration.stats(TOPIC)["subscriptions"][compaction_module.SUBSCRIPTION]
    assert (stats["isDurable"], stats["msgBacklog"]) == (True, 2)
