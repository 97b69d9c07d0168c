"""Topic names: what is accepted, and what each refusal says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.model.errors import InvalidConfiguration, InvalidTopicName
from pulsar_sansio.model.topic_name import TopicName

EXPANSIONS = [
    ("x", "persistent://public/default/x"),
    ("t/n/x", "persistent://t/n/x"),
    ("persistent://t/n/x", "persistent://t/n/x"),
    ("non-persistent://t/n/x", "non-persistent://t/n/x"),
    ("a b#ü", "persistent://public/default/a b#ü"),
]


@pytest.mark.parametrize(("text", "full"), EXPANSIONS)
def test_short_names_grow_to_the_full_form(text: str, full: str) -> None:
    """Rules TOPIC-01, TOPIC-02 and GAP-20."""
    assert str(TopicName.parse(text)) == full
    assert str(TopicName.parse(full)) == full


REFUSED_NAMES = [
    ("", "empty"),
    ("   ", "empty"),
    ("a/b", "short name"),
    ("a/b/c/d", "short name"),
    ("http://t/n/x", "domain"),
    ("topic://t/n/x", "domain"),
    ("persistent://t/n", "full form"),
    ("persistent://t/n/", "empty"),
    ("persistent:///n/x", "tenant"),
    ("persistent://t//x", "namespace"),
    ("persistent://t n/n/x", "tenant"),
    ("persistent://t/c/n/x", "V1"),
]


@pytest.mark.parametrize(("text", "word"), REFUSED_NAMES)
def test_a_refused_name_says_which_part_is_wrong(text: str, word: str) -> None:
    with pytest.raises(InvalidTopicName, match=word):
        TopicName.parse(text)


PARTITIONS = [
    ("x-partition-0", 0, "x"),
    ("x-partition-12", 12, "x"),
    ("x-partition-00", -1, "x-partition-00"),
    ("x-partition-", -1, "x-partition-"),
    ("x-partition--1", -1, "x-partition--1"),
    ("x-partition-1-partition-2", 2, "x-partition-1"),
    ("x-partition-١", -1, "x-partition-١"),
    ("x", -1, "x"),
]


@pytest.mark.parametrize(("local", "partition", "base"), PARTITIONS)
def test_partition_suffix(local: str, partition: int, base: str) -> None:
    """Rule TOPIC-04."""
    name = TopicName.parse(local)
    assert (name.partition, name.base.local) == (partition, base)


@given(st.integers(0, 10_000))
def test_partition_names_come_back(index: int) -> None:
    """Rule TOPIC-03."""
    name = TopicName.parse("t/n/orders")
    partition = name.partition_name(index)
    assert (partition.partition, partition.base) == (index, name)


@given(st.text())
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        name = TopicName.parse(text)
    except InvalidTopicName:
        return
    assert TopicName.parse(str(name)) == name


@pytest.mark.parametrize("value", [None, 7, b"pulsar://a"])
def test_a_name_is_text(value: object) -> None:
    with pytest.raises(InvalidConfiguration):
        TopicName.parse(value)  # type: ignore[arg-type]
