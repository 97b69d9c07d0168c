"""Lists of the topics of a pattern: when the client asks for them, and what it believes of them."""

from typing import Any

from pulsar_sansio.client.outputs import TopicJoined
from pulsar_sansio.model.config import TopicDomain, TopicsPattern
from pulsar_sansio.wire import encode_command, proto, topics_hash
from tests.client.script import Command, frame_success
from tests.client.topics_script import PATTERN, PREFIX, TopicsScript, found, topics


def test_after_a_change_that_was_told_of_the_whole_list_is_asked_for() -> None:
    """The broker compares its list with the hash of the list before. A topic that came and went since then
    would be no change."""
    world = found("w-a", pattern=TopicsPattern("w-.*", discovery_interval=60.0))
    world.pass_time(10.0)
    world.update(["w-b"])
    assert topics(world) == ["w-a", "w-b"]
    world.there.remove("w-b")
    before = len(world.lists)
    world.pass_time(61.0)
    assert not world.lists[before].HasField("topics_hash")
    assert topics(world) == ["w-a"]


def test_with_another_list_the_wait_for_a_refused_topic_begins_anew() -> None:
    """The wait has grown to a minute, and the next wait is short again (PATTERN-05)."""
    world = found("w-a", pattern=TopicsPattern("w-.*", discovery_interval=100.0))
    world.refuse = {"w-b": proto.ConsumerBusy}
    world.update(["w-b"])
    world.pass_time(100.0)
    world.there.add("w-c")
    while topics(world) == ["w-a"]:
        world.pass_time(1.0)
    before = len(world.questions)
    world.pass_time(10.0)
    assert world.questions[before:].count("w-b") >= 4


class OfAllKinds(TopicsScript):
    """A broker reports non-persistent topics, too."""

    def frame_watching(self, command: Any) -> bytes:
        names = [PREFIX + "w-a", PREFIX + "w-b", "non-persistent://public/default/w-c"]
        response = proto.CommandWatchTopicListSuccess(
            request_id=command.request_id,
            watcher_id=command.watcher_id,
            topic=names,
            topics_hash=topics_hash(names),
        )
        return encode_command(Command.WATCH_TOPIC_LIST_SUCCESS, response)


def test_a_topic_without_memory_in_the_list_of_a_watch_is_left_out() -> None:
    """A watcher covers persistent topics, so it reports nothing when a non-persistent topic is deleted."""
    world = OfAllKinds(TopicsPattern("w-.*", TopicDomain.ALL))
    world.there = {"w-a"}
    world.answer()
    assert topics(world) == ["w-a", "w-b"]


def test_a_topic_that_is_being_opened_is_not_asked_for_more_partitions() -> None:
    world = found(pattern=PATTERN, partitions_update_interval=1.0)
    world.partitions["w-p"] = 2
    world.ignore = {"w-p-partition-1"}
    world.update(["w-p-partition-0", "w-p-partition-1"])
    world.pass_time(10.0)
    assert world.questions == ["w-p"]
    world.feed(frame_success(world.asked[-1].request_id))
    assert world.told() == [TopicJoined(world.handle, f"{PREFIX}w-p-partition-{index}") for index in range(2)]
