"""Random requests: the broker answers each one. It changes what its answer says or nothing, and shows no
bug."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulsar_sansio.broker.metadata import FIRST_NAMESPACES
from pulsar_trio.broker.admin import (
    cluster,
    entries,
    schemas,
    subscriptions,
    topics,
    transactions,
)
from pulsar_trio.broker.admin.listener import perform
from pulsar_trio.broker.admin.messages import PARTITIONED_METADATA, Refused, Request
from pulsar_trio.broker.admin.namespaces import namespaces, permissions, policies, unset
from tests.trio.broker.admin.asking import Administrator

ROUTES = [
    (method, path)
    for module in (
        *(topics, subscriptions, namespaces, policies, cluster, entries, permissions, schemas, unset),
        transactions,
    )
    for method, path, _ in module.ROUTES
]

NAMES: dict[str, list[str]] = {
    "{tenant}": ["public", "acme", "a%20b", "%F0%9F%98%80"],
    "{namespace}": ["default", "orders", "no", "..", "a%2Fb"],
    "{topic}": ["t", "p", "p-partition-0", "p-partition-9", "%00", "a%2Fb", "%20", "x" * 5000, "ü"],
    "{subscription}": ["s", "%20", "ü", "x" * 5000],
    "{cluster}": ["standalone", "x"],
    "{bundle}": ["0x00000000_0xffffffff", "x"],
    "{seconds}": ["0", "5", "99999999999999999", "-1", "x"],
    "{count}": ["0", "1", "99999999999999999", "-1", "x", "²"],
    "{ledger}": ["0", "1", "-1", "x", "9" * 18, "9" * 19],
    "{entry}": ["0", "-1", "x"],
    "{role}": ["r", "", "ü", "subscription"],
    "{key}": ["k", ""],
    "{value}": ["v", "a%2Fb"],
    "{version}": ["0", "1", "x", "9" * 18, "9" * 19],
    "{name}": ["allowAutoSubscriptionCreation", "x" * 500],
    "{most}": ["0", "7", "-1", "x", "9" * 18],
    "{least}": ["0", "-1", "x", "9" * 18],
    "{timeout}": ["0", "-1", "x"],
    "{timestamp}": ["0", "999999999999999999", "-1", "x"],
}

BODIES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 3, -1, 11_000, 2**31, 2**64, 1.5]),
    st.sampled_from(["earliest", "latest", "x", ""]),
    st.sampled_from(
        [
            {"adminRoles": ["r"], "allowedClusters": ["standalone"]},
            {"adminRoles": [1], "allowedClusters": ["standalone"]},
            {"adminRoles": "r", "allowedClusters": ["standalone", 1]},
            {"ledgerId": 0, "entryId": 0},
            {"ledgerId": -1, "entryId": -1},
            {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "partitionIndex": -1},
            {"ledgerId": 2**70, "entryId": True},
            {"ledgerId": 0, "entryId": 0, "batchIndex": 1},
            {"partitions": 2, "properties": {"a": "b"}},
            {"partitions": None},
            {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2},
            {"retentionTimeInMinutes": 1, "retentionSizeInMB": 1},
            {"replication_clusters": [1], "bundles": {"numBundles": None}},
            {"bundles": {"numBundles": 2}, "deduplicationEnabled": True},
            ["Shared"],
            ["produce", "consume"],
            {"type": "STRING", "schema": "", "properties": {"a": "b"}},
            {"type": "STRING", "properties": {"a": "\ud800"}},
            {"a": "\ud800"},
            {"type": "INT32", "schema": "x"},
            {"type": "AVRO", "schema": "{}"},
            {"type": ["STRING"]},
            {"auth_policies": {"namespace_auth": {"r": ["produce"]}}, "properties": {"a": "b"}},
        ]
    ),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    ),
)

QUERIES = ["", "?force=true", "?messageTTL=5", "?checkAllowAutoCreation=true", "?applied=true", "?mode=ALL"]
QUERIES += ["?coordinatorId=0", "?coordinatorId=x", "?batchIndex=0", "?lowWaterMarks=true"]
QUERIES += ["?key=k", "?initialPosition=earliest&messagePosition=2", "?messagePosition=x"]


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, object, str]:
    method, path = draw(st.sampled_from(ROUTES))
    parts = [draw(st.sampled_from(NAMES[part])) if part in NAMES else part for part in path.split("/")]
    content_type = draw(st.sampled_from(["application/json", PARTITIONED_METADATA]))
    return method, "/".join(parts) + draw(st.sampled_from(QUERIES)), draw(BODIES), content_type


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(requests(), max_size=25))
@example([("DELETE", "/admin/v2/namespaces/public/default", None, "application/json")])
def test_anything_is_answered(asked: list[tuple[str, str, object, str]]) -> None:
    administrator = Administrator()
    for method, target, body, content_type in asked:
        request = Request.parse(method, target, content_type)
        request.body = b"" if body is None else json.dumps(body).encode()
        answer = perform(administrator, request)
        assert answer.status in (200, 202, 204, 400, 403, 404, 405, 406, 409, 412, 415, 422, 501), answer
        if answer.status >= 400:
            assert json.loads(answer.body)["reason"]
        elif answer.status == 204:
            assert not answer.body
    # What is there now is what is there after a restart.
    before = administrator.machine
    administrator.world.start()
    after = administrator.machine
    for namespace in FIRST_NAMESPACES:  # which are there again, as in a standalone Pulsar
        before.metadata.policies.setdefault(namespace, after.metadata.policies[namespace])
        tenant = namespace.split("/")[0]
        before.metadata.tenants.setdefault(tenant, after.metadata.tenants[tenant])
    assert after.metadata.tenants == before.metadata.tenants
    assert after.metadata.policies == before.metadata.policies
    assert after.metadata.partitions == before.metadata.partitions
    assert after.metadata.properties == before.metadata.properties
    assert after.metadata.grants == before.metadata.grants
    assert after.schemas._saved == before.schemas._saved
    assert [name for name in before.topics.by_name if name.startswith("persistent")] == list(
        after.topics.by_name
    )


@given(st.text(max_size=50), st.text(max_size=20))
def test_any_target_is_parsed_or_refused(target: str, content_type: str) -> None:
    for text in (target, f"/{target}", f"/admin/v2/{target}"):
        try:
            request = Request.parse("GET", text, content_type)
        except Refused as refused:
            if refused.status != 400:
                pytest.fail(f"{text!r}: {refused.status}")
        else:
            assert perform(Administrator(), request).status in (200, 404, 405, 412, 501)
