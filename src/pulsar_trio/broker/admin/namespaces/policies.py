"""Policies of namespaces and topics: which resource is which field of `Policies`, and how its JSON looks.

Read is 200 with the value, or 200 with no body where nothing is set; POST sets, DELETE removes, both 204.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import Any

from pulsar_sansio import (
    BACKLOG_QUOTA_POLICIES,
    SCHEMA_STRATEGIES,
    SUBSCRIPTION_TYPES,
    TOO_LARGE,
    BacklogQuota,
    NotFound,
    Policies,
)

from ..messages import (
    NO_CONTENT,
    Answer,
    Refused,
    Request,
    answering,
    json_answer,
    truth,
    whole_number,
)
from ..routes import AdministeredBroker, Handler, Route
from ..topics import TOPIC
from . import rates
from .resource import Resource

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"

MINUTE = 60
MEGABYTE = 1024 * 1024
MAX_AUTO_PARTITIONS = 10_000


def _boolean(field: str) -> Resource:
    return Resource((field,), lambda policies: getattr(policies, field), lambda value: {field: truth(value)})


def _limit(name: str, field: str, unset: int = 200, bits: int = 32, wrong: str = "") -> Resource:
    """`wrong`: the refusal of a negative number, where it is not that of most policies."""

    def write(value: Any) -> dict[str, object]:
        number = whole_number(value, bits)
        if number < 0:
            raise Refused(412, wrong or f"{name} must be 0 or more")
        return {field: number}

    return Resource((field,), lambda policies: getattr(policies, field), write, unset)


def _read_seconds(policies: Policies) -> int | None:
    return None if policies.message_ttl is None else round(policies.message_ttl)


def _write_seconds(value: Any) -> dict[str, object]:
    seconds = whole_number(value)
    if seconds < 0:
        raise Refused(412, "Invalid value for message TTL, message TTL must >= 0")
    return {"message_ttl": seconds}


def _read_retention(policies: Policies) -> dict[str, int] | None:
    time, size = policies.retention_time, policies.retention_size
    if time is None or size is None:
        return None
    return {
        "retentionTimeInMinutes": -1 if time < 0 else round(time / MINUTE),
        "retentionSizeInMB": -1 if size < 0 else size // MEGABYTE,
    }


def _write_retention(value: Any) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Refused(400, f"retention has to be a JSON object, not {value!r:.200}")
    minutes = whole_number(value.get("retentionTimeInMinutes", 0))
    megabytes = whole_number(value.get("retentionSizeInMB", 0))
    if minutes < -1:
        raise Refused(400, "Invalid retention policy: time limit must be >= -1")
    if megabytes < -1:
        raise Refused(400, "Invalid retention policy: size limit must be >= -1")
    if (minutes == 0) != (megabytes == 0):
        raise Refused(
            400,
            "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the "
            "limits has a non-zero value. Use the value of -1 instead of 0 to ignore a specific limit. To "
            "disable retention both limits must be set to 0.",
        )
    return {
        "retention_time": -1 if minutes < 0 else minutes * MINUTE,
        "retention_size": -1 if megabytes < 0 else megabytes * MEGABYTE,
    }


def _read_auto_topic(policies: Policies) -> dict[str, Any] | None:
    if policies.auto_topic_creation is None:
        return None
    value: dict[str, Any] = {"allowAutoTopicCreation": policies.auto_topic_creation}
    if policies.auto_topic_partitions is not None:
        partitions = policies.auto_topic_partitions
        value["topicType"] = "partitioned" if partitions else "non-partitioned"
        if partitions:
            value["defaultNumPartitions"] = partitions
    return value


def _write_auto_topic(value: Any) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Refused(400, f"autoTopicCreation has to be a JSON object, not {value!r:.200}")
    begin = "Invalid configuration for autoTopicCreationOverride. the detail is "
    kind, partitions = value.get("topicType"), value.get("defaultNumPartitions")
    if not truth(value.get("allowAutoTopicCreation", False)):
        return {"auto_topic_creation": False, "auto_topic_partitions": None}
    if kind not in (None, "partitioned", "non-partitioned"):
        raise Refused(412, f"{begin}Unknown topic type [{kind!s:.100}]")
    if kind == "partitioned":
        if partitions is None:
            raise Refused(412, f"{begin}[defaultNumPartitions] cannot be null when the type is partitioned.")
        partitions = whole_number(partitions)
        if not 1 <= partitions <= MAX_AUTO_PARTITIONS:
            raise Refused(412, f"{begin}[defaultNumPartitions] cannot be less than 1 for partition type.")
    elif partitions is not None:
        raise Refused(
            412, f"{begin}[defaultNumPartitions] is not allowed to be set when the type is non-partition."
        )
    return {
        "auto_topic_creation": True,
        "auto_topic_partitions": None if kind is None else partitions or 0,
    }


def _read_auto_subscription(policies: Policies) -> dict[str, bool] | None:
    allowed = policies.auto_subscription_creation
    return None if allowed is None else {"allowAutoSubscriptionCreation": allowed}


def _write_auto_subscription(value: Any) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Refused(400, f"autoSubscriptionCreation has to be a JSON object, not {value!r:.200}")
    return {"auto_subscription_creation": truth(value.get("allowAutoSubscriptionCreation", False))}


def _read_delays(policies: Policies) -> dict[str, Any] | None:
    if policies.delayed_delivery is None:
        return None
    return {
        "tickTime": round((policies.delayed_delivery_tick or 0) * 1000),
        "active": policies.delayed_delivery,
        "maxDeliveryDelayInMillis": round((policies.delayed_delivery_max or 0) * 1000),
    }


def _write_delays(value: Any) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Refused(400, f"delayedDelivery has to be a JSON object, not {value!r:.200}")
    tick = whole_number(value.get("tickTime", 0))
    longest = whole_number(value.get("maxDeliveryDelayInMillis", 0))
    if tick < 0 or longest < 0:
        raise Refused(412, "delayedDelivery: tickTime and maxDeliveryDelayInMillis must be 0 or more")
    return {
        "delayed_delivery": truth(value.get("active", False)),
        "delayed_delivery_tick": tick / 1000,
        "delayed_delivery_max": longest / 1000,
    }


DELAYED_DELIVERY = Resource(
    ("delayed_delivery", "delayed_delivery_tick", "delayed_delivery_max"), _read_delays, _write_delays
)


def _read_types(policies: Policies) -> list[str]:
    return list(policies.subscription_types or ())


def _write_types(value: Any) -> dict[str, object]:
    if not isinstance(value, list) or not all(each in SUBSCRIPTION_TYPES for each in value):
        raise Refused(
            400, f"subscription types: a list of {', '.join(SUBSCRIPTION_TYPES)}; not {value!r:.200}"
        )
    return {"subscription_types": tuple(dict.fromkeys(value)) or None}


SUBSCRIPTION_TYPES_ENABLED = Resource(("subscription_types",), _read_types, _write_types)


def _read_expiration(policies: Policies) -> int | None:
    seconds = policies.subscription_expiration
    return None if seconds is None else round(seconds / MINUTE)


def _write_expiration(value: Any) -> dict[str, object]:
    minutes = whole_number(value)
    if minutes < 0:
        raise Refused(412, "Invalid value for subscription expiration time")
    return {"subscription_expiration": minutes * MINUTE}


AUTO_SUBSCRIPTION = Resource(
    ("auto_subscription_creation",), _read_auto_subscription, _write_auto_subscription
)
COMPACTION_THRESHOLD = _limit(
    "compactionThreshold", "compaction_threshold", bits=64, wrong="Invalid value for compactionThreshold"
)
RETENTION = Resource(("retention_time", "retention_size"), _read_retention, _write_retention)
MESSAGE_TTL = Resource(("message_ttl",), _read_seconds, _write_seconds)

OF_NAMESPACES: dict[str, Resource] = {
    **rates.OF_NAMESPACES,
    "deduplication": _boolean("deduplication"),
    "messageTTL": MESSAGE_TTL,
    "retention": RETENTION,
    "delayedDelivery": DELAYED_DELIVERY,
    "autoTopicCreation": Resource(
        ("auto_topic_creation", "auto_topic_partitions"), _read_auto_topic, _write_auto_topic
    ),
    "autoSubscriptionCreation": AUTO_SUBSCRIPTION,
    "subscriptionTypesEnabled": SUBSCRIPTION_TYPES_ENABLED,
    "subscriptionExpirationTime": Resource(("subscription_expiration",), _read_expiration, _write_expiration),
    "maxTopicsPerNamespace": Resource(
        ("max_topics",),
        lambda policies: policies.max_topics or 0,
        _limit("maxTopicsPerNamespace", "max_topics").write,
    ),
    "maxSubscriptionsPerTopic": _limit("maxSubscriptionsPerTopic", "max_subscriptions"),
    "maxProducersPerTopic": _limit("maxProducersPerTopic", "max_producers"),
    "maxConsumersPerTopic": _limit("maxConsumersPerTopic", "max_consumers"),
    "maxConsumersPerSubscription": _limit("maxConsumersPerSubscription", "max_consumers_per_subscription"),
    "maxUnackedMessagesPerConsumer": _limit(
        "maxUnackedMessagesPerConsumer", "max_unacked_messages_per_consumer"
    ),
    "maxUnackedMessagesPerSubscription": _limit(
        "maxUnackedMessagesPerSubscription", "max_unacked_messages_per_subscription"
    ),
}

ENCRYPTION = Resource(
    ("encryption_required",),
    lambda policies: bool(policies.encryption_required),
    lambda value: {"encryption_required": truth(value)},
)
"""Always there, and never removed."""

UNDEFINED = "UNDEFINED"
"""The strategy of a namespace or topic that inherits it."""


def _write_strategy(value: Any) -> dict[str, object]:
    if value == UNDEFINED:
        return {"schema_compatibility": None}
    if value not in SCHEMA_STRATEGIES:
        raise Refused(400, f"strategy: {UNDEFINED}, {', '.join(SCHEMA_STRATEGIES)}; not {value!r:.200}")
    return {"schema_compatibility": value}


SCHEMA_STRATEGY = Resource(
    ("schema_compatibility",), lambda policies: policies.schema_compatibility or UNDEFINED, _write_strategy
)
TOPIC_SCHEMA_STRATEGY = Resource(
    ("schema_compatibility",), lambda policies: policies.schema_compatibility, _write_strategy
)
SCHEMA_AUTO_UPDATE = Resource(
    ("schema_auto_update",),
    lambda policies: policies.schema_auto_update is not False,
    lambda value: {"schema_auto_update": truth(value)},
)
SCHEMA_VALIDATION = Resource(
    ("schema_validation_enforced",),
    lambda policies: bool(policies.schema_validation_enforced),
    lambda value: {"schema_validation_enforced": truth(value)},
)

OF_TOPICS: dict[str, Resource] = {
    **rates.OF_TOPICS,
    "deduplicationEnabled": _boolean("deduplication"),
    "retention": RETENTION,
    "delayedDelivery": DELAYED_DELIVERY,
    "maxProducers": _limit("maxProducers", "max_producers"),
    "maxConsumers": _limit("maxConsumers", "max_consumers"),
    "maxConsumersPerSubscription": _limit(
        "maxConsumersPerSubscription",
        "max_consumers_per_subscription",
        204,
        wrong="Invalid value for maxConsumersPerSubscription",
    ),
    "maxUnackedMessagesOnConsumer": _limit("maxUnackedNum", "max_unacked_messages_per_consumer"),
    "maxUnackedMessagesOnSubscription": _limit("maxUnackedNum", "max_unacked_messages_per_subscription"),
    "autoSubscriptionCreation": AUTO_SUBSCRIPTION,
    "subscriptionTypesEnabled": SUBSCRIPTION_TYPES_ENABLED,
    "maxSubscriptionsPerTopic": _limit("maxSubscriptionsPerTopic", "max_subscriptions", 204),
    "maxMessageSize": _limit("maxMessageSize", "max_message_size", 204, wrong=TOO_LARGE),
    "compactionThreshold": COMPACTION_THRESHOLD,
}

# --- backlog quotas: one resource for reading, one for each in the query for writing

QUOTAS = {"destination_storage": "backlog_quota_size", "message_age": "backlog_quota_time"}


def _quota_json(quota: BacklogQuota) -> dict[str, Any]:
    size, time = quota.limit_size, quota.limit_time
    return {"limit": size, "limitSize": size, "limitTime": time, "policy": quota.policy}


def _read_quotas(policies: Policies) -> dict[str, Any]:
    found = {name: getattr(policies, field) for name, field in QUOTAS.items()}
    return {name: _quota_json(quota) for name, quota in found.items() if quota is not None}


def _quota(given: Any) -> BacklogQuota:
    if not isinstance(given, dict):
        raise Refused(400, f"a backlog quota has to be a JSON object, not {given!r:.200}")
    policy = given.get("policy")
    if policy not in BACKLOG_QUOTA_POLICIES:
        raise Refused(400, "the data validation failed. the attribute policy cannot be null")
    size = given.get("limitSize", given.get("limit", 0))
    return BacklogQuota(policy, whole_number(size, 64), whole_number(given.get("limitTime", 0)))


def _write_quotas(value: Any) -> dict[str, object]:
    if not isinstance(value, dict) or not set(value) <= set(QUOTAS):
        raise Refused(400, f"backlog quotas: an object of {', '.join(QUOTAS)}, not {value!r:.200}")
    return {field: _quota(value[name]) if name in value else None for name, field in QUOTAS.items()}


BACKLOG_QUOTAS = Resource(tuple(QUOTAS.values()), _read_quotas, _write_quotas)

NAMES_IN_POLICIES = {
    "deduplicationEnabled": OF_NAMESPACES["deduplication"],
    "message_ttl_in_seconds": MESSAGE_TTL,
    "retention_policies": RETENTION,
    "delayed_delivery_policies": DELAYED_DELIVERY,
    "backlog_quota_map": BACKLOG_QUOTAS,
    "autoTopicCreationOverride": OF_NAMESPACES["autoTopicCreation"],
    "autoSubscriptionCreationOverride": OF_NAMESPACES["autoSubscriptionCreation"],
    "max_producers_per_topic": OF_NAMESPACES["maxProducersPerTopic"],
    "max_consumers_per_topic": OF_NAMESPACES["maxConsumersPerTopic"],
    "max_consumers_per_subscription": OF_NAMESPACES["maxConsumersPerSubscription"],
    "max_unacked_messages_per_consumer": OF_NAMESPACES["maxUnackedMessagesPerConsumer"],
    "max_unacked_messages_per_subscription": OF_NAMESPACES["maxUnackedMessagesPerSubscription"],
    "encryption_required": ENCRYPTION,
    "compaction_threshold": COMPACTION_THRESHOLD,
    "subscription_types_enabled": SUBSCRIPTION_TYPES_ENABLED,
    "inactive_topic_policies": OF_NAMESPACES["inactiveTopicPolicies"],
    "subscription_expiration_time_minutes": OF_NAMESPACES["subscriptionExpirationTime"],
    "max_topics_per_namespace": _limit("maxTopicsPerNamespace", "max_topics"),
    "max_subscriptions_per_topic": OF_NAMESPACES["maxSubscriptionsPerTopic"],
    "schema_compatibility_strategy": SCHEMA_STRATEGY,
    "is_allow_auto_update_schema": SCHEMA_AUTO_UPDATE,
    "schema_validation_enforced": SCHEMA_VALIDATION,
}
"""The names of all policies in the whole record of a namespace."""


# --- one resource of a namespace or of a topic -------------------------------------------------------


def _namespace_scope(request: Request) -> str:
    return request.namespace


def _topic_scope(request: Request) -> str:
    request.parameters.setdefault("domain", "persistent")
    return request.topic


Scope = Callable[[Request], str]


def _absent(scope: str) -> tuple[type[NotFound], int, str]:
    return NotFound, 404, f"Topic {scope} not found" if "://" in scope else "Namespace does not exist"


def _get(scope_of: Scope, resource: Resource, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    with answering(_absent(scope)):
        value = resource.read(broker.machine.administration.policies_of(scope, request.flag("applied")))
    if value is None and "://" in scope and request.flag("applied"):
        value = resource.applied
    return Answer(resource.unset) if value is None else json_answer(value)


def _post(scope_of: Scope, resource: Resource, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    given = request.json() if request.body or not resource.removed_by_null else None
    removed = given is None and resource.removed_by_null
    values = dict.fromkeys(resource.fields) if removed else resource.write(given)
    with answering(_absent(scope)):
        broker.command(broker.machine.administration.set_policies, scope, values)
    return NO_CONTENT


def _post_ttl(broker: AdministeredBroker, request: Request) -> Answer:
    """Set the time to live of a topic; the value stands in the query."""
    given = request.query.get("messageTTL", "")
    if not given.removeprefix("-").isdecimal() or len(given) > 10:
        raise Refused(400, f"messageTTL has to be a whole number of seconds, not {given!r:.100}")
    scope = _topic_scope(request)
    with answering(_absent(scope)):
        broker.command(broker.machine.administration.set_policies, scope, _write_seconds(int(given)))
    return NO_CONTENT


def _delete(scope_of: Scope, resource: Resource, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    with answering(_absent(scope)):
        broker.command(broker.machine.administration.set_policies, scope, dict.fromkeys(resource.fields))
    return NO_CONTENT


def _delete_all(broker: AdministeredBroker, request: Request) -> Answer:
    """Remove every policy of a topic; one that does not exist has none."""
    scope = _topic_scope(request)
    values = dict.fromkeys(each.name for each in fields(Policies) if each.name != "max_topics")
    with suppress(NotFound):
        broker.command(broker.machine.administration.set_policies, scope, values)
    return NO_CONTENT


def _quota_of(request: Request) -> str:
    """The field of the quota that the query names. Raises `Refused`."""
    kind = request.query.get("backlogQuotaType", "destination_storage")
    if kind not in QUOTAS:
        raise Refused(404, "Not Found")
    return QUOTAS[kind]


def _get_quotas(scope_of: Scope, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    with answering(_absent(scope)):
        quotas = _read_quotas(broker.machine.administration.policies_of(scope, request.flag("applied")))
    if request.flag("applied"):
        quotas = dict.fromkeys(QUOTAS, _quota_json(NO_QUOTA)) | quotas
    return json_answer(quotas)


NO_QUOTA = BacklogQuota("producer_request_hold")
"""The quota that a Java broker shows if none is set."""


def _post_quota(scope_of: Scope, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    values = {_quota_of(request): _quota(request.json())}
    with answering(_absent(scope)):
        broker.command(broker.machine.administration.set_policies, scope, values)
    return NO_CONTENT


def _delete_quota(scope_of: Scope, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    values = {_quota_of(request): None}
    with answering(_absent(scope)):
        broker.command(broker.machine.administration.set_policies, scope, values)
    return NO_CONTENT


def _routes() -> list[Route]:
    routes: list[Route] = []

    def add(method: str, path: str, does: Callable[..., Answer], scope: Scope, resource: Resource) -> None:
        handler: Handler = partial(does, scope, resource)
        routes.append((method, path, handler))

    for name, resource in OF_NAMESPACES.items():
        path = f"{NAMESPACE}/{name}"
        add("GET", path, _get, _namespace_scope, resource)
        add("POST", path, _post, _namespace_scope, resource)
        add("DELETE", path, _delete, _namespace_scope, resource)
    add("GET", f"{NAMESPACE}/encryptionRequired", _get, _namespace_scope, ENCRYPTION)
    add("POST", f"{NAMESPACE}/encryptionRequired", _post, _namespace_scope, ENCRYPTION)
    add("GET", f"{NAMESPACE}/schemaCompatibilityStrategy", _get, _namespace_scope, SCHEMA_STRATEGY)
    add("PUT", f"{NAMESPACE}/schemaCompatibilityStrategy", _post, _namespace_scope, SCHEMA_STRATEGY)
    add("GET", f"{NAMESPACE}/isAllowAutoUpdateSchema", _get, _namespace_scope, SCHEMA_AUTO_UPDATE)
    add("POST", f"{NAMESPACE}/isAllowAutoUpdateSchema", _post, _namespace_scope, SCHEMA_AUTO_UPDATE)
    add("GET", f"{NAMESPACE}/schemaValidationEnforced", _get, _namespace_scope, SCHEMA_VALIDATION)
    add("POST", f"{NAMESPACE}/schemaValidationEnforced", _post, _namespace_scope, SCHEMA_VALIDATION)
    add("GET", f"{NAMESPACE}/compactionThreshold", _get, _namespace_scope, COMPACTION_THRESHOLD)
    add("PUT", f"{NAMESPACE}/compactionThreshold", _post, _namespace_scope, COMPACTION_THRESHOLD)
    add("DELETE", f"{NAMESPACE}/compactionThreshold", _delete, _namespace_scope, COMPACTION_THRESHOLD)
    topic = TOPIC.replace("{domain}", "persistent")
    for name, resource in OF_TOPICS.items():
        path = f"{topic}/{name}"
        add("GET", path, _get, _topic_scope, resource)
        add("POST", path, _post, _topic_scope, resource)
        add("DELETE", path, _delete, _topic_scope, resource)
    strategy = f"{topic}/schemaCompatibilityStrategy"
    add("GET", strategy, _get, _topic_scope, TOPIC_SCHEMA_STRATEGY)
    add("PUT", strategy, _post, _topic_scope, TOPIC_SCHEMA_STRATEGY)
    add("DELETE", strategy, _delete, _topic_scope, TOPIC_SCHEMA_STRATEGY)
    add("GET", f"{topic}/schemaValidationEnforced", _get, _topic_scope, SCHEMA_VALIDATION)
    add("POST", f"{topic}/schemaValidationEnforced", _post, _topic_scope, SCHEMA_VALIDATION)
    add("GET", f"{topic}/messageTTL", _get, _topic_scope, MESSAGE_TTL)
    add("DELETE", f"{topic}/messageTTL", _delete, _topic_scope, MESSAGE_TTL)
    routes.append(("POST", f"{topic}/messageTTL", _post_ttl))
    routes.append(("DELETE", f"{topic}/policies", _delete_all))
    for path, scope in ((NAMESPACE, _namespace_scope), (topic, _topic_scope)):
        routes.append(("GET", f"{path}/backlogQuotaMap", partial(_get_quotas, scope)))
        routes.append(("POST", f"{path}/backlogQuota", partial(_post_quota, scope)))
        routes.append(("DELETE", f"{path}/backlogQuota", partial(_delete_quota, scope)))
    return routes


ROUTES = _routes()
