"""The names of topics: each change is announced once, and system topics are never listed."""

import pytest

from pulsar_sansio.broker.topics.topic_names import TopicNames, Topics

A = "persistent://public/default/a"
PART = "persistent://public/default/a-partition-1"
VOLATILE = "non-persistent://public/default/n"
SYSTEM = "persistent://public/default/__change_events"
OTHER = "persistent://t/n/a"


def watched() -> tuple[TopicNames, list[tuple[str, bool]]]:
    names = TopicNames()
    changes: list[tuple[str, bool]] = []
    names.on_change = lambda name, exists: changes.append((name, exists))
    return names, changes


def test_each_change_is_announced_once() -> None:
    names, changes = watched()
    names.add(A)
    names.add(A)
    names.remove(A)
    names.remove(A)
    names.remove(OTHER)
    assert changes == [(A, True), (A, False)]


def test_names_are_listed_by_namespace_and_sorted() -> None:
    names, _ = watched()
    for name in (PART, OTHER, A, VOLATILE):
        names.add(name)
    assert names.listed("public/default") == [VOLATILE, A, PART]
    assert names.listed("t/n") == [OTHER]
    assert names.listed("t/other") == []
    assert [names.count(each) for each in ("public/default", "t/n", "t/other")] == [3, 1, 0]


def test_system_topics_exist_and_are_not_listed() -> None:
    names, changes = watched()
    names.add(SYSTEM)
    assert names.listed("public/default") == []
    names.remove(SYSTEM)
    assert changes == [(SYSTEM, True), (SYSTEM, False)]


def test_a_removed_name_is_not_listed() -> None:
    names, _ = watched()
    names.add(A)
    names.add(PART)
    names.remove(A)
    assert names.listed("public/default") == [PART]


def test_a_pattern_sees_a_name_without_its_domain_and_partition() -> None:
    names, _ = watched()
    for name in (A, PART, VOLATILE):
        names.add(name)
    seen: list[str] = []

    def matches(text: str) -> bool:
        seen.append(text)
        return text.endswith("a")

    listed = names.listed("public/default")
    assert names.matching("public/default", listed, matches) == [A, PART]
    assert seen == ["public/default/n", "public/default/a", "public/default/a"]


def test_names_follow_the_topics() -> None:
    names, changes = watched()
    topics: Topics[int] = Topics(names)
    topics[A] = 1
    topics[A] = 2
    del topics[A]
    assert changes == [(A, True), (A, False)]
    with pytest.raises(KeyError):
        del topics[A]
    assert changes == [(A, True), (A, False)]


def test_without_names_topics_are_only_kept() -> None:
    topics: Topics[int] = Topics(None)
    topics[A] = 1
    assert dict(topics) == {A: 1}
    del topics[A]
    assert not topics
