"""A consumer of all topics that match a pattern: the first list, later lists, ends."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import (
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    RequestDone,
    RequestFailed,
    TopicJoined,
    TopicLeft,
)
from pulsar_sansio.model.config import TopicDomain, TopicsPattern
from pulsar_sansio.model.errors import (
    InvalidTopicName,
    TimedOut,
    TooManyPartitions,
    TopicNotFound,
)
from pulsar_sansio.wire import proto, topics_hash
from tests.client.script import Command, Script, frame_partitions
from tests.client.topics_script import PATTERN, PREFIX, TopicsScript, found, topics

# --- at first ---------------------------------------------------------------------------------------


def test_what_is_there_is_subscribed_and_the_rest_is_watched() -> None:
    """The client lists the topics, subscribes without creating them, looks up the pattern like a topic, and
    sends WATCH_TOPIC_LIST with the hash of the list. The recording java-pattern does so.
    Rules CLIENT-15, CFG-202 and CFG-232."""
    world = found("w-a", "w-b", "other")
    assert topics(world) == ["w-a", "w-b"]
    (listed,) = world.lists
    assert (listed.namespace, listed.mode) == ("public/default", proto.CommandGetTopicsOfNamespace.PERSISTENT)
    assert listed.topics_pattern == "persistent://public/default/w-.*"
    assert not listed.HasField("topics_hash")
    assert not any(command.force_topic_creation for command in world.asked)
    (watch,) = world.watches
    assert (watch.watcher_id, watch.namespace) == (0, "public/default")
    assert watch.topics_pattern == "persistent://public/default/w-.*"
    assert watch.topics_hash == topics_hash([PREFIX + "w-a", PREFIX + "w-b"])


def test_nothing_there_is_ready_at_once() -> None:
    """A consumer without topics is ready (MULTI-07, PATTERN-10)."""
    world = found()
    assert topics(world) == []
    world.update(["w-a"])
    assert world.told() == [TopicJoined(world.handle, PREFIX + "w-a")]
    world.deliver("w-a", b"1")
    assert world.told() == [Deliverable(world.handle)]
    assert world.receive().data == b"1"


def test_partitions_are_folded_to_their_topic() -> None:
    """The client folds partitions to their topic (PATTERN-08)."""
    world = found("w-p-partition-0", "w-p-partition-1", "w-a", partitions={"w-p": 2}, receiver_queue_size=10)
    assert topics(world) == ["w-a", "w-p-partition-0", "w-p-partition-1"]
    assert sorted(world.questions) == ["w-a", "w-p"]


def test_a_broker_that_does_not_filter_is_filtered_here() -> None:
    """Names of other namespaces, of other domains, of system topics and of no topic are ignored."""
    world = TopicsScript(PATTERN)
    world.filters = False
    world.there = {
        "w-a",
        "other",
        "__w-system",
        "persistent://other/ns/w-a",
        "non-persistent://public/default/w-a",
        "topic://public/default/w-a",
    }
    world.answer()
    assert topics(world) == ["w-a"]


@pytest.mark.parametrize(
    ("domain", "mode", "expected"),
    [
        (TopicDomain.PERSISTENT, 0, ["w-a"]),
        (TopicDomain.NON_PERSISTENT, 1, ["non-persistent://public/default/w-v"]),
        (TopicDomain.ALL, 2, ["non-persistent://public/default/w-v", "w-a"]),
    ],
)
def test_the_domain_is_asked_for(domain: TopicDomain, mode: int, expected: list[str]) -> None:
    """The list is asked for by domain (PATTERN-09). Brokers do not watch non-persistent topics."""
    world = found("w-a", "non-persistent://public/default/w-v", pattern=TopicsPattern("w-.*", domain))
    assert topics(world) == expected
    assert world.lists[0].mode == mode
    assert len(world.watches) == (domain is not TopicDomain.NON_PERSISTENT)


def test_a_topic_that_was_gone_before_it_was_subscribed_is_no_failure() -> None:
    world = TopicsScript(PATTERN)
    world.there = {"w-a", "w-b"}
    world.refuse = {"w-a": proto.TopicNotFound}
    world.answer()
    assert topics(world) == ["w-b"]


def test_a_topic_that_cannot_be_subscribed_fails_the_whole() -> None:
    world = TopicsScript(PATTERN)
    world.there = {"w-a", "w-b"}
    world.refuse = {"w-a": proto.ConsumerBusy}
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert world.watches == []


def test_a_list_that_cannot_be_had_fails_the_whole() -> None:
    """A list that cannot be had fails the subscription (CLIENT-19)."""
    world = TopicsScript(PATTERN)
    world.list_error = proto.AuthorizationError
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    world = TopicsScript(PATTERN)
    world.list_error = proto.ServiceNotReady
    world.pass_time(31.0)
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert isinstance(failed.error, TimedOut)
    assert "the topics of public/default were not known within 30 s" in str(failed.error)
    assert len(world.lists) > 1, "the client asked again"


def test_more_topics_than_are_believed() -> None:
    world = TopicsScript(PATTERN, script=Script(max_partitions=2))
    world.there = {"w-a", "w-b", "w-c"}
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert "matches 3 topics and partitions, allowed are 2" in str(failed.error)


def test_topics_with_more_partitions_than_are_believed() -> None:
    """Each topic is within the limit, and all of them together are not."""
    partitions = {f"w-{number}": 10 for number in range(10)}
    world = TopicsScript(PATTERN, partitions, script=Script(max_partitions=25))
    world.there = set(partitions)
    world.answer()
    assert isinstance(world.outputs[-1], ConsumerFailed)
    assert isinstance(world.outputs[-1].error, TooManyPartitions)
    assert len(world.asked) <= 25


def test_a_topic_that_comes_with_more_partitions_than_are_believed_is_left_out() -> None:
    world = found("w-a", partitions={"w-a": 2, "w-b": 4, "w-c": 3}, script=Script(max_partitions=5))
    world.update(["w-b", "w-c"])
    assert [name.split("-partition")[0] for name in topics(world)] == ["w-a", "w-a", "w-c", "w-c", "w-c"]
    world.partitions["w-c"] = 4
    world.pass_time(61.0)
    assert len(topics(world)) == 5


# --- asking again -----------------------------------------------------------------------------------


def test_who_cannot_be_told_asks_again_and_again() -> None:
    """The hash tells that nothing has changed (PATTERN-03, PATTERN-04). Rule TIMER-11."""
    world = TopicsScript(PATTERN)
    world.can_watch = False
    world.there = {"w-a"}
    world.answer()
    world.told()
    world.pass_time(61.0)
    assert world.lists[1].topics_hash == topics_hash([PREFIX + "w-a"])
    assert world.told() == []
    world.there = {"w-b"}
    world.pass_time(60.0)
    assert sorted(map(repr, world.told())) == sorted(
        map(repr, [TopicLeft(world.handle, PREFIX + "w-a", None), TopicJoined(world.handle, PREFIX + "w-b")])
    )
    assert world.watches == []


def test_a_failed_list_leaves_everything_as_it_is() -> None:
    """A failed list leaves the topics as they are (PATTERN-06)."""
    world = found("w-a")
    world.list_error = proto.MetadataError
    world.pass_time(61.0)
    assert topics(world) == ["w-a"]
    world.list_error = None
    world.there.add("w-b")
    world.pass_time(60.0)
    assert topics(world) == ["w-a", "w-b"]


def test_a_topic_that_could_not_be_subscribed_is_tried_again_soon_and_then_later_each_time() -> None:
    """The topic is tried again although the list has not changed, and without an interval (PATTERN-05,
    INV-C16). Rule MULTI-18."""
    world = found("w-a", pattern=TopicsPattern("w-.*", discovery_interval=None))
    world.refuse = {"w-b": proto.ConsumerBusy}
    world.update(["w-b"])
    assert topics(world) == ["w-a"]
    assert world.told() == []
    before = len(world.questions)
    world.pass_time(60.0)
    assert 8 <= world.questions[before:].count("w-b") <= 12
    world.refuse = {}
    world.pass_time(70.0)
    assert topics(world) == ["w-a", "w-b"]
    assert [type(told) for told in world.told()] == [TopicJoined]


def test_a_failed_list_is_asked_for_again_soon() -> None:
    """A topic that could not be subscribed waits for the next list, and the pattern has no interval
    (PATTERN-06, INV-C16)."""
    world = found("w-a", pattern=TopicsPattern("w-.*", discovery_interval=None))
    world.refuse = {"w-b": proto.ConsumerBusy}
    world.list_error = proto.MetadataError
    world.update(["w-b"])
    world.refuse = {}
    before = len(world.lists)
    world.pass_time(60.0)
    assert 8 <= len(world.lists) - before <= 12
    assert topics(world) == ["w-a"]
    world.list_error = None
    world.pass_time(70.0)
    assert topics(world) == ["w-a", "w-b"]


def test_a_broker_that_tells_of_a_topic_before_it_has_all_partitions() -> None:
    """A real broker creates the last partition while the client subscribes to the first. The client does not
    wait for the next interval."""
    world = found("w-a", partitions={"w-b": 2})
    world.refuse = {"w-b-partition-1": proto.TopicNotFound}
    world.update(["w-b-partition-0", "w-b-partition-1"])
    assert topics(world) == ["w-a"]
    world.refuse = {}
    world.pass_time(1.0)
    assert topics(world) == ["w-a", "w-b-partition-0", "w-b-partition-1"]


def test_a_list_from_before_a_change_is_asked_for_anew() -> None:
    """The change that the broker reported meanwhile is newer than the list."""
    world = found("w-a")
    world.pass_time(2.0)
    answer = world.frame_list
    held: list[Any] = []

    def hold(command: Any) -> bytes:
        held.append(command)
        return b""

    world.frame_list = hold  # type: ignore[method-assign]
    world.pass_time(61.0)
    (old,) = held
    world.frame_list = answer  # type: ignore[method-assign]
    world.there = {"w-c"}
    stale = answer(old)
    world.there = {"w-a"}
    world.update(["w-b"])
    world.feed(stale)
    assert topics(world) == ["w-a", "w-b"]
    assert "w-c" not in world.questions


def test_a_topic_that_ended_comes_back_when_it_is_there_again() -> None:
    """The topic was deleted and created again, and no broker reported it."""
    world = found("w-a", pattern=TopicsPattern("w-.*", discovery_interval=10.0))
    world.refuse = {"w-a": proto.TopicNotFound}
    world.close_by_broker("w-a")
    world.pass_time(2.0)
    left = world.told()[-1]
    assert isinstance(left, TopicLeft)
    assert isinstance(left.error, TopicNotFound)
    world.refuse = {}
    world.pass_time(10.0)
    assert topics(world) == ["w-a"]


def test_a_topic_that_is_gone_has_no_partitions_more() -> None:
    """The client is asking for the number of partitions when the topic ends."""
    world = found("w-p-partition-0", partitions={"w-p": 1}, pattern=TopicsPattern("w-.*"))
    world.hold = {Command.PARTITIONED_METADATA}
    world.pass_time(61.0)
    ((_, _, question),) = world.held
    world.refuse = {"w-p-partition-0": proto.TopicNotFound}
    world.there = set()
    world.close_by_broker("w-p-partition-0")
    world.pass_time(2.0)
    assert [type(each) for each in world.told()][-1] is TopicLeft
    world.asked.clear()
    world.feed(frame_partitions(question.request_id, 3))
    assert world.asked == []
    assert topics(world) == []


def test_no_topic_is_removed_before_the_whole_is_ready() -> None:
    """One partition was subscribed, another was deleted already."""
    world = TopicsScript(PATTERN, {"w-p": 2})
    world.there = {"w-a", "w-p-partition-0", "w-p-partition-1"}
    world.refuse = {"w-p-partition-1": proto.TopicNotFound}
    world.answer()
    assert world.told() == [ConsumerReady(world.handle, PATTERN.text)]
    assert topics(world) == ["w-a"]


def test_a_topic_that_has_not_joined_is_not_removed() -> None:
    world = found("w-a", partitions={"w-p": 2})
    world.ignore = {"w-p-partition-1"}
    world.update(["w-p-partition-0", "w-p-partition-1"])
    world.update((), ["w-p-partition-0", "w-p-partition-1"])
    assert world.told() == []
    assert topics(world) == ["w-a"]


# --- ends -------------------------------------------------------------------------------------------


def test_closing_ends_the_watch_and_everything() -> None:
    """The client closes the watcher and every consumer, as in the recording java-pattern."""
    world = found("w-a", "w-b")
    request = world.script.client.close(world.script.now, world.handle)
    assert world.told() == [Closed(world.handle, None), RequestDone(request, None)]
    assert world.watches_closed == [0]
    assert world.closed == ["w-a", "w-b"]
    world.pass_time(200.0)
    assert len(world.lists) == 1


@pytest.mark.parametrize("answered", [Command.GET_TOPICS_OF_NAMESPACE, Command.WATCH_TOPIC_LIST])
def test_closing_before_it_is_known(answered: int) -> None:
    world = TopicsScript(PATTERN)
    if answered == Command.GET_TOPICS_OF_NAMESPACE:
        world.frame_list = lambda command: b""  # type: ignore[method-assign]
    else:
        world.frame_watching = lambda command: b""  # type: ignore[method-assign]
    world.answer()
    world.told()
    request = world.script.client.close(world.script.now, world.handle)
    assert world.told()[-1] == RequestDone(request, None)
    world.pass_time(200.0)
    assert world.script.client.next_deadline() is None  # the idle connection is closed, too


def test_unsubscribing_from_nothing_is_done() -> None:
    world = found()
    request = world.script.client.unsubscribe(world.script.now, world.handle)
    assert world.told() == [Closed(world.handle, None), RequestDone(request, None)]
    assert world.watches_closed == [0]


# --- topics of a namespace --------------------------------------------------------------------------


def test_the_topics_of_a_namespace_can_be_asked_for() -> None:
    """Rules LOOKUP-01 and LOOKUP-10."""
    world = found("w-a")
    client, now = world.script.client, world.script.now
    world.filters = False
    world.there = {"b-partition-0", "b-partition-1", "a"}
    request = client.topics(now, "public/default")
    assert world.told() == [RequestDone(request, [PREFIX + "a", PREFIX + "b"])]
    world.list_error = proto.AuthorizationError
    request = client.topics(now, "public/default", TopicDomain.ALL)
    (failed,) = world.told()
    assert isinstance(failed, RequestFailed)
    assert failed.request == request
    abandoned = client.topics(now, "public/default")
    client.abandon(now, abandoned)
    assert world.told() == []
    with pytest.raises(InvalidTopicName):
        client.topics(now, "nowhere")
