"""Positions of several topics: which targets move one topic, and which move all."""

from typing import Any

import pytest

from pulsar_sansio.client.multi_topics.positions import anything, last_ids
from pulsar_sansio.model.errors import LocalProtocolError
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId, TopicMessageId
from tests.client.topics_script import PREFIX, TopicsScript, partitioned, ready


def moved(world: TopicsScript, target: Any) -> list[str]:
    world.script.client.seek(world.script.now, world.handle, target)
    return sorted(name for _, name, _ in world.said("SEEK"))


@pytest.mark.parametrize("target", [EARLIEST, LATEST, 1_700_000_000_000])
def test_ends_and_times_move_all_topics(target: Any) -> None:
    """MULTI-26: these targets have a meaning in every topic."""
    assert moved(ready(), target) == ["a", "b"]


def test_a_function_is_called_for_each_topic() -> None:
    asked: list[str] = []

    def target(topic: str) -> MessageId:
        asked.append(topic)
        return EARLIEST

    assert moved(ready(), target) == ["a", "b"]
    assert sorted(asked) == [PREFIX + "a", PREFIX + "b"]


def test_an_id_with_its_topic_moves_one() -> None:
    assert moved(ready(), TopicMessageId(PREFIX + "b", MessageId(1, 2))) == ["b"]


def test_a_message_moves_its_own_topic() -> None:
    world = ready()
    world.deliver("b", b"1")
    message = world.receive()
    world.said()
    assert moved(world, message) == ["b"]


def test_the_partition_of_an_id_names_the_topic() -> None:
    assert moved(partitioned(), MessageId(1, 2, 1)) == ["p-partition-1"]


@pytest.mark.parametrize(
    "target", [MessageId(1, 2), TopicMessageId(PREFIX + "c", MessageId(1, 2)), "a", None, -1]
)
def test_a_target_that_names_no_topic_is_refused(target: Any) -> None:
    world = ready()
    with pytest.raises(LocalProtocolError):
        world.script.client.seek(world.script.now, world.handle, target)
    assert world.said() == []


def test_last_ids_are_ordered_by_topic() -> None:
    ids = {"b": MessageId(1, 2), "a": MessageId(9, 9)}
    assert last_ids(ids) == [TopicMessageId("a", MessageId(9, 9)), TopicMessageId("b", MessageId(1, 2))]
    assert last_ids({}) == []


def test_one_topic_with_a_message_is_enough() -> None:
    assert anything({"a": False, "b": True})
    assert not anything({"a": False, "b": False})
    assert not anything({})
