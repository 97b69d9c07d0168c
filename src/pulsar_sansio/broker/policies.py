"""`Policies`: the settings of an administrator for a namespace or a topic; None inherits.

A topic's policies come first, then its namespace's, then the broker's configuration (rules TENANT-01,
TENANT-04), `BrokerConfig.policies`. Only policies that the broker enforces exist here; an unknown name is
refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from ..model.errors import InvalidConfiguration

BACKLOG_QUOTA_POLICIES = ("producer_request_hold", "producer_exception", "consumer_backlog_eviction")
"""The broker's reactions when a backlog quota is exceeded (rules STORE-35, STORE-36, STORE-37)."""

SCHEMA_STRATEGIES = (
    "ALWAYS_INCOMPATIBLE",
    "ALWAYS_COMPATIBLE",
    "BACKWARD",
    "FORWARD",
    "FULL",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "FULL_TRANSITIVE",
)
"""The strategies for new versions of a schema, by Pulsar's names; `schemas.strategies` carries them out."""

SUBSCRIPTION_TYPES = ("Exclusive", "Shared", "Failover", "Key_Shared")
"""The types of subscriptions, by the protocol's names."""


@dataclass(frozen=True, slots=True)
class BacklogQuota:
    """The limit of a backlog. `limit_size` (bytes), below 0 no limit; `limit_time` (seconds), 0 and below no
    limit; `policy`: one of `BACKLOG_QUOTA_POLICIES`.

    Raises `InvalidConfiguration`.
    """

    policy: str
    limit_size: int = -1
    limit_time: int = -1

    def __post_init__(self) -> None:
        if self.policy not in BACKLOG_QUOTA_POLICIES:
            raise InvalidConfiguration(
                f"policy of a backlog quota: {', '.join(BACKLOG_QUOTA_POLICIES)}; not {self.policy!r:.100}"
            )
        _check_numbers(self, "a backlog quota")


@dataclass(frozen=True, slots=True)
class MessageRate:
    """At most `messages` and `size` (bytes) in each `period` (seconds); 0 and below is no limit.

    A period below 1 counts as 1. `relative`: a limit is so much more than was published in each second of
    the last housekeeping interval; only dispatch rates can be relative. Raises `InvalidConfiguration`.
    """

    messages: int = -1
    size: int = -1
    period: int = 1
    relative: bool = False

    def __post_init__(self) -> None:
        _check_numbers(self, "a rate")

    @property
    def limits(self) -> bool:
        """True when there is a limit at all."""
        return self.messages > 0 or self.size > 0


@dataclass(frozen=True, slots=True)
class SubscribeRate:
    """At most `per_consumer` SUBSCRIBE of one consumer in each `period` (seconds).

    There is no limit where either is 0 or below. Raises `InvalidConfiguration`.
    """

    per_consumer: int = -1
    period: int = 30

    def __post_init__(self) -> None:
        _check_numbers(self, "a subscribe rate")


MAX_SUBSCRIPTION_RATES = 1000
"""The number of subscriptions of one topic that may have a dispatch rate of their own."""


@dataclass(frozen=True, slots=True)
class SubscriptionRates:
    """Dispatch rates of single subscriptions of a topic, by name. Raises `InvalidConfiguration`."""

    by_name: tuple[tuple[str, MessageRate], ...]

    def __post_init__(self) -> None:
        if len(self.by_name) > MAX_SUBSCRIPTION_RATES:
            raise InvalidConfiguration(
                f"dispatch rates of subscriptions: at most {MAX_SUBSCRIPTION_RATES} on one topic"
            )

    def of(self, subscription: str) -> MessageRate | None:
        """Return the rate of this subscription; None where it has none of its own."""
        return dict(self.by_name).get(subscription)

    def replacing(self, subscription: str, rate: MessageRate | None) -> "SubscriptionRates | None":
        """Return a copy with another rate; None removes it. The result is None without any rate."""
        rates = {name: each for name, each in self.by_name if name != subscription}
        if rate is not None:
            rates[subscription] = rate
        return SubscriptionRates(tuple(rates.items())) if rates else None


INACTIVE_TOPIC_MODES = ("delete_when_no_subscriptions", "delete_when_subscriptions_caught_up")
"""The states in which a topic without clients may be deleted, by Pulsar's names."""


