"""`PatternChanges`: topics that join and leave while the consumer is open."""

from pulsar_sansio.client.outputs import ConsumerFailed, ConsumerReady, TopicJoined, TopicLeft
from pulsar_sansio.model.errors import TooManyPartitions
from pulsar_sansio.wire import proto
from tests.client.script import Script
from tests.client.topics_script import PATTERN, PREFIX, TopicsScript, found, topics


def test_a_new_topic_joins_and_is_reported() -> None:
    """PATTERN-04: topics that appear are subscribed."""
    world = found("w-a")
    world.update(added=["w-b", "other"])
    assert topics(world) == ["w-a", "w-b"]
    assert world.told() == [TopicJoined(world.handle, PREFIX + "w-b")]
    assert not world.asked[-1].force_topic_creation


def test_topics_join_in_the_order_of_their_names() -> None:
    world = found("w-a")
    world.update(added=["w-d", "w-b", "w-c"])
    assert [command.topic.removeprefix(PREFIX) for command in world.asked] == ["w-a", "w-b", "w-c", "w-d"]


def test_a_topic_that_is_gone_leaves_and_its_subscription_stays() -> None:
    """PATTERN-05: topics that disappear are closed, never unsubscribed."""
    world = found("w-a", "w-b")
    world.update(deleted=["w-a"])
    assert topics(world) == ["w-b"]
    assert world.told() == [TopicLeft(world.handle, PREFIX + "w-a", None)]
    assert world.closed == ["w-a"]
    assert "UNSUBSCRIBE" not in [kind for kind, _, _ in world.said()]


def test_a_topic_that_comes_back_joins_again() -> None:
    world = found("w-a", "w-b")
    world.update(deleted=["w-a"])
    world.update(added=["w-a"])
    assert topics(world) == ["w-a", "w-b"]
    assert [type(output) for output in world.told()] == [TopicLeft, TopicJoined]


def test_a_new_topic_that_cannot_be_opened_is_left_out_and_tried_again() -> None:
    world = found("w-a")
    world.refuse["w-b"] = proto.AuthorizationError
    world.update(added=["w-b"])
    assert topics(world) == ["w-a"]
    assert not [output for output in world.told() if isinstance(output, ConsumerFailed | TopicJoined)]
    del world.refuse["w-b"]
    world.pass_time(130.0)
    assert topics(world) == ["w-a", "w-b"]


def test_more_partitions_than_there_is_room_for_fail_the_opening() -> None:
    world = TopicsScript(PATTERN, {"w-a": 3, "w-b": 3}, script=Script(max_partitions=4))
    world.there = {"w-a", "w-b"}
    world.answer()
    (failed,) = [output for output in world.told() if isinstance(output, ConsumerFailed)]
    assert isinstance(failed.error, TooManyPartitions)
    assert "matches more topics and partitions than 4 (max_partitions)" in str(failed.error)


def test_later_they_are_left_out_while_the_others_go_on() -> None:
    world = found("w-a", partitions={"w-b": 5}, script=Script(max_partitions=4))
    world.update(added=["w-b", "w-c"])
    assert topics(world) == ["w-a", "w-c"]


def test_changes_while_it_closes_are_ignored() -> None:
    world = found("w-a")
    world.answer_closes = False
    world.script.client.close(world.script.now, world.handle)
    world.answer()
    asked = len(world.asked)
    world.update(added=["w-b"])
    assert len(world.asked) == asked


def test_the_first_list_that_is_empty_is_ready() -> None:
    world = found()
    assert topics(world) == []
    world.update(added=["w-a"])
    assert topics(world) == ["w-a"]
    assert not [output for output in world.told() if isinstance(output, ConsumerReady)]
