"""`MemberTopic`: which names belong to a topic, and when a lookup for more partitions makes sense."""

from typing import Any

import pytest

from pulsar_sansio.client.multi_topics.topic import MemberTopic
from pulsar_sansio.model.topic_name import TopicName


def opened(partitions: int | None) -> MemberTopic:
    topic = MemberTopic(TopicName.parse("t"))
    topic.partitions, topic.opened = partitions, True
    return topic


@pytest.mark.parametrize(
    ("partitions", "name", "has"),
    [
        (None, "t", True),
        (None, "t-partition-0", False),
        (0, "t-partition-0", False),
        (2, "t", True),
        (2, "t-partition-1", True),
        (2, "t-partition-2", False),
        (2, "u-partition-0", False),
        (2, "u", False),
    ],
)
def test_its_names_are_its_own_and_those_of_its_partitions(
    partitions: int | None, name: str, has: bool
) -> None:
    assert opened(partitions).has(TopicName.parse(name)) is has


@pytest.mark.parametrize(("partitions", "may"), [(None, False), (0, False), (1, True), (3, True)])
def test_only_a_partitioned_topic_may_grow(partitions: int | None, may: bool) -> None:
    assert opened(partitions).may_grow is may


def test_it_does_not_grow_while_it_opens_grows_or_asks() -> None:
    member: Any = object()
    topic = opened(2)
    topic.opened = False
    assert not topic.may_grow
    topic.opened = True
    topic.growth.append(member)
    assert not topic.may_grow
    topic.growth.clear()
    topic.query = member
    assert not topic.may_grow


def test_a_member_joins_with_the_members_that_open_with_it() -> None:
    first: Any = object()
    new: Any = object()
    topic = opened(2)
    topic.growth.append(new)
    assert (topic.is_joining(first), topic.is_joining(new)) == (False, True)
    topic.opened = False
    assert topic.is_joining(first)


def test_a_lookup_is_cancelled_once() -> None:
    cancelled = []

    class Lookup:
        def cancel(self) -> None:
            cancelled.append(self)

    topic = opened(2)
    topic.query = Lookup()  # type: ignore[assignment]
    topic.cancel_query()
    topic.cancel_query()
    assert len(cancelled) == 1
    assert topic.may_grow
