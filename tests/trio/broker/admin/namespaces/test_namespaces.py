"""Tenants and namespaces over HTTP: their life, their record, and the refusals in Pulsar's words."""

from typing import Any

import pytest

from pulsar_sansio import BrokerConfig
from pulsar_trio.broker.admin.topics import WHOLE_BUNDLE
from tests.trio.broker.admin.asking import Administrator

CLUSTER = "standalone"
INFO = {"adminRoles": ["boss"], "allowedClusters": [CLUSTER]}
ACME = "/namespaces/acme/orders"


@pytest.fixture
def broker() -> Administrator:
    """A broker with the tenant `acme`."""
    administrator = Administrator()
    assert administrator.ask("PUT", "/tenants/acme", INFO) == (204, None)
    return administrator


# --- tenants ------------------------------------------------------------------------------------------


def test_a_tenants_life(broker: Administrator) -> None:
    assert broker.ask("GET", "/tenants") == (200, ["acme", "public", "pulsar"])
    assert broker.ask("GET", "/tenants/acme") == (200, INFO)
    changed = {"adminRoles": ["other"], "allowedClusters": [CLUSTER]}
    assert broker.ask("POST", "/tenants/acme", changed) == (204, None)
    assert broker.ask("GET", "/tenants/acme") == (200, changed)
    assert broker.ask("DELETE", "/tenants/acme") == (204, None)
    assert broker.ask("GET", "/tenants/acme") == (404, "Tenant does not exist")


def test_a_tenant_without_roles(broker: Administrator) -> None:
    cases: list[dict[str, object]] = [{}, {"adminRoles": None}, {"adminRoles": []}]
    for number, roles in enumerate(cases):
        name = f"/tenants/t{number}"
        assert broker.ask("PUT", name, {**roles, "allowedClusters": [CLUSTER]}) == (204, None)
        assert broker.ask("GET", name) == (200, {"adminRoles": [], "allowedClusters": [CLUSTER]})


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (None, 412, "TenantInfo is null"),
        ([], 400, "the body has to be a JSON object"),
        ({"adminRoles": []}, 412, "Clusters cannot be null"),
        ({"allowedClusters": "standalone"}, 412, "Clusters cannot be empty or blank"),
        ({"allowedClusters": []}, 412, "Clusters cannot be empty or blank"),
        ({"allowedClusters": [CLUSTER, ""]}, 412, "Clusters cannot be empty or blank"),
        ({"allowedClusters": [CLUSTER, 1]}, 412, "Clusters cannot be empty or blank"),
        ({"allowedClusters": [CLUSTER, "east"]}, 412, "Clusters do not exist"),
        ({"allowedClusters": [CLUSTER], "adminRoles": "boss"}, 400, "adminRoles has to be a list"),
        ({"allowedClusters": [CLUSTER], "adminRoles": [1]}, 412, ""),
    ],
)
def test_a_tenant_that_cannot_be(
    broker: Administrator, method: str, body: object, status: int, reason: str
) -> None:
    tenant = "new" if method == "PUT" else "acme"
    answered, text = broker.ask(method, f"/tenants/{tenant}", body)
    assert answered == status
    assert reason in text
    assert broker.ask("GET", "/tenants") == (200, ["acme", "public", "pulsar"])
    assert broker.ask("GET", "/tenants/acme") == (200, INFO)


def test_refusals_about_tenants(broker: Administrator) -> None:
    assert broker.ask("PUT", "/tenants/acme", INFO) == (409, "Tenant already exist")
    assert broker.ask("PUT", "/tenants/a%20b", INFO) == (412, "Tenant name is not valid")
    assert broker.ask("POST", "/tenants/none", INFO) == (404, "Tenant none not found")
    assert broker.ask("DELETE", "/tenants/none") == (404, "Tenant doesn't exist")
    assert broker.ask("PUT", ACME) == (204, None)
    assert broker.ask("DELETE", "/tenants/acme") == (409, "The tenant still has active namespaces")
    refused = 405, "Broker doesn't allow forced deletion of tenants"
    assert broker.ask("DELETE", "/tenants/acme?force=true") == refused


# --- namespaces ---------------------------------------------------------------------------------------


def test_a_namespaces_life(broker: Administrator) -> None:
    """Rule TENANT-04."""
    assert broker.ask("GET", "/namespaces/acme") == (200, [])
    assert broker.ask("PUT", ACME) == (204, None)
    assert broker.ask("GET", "/namespaces/acme") == (200, ["acme/orders"])
    assert broker.ask("GET", "/namespaces/none") == (404, "Tenant not found")
    assert broker.ask("PUT", ACME) == (409, "Namespace already exists")
    assert broker.ask("PUT", "/namespaces/none/orders") == (404, "Tenant does not exist")
    assert broker.ask("PUT", "/namespaces/acme/a%20b") == (412, "Namespace name is not valid")
    assert broker.ask("DELETE", ACME) == (204, None)
    assert broker.ask("DELETE", ACME) == (404, "Namespace acme/orders does not exist.")
    assert broker.ask("GET", ACME) == (404, "Namespace does not exist")


