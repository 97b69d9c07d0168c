"""A consumer of all topics that match: finding them, being told of them, what comes and goes (PATTERN-01 to
PATTERN-10)."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from pulsar_sansio.client.multi_topics.multi_topics_consumer import MultiTopicsConsumer
from pulsar_sansio.client.multi_topics.topic_list_watcher import (
    TRANSITIONS,
    Asking,
    Connecting,
    Finding,
    Idle,
    Input,
    Watching,
)
from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    RequestDone,
    RequestFailed,
    TopicJoined,
    TopicLeft,
)
from pulsar_sansio.core.transitions import IllegalMove
from pulsar_sansio.model.config import SubscriptionType, TopicDomain, TopicsPattern
from pulsar_sansio.model.errors import (
    ClosedError,
    InvalidTopicName,
    TimedOut,
    TooManyPartitions,
    TopicNotFound,
)
from pulsar_sansio.wire import proto, topics_hash
from tests.client.script import Command, Script, frame_partitions
from tests.client.topics_script import PREFIX, TopicsScript
from tests.work import check_in_proportion

PATTERN = TopicsPattern("w-.*")


def found(*there: str, pattern: TopicsPattern = PATTERN, **spec: Any) -> TopicsScript:
    """A consumer that is ready."""
    world = TopicsScript(pattern, spec.pop("partitions", None), **spec)
    world.there = set(there)
    world.answer()
    assert ConsumerReady(world.handle, pattern.text) in world.outputs
    world.outputs.clear()
    return world


def topics(world: TopicsScript) -> list[str]:
    return [name.removeprefix(PREFIX) for name in world.machine.subscribed]


# --- at first ----------------------------------------------------------------------------------------


def test_what_is_there_is_subscribed_and_the_rest_is_watched() -> None:
    """java-pattern: the list, the topics, which are not made anew, the pattern looked up like a topic, then
    WATCH_TOPIC_LIST with the hash of what is known."""
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
    """MULTI-07, PATTERN-10."""
    world = found()
    assert topics(world) == []
    world.update(["w-a"])
    assert world.told() == [TopicJoined(world.handle, PREFIX + "w-a")]
    world.deliver("w-a", b"1")
    assert world.told() == [Deliverable(world.handle)]
    assert world.receive().data == b"1"


def test_partitions_are_folded_to_their_topic() -> None:
    """PATTERN-08."""
    world = found("w-p-partition-0", "w-p-partition-1", "w-a", partitions={"w-p": 2}, receiver_queue_size=10)
    assert topics(world) == ["w-a", "w-p-partition-0", "w-p-partition-1"]
    assert sorted(world.questions) == ["w-a", "w-p"]


def test_a_broker_that_does_not_filter_is_filtered_here() -> None:
    """And names of other namespaces, of other domains, of system topics and of no topic are left out."""
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
    """PATTERN-09; non-persistent topics cannot be watched."""
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
    """CLIENT-19."""
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
    assert len(world.lists) > 3


def test_more_topics_than_are_believed() -> None:
    world = TopicsScript(PATTERN, script=Script(max_partitions=2))
    world.there = {"w-a", "w-b", "w-c"}
    (failed,) = world.told()
    assert isinstance(failed, ConsumerFailed)
    assert "matches 3 topics and partitions, allowed are 2" in str(failed.error)


def test_topics_with_more_partitions_than_are_believed() -> None:
    """Each is within the limit, and all of them are not."""
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


# --- being told --------------------------------------------------------------------------------------


def test_topics_that_come_and_go_are_told_of() -> None:
    """A vanished topic is left, not unsubscribed: its subscription is none of a list's business."""
    world = found("w-a")
    world.update(["w-b", "other", "w-p-partition-0"], ["w-a"])
    assert topics(world) == ["w-b", "w-p"]
    told = world.told()
    assert TopicLeft(world.handle, PREFIX + "w-a", None) in told
    assert TopicJoined(world.handle, PREFIX + "w-b") in told
    assert world.closed == ["w-a"]
    assert world.said() == []


def test_a_message_of_a_topic_that_has_left_can_be_acknowledged_without_effect() -> None:
    world = found("w-a")
    world.deliver("w-a", b"1")
    message = world.receive()
    world.update((), ["w-a"])
    world.acknowledge(message)
    assert world.said() == []


def test_nor_when_the_topic_has_come_again() -> None:
    """What it was before is gone, and its consumer was told of none of that."""
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


