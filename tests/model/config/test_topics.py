"""The topics that one consumer may have: named, several, or those of a pattern."""

import pytest

from pulsar_sansio.model.config import TopicsPattern
from pulsar_sansio.model.config.topics import check_topics, names_of
from pulsar_sansio.model.errors import InvalidConfiguration, InvalidTopicName


def test_names_are_full_and_in_order() -> None:
    assert [str(name) for name in names_of(("b", "t/n/a"))] == [
        "persistent://public/default/b",
        "persistent://t/n/a",
    ]
    assert [str(name) for name in names_of("b")] == ["persistent://public/default/b"]
    assert names_of(TopicsPattern(".*")) == ()


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        ((), "topic: at least one"),
        (("a", "persistent://public/default/a"), "persistent://public/default/a is named twice"),
        (("a", "a-partition-0"), "a-partition-0 is a partition of persistent://public/default/a"),
        (("a-partition-1", "a"), "a-partition-1 is a partition of persistent://public/default/a"),
    ],
)
def test_no_topic_is_named_twice(topics: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        check_topics(topics, 10)


def test_several_topics_may_lie_in_several_namespaces() -> None:
    check_topics(("a", "t/n/a", "b-partition-0", "b-partition-1"), 1)


def test_a_queue_of_size_0_is_for_one_topic() -> None:
    check_topics("a", 0)
    for topics in (("a", "b"), TopicsPattern(".*")):
        with pytest.raises(InvalidConfiguration, match="receiver_queue_size: 1 and more"):
            check_topics(topics, 0)


def test_a_malformed_name_is_refused_among_others() -> None:
    with pytest.raises(InvalidTopicName):
        check_topics(("a", "b/c"), 10)