def test_a_namespace_with_topics_is_not_deleted(broker: Administrator) -> None:
    assert broker.ask("PUT", ACME) == (204, None)
    assert broker.ask("PUT", "/persistent/acme/orders/t") == (204, None)
    refused = 405, "Broker doesn't allow forced deletion of namespaces"
    assert broker.ask("DELETE", f"{ACME}?force=true") == refused
    assert broker.ask("DELETE", ACME) == (409, "Cannot delete non empty namespace")
    assert broker.ask("DELETE", "/persistent/acme/orders/t") == (204, None)
    assert broker.ask("DELETE", ACME) == (204, None)


def test_the_record_of_a_namespace(broker: Administrator) -> None:
    made = {
        "replication_clusters": [CLUSTER],
        "bundles": {"numBundles": 16},
        "message_ttl_in_seconds": 60,
        "auth_policies": {"namespace_auth": {"p": ["produce"]}, "destination_auth": {}},
        "properties": {"owner": "us"},
        "encryption_required": False,
        "clusterDispatchRate": None,
        "replicatorDispatchRate": [],
    }
    assert broker.ask("PUT", ACME, made) == (204, None)
    status, record = broker.ask("GET", ACME)
    assert status == 200
    assert {
        name: record[name] for name in ("message_ttl_in_seconds", "properties", "replication_clusters")
    } == {
        "message_ttl_in_seconds": 60,
        "properties": {"owner": "us"},
        "replication_clusters": [CLUSTER],
    }
    assert record["auth_policies"] == {
        "namespace_auth": {"p": ["produce"]},
        "destination_auth": {},
        "subscription_auth_roles": {},
    }
    assert record["bundles"]["numBundles"] == 1, "one broker serves all"
    assert record["encryption_required"] is False
    assert "retention_policies" not in record, "a policy that is not set is left out"


def test_a_record_that_was_read_makes_another_namespace(broker: Administrator) -> None:
    """Tools copy a namespace that way."""
    assert broker.ask("PUT", ACME, {"message_ttl_in_seconds": 60}) == (204, None)
    _, record = broker.ask("GET", ACME)
    assert broker.ask("PUT", "/namespaces/acme/copy", record) == (204, None)
    assert broker.ask("GET", "/namespaces/acme/copy") == (200, record)


REFUSED: list[tuple[object, int, str]] = [
    ([], 400, "the body has to be a JSON object"),
    ({"replication_clusters": [CLUSTER, "east", "west"]}, 403, "Cluster [east, west] is not in the list"),
    ({"replication_clusters": "east"}, 403, "Cluster [east] is not in the list"),
    ({"bundles": {"numBundles": 1000}}, 412, "bundles: an object with numBundles"),
    ({"bundles": {"numBundles": True}}, 412, "bundles: an object with numBundles"),
    ({"bundles": 4}, 412, "bundles: an object with numBundles"),
    ({"auth_policies": {"destination_auth": {"t": {"r": ["produce"]}}}}, 501, "'destination_auth' in auth"),
    ({"auth_policies": "x"}, 400, "namespace_auth: "),
    ({"auth_policies": {"namespace_auth": []}}, 400, "namespace_auth: "),
    ({"auth_policies": {"namespace_auth": {"r": "produce"}}}, 400, "namespace_auth: "),
    ({"auth_policies": {"namespace_auth": {"r": ["fly"]}}}, 400, "namespace_auth: "),
    ({"properties": {"a": 1}}, 400, "properties have to be a map of text to text"),
    ({"properties": {"a": "\ud800"}}, 412, "properties"),
    ({"deleted": True}, 501, "the policy 'deleted' of a namespace"),
    ({"offload_threshold": 5}, 501, "the policy 'offload_threshold' of a namespace"),
    ({"no_such_policy": 1}, 501, "the policy 'no_such_policy' of a namespace"),
    ({"message_ttl_in_seconds": -1}, 412, ""),
]