@dataclass(frozen=True, slots=True)
class InactiveTopics:
    """`delete`: whether a topic is deleted that was inactive for `seconds`; 0 and below is at once.

    `mode`: one of `INACTIVE_TOPIC_MODES`. Raises `InvalidConfiguration`.
    """

    delete: bool
    seconds: int = 60
    mode: str = INACTIVE_TOPIC_MODES[0]

    def __post_init__(self) -> None:
        _check_numbers(self, "inactive topics")
        if self.mode not in INACTIVE_TOPIC_MODES:
            raise InvalidConfiguration(
                f"mode of inactive topics: {', '.join(INACTIVE_TOPIC_MODES)}; not {self.mode!r:.100}"
            )


def _check_numbers(record: "BacklogQuota | MessageRate | SubscribeRate | InactiveTopics", what: str) -> None:
    """Raises `InvalidConfiguration` for a field of another type, or a number of more than 64 bits."""
    for field in fields(record):
        value = getattr(record, field.name)
        if type(value) is not field.type or (field.type is int and abs(value) >= 2**63):
            raise InvalidConfiguration(f"{field.name} of {what}: {_WORDS[field.type]}, not {value!r:.100}")


_WORDS: dict[object, str] = {int: "a whole number", bool: "True or False", str: "a text"}


