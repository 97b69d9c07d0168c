"""Bundles, resource groups, the cluster and its broker over HTTP, as a real Pulsar of one broker has them."""

from typing import Any

import pytest

from tests.suite.brokers import BrokerUnderTest

BUNDLE = "0x00000000_0xffffffff"
CLUSTER = "/admin/v2/clusters/standalone"

HASH = 607774512
"""The CRC-32 of the name of a topic."""


@pytest.fixture
async def namespace(broker: BrokerUnderTest, local_name: str) -> str:
    """The name of a namespace with one bundle."""
    name = f"public/{local_name}".lower()
    body = {"bundles": {"numBundles": 1}}
    assert await broker.request("PUT", f"/admin/v2/namespaces/{name}", body) == (204, None)
    return name


async def test_the_bundle_of_a_namespace(broker: BrokerUnderTest, namespace: str) -> None:
    path = f"/admin/v2/namespaces/{namespace}"
    await broker.create_topic(f"persistent://{namespace}/t")
    status, found = await broker.request(
        "GET", f"{path}/{BUNDLE}/topicHashPositions?topics=persistent://{namespace}/t"
    )
    assert status == 200
    assert (found["namespace"], found["bundle"]) == (namespace, BUNDLE)
    assert list(found["topicHashPositions"]) == [f"persistent://{namespace}/t"]
    _, all_of_them = await broker.request("GET", f"{path}/{BUNDLE}/topicHashPositions")
    assert found["topicHashPositions"].items() <= all_of_them["topicHashPositions"].items()
    other = f"{path}/{BUNDLE}/topicHashPositions?topics=persistent://{namespace}/other"
    assert (await broker.request("GET", other))[1]["topicHashPositions"] == {}
    assert await broker.request("DELETE", f"{path}/{BUNDLE}") == (409, "Cannot delete non empty bundle")
    absent = f"{path}-none/{BUNDLE}/topicHashPositions"
    assert await broker.request("GET", absent) == (404, "Namespace does not exist")
    assert (await broker.request("PUT", f"{path}-none/{BUNDLE}/split"))[0] == 404
    assert (await broker.request("PUT", f"{path}/x/split"))[0] == 412
    assert (await broker.request("GET", f"{path}/x/topicHashPositions"))[0] == 412


async def test_hash_positions_are_those_of_pulsar(broker: BrokerUnderTest) -> None:
    """A real Pulsar gave this number."""
    name = "persistent://public/hashes/t"
    body = {"bundles": {"numBundles": 1}}
    status, _ = await broker.request("PUT", "/admin/v2/namespaces/public/hashes", body)
    assert status in (204, 409)
    assert (await broker.request("PUT", "/admin/v2/persistent/public/hashes/t"))[0] in (204, 409)
    _, found = await broker.request(
        "GET", f"/admin/v2/namespaces/public/hashes/{BUNDLE}/topicHashPositions?topics={name}"
    )
    assert found["topicHashPositions"] == {name: HASH}


async def test_non_persistent_topics_of_a_bundle(broker: BrokerUnderTest, namespace: str) -> None:
    """The broker that is asked has the bundle: it serves a topic in it."""
    path = f"/admin/v2/non-persistent/{namespace}"
    await broker.create_topic(f"persistent://{namespace}/t")
    assert await broker.request("GET", f"{path}/{BUNDLE}") == (200, [])


async def test_there_are_no_resource_groups(broker: BrokerUnderTest, namespace: str) -> None:
    absent = (404, "ResourceGroup does not exist")
    assert await broker.request("GET", "/admin/v2/resourcegroups") == (200, [])
    assert await broker.request("GET", "/admin/v2/resourcegroups/none") == absent
    path = f"/admin/v2/namespaces/{namespace}/resourcegroup"
    assert await broker.request("GET", path) == (200, None)
    assert await broker.request("POST", f"{path}/none") == (412, "ResourceGroup does not exist")
    assert await broker.request("DELETE", path) == (204, None)


