"""`Policies`: levels inherit, and a wrong name or value is refused with what is allowed."""

from typing import Any

import pytest

from pulsar_sansio.broker.policies import (
    BacklogQuota,
    InactiveTopics,
    MessageRate,
    Policies,
    SubscribeRate,
)
from pulsar_sansio.model.errors import InvalidConfiguration


def test_a_level_wins_where_it_is_set() -> None:
    topic = Policies(max_producers=0, deduplication=False)
    namespace = Policies(max_producers=5, max_consumers=3, deduplication=True)
    merged = topic.over(namespace)
    assert (merged.max_producers, merged.max_consumers, merged.deduplication) == (0, 3, False)
    assert Policies().over(namespace) is namespace


def test_one_policy_is_changed_and_removed() -> None:
    changed = Policies().with_policies({"message_ttl": 1.5, "subscription_types": ("Shared",)})
    assert changed == Policies(message_ttl=1.5, subscription_types=("Shared",))
    assert changed.with_policy("message_ttl", None) == Policies(subscription_types=("Shared",))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("no_such", 1, "no such policy: 'no_such'; there are deduplication, "),
        ("deduplication", 1, "deduplication: bool"),
        ("max_producers", True, "max_producers: int"),
        ("max_producers", -1, "from 0 to"),
        ("max_producers", 1.5, "max_producers: int"),
        ("max_producers", 2**63, "from 0 to"),
        ("auto_topic_partitions", 10_001, "from 0 to 10000"),
        ("message_ttl", "1", "message_ttl: float"),
        ("retention_size", -2, "from -1 to"),
        ("backlog_quota_size", 5, ": BacklogQuota, not 5"),
        ("publish_rate", SubscribeRate(), ": MessageRate, not"),
        ("subscribe_rate", MessageRate(), ": SubscribeRate, not"),
        ("inactive_topics", True, ": InactiveTopics, not True"),
        ("subscription_types", ["Shared"], "a tuple of Exclusive, Shared"),
        ("subscription_types", ("shared",), "a tuple of Exclusive, Shared"),
    ],
)
def test_a_wrong_policy_is_refused(name: str, value: object, words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        Policies().with_policy(name, value)


@pytest.mark.parametrize(
    ("name", "value"), [("retention_time", -1), ("retention_size", -1), ("message_ttl", 3), ("max_topics", 0)]
)
def test_limits_of_policies_are_allowed(name: str, value: Any) -> None:
    assert getattr(Policies().with_policy(name, value), name) == value


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "drop"},
        {"policy": "producer_exception", "limit_size": True},
        {"policy": "producer_exception", "limit_time": 1.5},
        {"policy": "producer_exception", "limit_size": 2**63},
    ],
)
def test_a_wrong_quota_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration, match="backlog quota"):
        BacklogQuota(**options)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (MessageRate, (True,), "messages of a rate: a whole number, not True"),
        (MessageRate, (1, 2**63), "size of a rate: a whole number"),
        (MessageRate, (1, 1, 1.5), "period of a rate: a whole number, not 1.5"),
        (SubscribeRate, ("1",), "per_consumer of a subscribe rate: a whole number, not '1'"),
        (InactiveTopics, (1,), "delete of inactive topics: True or False, not 1"),
        (InactiveTopics, (True, 1.0), "seconds of inactive topics: a whole number"),
        (InactiveTopics, (True, 1, "never"), "mode of inactive topics: delete_when_no_subscriptions, "),
    ],
)
def test_a_wrong_rate_or_time_is_refused(kind: Any, values: tuple[object, ...], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        kind(*values)


@pytest.mark.parametrize(
    ("limit", "present", "allowed"), [(None, 99, True), (0, 99, True), (2, 1, True), (2, 2, False)]
)
def test_room_for_another_subscription(limit: int | None, present: int, allowed: bool) -> None:
    assert Policies(max_subscriptions=limit).allows_subscription(present) is allowed


@pytest.mark.parametrize(
    ("retention", "quota", "exceeds"),
    [
        ({}, {"limit_size": 10}, True),
        ({"retention_size": 11}, {"limit_size": 10}, True),
        ({"retention_size": 10}, {"limit_size": 10}, False),
        ({"retention_time": 60}, {"limit_time": 59}, True),
        ({"retention_time": 60}, {"limit_time": 60}, False),
        ({"retention_size": -1}, {"limit_size": 10}, True),
    ],
)
def test_retention_must_keep_more_than_a_quota_allows(
    retention: dict[str, int], quota: dict[str, int], exceeds: bool
) -> None:
    limited = BacklogQuota("producer_exception", **quota)
    for name in ("backlog_quota_size", "backlog_quota_time"):
        policies = Policies().with_policies({**retention, name: limited})
        assert policies.retention_exceeds_quotas is exceeds
