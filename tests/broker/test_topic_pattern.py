"""Topics by name and by pattern."""

import pytest

from pulsar_sansio import InvalidConfiguration
from pulsar_sansio.broker.topic_pattern import TopicPattern

DEFAULT = "persistent://public/default/"


@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        ("orders", DEFAULT + "orders", True),
        ("orders", DEFAULT + "orders-partition-3", True),
        ("orders", DEFAULT + "orders-2", False),
        ("orders-partition-1", DEFAULT + "orders-partition-1", True),
        ("orders-partition-1", DEFAULT + "orders-partition-12", False),
        ("orders", "non-persistent://public/default/orders", False),
        ("a/b/c", "persistent://a/b/c", True),
        ("*", "", True),
        ("*", DEFAULT + "x", True),
        ("ord*", DEFAULT + "orders", True),
        ("ord*", DEFAULT + "ord", True),
        ("ord*", DEFAULT + "or", False),
        ("*ers", DEFAULT + "orders", True),
        ("o*d*s", DEFAULT + "orders", True),
        ("o*s*d*s", DEFAULT + "orders", False),
        ("orders*orders", DEFAULT + "orders", False),
        ("a/b/*", "persistent://a/b/c", True),
        ("*://a/b/*", "non-persistent://a/b/c", True),
        ("a/b/*", "persistent://a/bc/c", False),
    ],
)
def test_matches(pattern: str, topic: str, matches: bool) -> None:
    assert TopicPattern(pattern).matches(topic) is matches


@pytest.mark.parametrize("pattern", ["", "a/b", "a/*", "x" * 5000, 5, None, "\ud800"])
def test_what_is_no_pattern(pattern: object) -> None:
    with pytest.raises(InvalidConfiguration):
        TopicPattern(pattern)  # type: ignore[arg-type]