async def test_the_older_names_of_a_schema_strategy(broker: BrokerUnderTest, namespace: str) -> None:
    path = f"/admin/v2/namespaces/{namespace}/schemaAutoUpdateCompatibilityStrategy"
    assert await broker.request("GET", path) == (204, None)
    for strategy in ("Backward", "AutoUpdateDisabled", "ForwardTransitive"):
        assert await broker.request("PUT", path, strategy) == (204, None)
        assert await broker.request("GET", path) == (200, strategy)
    assert await broker.request("PUT", path) == (204, None)
    assert await broker.request("GET", path) == (204, None)


async def test_the_versions_of_a_schema(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"/admin/v2/schemas/public/default/{local_name}"
    assert await broker.request("GET", f"{path}/metadata") == (200, None)
    for schema in ("STRING", "INT32"):
        body: dict[str, Any] = {"type": schema, "schema": "", "properties": {}}
        await broker.request("POST", f"{path}/schema", body)
    status, found = await broker.request("GET", f"{path}/metadata")
    assert status == 200
    assert set(found["info"]) == {"ledgerId", "entryId", "version"}
    assert [each["version"] for each in found["index"]] == [0]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "answer"),
    [
        ("GET", f"{CLUSTER}/peers", None, 200, None),
        ("POST", f"{CLUSTER}/peers", [], 204, None),
        ("POST", f"{CLUSTER}/peers", ["x"], 412, "Peer cluster x does not exist"),
        ("GET", f"{CLUSTER}/failureDomains", None, 200, {}),
        ("GET", f"{CLUSTER}/failureDomains/d", None, 404, "Domain d for cluster standalone does not exist"),
        (
            "GET",
            f"{CLUSTER}/namespaceIsolationPolicies",
            None,
            404,
            "NamespaceIsolationPolicies for cluster standalone does not exist",
        ),
        ("POST", f"{CLUSTER}-2", {"serviceUrl": "http://x:8080"}, 404, "Cluster does not exist"),
        (
            "POST",
            CLUSTER,
            {"serviceUrl": "x"},
            400,
            "Illegal service url, example: http://pulsar.example.com:8080",
        ),
        ("DELETE", f"{CLUSTER}-2", None, 404, "Cluster does not exist"),
        ("GET", "/admin/v2/brokers/backlog-quota-check", None, 204, None),
        (
            "GET",
            "/admin/v2/brokers/standalone/x/ownedNamespaces",
            None,
            404,
            "Broker id 'x' not found in available brokers.",
        ),
        ("GET", "/admin/v2/namespaces/standalone/antiAffinity/g", None, 400, "Tenant should not be null"),
        ("GET", "/admin/v2/namespaces/standalone/antiAffinity/g?tenant=public", None, 200, []),
        (
            "GET",
            "/admin/v2/namespaces/nowhere/antiAffinity/g?tenant=public",
            None,
            412,
            "Cluster nowhere does not exist.",
        ),
        (
            "POST",
            "/admin/v2/namespaces/grantPermissionsOnTopics",
            [],
            400,
            "The namespace should be the same",
        ),
        ("POST", "/admin/v2/namespaces/grantPermissionsOnTopics", {}, 400, None),
        ("DELETE", "/admin/v2/namespaces/public/default/removeOffloadPolicies", None, 204, None),
    ],
)
async def test_one_cluster_of_one_broker(
    broker: BrokerUnderTest, method: str, path: str, body: Any, status: int, answer: Any
) -> None:
    found, said = await broker.request(method, path, body)
    assert found == status
    assert said == answer or (answer is None and status == 400)


async def test_the_bundles_that_a_broker_serves(broker: BrokerUnderTest, namespace: str) -> None:
    await broker.create_topic(f"persistent://{namespace}/t")
    _, (broker_id,) = await broker.request("GET", "/admin/v2/brokers")
    _, owned = await broker.request("GET", f"/admin/v2/brokers/standalone/{broker_id}/ownedNamespaces")
    assert owned[f"{namespace}/{BUNDLE}"] == {
        "broker_assignment": "shared",
        "is_controlled": False,
        "is_active": True,
    }
