"""Patterns of topics: which topics they mean, and what is none."""

import pytest

from pulsar_sansio.model.config import TopicsPattern
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.model.topics_pattern import (
    BadPattern,
    matcher,
    matches_topic,
)


def test_a_name_matches_in_full_without_domain_and_partition() -> None:
    matches = matcher(TopicsPattern("orders-.").expression)
    for name in ("orders-1", "non-persistent://public/default/orders-1", "orders-1-partition-7"):
        assert matches_topic(matches, TopicName.parse(name))
    for name in ("orders-12", "orders-", "my-orders-1", "persistent://public/other/orders-1"):
        assert not matches_topic(matches, TopicName.parse(name))
    assert not matches("public/default/orders-\ud800")


def test_what_else_is_wrong_with_one() -> None:
    with pytest.raises(InvalidConfiguration, match="discovery_interval"):
        TopicsPattern("a", discovery_interval=0.0)
    with pytest.raises(InvalidConfiguration, match="a TopicDomain or None"):
        TopicsPattern("a", "all")  # type: ignore[arg-type]
    with pytest.raises(BadPattern):
        matcher("(")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+b", "(.*a){20}b", ".*.*.*.*x"])
def test_a_name_is_looked_at_once_whatever_the_pattern(pattern: str) -> None:
    """These patterns take Python's matcher years."""
    matches = matcher(pattern)
    assert not matches("a" * 10_000 + "!")