@dataclass(frozen=True, slots=True)
class Policies:
    """One level of policies; a field that is None is not set.

    `retention_time` (seconds) and `retention_size` (bytes) keep entries that all subscriptions acknowledged;
    -1 is without limit, and both must allow it (rule STORE-31). `auto_topic_partitions`: the number of
    partitions of topics that clients create by using them; 0 is not partitioned. `message_ttl` (seconds):
    older entries are acknowledged (rule STORE-32). `max_message_size`: bytes of a payload; chunks are exempt.
    `max_producers`, `max_consumers` per topic and `max_consumers_per_subscription`: 0 is no limit.
    `delayed_delivery`: whether Shared and Key_Shared hold messages back until their time.
    `delayed_delivery_tick` (seconds): they may be delivered earlier by it. `delayed_delivery_max` (seconds):
    messages with a longer delay are refused; 0 is no limit.
    `backlog_quota_size`, `backlog_quota_time`: the limits of the backlog in bytes and in age. Each uses only
    the limit that its name says; retention must keep more than either.
    `compaction_threshold`: bytes; a topic with more that are not compacted is compacted; 0 is never.
    `max_topics`: topics of a namespace, each partition counted; only a namespace has it. `max_subscriptions`:
    subscriptions of a topic. For both, 0 is no limit.
    `subscription_types`: some of `SUBSCRIPTION_TYPES`; a SUBSCRIBE of another type is refused. Empty is all.
    `schema_compatibility`: one of `SCHEMA_STRATEGIES`. `schema_auto_update`: whether clients may register new
    versions. `schema_validation_enforced`: producers without a schema are refused where the topic has one.
    `subscription_expiration` (seconds): a durable subscription without consumers for so long is deleted;
    0 is never. `inactive_topics`: whether the topic itself is deleted, and when.
    `publish_rate`: of a topic; the connections of producers beyond it are not read for a while.
    `dispatch_rate`: of a topic, over all its subscriptions; `subscription_dispatch_rate`: of each
    subscription. `dispatch_rates`: of single subscriptions of a topic, in place of it; only a topic has
    them. `subscribe_rate`: of each consumer (rule TENANT-05).
    """

    deduplication: bool | None = None
    auto_topic_creation: bool | None = None
    auto_topic_partitions: int | None = None
    auto_subscription_creation: bool | None = None
    max_unacked_messages_per_consumer: int | None = None
    max_unacked_messages_per_subscription: int | None = None
    max_producers: int | None = None
    max_consumers: int | None = None
    max_consumers_per_subscription: int | None = None
    max_message_size: int | None = None
    message_ttl: float | None = None
    retention_time: float | None = None
    retention_size: int | None = None
    encryption_required: bool | None = None
    delayed_delivery: bool | None = None
    delayed_delivery_tick: float | None = None
    delayed_delivery_max: float | None = None
    backlog_quota_size: BacklogQuota | None = None
    backlog_quota_time: BacklogQuota | None = None
    compaction_threshold: int | None = None
    max_topics: int | None = None
    max_subscriptions: int | None = None
    subscription_types: tuple[str, ...] | None = None
    subscription_expiration: float | None = None
    inactive_topics: InactiveTopics | None = None
    publish_rate: MessageRate | None = None
    dispatch_rate: MessageRate | None = None
    subscription_dispatch_rate: MessageRate | None = None
    dispatch_rates: SubscriptionRates | None = None
    subscribe_rate: SubscribeRate | None = None
    schema_compatibility: str | None = None
    schema_auto_update: bool | None = None
    schema_validation_enforced: bool | None = None

    def with_policy(self, name: str, value: object) -> "Policies":
        """Return a copy with one policy changed; None removes it. Raises `InvalidConfiguration`."""
        kind = _KINDS.get(name)
        if kind is None:
            raise InvalidConfiguration(f"no such policy: {name!r}; there are {', '.join(_KINDS)}")
        if kind in _RECORDS.values():
            if value is not None and not isinstance(value, kind):
                raise InvalidConfiguration(f"policy {name}: {kind.__name__}, not {value!r:.200}")
        elif kind is str:
            if value is not None and value not in SCHEMA_STRATEGIES:
                raise InvalidConfiguration(
                    f"policy {name}: one of {', '.join(SCHEMA_STRATEGIES)}; not {value!r:.200}"
                )
        elif kind is tuple:
            if value is not None and not (
                isinstance(value, tuple) and all(each in SUBSCRIPTION_TYPES for each in value)
            ):
                raise InvalidConfiguration(
                    f"policy {name}: a tuple of {', '.join(SUBSCRIPTION_TYPES)}; not {value!r:.200}"
                )
        elif value is not None:
            most = _MOST.get(name, 2**63 - 1)
            wrong = not isinstance(value, bool) if kind is bool else isinstance(value, bool)
            allowed = (int, float) if kind is float else kind
            least = -1 if name.startswith("retention") else 0
            if wrong or not isinstance(value, allowed) or (kind is not bool and not least <= value <= most):  # type: ignore[operator]
                raise InvalidConfiguration(
                    f"policy {name}: {kind.__name__} from {least} to {most}, not {value!r}"
                )
        return replace(self, **{name: value})  # type: ignore[arg-type]

    def with_policies(self, values: Mapping[str, object]) -> "Policies":
        """Return a copy with several policies changed. Raises `InvalidConfiguration`."""
        changed = self
        for name, value in values.items():
            changed = changed.with_policy(name, value)
        return changed

    def dispatch_rate_of(self, subscription: str) -> MessageRate | None:
        """Return the dispatch rate of one subscription."""
        own = None if self.dispatch_rates is None else self.dispatch_rates.of(subscription)
        return self.subscription_dispatch_rate if own is None else own

    def allows_subscription(self, present: int) -> bool:
        """True when a topic that has `present` subscriptions may get another one."""
        return not self.max_subscriptions or present < self.max_subscriptions

    @property
    def retention_exceeds_quotas(self) -> bool:
        """True when retention keeps more than the backlog quotas allow; a missing limit is not exceeded."""
        size, time = self.retention_size or 0, self.retention_time or 0
        return not any(
            (size > 0 and quota.limit_size >= size) or (time > 0 and quota.limit_time >= time)
            for quota in (self.backlog_quota_size, self.backlog_quota_time)
            if quota is not None
        )

    def over(self, below: "Policies") -> "Policies":
        """Return these policies, with those of `below` where none is set."""
        mine = {name: value for name in _KINDS if (value := getattr(self, name)) is not None}
        return replace(below, **mine) if mine else below


_MOST = {"auto_topic_partitions": 10_000}
"""The greatest values of policies that allow less than 64 bits."""


_RECORDS: dict[str, type] = {
    each.__name__: each
    for each in (BacklogQuota, MessageRate, SubscribeRate, SubscriptionRates, InactiveTopics)
}
"""The policies that have several values, by the names of their classes."""


def _kind(annotation: object) -> type:
    text = str(annotation)
    for name, record in _RECORDS.items():
        if name in text:
            return record
    if "tuple" in text:
        return tuple
    if "str" in text:
        return str
    return bool if "bool" in text else float if "float" in text else int


_KINDS: dict[str, type] = {field.name: _kind(field.type) for field in fields(Policies)}
