"""Tenants, namespaces and their policies over HTTP: the same statuses and shapes as a real Pulsar's."""

import pytest

from tests.suite.brokers import BrokerUnderTest

TENANT = {"adminRoles": ["a"], "allowedClusters": ["standalone"]}


@pytest.fixture
async def tenant(broker: BrokerUnderTest, local_name: str) -> str:
    """A tenant of the test's own."""
    assert await broker.request("PUT", f"/admin/v2/tenants/{local_name}", TENANT) == (204, None)
    return local_name


@pytest.fixture
async def namespace(broker: BrokerUnderTest, tenant: str) -> str:
    """The path of a namespace of the test's own."""
    path = f"/admin/v2/namespaces/{tenant}/orders"
    assert await broker.request("PUT", path) == (204, None)
    return path


async def test_tools_find_the_broker_well(broker: BrokerUnderTest) -> None:
    assert await broker.request("GET", "/admin/v2/brokers/health") == (200, "ok")
    assert await broker.request("GET", "/admin/v2/brokers/ready") == (200, "ok")
    _, brokers = await broker.request("GET", "/admin/v2/brokers")
    assert len(brokers) == 1
    assert await broker.request("GET", "/admin/v2/brokers/standalone") == (200, brokers)
    _, leader = await broker.request("GET", "/admin/v2/brokers/leaderBroker")
    assert leader == {"serviceUrl": f"http://{brokers[0]}", "brokerId": brokers[0]}
    status, version = await broker.request("GET", "/admin/v2/brokers/version")
    assert (status, bool(version)) == (200, True)


async def test_there_is_one_cluster(broker: BrokerUnderTest) -> None:
    """Test set-ups of client projects begin by making it, and take 409 for success."""
    assert await broker.request("GET", "/admin/v2/clusters") == (200, ["standalone"])
    status, data = await broker.request("GET", "/admin/v2/clusters/standalone")
    assert status == 200
    assert {"serviceUrl", "brokerServiceUrl", "brokerClientTlsEnabled"} <= set(data)
    again = await broker.request("PUT", "/admin/v2/clusters/standalone", {"serviceUrl": "http://x:1"})
    assert again == (409, "Cluster already exists")
    assert await broker.request("GET", "/admin/v2/clusters/x") == (404, "Cluster does not exist")


async def test_a_tenant_from_making_to_deleting(broker: BrokerUnderTest, local_name: str) -> None:
    path = f"/admin/v2/tenants/{local_name}"
    assert await broker.request("POST", path, TENANT) == (404, f"Tenant {local_name} not found")
    assert await broker.request("PUT", path, TENANT) == (204, None)
    assert await broker.request("PUT", path, TENANT) == (409, "Tenant already exist")
    assert await broker.request("GET", path) == (200, TENANT)
    changed = {**TENANT, "adminRoles": ["b"]}
    assert await broker.request("POST", path, changed) == (204, None)
    assert await broker.request("GET", path) == (200, changed)
    _, tenants = await broker.request("GET", "/admin/v2/tenants")
    assert {local_name, "public"} <= set(tenants)
    assert await broker.request("DELETE", path) == (204, None)
    assert await broker.request("DELETE", path) == (404, "Tenant doesn't exist")
    assert await broker.request("GET", path) == (404, "Tenant does not exist")


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 412, "TenantInfo is null"),
        ({"adminRoles": []}, 412, "Clusters cannot be null"),
        ({"allowedClusters": []}, 412, "Clusters cannot be empty or blank"),
        ({"allowedClusters": ["nowhere"]}, 412, "Clusters do not exist"),
        ([1], 400, None),
    ],
)
async def test_a_tenant_that_cannot_be(
    broker: BrokerUnderTest, local_name: str, body: object, status: int, reason: str | None
) -> None:
    path = f"/admin/v2/tenants/{local_name}"
    found, words = await broker.request("PUT", path, body)
    assert found == status
    assert reason is None or words == reason
    assert (await broker.request("GET", path))[0] == 404