def test_while_a_topic_leaves_the_others_go_on() -> None:
    """PATTERN-05. Its broker takes its time to confirm; nothing is asked of it, and nothing taken."""
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
    """BUG-009: a topic that came while nobody was told."""
    world = found("w-a")
    world.script.lose(world.link)
    world.there.add("w-b")
    world.pass_time(5.0)
    assert len(world.watches) == 2
    assert world.watches[1].topics_hash == topics_hash([PREFIX + "w-a"])
    assert topics(world) == ["w-a", "w-b"]


@pytest.mark.parametrize("lost", [False, True], ids=["first", "again"])
def test_a_topic_that_came_before_the_broker_listened_is_asked_for(lost: bool) -> None:
    """A real broker lists the topics, then begins to listen: what comes in between it never tells."""
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
    """BUG-105."""
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


def test_a_watch_that_failed_is_asked_for_again() -> None:
    world = TopicsScript(PATTERN)
    world.watch_error = proto.TooManyRequests
    world.answer()
    assert len(world.watches) == 1
    world.watch_error = None
    world.pass_time(5.0)
    assert len(world.watches) == 2


def test_a_watch_whose_answer_comes_too_late_is_closed_before_it_is_asked_for_again() -> None:
    """Else the broker would tell of topics, and who closes between the tries would leave that behind."""
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
    """A broker may say that a great many topics are gone."""

    def prepare(size: int) -> Callable[[], object]:
        world = found(*(f"w-{number}" for number in range(size)))
        gone = [f"x-{number}" for number in range(4 * size)]
        return lambda: world.update(deleted=gone)

    check_in_proportion(prepare, 20)


# --- asking again ------------------------------------------------------------------------------------


def test_who_cannot_be_told_asks_again_and_again() -> None:
    """PATTERN-03, PATTERN-04; the hash says that nothing has changed."""
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
    """PATTERN-06."""
    world = found("w-a")
    world.list_error = proto.MetadataError
    world.pass_time(61.0)
    assert topics(world) == ["w-a"]
    world.list_error = None
    world.there.add("w-b")
    world.pass_time(60.0)
    assert topics(world) == ["w-a", "w-b"]


def test_a_topic_that_could_not_be_subscribed_is_tried_again_soon_and_then_later_each_time() -> None:
    """PATTERN-05, INV-C16: also when the list has not changed, and when nobody asks at an interval."""
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
    """PATTERN-06, INV-C16: a topic that could not be subscribed waits for it, nobody asks at an interval."""
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
    """A real one makes the last while this subscribes the first: nobody waits for the next interval."""
    world = found("w-a", partitions={"w-b": 2})
    world.refuse = {"w-b-partition-1": proto.TopicNotFound}
    world.update(["w-b-partition-0", "w-b-partition-1"])
    assert topics(world) == ["w-a"]
    world.refuse = {}
    world.pass_time(1.0)
    assert topics(world) == ["w-a", "w-b-partition-0", "w-b-partition-1"]


def test_a_list_from_before_a_change_is_asked_for_anew() -> None:
    """What the broker told of meanwhile is newer."""
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
    """Deleted and made again, and nobody told of it."""
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
    """Its broker is asked how many there are when it ends."""
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


def test_nothing_leaves_before_the_whole_is_ready() -> None:
    """One partition was subscribed, another one was not there any more."""
    world = TopicsScript(PATTERN, {"w-p": 2})
    world.there = {"w-a", "w-p-partition-0", "w-p-partition-1"}
    world.refuse = {"w-p-partition-1": proto.TopicNotFound}
    world.answer()
    assert world.told() == [ConsumerReady(world.handle, PATTERN.text)]
    assert topics(world) == ["w-a"]


def test_what_has_not_joined_does_not_leave() -> None:
    world = found("w-a", partitions={"w-p": 2})
    world.ignore = {"w-p-partition-1"}
    world.update(["w-p-partition-0", "w-p-partition-1"])
    world.update((), ["w-p-partition-0", "w-p-partition-1"])
    assert world.told() == []
    assert topics(world) == ["w-a"]


# --- ends --------------------------------------------------------------------------------------------


def test_closing_ends_the_watch_and_everything() -> None:
    """java-pattern."""
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
    assert world.script.client.next_deadline() is None  # not even the idle connection is left


