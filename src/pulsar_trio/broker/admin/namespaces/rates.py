"""The policies that are records of their own over HTTP: rates, and the deletion of inactive topics."""

from collections.abc import Callable
from typing import Any

from pulsar_sansio import INACTIVE_TOPIC_MODES, InactiveTopics, MessageRate, Policies, SubscribeRate

from ..messages import Refused, truth, whole_number
from .resource import Resource


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refused(400, f"{name} has to be a JSON object, not {value!r:.200}")
    return value


def _resource(
    field: str,
    shown: Callable[[Any], dict[str, Any]],
    parsed: Callable[[dict[str, Any]], object],
    unset: int = 200,
    applied: dict[str, Any] | None = None,
) -> Resource:
    def read(policies: Policies) -> dict[str, Any] | None:
        value = getattr(policies, field)
        return None if value is None else shown(value)

    def write(value: Any) -> dict[str, object]:
        return {field: parsed(_object(field, value))}

    return Resource((field,), read, write, unset, applied, removed_by_null=True)


# --- publishing ---------------------------------------------------------------------------------------


def _show_publish(rate: MessageRate) -> dict[str, int]:
    return {"publishThrottlingRateInMsg": rate.messages, "publishThrottlingRateInByte": rate.size}


def _parse_publish(value: dict[str, Any]) -> MessageRate:
    return MessageRate(
        whole_number(value.get("publishThrottlingRateInMsg", -1)),
        whole_number(value.get("publishThrottlingRateInByte", -1), 64),
    )


# --- dispatch -----------------------------------------------------------------------------------------


def show_dispatch(rate: MessageRate) -> dict[str, int | bool]:
    return {
        "dispatchThrottlingRateInMsg": rate.messages,
        "dispatchThrottlingRateInByte": rate.size,
        "relativeToPublishRate": rate.relative,
        "ratePeriodInSecond": rate.period,
    }


def parse_dispatch(value: Any) -> MessageRate:
    value = _object("dispatchRate", value)
    return MessageRate(
        whole_number(value.get("dispatchThrottlingRateInMsg", 0)),
        whole_number(value.get("dispatchThrottlingRateInByte", 0), 64),
        whole_number(value.get("ratePeriodInSecond", 0)),
        truth(value.get("relativeToPublishRate", False)),
    )


NO_DISPATCH_RATE = show_dispatch(MessageRate(0, 0))


# --- subscribing --------------------------------------------------------------------------------------


def _show_subscribe(rate: SubscribeRate) -> dict[str, int]:
    return {"subscribeThrottlingRatePerConsumer": rate.per_consumer, "ratePeriodInSecond": rate.period}


def _parse_subscribe(value: dict[str, Any]) -> SubscribeRate:
    return SubscribeRate(
        whole_number(value.get("subscribeThrottlingRatePerConsumer", -1)),
        whole_number(value.get("ratePeriodInSecond", 30)),
    )


# --- inactive topics ----------------------------------------------------------------------------------


def _show_inactive(policy: InactiveTopics) -> dict[str, Any]:
    return {
        "inactiveTopicDeleteMode": policy.mode,
        "maxInactiveDurationSeconds": policy.seconds,
        "deleteWhileInactive": policy.delete,
    }


def _parse_inactive(value: dict[str, Any]) -> InactiveTopics:
    mode = value.get("inactiveTopicDeleteMode") or INACTIVE_TOPIC_MODES[0]
    if mode not in INACTIVE_TOPIC_MODES:
        raise Refused(400, f"inactiveTopicDeleteMode: {' or '.join(INACTIVE_TOPIC_MODES)}, not {mode!r:.100}")
    return InactiveTopics(
        truth(value.get("deleteWhileInactive", False)),
        whole_number(value.get("maxInactiveDurationSeconds", 0)),
        mode,
    )


def _rates(publish_unset: int) -> dict[str, Resource]:
    """`publish_unset`: the status of a publish rate that is not set."""
    subscription = "subscription_dispatch_rate"
    return {
        "publishRate": _resource("publish_rate", _show_publish, _parse_publish, publish_unset),
        "dispatchRate": _resource("dispatch_rate", show_dispatch, parse_dispatch, applied=NO_DISPATCH_RATE),
        "subscriptionDispatchRate": _resource(
            subscription, show_dispatch, parse_dispatch, applied=NO_DISPATCH_RATE
        ),
        "subscribeRate": _resource(
            "subscribe_rate",
            _show_subscribe,
            _parse_subscribe,
            applied=_show_subscribe(SubscribeRate(0)),
        ),
        "inactiveTopicPolicies": _resource(
            "inactive_topics",
            _show_inactive,
            _parse_inactive,
            applied=_show_inactive(InactiveTopics(False)),
        ),
    }


OF_NAMESPACES = _rates(publish_unset=200)
OF_TOPICS = _rates(publish_unset=204)

BY_CLUSTER = {
    "publishMaxMessageRate": OF_NAMESPACES["publishRate"],
    "topicDispatchRate": OF_NAMESPACES["dispatchRate"],
    "subscriptionDispatchRate": OF_NAMESPACES["subscriptionDispatchRate"],
    "clusterSubscribeRate": OF_NAMESPACES["subscribeRate"],
}
"""The rates in the whole record of a namespace, where each is a value of one cluster."""