@pytest.mark.parametrize("name", ["a%20b", "a%2Fb"])
async def test_names_that_cannot_be(broker: BrokerUnderTest, name: str) -> None:
    refused = await broker.request("PUT", f"/admin/v2/tenants/{name}", TENANT)
    assert refused == (412, "Tenant name is not valid")


async def test_a_namespace_from_making_to_deleting(broker: BrokerUnderTest, tenant: str) -> None:
    path = f"/admin/v2/namespaces/{tenant}"
    assert await broker.request("GET", path) == (200, [])
    assert await broker.request("PUT", f"{path}/a") == (204, None)
    assert await broker.request("PUT", f"{path}/a") == (409, "Namespace already exists")
    with_policies = {
        "replication_clusters": ["standalone"],
        "bundles": {"numBundles": 2},
        "deduplicationEnabled": True,
        "message_ttl_in_seconds": 5,
    }
    assert await broker.request("PUT", f"{path}/b", with_policies) == (204, None)
    assert await broker.request("GET", path) == (200, [f"{tenant}/a", f"{tenant}/b"])
    status, policies = await broker.request("GET", f"{path}/b")
    assert status == 200
    assert policies["deduplicationEnabled"] is True
    assert policies["message_ttl_in_seconds"] == 5
    assert policies["replication_clusters"] == ["standalone"]
    assert await broker.request("DELETE", f"/admin/v2/tenants/{tenant}") == (
        409,
        "The tenant still has active namespaces",
    )
    for name in "ab":
        assert await broker.request("DELETE", f"{path}/{name}") == (204, None)
    assert await broker.request("DELETE", f"{path}/a") == (404, f"Namespace {tenant}/a does not exist.")
    assert await broker.request("GET", f"{path}/a") == (404, "Namespace does not exist")


async def test_namespaces_that_cannot_be(broker: BrokerUnderTest, tenant: str, local_name: str) -> None:
    path = "/admin/v2/namespaces"
    assert await broker.request("GET", f"{path}/{local_name}-no") == (404, "Tenant not found")
    assert await broker.request("PUT", f"{path}/{local_name}-no/a") == (404, "Tenant does not exist")
    assert await broker.request("PUT", f"{path}/{tenant}/a%20b") == (412, "Namespace name is not valid")
    elsewhere = {"replication_clusters": ["nowhere"]}
    assert (await broker.request("PUT", f"{path}/{tenant}/c", elsewhere))[0] == 403
    assert await broker.request("GET", f"{path}/{tenant}") == (200, [])


async def test_a_namespace_with_topics_is_not_deleted(broker: BrokerUnderTest, namespace: str) -> None:
    topics = namespace.replace("/namespaces/", "/persistent/")
    assert await broker.request("PUT", f"{topics}/t") == (204, None)
    assert await broker.request("DELETE", namespace) == (409, "Cannot delete non empty namespace")
    forced = await broker.request("DELETE", f"{namespace}?force=true")
    assert forced == (405, "Broker doesn't allow forced deletion of namespaces")
    assert await broker.request("DELETE", f"{topics}/t") == (204, None)
    assert await broker.request("DELETE", namespace) == (204, None)


async def test_the_record_of_a_namespace_has_what_pulsars_has(
    broker: BrokerUnderTest, namespace: str
) -> None:
    _, policies = await broker.request("GET", namespace)
    assert set(policies) == {
        *("auth_policies", "replication_clusters", "allowed_clusters", "bundles", "backlog_quota_map"),
        *("clusterDispatchRate", "topicDispatchRate", "subscriptionDispatchRate", "replicatorDispatchRate"),
        *("clusterSubscribeRate", "publishMaxMessageRate", "latency_stats_sample_rate", "deleted"),
        *("encryption_required", "subscription_auth_mode", "offload_threshold", "properties", "migrated"),
        *("offload_threshold_in_seconds", "schema_compatibility_strategy", "is_allow_auto_update_schema"),
        *("schema_validation_enforced", "subscription_types_enabled"),
    }
    _, bundles = await broker.request("GET", f"{namespace}/bundles")
    assert bundles == policies["bundles"]
    assert len(bundles["boundaries"]) == bundles["numBundles"] + 1
    assert (bundles["boundaries"][0], bundles["boundaries"][-1]) == ("0x00000000", "0xffffffff")


