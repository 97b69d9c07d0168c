"""The plain values: those of every field of a world's plans at which nothing special is going on.

This module owns the tables that the shrinker goes through. The default of a field is plain, unless a table
says otherwise. So a shrunk world leaves out a new feature that has a default, without a change here.
"""

from dataclasses import MISSING, fields
from typing import Any

from pulsar_sansio.model.config import CompressionType

from ..engine.clock import MILLISECOND
from ..engine.profile import BrokerPlan, ConsumerPlan, ProducerPlan, Profile

_PROFILE: dict[str, Any] = {
    "timers_late_permille": 0,
    "timers_early_permille": 0,
    "stale_permille": 0,
    "last_reset": 0,
    "jitter": 0,
    "cut_permille": 0,
    "latency": MILLISECOND,
    "store_delay": MILLISECOND,
    "lingers": False,
    "connections_per_broker": 1,
    "max_backoff": 1.0,
    "keepalive": 10.0,
    "operation_timeout": 10.0,
}

_PRODUCER: dict[str, Any] = {
    "rich_permille": 0,
    "close_permille": 0,
    "flush_permille": 0,
    "compression": CompressionType.NONE,
    "batching": None,
    "send_timeout": 0.0,
    "window": 1000,
    "named": False,
    "largest": 16,
    "burst": 1,
    "pause": MILLISECOND,
}

_CONSUMER: dict[str, Any] = {
    "close_permille": 0,
    "redeliver_permille": 0,
    "nack_delay": 0.0,
    "nack_permille": 0,
    "keep_permille": 0,
    "cumulative_permille": 0,
    "confirm_permille": 0,
    "receipts": False,
    "batch_index": False,
    "group_time": 0.0,
    "group_size": 1000,
    "queue": 1000,
    "priority": 0,
    "take": 1,
    "pause": MILLISECOND,
}

_ELSEWHERE = frozenset(
    (
        "brokers",
        "faults",
        "transient_subscribers",
        "single_topic_seekers",
        "multi_topics_seekers",
        "tables",
        "nonpersistent_apps",
        "groups",
        "compactions",
        "ends",
        "migrations",
        "appearances",
        "partitioned",
    )
)
"""Fields of the profile that are left out item by item."""


def defaults(kind: type) -> dict[str, Any]:
    """The fields of a plan that have a default, and what it is."""
    found: dict[str, Any] = {}
    for each in fields(kind):
        if each.default is not MISSING:
            found[each.name] = each.default
        elif each.default_factory is not MISSING:
            found[each.name] = each.default_factory()
    return found


PLAIN_PROFILE: dict[str, Any] = {
    name: value for name, value in {**defaults(Profile), **_PROFILE}.items() if name not in _ELSEWHERE
}
PLAIN_PRODUCER: dict[str, Any] = {**_PRODUCER, **defaults(ProducerPlan)}
PLAIN_CONSUMER: dict[str, Any] = {**_CONSUMER, **defaults(ConsumerPlan)}
PLAIN_BROKER: dict[str, Any] = defaults(BrokerPlan)