@pytest.mark.parametrize(("body", "status", "reason"), REFUSED)
def test_a_namespace_that_cannot_be_made_is_not_there(
    broker: Administrator, body: object, status: int, reason: str
) -> None:
    answered, text = broker.ask("PUT", ACME, body)
    assert answered == status
    assert reason in text
    assert broker.ask("GET", "/namespaces/acme") == (200, [])


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("", ["persistent://acme/orders/a"]),
        ("?mode=PERSISTENT", ["persistent://acme/orders/a"]),
        ("?mode=NON_PERSISTENT", ["non-persistent://acme/orders/b"]),
        ("?mode=ALL", ["non-persistent://acme/orders/b", "persistent://acme/orders/a"]),
    ],
)
def test_topics_of_a_namespace(broker: Administrator, mode: str, names: list[str]) -> None:
    broker.ask("PUT", ACME)
    assert broker.ask("PUT", "/persistent/acme/orders/a") == (204, None)
    assert broker.ask("PUT", "/non-persistent/acme/orders/b") == (204, None)
    assert broker.ask("GET", f"{ACME}/topics{mode}") == (200, names)


def test_topics_of_no_namespace_and_of_no_mode(broker: Administrator) -> None:
    assert broker.ask("GET", f"{ACME}/topics") == (404, "Namespace does not exist")
    broker.ask("PUT", ACME)
    assert broker.ask("GET", f"{ACME}/topics?mode=SOME") == (404, "Not Found")


def test_there_is_one_bundle(broker: Administrator) -> None:
    assert broker.ask("GET", f"{ACME}/bundles") == (404, "Namespace does not exist")
    assert broker.ask("PUT", f"{ACME}/unload") == (404, "Namespace not found")
    broker.ask("PUT", ACME)
    boundaries = {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1}
    assert broker.ask("GET", f"{ACME}/bundles") == (200, boundaries)
    assert broker.ask("PUT", f"{ACME}/unload") == (204, None)
    assert broker.ask("PUT", f"{ACME}/{WHOLE_BUNDLE}/unload") == (204, None)
    status, reason = broker.ask("PUT", f"{ACME}/0x00000000_0x80000000/unload")
    assert status == 412
    assert reason.startswith("Invalid bundle range: 0x00000000_0x80000000")


# --- properties ---------------------------------------------------------------------------------------


def test_properties_are_kept_one_by_one_and_together(broker: Administrator) -> None:
    broker.ask("PUT", ACME)
    assert broker.ask("PUT", f"{ACME}/properties", {"a": "1", "b": "2"}) == (204, None)
    assert broker.ask("PUT", f"{ACME}/properties", {"b": "3"}) == (204, None)
    assert broker.ask("PUT", f"{ACME}/property/c/4") == (204, None)
    assert broker.ask("GET", f"{ACME}/properties") == (200, {"a": "1", "b": "3", "c": "4"})
    assert broker.answer("GET", f"{ACME}/property/b").body == b"3"
    assert broker.answer("GET", f"{ACME}/property/none").body == b""
    assert broker.answer("DELETE", f"{ACME}/property/b").body == b"3", "the value that was there"
    assert broker.ask("GET", f"{ACME}/properties") == (200, {"a": "1", "c": "4"})
    assert broker.ask("DELETE", f"{ACME}/properties") == (204, None)
    assert broker.ask("GET", f"{ACME}/properties") == (200, {})


PROPERTIES: list[tuple[str, str, Any]] = [
    ("GET", "properties", None),
    ("PUT", "properties", {"a": "1"}),
    ("DELETE", "properties", None),
    ("GET", "property/a", None),
    ("PUT", "property/a/1", None),
    ("DELETE", "property/a", None),
]


@pytest.mark.parametrize(("method", "path", "body"), PROPERTIES)
def test_properties_of_no_namespace(broker: Administrator, method: str, path: str, body: Any) -> None:
    assert broker.ask(method, f"{ACME}/{path}", body) == (404, "Namespace does not exist")


def test_limits_of_the_broker() -> None:
    """Statuses and words are those of a Java broker."""
    limits = BrokerConfig(max_tenants=3, max_namespaces_per_tenant=1, max_partitions_per_topic=2)
    administrator = Administrator(limits)
    tenant = {"allowedClusters": ["standalone"]}
    assert administrator.ask("PUT", "/tenants/a", tenant) == (204, None)
    refused = (412, "Exceed the maximum number of tenants")
    assert administrator.ask("PUT", "/tenants/b", tenant) == refused
    assert administrator.ask("PUT", "/namespaces/a/a") == (204, None)
    refused = (412, "Exceed the maximum number of namespace in tenant :a")
    assert administrator.ask("PUT", "/namespaces/a/b") == refused
    assert administrator.ask("PUT", "/persistent/a/a/t/partitions", 3) == (406, "partitions: 1 to 2, not 3")
    assert administrator.ask("PUT", "/persistent/a/a/t/partitions", 1) == (204, None)
    assert administrator.ask("POST", "/persistent/a/a/t/partitions", 3) == (422, "partitions: 1 to 2, not 3")