POLICIES: dict[str, list[object]] = {
    "deduplication": [True, False],
    "messageTTL": [30, 0],
    "retention": [
        {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5},
        {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
    ],
    "autoTopicCreation": [
        {"allowAutoTopicCreation": False},
        {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3},
    ],
    "autoSubscriptionCreation": [{"allowAutoSubscriptionCreation": False}],
    "maxProducersPerTopic": [3],
    "maxConsumersPerTopic": [3],
    "maxConsumersPerSubscription": [3],
    "maxUnackedMessagesPerConsumer": [3],
    "maxUnackedMessagesPerSubscription": [3],
}


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_policy_is_set_read_and_removed(broker: BrokerUnderTest, namespace: str, policy: str) -> None:
    path = f"{namespace}/{policy}"
    assert await broker.request("GET", path) == (200, None), "not set: no body"
    for value in POLICIES[policy]:
        assert await broker.request("POST", path, value) == (204, None)
        assert await broker.request("GET", path) == (200, value)
    assert await broker.request("DELETE", path) == (204, None)
    assert await broker.request("GET", path) == (200, None)


async def test_encryption_may_be_required(broker: BrokerUnderTest, namespace: str) -> None:
    path = f"{namespace}/encryptionRequired"
    assert await broker.request("GET", path) == (200, False)
    assert await broker.request("POST", path, True) == (204, None)
    assert await broker.request("GET", path) == (200, True)


@pytest.mark.parametrize(
    ("policy", "value", "status", "words"),
    [
        ("deduplication", "x", 400, ""),
        ("deduplication", None, 400, "The request entity cannot be empty."),
        ("messageTTL", -1, 412, "message TTL must >= 0"),
        ("messageTTL", "x", 400, ""),
        (
            "retention",
            {"retentionTimeInMinutes": -2, "retentionSizeInMB": -1},
            400,
            "time limit must be >= -1",
        ),
        ("retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 5}, 400, "limit to 0 is invalid"),
        (
            "autoTopicCreation",
            {"allowAutoTopicCreation": True, "topicType": "partitioned"},
            412,
            "cannot be null",
        ),
        (
            "autoTopicCreation",
            {"allowAutoTopicCreation": True, "topicType": "x"},
            412,
            "Unknown topic type [x]",
        ),
        ("maxProducersPerTopic", -1, 412, "maxProducersPerTopic must be 0 or more"),
        ("maxUnackedMessagesPerConsumer", -1, 412, "maxUnackedMessagesPerConsumer must be 0 or more"),
    ],
)
async def test_a_policy_that_cannot_be_changes_nothing(
    broker: BrokerUnderTest, namespace: str, policy: str, value: object, status: int, words: str
) -> None:
    found, reason = await broker.request("POST", f"{namespace}/{policy}", value)
    assert found == status
    assert words in str(reason)
    assert await broker.request("GET", f"{namespace}/{policy}") == (200, None)


async def test_policies_of_a_namespace_that_is_not_there(broker: BrokerUnderTest, tenant: str) -> None:
    path = f"/admin/v2/namespaces/{tenant}/none"
    for method, body in (("GET", None), ("POST", True), ("DELETE", None)):
        refused = await broker.request(method, f"{path}/deduplication", body)
        assert refused == (404, "Namespace does not exist")
    assert await broker.request("GET", f"{path}/topics") == (404, "Namespace does not exist")
    assert await broker.request("PUT", f"{path}/unload") == (404, "Namespace not found")


async def test_paths_and_methods_that_are_not_there(broker: BrokerUnderTest) -> None:
    assert (await broker.request("GET", "/admin/v2/nothing"))[0] == 404
    assert (await broker.request("GET", "/"))[0] == 404
    assert (await broker.request("POST", "/admin/v2/tenants", {}))[0] == 405
    assert (await broker.request("OPTIONS", "/admin/v2/tenants"))[0] == 200
