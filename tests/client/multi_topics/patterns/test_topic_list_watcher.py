"""A broker reports topics that are created and deleted, and the consumer of their pattern follows."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsar_sansio.client.multi_topics.patterns.watcher_states import (
    TRANSITIONS,
    Asking,
    Connecting,
    Finding,
    Idle,
    WatcherInput,
    Watching,
)
from pulsar_sansio.client.outputs import (
    Attached,
    Connect,
    Detached,
    RequestDone,
    RequestFailed,
    TopicJoined,
    TopicLeft,
)
from pulsar_sansio.core.transitions import IllegalMove
from pulsar_sansio.model.config import TopicsPattern
from pulsar_sansio.wire import proto, topics_hash
from tests.client.script import Command, Script, frame_lookup
from tests.client.topics_script import PATTERN, PREFIX, TopicsScript, found, topics
from tests.work import check_in_proportion

# --- being told -------------------------------------------------------------------------------------


def test_topics_that_come_and_go_are_told_of() -> None:
    """The consumer of a deleted topic is closed and not unsubscribed: a list decides nothing about
    subscriptions. Rules MULTI-13, PATTERN-05 and PATTERN-07."""
    world = found("w-a")
    world.update(["w-b", "other", "w-p-partition-0"], ["w-a"])
    assert topics(world) == ["w-b", "w-p"]
    told = world.told()
    assert TopicLeft(world.handle, PREFIX + "w-a", None) in told
    assert TopicJoined(world.handle, PREFIX + "w-b") in told
    assert world.closed == ["w-a"]
    assert world.said() == []


def test_a_message_of_a_removed_topic_can_be_acknowledged_without_effect() -> None:
    world = found("w-a")
    world.deliver("w-a", b"1")
    message = world.receive()
    world.update((), ["w-a"])
    world.acknowledge(message)
    assert world.said() == []


def test_nor_when_the_topic_was_created_again() -> None:
    """The earlier topic is gone, and its consumer heard nothing of the new one."""
    world = found("w-a")
    world.deliver("w-a", b"1", b"2", b"3")
    before = [world.receive(), world.receive()]
    world.update((), ["w-a"])
    world.update(["w-a"], ())
    before += world.take(1)
    world.deliver("w-a", b"4", entry=3)
    after = world.receive()
    world.acknowledge(before[0])
    world.acknowledge(before)
    world.acknowledge(after)
    assert world.acknowledged() == [("w-a", [(101, 3)])]


def test_while_a_topic_is_removed_the_others_go_on() -> None:
    """The broker takes long to confirm the close. Meanwhile no request waits for the topic, and no message is
    taken from it (PATTERN-05)."""
    world = found("w-a", "w-b")
    world.deliver("w-a", b"1", b"2")
    world.deliver("w-b", b"3")
    world.answer_closes = False
    world.update(deleted=["w-a"])
    assert [message.data for message in world.receive_all()] == [b"3"]
    client, now = world.script.client, world.script.now
    client.redeliver_unacknowledged(now, world.handle)
    client.pause(now, world.handle)
    client.resume(now, world.handle)
    assert list(client.checkpoint(world.handle)) == [PREFIX + "w-b"]
    assert topics(world) == ["w-b"]


def test_without_any_topic_it_is_attached_as_it_was_at_first() -> None:
    world = found("w-a")
    world.refuse["w-a"] = proto.TopicNotFound
    world.close_by_broker("w-a")
    world.pass_time(5.0)
    told = [type(output) for output in world.outputs]
    assert told.index(Detached) < told.index(Attached)
    assert TopicLeft in told


def test_a_topic_goes_only_with_its_last_partition() -> None:
    world = found("w-p-partition-0", "w-p-partition-1", partitions={"w-p": 2})
    world.update((), ["w-p-partition-0"])
    assert topics(world) == ["w-p-partition-0", "w-p-partition-1"]
    world.update((), ["w-p-partition-1"])
    assert topics(world) == []


def test_a_watch_that_is_lost_begins_anew_and_what_happened_meanwhile_is_not_missed() -> None:
    """A topic was created while no watcher was registered (BUG-009)."""
    world = found("w-a")
    world.script.lose(world.link)
    world.there.add("w-b")
    world.pass_time(5.0)
    assert len(world.watches) == 2
    assert world.watches[1].topics_hash == topics_hash([PREFIX + "w-a"])
    assert topics(world) == ["w-a", "w-b"]


@pytest.mark.parametrize("lost", [False, True], ids=["first", "again"])
def test_a_topic_that_came_before_the_broker_listened_is_asked_for(lost: bool) -> None:
    """A real broker lists the topics, and listens for changes after that. It never reports a topic that was
    created in between."""
    world = found("w-a", pattern=TopicsPattern("w-.*", discovery_interval=None))
    if lost:
        world.pass_time(10.0)
        world.script.lose(world.link)
        while len(world.watches) == 1:
            world.pass_time(0.05)
    world.there = {"w-a", "w-b"}
    world.pass_time(2.0)
    assert topics(world) == ["w-a", "w-b"]


def test_a_connection_that_only_a_watch_uses_is_not_idle() -> None:
    """The watcher keeps its connection in use (BUG-105)."""
    world = found(pattern=TopicsPattern("w-.*", discovery_interval=None))
    link = world.link
    world.pass_time(400.0)
    assert world.link == link
    assert len(world.watches) == 1


@pytest.mark.parametrize("error", [proto.NotAllowedError, proto.InvalidTopicName])
def test_a_watch_that_is_refused_is_not_asked_for_again(error: int) -> None:
    world = TopicsScript(PATTERN)
    world.watch_error = error
    world.answer()
    world.pass_time(200.0)
    assert len(world.watches) == 1
    assert len(world.lists) == 4


def test_a_pattern_that_is_no_name_of_a_topic_is_not_watched() -> None:
    """No broker can be looked up by such a name. The consumer lists the topics at its interval."""
    world = TopicsScript(TopicsPattern("public/default/w-(a/b|c)"))
    world.filters = False
    world.answer()
    world.pass_time(200.0)
    assert world.watches == []
    assert len(world.lists) == 4
    request = world.script.client.close(world.script.now, world.handle)
    assert RequestDone(request, None) in world.told()


def test_a_broker_without_watchers_is_not_asked_until_the_next_list() -> None:
    """The next list may reach a broker that supports them."""
    world = TopicsScript(PATTERN)
    world.can_watch = False
    world.answer()
    world.hold = {Command.LOOKUP}
    world.pass_time(30.0)
    assert world.held == []
    world.hold = set()
    world.can_watch = True
    world.script.lose(world.link)
    world.pass_time(60.0)
    assert len(world.watches) == 1


def test_an_update_before_the_answer_is_ignored() -> None:
    """The list in the answer has the change already."""
    world = TopicsScript(PATTERN)
    world.hold = {Command.WATCH_TOPIC_LIST}
    world.answer()
    ((_, _, watch),) = world.held
    early = proto.CommandWatchTopicUpdate(
        watcher_id=watch.watcher_id, new_topics=[PREFIX + "w-early"], topics_hash="00000000"
    )
    world.say(Command.WATCH_TOPIC_UPDATE, early)
    assert topics(world) == []
    world.there = {"w-a"}
    world.answer_held()
    world.answer()
    assert topics(world) == ["w-a"]


def test_a_connection_lost_before_the_answer_begins_the_watch_anew() -> None:
    """The request fails by itself, and so begins one new watch."""
    world = TopicsScript(PATTERN)
    world.hold = {Command.WATCH_TOPIC_LIST}
    world.answer()
    assert len(world.held) == 1
    world.hold = set()
    world.script.lose(world.link)
    world.there = {"w-a"}
    world.pass_time(5.0)
    assert len(world.watches) == 1
    assert topics(world) == ["w-a"]


def test_a_watcher_that_is_closed_while_it_looks_for_a_broker_asks_nothing_later() -> None:
    world = TopicsScript(PATTERN)
    world.hold = {Command.LOOKUP}
    world.answer()
    ((link, _, lookup),) = world.held
    world.script.client.close(world.script.now, world.handle)
    world.script.feed(link, frame_lookup(lookup.request_id, "pulsar://other:6650"))
    assert [output for output in world.script.said() if isinstance(output, Connect)] == []
    world.pass_time(100.0)
    assert world.watches == []


def test_a_watcher_that_is_closed_while_it_connects_asks_nothing_later() -> None:
    world = TopicsScript(PATTERN)
    world.hold = {Command.LOOKUP}
    world.answer()
    ((link, _, lookup),) = world.held
    world.script.feed(link, frame_lookup(lookup.request_id, "pulsar://other:6650"))
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    assert len(world.script.client.links) == 2
    world.pass_time(30.0)
    assert world.watches == []


@pytest.mark.parametrize("error", [None, proto.TooManyRequests])
def test_a_broker_that_answers_a_closed_watcher_changes_nothing(error: int | None) -> None:
    world = TopicsScript(PATTERN)
    world.hold = {Command.WATCH_TOPIC_LIST}
    world.answer()
    assert len(world.held) == 1
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    assert world.watches_closed == [0]
    assert world.script.connection(world.link).watchers == {}
    world.watch_error = error
    world.answer_held()
    world.pass_time(30.0)
    assert len(world.watches) == 1


def test_a_closed_watcher_leaves_its_connection() -> None:
    """The connection is then idle once nothing else uses it."""
    world = found()
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    assert world.watches_closed == [0]
    assert world.script.connection(world.link).watchers == {}


def test_a_watch_that_failed_is_asked_for_again() -> None:
    world = TopicsScript(PATTERN)
    world.watch_error = proto.TooManyRequests
    world.answer()
    assert len(world.watches) == 1
    world.watch_error = None
    world.pass_time(5.0)
    assert len(world.watches) == 2


def test_a_watch_whose_answer_comes_too_late_is_closed_before_it_is_asked_for_again() -> None:
    """Otherwise the broker would go on to report topics, and a close between two attempts would leave the
    watcher behind."""
    world = TopicsScript(PATTERN)
    frame_watching = world.frame_watching
    world.frame_watching = lambda command: b""  # type: ignore[method-assign]
    world.answer()
    world.frame_watching = frame_watching  # type: ignore[method-assign]
    world.pass_time(40.0)
    assert len(world.watches) == 2
    assert world.watches_closed == [0]
    world.update(["w-a"])
    assert topics(world) == ["w-a"]


def test_a_broker_that_names_too_many_loses_the_connection() -> None:
    world = TopicsScript(PATTERN, script=Script(max_partitions=2))
    world.there = {"w-a"}
    world.answer()
    link = world.link
    world.update([f"w-{number}" for number in range(5)])
    world.there = {"w-a"}
    world.pass_time(5.0)
    assert world.link != link
    assert topics(world) == ["w-a"]


def test_the_work_of_an_update_is_in_proportion_to_it() -> None:
    """A broker may report that very many topics are deleted."""

    def prepare(size: int) -> Callable[[], object]:
        world = found(*(f"w-{number}" for number in range(size)))
        gone = [f"x-{number}" for number in range(4 * size)]
        return lambda: world.update(deleted=gone)

    check_in_proportion(prepare, 20)


# --- the table --------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", WatcherInput, ids=lambda event: event.name)
@pytest.mark.parametrize("kind", [Idle, Finding, Connecting, Asking, Watching])
def test_what_is_not_in_the_table_is_refused(kind: type, event: WatcherInput) -> None:
    connection: Any = None
    states: dict[type, Any] = {
        Idle: Idle(),
        Finding: Finding(),
        Connecting: Connecting(),
        Asking: Asking(connection, 1),
        Watching: Watching(connection),
    }
    following = TRANSITIONS.table.get((kind, event))
    if following is None:
        with pytest.raises(IllegalMove):
            TRANSITIONS.check(states[kind], event, states[Idle])
    else:
        TRANSITIONS.check(states[kind], event, states[following])


def test_what_comes_while_it_is_unsubscribing_in_vain_joins_after_all() -> None:
    """The broker reports a topic during an UNSUBSCRIBE that it refuses. The pattern has no interval."""
    world = found("w-a", pattern=TopicsPattern("w-.*", discovery_interval=None))
    world.hold = {Command.UNSUBSCRIBE}
    world.script.client.unsubscribe(world.script.now, world.handle)
    world.answer()
    world.update(added=["w-b"])
    assert topics(world) == ["w-a"]
    world.refuse_unsubscribe = {"w-a": proto.ConsumerBusy}
    world.answer_held()
    world.pass_time(60.0)
    assert topics(world) == ["w-a", "w-b"]


def test_what_all_were_asked_does_not_fail_because_one_topic_is_removed() -> None:
    """An application that waits for a flush would take a failure for the end of the consumer."""
    world = found("w-a", "w-b", acknowledgement_receipts=True)
    for name in ("w-a", "w-b"):
        world.deliver(name, b"1")
    world.acknowledge(list(world.take()))
    request = world.script.client.flush_acknowledgements(world.script.now, world.handle)
    world.update((), ["w-a"])
    told = world.told()
    assert TopicLeft(world.handle, PREFIX + "w-a", None) in told
    assert not any(isinstance(each, RequestDone | RequestFailed) for each in told)
    (ack,) = [command for _, name, command in world.said("ACK") if name == "w-b"]
    answer = proto.CommandAckResponse(consumer_id=ack.consumer_id, request_id=ack.request_id)
    world.say(Command.ACK_RESPONSE, answer)
    assert RequestDone(request, None) in world.told()
