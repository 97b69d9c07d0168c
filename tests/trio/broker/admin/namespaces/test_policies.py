"""Policies as JSON: what is written is read back, what cannot be is refused, topics go before namespaces."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pulsar_sansio import BacklogQuota, Policies
from pulsar_trio import EmbeddedBroker, open_broker
from pulsar_trio.broker.admin.listener import perform
from pulsar_trio.broker.admin.messages import Refused, Request
from pulsar_trio.broker.admin.namespaces.policies import NAMES_IN_POLICIES, OF_NAMESPACES, OF_TOPICS
from pulsar_trio.broker.admin.routes import AdministeredBroker
from pulsar_trio_command.broker.settings import SETTINGS
from tests.trio.broker.admin.asking import Administrator

TOPIC = "/admin/v2/persistent/public/default/t"
NAMESPACES = "/admin/v2/namespaces/public"


@pytest.fixture
async def broker() -> AsyncIterator[EmbeddedBroker]:
    async with open_broker(http_port=0) as running:
        running.create_topic("t")
        yield running


def ask(broker: EmbeddedBroker, method: str, target: str, body: object = None) -> tuple[int, Any]:
    """One request, without a socket."""
    request = Request.parse(method, target, "application/json")
    request.body = b"" if body is None else json.dumps(body).encode()
    administrator: AdministeredBroker = broker._driver
    answer = perform(administrator, request)
    value = json.loads(answer.body) if answer.body else None
    return answer.status, value.get("reason", value) if isinstance(value, dict) else value


@pytest.mark.parametrize(
    "resource", [*OF_NAMESPACES.values(), *OF_TOPICS.values(), *NAMES_IN_POLICIES.values()]
)
def test_what_is_written_is_read(resource: Any) -> None:
    """Rule TENANT-04."""
    values = [
        True,
        7,
        "BACKWARD",
        ["Shared", "Failover"],
        {"retentionTimeInMinutes": 3, "retentionSizeInMB": 4},
    ]
    values += [
        {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2},
        {"allowAutoTopicCreation": True, "topicType": "non-partitioned"},
        {"allowAutoSubscriptionCreation": True},
        {"tickTime": 500, "active": True, "maxDeliveryDelayInMillis": 10_000},
        {"message_age": {"limit": 5, "limitSize": 5, "limitTime": 30, "policy": "producer_exception"}},
        {"publishThrottlingRateInMsg": 3, "publishThrottlingRateInByte": 2**40},
        {
            "dispatchThrottlingRateInMsg": 3,
            "dispatchThrottlingRateInByte": -1,
            "relativeToPublishRate": False,
            "ratePeriodInSecond": 7,
        },
        {"subscribeThrottlingRatePerConsumer": 3, "ratePeriodInSecond": 7},
        {
            "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
            "maxInactiveDurationSeconds": 9,
            "deleteWhileInactive": True,
        },
    ]
    taken = 0
    for value in values:
        try:
            fields = resource.write(value)
        except Refused:
            continue
        written = Policies().with_policies(fields)
        assert set(fields) == set(resource.fields)
        if resource.read(written) == value:
            taken += 1
    assert taken >= 1
    assert Policies().with_policies(dict.fromkeys(resource.fields)) == Policies()


WRONG = {
    "retentionSizeInMB": "x",
    "tickTime": -1,
    "allowAutoTopicCreation": 1,
    "allowAutoSubscriptionCreation": "x",
    "publishThrottlingRateInMsg": 2**31,
    "dispatchThrottlingRateInByte": "x",
    "subscribeThrottlingRatePerConsumer": 1.5,
    "inactiveTopicDeleteMode": "never",
}


@pytest.mark.parametrize("resource", [*OF_NAMESPACES.values(), *OF_TOPICS.values()])
@pytest.mark.parametrize("value", ["x", ["x"], None, 1.5, -1, 2**64, WRONG])
def test_nonsense_is_refused(resource: Any, value: object) -> None:
    with pytest.raises(Refused):
        resource.write(value)


def test_numbers_as_texts_and_beyond_32_bits() -> None:
    """The Go client's tests send a quota's limit as a text, which a Java broker takes for the number."""
    written = NAMES_IN_POLICIES["backlog_quota_map"].write(
        {"destination_storage": {"limit": "10240", "policy": "producer_request_hold"}}
    )
    assert written["backlog_quota_size"] == BacklogQuota("producer_request_hold", 10_240, 0)
    assert OF_NAMESPACES["messageTTL"].write("30") == {"message_ttl": 30}
    assert OF_TOPICS["compactionThreshold"].write(2**40) == {"compaction_threshold": 2**40}
    with pytest.raises(Refused):
        OF_NAMESPACES["messageTTL"].write(2**31)
    for wrong in ("", "-", "1.5", "1_000", "٣", "9" * 20):
        with pytest.raises(Refused):
            OF_NAMESPACES["messageTTL"].write(wrong)


def test_values_a_java_client_may_send_for_nothing() -> None:
    assert OF_NAMESPACES["retention"].write({}) == {"retention_time": 0, "retention_size": 0}
    assert OF_NAMESPACES["autoSubscriptionCreation"].write({}) == {"auto_subscription_creation": False}


def test_a_java_client_names_what_it_changes_of_delayed_delivery() -> None:
    assert OF_NAMESPACES["delayedDelivery"].write({"active": False}) == {
        "delayed_delivery": False,
        "delayed_delivery_tick": 0,
        "delayed_delivery_max": 0,
    }


@pytest.mark.parametrize("path", [f"{NAMESPACES}/default", TOPIC])
async def test_backlog_quotas(broker: EmbeddedBroker, path: str) -> None:
    """The answers are those of a real Pulsar, as suite/administration/test_quotas.py shows."""
    hold = {"limitSize": 1000, "limitTime": 0, "policy": "producer_request_hold"}
    evict = {"limitSize": 0, "limitTime": 30, "policy": "consumer_backlog_eviction"}
    assert ask(broker, "GET", f"{path}/backlogQuotaMap") == (200, {})
    assert ask(broker, "POST", f"{path}/backlogQuota", hold) == (204, None)
    assert ask(broker, "POST", f"{path}/backlogQuota?backlogQuotaType=message_age", evict) == (204, None)
    both = {"destination_storage": {"limit": 1000, **hold}, "message_age": {"limit": 0, **evict}}
    assert ask(broker, "GET", f"{path}/backlogQuotaMap") == (200, both)
    assert ask(broker, "DELETE", f"{path}/backlogQuota") == (204, None)
    _, left = ask(broker, "GET", f"{path}/backlogQuotaMap")
    assert set(left) == {"message_age"}
    _, applied = ask(broker, "GET", f"{TOPIC}/backlogQuotaMap?applied=true")
    assert applied["destination_storage"]["limitSize"] == -1
    assert applied["message_age"] == both["message_age"]


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("", {"limitSize": 5}, 400),
        ("", {"limitSize": 5, "policy": "drop_everything"}, 400),
        ("", {"limitSize": "x", "policy": "producer_exception"}, 400),
        ("", "x", 400),
        ("?backlogQuotaType=nonsense", {"limitSize": 5, "policy": "producer_exception"}, 404),
    ],
)
async def test_backlog_quotas_that_cannot_be(
    broker: EmbeddedBroker, query: str, body: object, status: int
) -> None:
    for path in (f"{NAMESPACES}/default", TOPIC):
        assert ask(broker, "POST", f"{path}/backlogQuota{query}", body)[0] == status


async def test_a_quota_and_a_retention_that_contradict_each_other(broker: EmbeddedBroker) -> None:
    path = f"{NAMESPACES}/default"
    quota = {"limitSize": 2_000_000, "policy": "producer_exception"}
    keep = {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1}
    assert ask(broker, "POST", f"{path}/retention", keep) == (204, None)
    assert ask(broker, "POST", f"{path}/backlogQuota", quota) == (
        412,
        "Backlog Quota exceeds configured retention quota for namespace. Please increase retention quota "
        "and retry",
    )
    assert ask(broker, "DELETE", f"{path}/retention") == (204, None)
    assert ask(broker, "POST", f"{path}/backlogQuota", quota) == (204, None)
    assert ask(broker, "POST", f"{path}/retention", keep) == (
        412,
        "Retention Quota must exceed configured backlog quota for namespace.",
    )


async def test_a_topics_policy_goes_before_its_namespaces(broker: EmbeddedBroker) -> None:
    assert ask(broker, "POST", f"{NAMESPACES}/default/maxProducersPerTopic", 5) == (204, None)
    assert ask(broker, "GET", f"{TOPIC}/maxProducers") == (200, None)
    assert ask(broker, "GET", f"{TOPIC}/maxProducers?applied=true") == (200, 5)
    assert ask(broker, "POST", f"{TOPIC}/maxProducers", 7) == (204, None)
    assert ask(broker, "GET", f"{TOPIC}/maxProducers?applied=true") == (200, 7)
    assert ask(broker, "DELETE", f"{TOPIC}/maxProducers") == (204, None)
    assert ask(broker, "GET", f"{TOPIC}/maxProducers?applied=true") == (200, 5)


async def test_the_time_to_live_of_a_topic_stands_in_the_query(broker: EmbeddedBroker) -> None:
    assert ask(broker, "POST", f"{TOPIC}/messageTTL?messageTTL=30") == (204, None)
    assert ask(broker, "GET", f"{TOPIC}/messageTTL") == (200, 30)
    for wrong, status in (("", 400), ("x", 400), ("-1", 412), ("9" * 20, 400)):
        assert ask(broker, "POST", f"{TOPIC}/messageTTL?messageTTL={wrong}")[0] == status
    assert ask(broker, "DELETE", f"{TOPIC}/messageTTL") == (204, None)
    assert ask(broker, "GET", f"{TOPIC}/messageTTL") == (200, None)


async def test_policies_of_a_topic_that_is_not_there(broker: EmbeddedBroker) -> None:
    path = "/admin/v2/persistent/public/default/none/deduplicationEnabled"
    for method, body in (("GET", None), ("POST", True), ("DELETE", None)):
        assert ask(broker, method, path, body) == (404, "Topic persistent://public/default/none not found")


async def test_half_a_surrogate_pair_is_refused_and_the_broker_lives(broker: EmbeddedBroker) -> None:
    half = {"a": "\ud800"}
    schema = "/admin/v2/schemas/public/default/t/schema"
    assert ask(broker, "POST", schema, {"type": "STRING", "properties": half})[0] == 422
    assert ask(broker, "PUT", f"{TOPIC}/properties", half)[0] == 412
    assert ask(broker, "PUT", f"{TOPIC}/properties", {"a": "b"}) == (204, None)


async def test_a_namespace_made_with_what_cannot_be_kept(broker: EmbeddedBroker) -> None:
    """The broker accepts a policy that has its fixed value here; it names and refuses any other."""
    path = f"{NAMESPACES}/n"
    for policies in ({"auth_policies": {"subscription_auth_roles": {"s": ["role"]}}},):
        status, reason = ask(broker, "PUT", path, policies)
        assert status == 501
        assert next(iter(policies)) in reason
    assert ask(broker, "PUT", path, {"bundles": {"numBundles": 10_000}})[0] == 412
    assert ask(broker, "PUT", path, {"deduplicationEnabled": "x"})[0] == 400
    assert ask(broker, "PUT", path, {"properties": {"a": 1}})[0] == 400
    assert ask(broker, "PUT", path, {"auth_policies": {"namespace_auth": {"role": ["fly"]}}})[0] == 400
    assert ask(broker, "PUT", path, {"properties": {"a": "b" * 70_000}})[0] == 412
    long_name = {"auth_policies": {"namespace_auth": {"r" * 70_000: ["produce"]}}}
    assert ask(broker, "PUT", path, long_name)[0] == 412
    assert ask(broker, "PUT", path, [])[0] == 400
    assert ask(broker, "GET", path)[0] == 404
    record = {
        "deduplicationEnabled": True,
        "schema_compatibility_strategy": "UNDEFINED",
        "properties": {"a": "b"},
        "auth_policies": {"namespace_auth": {"anonymous": ["produce", "consume"]}},
    }
    assert ask(broker, "PUT", path, record | {"message_ttl_in_seconds": None}) == (204, None)
    status, made = ask(broker, "GET", path)
    assert (status, made["deduplicationEnabled"], made["properties"]) == (200, True, {"a": "b"})
    assert made["auth_policies"]["namespace_auth"] == {"anonymous": ["produce", "consume"]}
    assert "message_ttl_in_seconds" not in made
    again = dict(made)
    assert ask(broker, "PUT", f"{NAMESPACES}/copy", again) == (204, None), "what is read can be written"
    assert ask(broker, "GET", f"{NAMESPACES}/copy") == (200, made)


# --- the documentation --------------------------------------------------------------------------------


def documented() -> list[tuple[list[str], str, str]]:
    """Return settings, call of a namespace and call of a topic of each row of the table."""
    text = (Path(__file__).parents[5] / "docs" / "admin.md").read_text(encoding="utf-8")
    table = text.partition("<!-- policies -->")[2].partition("<!-- end of policies -->")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("|")][2:]
    return [(re.findall("`([^`]+)`", row[2]), row[3].strip(" `—"), row[4].strip(" `—")) for row in rows]


@pytest.mark.parametrize(("settings", "of_namespace", "of_topic"), documented())
def test_a_documented_policy_has_its_settings_and_calls(
    settings: list[str], of_namespace: str, of_topic: str
) -> None:
    assert set(settings) <= SETTINGS.keys()
    administrator = Administrator()
    assert administrator.ask("PUT", "/persistent/public/default/t") == (204, None)
    for prefix, call in ((f"{NAMESPACES}/default", of_namespace), (TOPIC, of_topic)):
        if call:
            reading = "backlogQuotaMap" if call == "backlogQuota" else call
            target = f"{prefix}/{reading}".replace("{subscription}", "s")
            assert administrator.answer("GET", target).status in (200, 204)


def test_every_policy_is_documented() -> None:
    calls = documented()
    assert OF_NAMESPACES.keys() <= {of_namespace for _, of_namespace, _ in calls}
    assert OF_TOPICS.keys() <= {of_topic for _, _, of_topic in calls}
