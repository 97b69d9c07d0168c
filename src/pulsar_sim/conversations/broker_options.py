"""The options and policies of a broker at their bounds: what is allowed there, and what is refused beyond.

Owns the bounds once more, as its documentation has them (INV-A1).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from pulsar_sansio.broker.config import BrokerConfig
from pulsar_sansio.broker.policies import (
    BacklogQuota,
    InactiveTopics,
    MessageRate,
    Policies,
    SubscribeRate,
)
from pulsar_sansio.broker.security.broker_authentication import BrokerAuthentication
from pulsar_sansio.model.errors import InvalidConfiguration

from ..engine.failures import ViolationError

INT32 = 2**31 - 1
YEARS = 10.0 * 365 * 86_400

BOUNDS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("keepalive_interval", "liveness_timeout", "housekeeping_interval"), (0.001, YEARS)),
    **dict.fromkeys(
        ("cursor_flush_interval", "failover_delay", "deduplication_inactivity", "delayed_delivery_tick"),
        (0.0, YEARS),
    ),
    **dict.fromkeys(
        (
            "max_connections",
            "max_pending_publishes",
            "max_producers_per_connection",
            "max_consumers_per_connection",
            "max_topics",
            "max_subscriptions_per_topic",
            "deduplication_max_producers",
            "ledger_max_entries",
            "entries_per_turn",
            "key_shared_look_ahead",
            "max_transactions",
        ),
        (1, INT32),
    ),
    "transaction_coordinators": (0, 1024),
    "protocol_version": (12, 21),
    "max_message_size": (1024, INT32 - 10_240),
    "max_unsent_bytes": (1024, 2**40),
    "keep_without_subscription": (0, 2**40),
    "max_stored_bytes": (0, 2**50),
    "entry_cache_bytes": (0, 2**50),
    "ledger_max_time": (0.001, YEARS),
    "ledger_min_time": (0.0, YEARS),
    "ledger_max_bytes": (1024, 2**40),
    "auto_topic_partitions": (0, 10_000),
    **dict.fromkeys(
        (
            "max_connections_per_address",
            "max_producers_per_address",
            "max_consumers_per_address",
            "max_topics_per_namespace",
            "max_partitions_per_topic",
            "max_tenants",
            "max_namespaces_per_tenant",
            "max_unacked_messages_per_consumer",
            "max_unacked_messages_per_subscription",
        ),
        (0, INT32),
    ),
}
"""The least and the greatest value of each option that is a number."""

FLAGS = (
    "proxy_through_service_url",
    "feature_flags",
    "auto_topic_creation",
    "auto_subscription_creation",
    "deduplication",
    "broker_entry_metadata",
    "batch_index_acknowledgement",
    "key_shared_consistent_hashing",
    "delayed_delivery",
    "delayed_delivery_strict",
    "topic_list_watcher",
)

URL = "pulsar://raw:6650"

STRANGE: tuple[object, ...] = (True, "1", None)
"""Values of other types than a number."""

STRANGE_OPTIONS: tuple[tuple[str, object], ...] = (
    ("cluster", " "),
    ("cluster", 1),
    ("server_version", ""),
    ("web_service_url", "https://raw:8080"),
    ("web_service_url_tls", "http://raw:8080"),
    ("web_service_url", 1),
    ("reached_end_of_topic", "always"),
    ("authentication", "token"),
    ("default_policies", None),
    ("default_policies", Policies(deduplication=True)),
)

QUOTA = "producer_exception"

UNLIMITED = (
    "max_producers",
    "max_consumers",
    "max_consumers_per_subscription",
    "message_ttl",
    "retention_time",
    "retention_size",
    "delayed_delivery_max",
    "compaction_threshold",
)
"""Policies that are 0 unless an administrator sets them."""

POLICIES: dict[str, tuple[int, int]] = {
    "retention_time": (-1, 2**63 - 1),
    "retention_size": (-1, 2**63 - 1),
    "message_ttl": (0, 2**63 - 1),
    "max_producers": (0, 2**63 - 1),
    "auto_topic_partitions": (0, 10_000),
}


def check_broker_options() -> None:
    """INV-A1: every option takes its bounds, and refuses what is beyond or of another type."""
    for name, (least, most) in BOUNDS.items():
        beyond = (least - 1, most + 1) if isinstance(least, int) else (least - 0.001, most * 1.001)
        for value in (least, most):
            _allowed(name, value)
        for wrong in (*beyond, *STRANGE):
            _refused(name, wrong)
    for name in FLAGS:
        _allowed(name, False)
        _refused(name, 1)
    for option, strange in STRANGE_OPTIONS:
        _refused(option, strange)
    _check_policies()
    _check_authentication()


def _check_policies() -> None:
    for name, (least, most) in POLICIES.items():
        for allowed in (least, most, None):
            Policies().with_policy(name, allowed)
        for wrong in (least - 1, most + 1, True, "1"):
            _refuses(f"policy {name} may be {wrong!r}", partial(Policies().with_policy, name, wrong))
    for policy, right, strange in (
        ("publish_rate", MessageRate(1), 1),
        ("schema_compatibility", "FULL", "HALF"),
        ("subscription_types", ("Shared",), ("Several",)),
        ("subscription_types", (), "Shared"),
        ("encryption_required", True, 1),
    ):
        for value in (right, None):
            if getattr(Policies().with_policy(policy, value), policy) != value:
                raise ViolationError("INV-A1", f"policy {policy} does not become {value!r}")
        _refuses(f"policy {policy} may be {strange!r}", partial(Policies().with_policy, policy, strange))
    records: tuple[Callable[..., object], ...] = (MessageRate, SubscribeRate, partial(BacklogQuota, QUOTA))
    for record in records:
        record(2**63 - 1)
        for number in (2**63, -(2**63), True, "1", 1.5):
            _refuses(f"{record} may have {number!r}", partial(record, number))
    _refuses("a quota may be called drop", partial(BacklogQuota, "drop"))
    for values in ((1,), (True, 1.5), (True, 1, "never")):
        fields: tuple[Any, ...] = values
        _refuses(f"inactive topics may have {fields}", partial(InactiveTopics, *fields))
    _check_meaning()


def _check_meaning() -> None:
    """Check limits of 0 and below, quotas beside retention, and levels above each other."""
    size, time = BacklogQuota(QUOTA, 10), BacklogQuota(QUOTA, limit_time=10)
    low = Policies(max_producers=1, max_consumers=1)
    found = {
        "rates": [MessageRate(*each).limits for each in ((-1, -1), (0, 0), (1, 0), (0, 1), (2, 2))],
        "subscriptions": [
            Policies(max_subscriptions=most).allows_subscription(present)
            for most, present in ((None, 5), (0, 5), (2, 1), (2, 2))
        ],
        "sizes": [
            Policies(retention_size=kept, backlog_quota_size=size).retention_exceeds_quotas
            for kept in (None, -1, 0, 1, 9, 10, 11)
        ],
        "times": [
            Policies(retention_time=kept, backlog_quota_time=time).retention_exceeds_quotas
            for kept in (None, -1, 0, 1, 9, 10, 11)
        ],
        "both": Policies(
            retention_size=11, backlog_quota_size=size, retention_time=5, backlog_quota_time=time
        ).retention_exceeds_quotas,
        "levels": Policies(max_producers=2).over(low),
        "no level": Policies().over(low),
        "defaults": [getattr(BrokerConfig(service_url=URL).policies(), name) for name in UNLIMITED],
    }
    wanted = {
        "rates": [False, False, True, True, True],
        "subscriptions": [True, True, True, False],
        "sizes": [True, True, True, False, False, False, True],
        "times": [True, True, True, False, False, False, True],
        "both": False,
        "levels": Policies(max_producers=2, max_consumers=1),
        "no level": low,
        "defaults": [0] * len(UNLIMITED),
    }
    if found != wanted:
        raise ViolationError("INV-A1", f"policies mean {found}, and not {wanted}")


def _check_authentication() -> None:
    BrokerAuthentication((), "someone", frozenset({"a"}), frozenset({"b"}), 0.001)
    for option, wrong in (
        ("superusers", "admin"),
        ("superusers", 5),
        ("superusers", {" "}),
        ("proxy_roles", {1}),
        ("anonymous_role", ""),
        ("refresh_interval", 0.0009),
        ("refresh_interval", True),
        ("authorization", 1),
        ("providers", "token"),
        ("providers", 1),
        ("providers", (1,)),
    ):
        fields: dict[str, Any] = {"providers": (), "anonymous_role": "someone", option: wrong}
        what = f"{option} of the authentication may be {wrong!r}"
        _refuses(what, partial(BrokerAuthentication, **fields))
    _refuses("there is no way to authenticate", partial(BrokerAuthentication, ()))


def _allowed(name: str, value: object) -> None:
    fields: dict[str, object] = {name: value}
    try:
        BrokerConfig(service_url=URL, **fields)  # type: ignore[arg-type]
    except InvalidConfiguration as error:
        raise ViolationError("INV-A1", f"{name} may not be {value!r}: {error}") from None


def _refused(name: str, value: object) -> None:
    fields: dict[str, Any] = {name: value}
    _refuses(f"{name} may be {value!r}", partial(BrokerConfig, service_url=URL, **fields))


def _refuses(what: str, make: Callable[[], object]) -> None:
    try:
        make()
    except InvalidConfiguration:
        return
    raise ViolationError("INV-A1", what)