def test_unsubscribing_from_nothing_is_done() -> None:
    world = found()
    request = world.script.client.unsubscribe(world.script.now, world.handle)
    assert world.told() == [Closed(world.handle, None), RequestDone(request, None)]
    assert world.watches_closed == [0]


# --- topics of a namespace ---------------------------------------------------------------------------


def test_the_topics_of_a_namespace_can_be_asked_for() -> None:
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


# --- the table ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", Input, ids=lambda event: event.name)
@pytest.mark.parametrize("kind", [Idle, Finding, Connecting, Asking, Watching])
def test_what_is_not_in_the_table_is_refused(kind: type, event: Input) -> None:
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


# --- whatever happens --------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["a pattern", "topics", "partitions"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_every_request_is_answered_and_the_end_comes_once(seed: int, wanted: str) -> None:
    """Topics come, go, grow, are refused and lost, connections die, and the application does what it likes.
    At the end the whole has ended once, nothing is left running, and every message was taken at most as often
    as it was sent."""
    draw = Random(seed)
    names = ["w-a", "w-b", "w-p-partition-0", "w-p-partition-1"]
    topic: Any = {"a pattern": PATTERN, "topics": ("w-a", "w-b", "w-p"), "partitions": "w-p"}[wanted]
    shared = SubscriptionType.SHARED
    world = TopicsScript(topic, {"w-p": 2}, subscription_type=shared, partitions_update_interval=5.0)
    world.there = set(names)
    world.answer()
    client, handle = world.script.client, world.handle
    requests: set[int] = set()
    sent: Counter[bytes] = Counter()
    taken: Counter[bytes] = Counter()
    held: list[Any] = []
    entry = 0
    errors = (proto.ConsumerBusy, proto.ServiceNotReady, proto.TopicNotFound)

    def there() -> list[str]:
        return [name.removeprefix(PREFIX) for name in client.subscribed_topics(handle)]

    for _ in range(150):
        try:
            match draw.randrange(14):
                case 0 | 1 | 2:
                    if client.links and (live := [name for name in there() if name in world.consumer_of]):
                        payload = b"%d" % entry
                        world.deliver(draw.choice(live), payload, entry=entry)
                        sent[payload] += 1
                        entry += 1
                case 3 | 4:
                    messages = list(world.take(draw.randrange(1, 4)))
                    taken.update(message.data for message in messages)
                    held += messages
                case 5:
                    world.acknowledge(held)
                case 6:
                    client.negative_acknowledge(world.script.now, handle, held)
                case 7:
                    requests.add(client.flush_acknowledgements(world.script.now, handle))
                case 8:
                    world.refuse = {name: draw.choice(errors) for name in draw.sample(names, 1)}
                case 9:
                    world.refuse = {}
                case 10:
                    if client.links and (live := there()):
                        world.close_by_broker(draw.choice(live))
                case 11 if draw.random() < 0.3 and client.links:
                    world.script.lose(world.link)
                case 12 if wanted == "a pattern" and world.watches and client.links:
                    name = draw.choice([*names, "w-new"])
                    world.update(*(([], [name]) if name in world.there else ([name], [])))
                case 12:
                    world.partitions["w-p"] = 3
                case 13 if draw.random() < 0.1:
                    world.refuse_unsubscribe = {"w-a": proto.ConsumerBusy}
                    requests.add(client.unsubscribe(world.script.now, handle))
                case _:
                    world.pass_time(draw.random() * 10)
        except ClosedError:
            break
        world.answer()
        machine = client._handles.consumers.get(handle)
        if isinstance(machine, MultiTopicsConsumer):
            detached = sum(member.detached is not None for member in machine._members.alive)
            assert machine._attachment.detached == detached
            assert all(member in member.topic.members for member in machine._members.alive)
    requests.add(client.close(world.script.now, handle))
    world.pass_time(40.0)
    told = world.told()
    ends = [output for output in told if isinstance(output, Closed | ConsumerFailed)]
    assert len(ends) == 1
    answered = [output.request for output in told if isinstance(output, RequestDone | RequestFailed)]
    assert sorted(answered) == sorted(requests)
    assert not taken - sent
    world.pass_time(200.0)
    assert client.next_deadline() is None


def test_what_comes_while_it_is_unsubscribing_in_vain_joins_after_all() -> None:
    """The broker's news fall into the time of the UNSUBSCRIBE that is refused; nobody polls."""
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


def test_what_all_were_asked_does_not_fail_because_one_leaves() -> None:
    """Who waits for a flush would take it for the end of the consumer."""
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
