"""`TopicsPattern`: its namespace, its domain, and which topics it matches."""

import re

import pytest

from pulsar_sansio.model.config import TopicDomain, TopicsPattern
from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.topic_name import TopicName
from pulsar_sansio.model.topics_pattern import (
    MAX_PATTERN_LENGTH,
    matcher,
)


@pytest.mark.parametrize(
    ("pattern", "namespace", "text"),
    [
        ("orders-.*", "public/default", "persistent://public/default/orders-.*"),
        ("a/b/orders-[^/]+", "a/b", "persistent://a/b/orders-[^/]+"),
        ("persistent://a/b/.*", "a/b", "persistent://a/b/.*"),
        ("non-persistent://a/b/.*", "a/b", "non-persistent://a/b/.*"),
    ],
)
def test_a_pattern_is_of_one_namespace(pattern: str, namespace: str, text: str) -> None:
    """Rule TOPIC-07."""
    made = TopicsPattern(pattern)
    assert (made.namespace, made.text, str(made)) == (namespace, text, text)


def test_the_domain_is_what_is_said_or_what_it_begins_with() -> None:
    """Rule CFG-223."""
    assert TopicsPattern("x").topics_of is TopicDomain.PERSISTENT
    assert TopicsPattern("non-persistent://a/b/x").topics_of is TopicDomain.NON_PERSISTENT
    assert TopicsPattern("persistent://a/b/x", TopicDomain.ALL).topics_of is TopicDomain.ALL
    volatile, stored = TopicName.parse("non-persistent://a/b/x"), TopicName.parse("a/b/x")
    assert [domain.has(volatile) for domain in TopicDomain] == [False, True, True]
    assert [domain.has(stored) for domain in TopicDomain] == [True, False, True]


def test_a_pattern_that_python_compiled() -> None:
    assert TopicsPattern.of(re.compile("Orders", re.I)).pattern == "(?i)Orders"
    pattern = TopicsPattern.of(re.compile("persistent://a/b/[^/]+x", re.I | re.S))
    assert pattern.pattern == "persistent://a/b/(?is)[^/]+x"
    assert matcher(pattern.expression)("a/b/zX")
    assert not matcher(pattern.expression)("A/b/zX")
    with pytest.raises(InvalidConfiguration, match="flags other than"):
        TopicsPattern.of(re.compile("a", re.X))
    with pytest.raises(InvalidConfiguration, match="of text"):
        TopicsPattern.of(re.compile(b"a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("", "text, not ''"),
        (7, "text, not 7"),
        ("(", "missing \\)"),
        ("(?=x)", "invalid perl operator"),
        (r"(a)\1", "invalid escape"),
        ("a{2000}", "invalid repetition size"),
        ("x" * (MAX_PATTERN_LENGTH + 1), "characters, allowed are"),
        ("((\\pL{300}){3}){3}", "too large|repetition"),
        ("\ud800", "no text that can be sent"),
        ("a/b", "tenant/namespace/topics"),
        ("persistent://a", "tenant/namespace/topics"),
        ("a.*/b/c", "only the topic's own part is a pattern"),
        ("topic://a/b/c", "the domain is"),
    ],
)
def test_what_is_no_pattern(pattern: str, wrong: str) -> None:
    with pytest.raises(InvalidConfiguration, match=wrong):
        TopicsPattern(pattern)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("orders-1", True),
        ("orders-1-partition-0", True),
        ("orders", False),
        ("a/b/orders-1", False),
        ("non-persistent://public/default/orders-1", False),
        ("__orders-1", False),
    ],
)
def test_which_topics_it_means(name: str, meant: bool) -> None:
    assert TopicsPattern("(__)?orders-[0-9]").matches(TopicName.parse(name)) is meant
