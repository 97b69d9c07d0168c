"""Policies that only several of Pulsar's settings together make: backlog quotas, rates, inactive topics."""

from typing import Any

from pulsar_sansio import INACTIVE_TOPIC_MODES, BacklogQuota, InactiveTopics, MessageRate, SubscribeRate

MEGABYTE = 1024 * 1024


def record_policies(parts: dict[str, Any]) -> dict[str, object]:
    """Return the policies by name. `parts`: the values of the settings that were given."""
    return _quotas(parts) | _rates(parts) | _inactive_topics(parts)


def _quotas(parts: dict[str, Any]) -> dict[str, object]:
    policy = parts.get("quota_policy", "producer_request_hold")
    quotas: dict[str, object] = {}
    gigabytes = parts.get("quota_gigabytes", 0)
    size = gigabytes * 1024 * MEGABYTE if gigabytes > 0 else parts.get("quota_bytes", -1)
    if size >= 0:
        quotas["backlog_quota_size"] = BacklogQuota(policy, limit_size=size)
    if parts.get("quota_seconds", -1) > 0:
        quotas["backlog_quota_time"] = BacklogQuota(policy, limit_time=parts["quota_seconds"])
    return quotas


def broker_rates(parts: dict[str, Any]) -> dict[str, object]:
    """Return the options for the rates of all topics together."""
    return _message_rates(parts, ("broker_publish", "broker_dispatch"))


def _message_rates(parts: dict[str, Any], kinds: tuple[str, ...]) -> dict[str, object]:
    rates: dict[str, object] = {}
    for kind in kinds:
        rate = MessageRate(parts.get(f"{kind}_messages", 0), parts.get(f"{kind}_size", 0))
        if rate.limits:
            rates[f"{kind}_rate"] = rate
    return rates


def _rates(parts: dict[str, Any]) -> dict[str, object]:
    rates = _message_rates(parts, ("publish", "dispatch", "subscription_dispatch"))
    if parts.get("subscribe_number", 0):
        rates["subscribe_rate"] = SubscribeRate(parts["subscribe_number"], parts.get("subscribe_period", 30))
    return rates


def _inactive_topics(parts: dict[str, Any]) -> dict[str, object]:
    if not parts.get("inactive_delete"):
        return {}
    mode = parts.get("inactive_mode", INACTIVE_TOPIC_MODES[0])
    return {"inactive_topics": InactiveTopics(True, parts.get("inactive_seconds", 60), mode)}
