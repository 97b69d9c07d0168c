"""Namespaces: list, create, read, delete, unload, their topics; and tenants."""

from typing import Any

from pulsar_sansio import (
    ACTIONS,
    AlreadyExists,
    InUse,
    InvalidConfiguration,
    InvalidTopicName,
    LimitReached,
    NotFound,
    Policies,
)

from ..messages import NO_CONTENT, Answer, Refused, Request, answering, json_answer, properties
from ..routes import AdministeredBroker, Route
from ..topics import WHOLE_BUNDLE
from .policies import NAMES_IN_POLICIES, NAMESPACE
from .rates import BY_CLUSTER

TENANT = "/admin/v2/tenants/{tenant}"

NO_NAMESPACE = (NotFound, 404, "Namespace does not exist")

MAX_BUNDLES = 999
"""Bundles that may be asked for, as Pulsar has it; there is one all the same."""

# --- tenants ------------------------------------------------------------------------------------------


def list_tenants(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer(sorted(broker.machine.metadata.tenants))


def read_tenant(broker: AdministeredBroker, request: Request) -> Answer:
    roles = broker.machine.metadata.tenants.get(request.text("tenant"))
    if roles is None:
        raise Refused(404, "Tenant does not exist")
    return json_answer({"adminRoles": list(roles), "allowedClusters": [broker.machine.config.cluster]})


def create_tenant(broker: AdministeredBroker, request: Request) -> Answer:
    roles = _roles(broker, request)
    name_refused = (InvalidTopicName, 412, "Tenant name is not valid")
    with answering(
        (AlreadyExists, 409, "Tenant already exist"),
        name_refused,
        (LimitReached, 412, ""),
        (InvalidConfiguration, 412, ""),
    ):
        broker.command(broker.machine.administration.create_tenant, request.text("tenant"), roles)
    return NO_CONTENT


def update_tenant(broker: AdministeredBroker, request: Request) -> Answer:
    tenant = request.text("tenant")
    roles = _roles(broker, request)
    with answering((NotFound, 404, f"Tenant {tenant} not found"), (InvalidConfiguration, 412, "")):
        broker.command(broker.machine.administration.update_tenant, tenant, roles)
    return NO_CONTENT


def _roles(broker: AdministeredBroker, request: Request) -> list[str]:
    """The roles of the body. Its clusters have to be the only one there is. Raises `Refused`."""
    if not request.body:
        raise Refused(412, "TenantInfo is null")
    given = request.json_object()
    clusters, roles = given.get("allowedClusters"), given.get("adminRoles") or []
    if clusters is None:
        raise Refused(412, "Clusters cannot be null")
    if (
        not isinstance(clusters, list)
        or not clusters
        or not all(isinstance(each, str) and each for each in clusters)
    ):
        raise Refused(412, "Clusters cannot be empty or blank")
    if set(clusters) != {broker.machine.config.cluster}:
        raise Refused(412, "Clusters do not exist")
    if not isinstance(roles, list):
        raise Refused(400, f"adminRoles has to be a list, not {roles!r:.200}")
    return roles


def delete_tenant(broker: AdministeredBroker, request: Request) -> Answer:
    _no_force(request, "tenants")
    in_use = (InUse, 409, "The tenant still has active namespaces")
    with answering((NotFound, 404, "Tenant doesn't exist"), in_use):
        broker.command(broker.machine.administration.delete_tenant, request.text("tenant"))
    return NO_CONTENT


def _no_force(request: Request, what: str) -> None:
    """Refuse forced deletion, as a Java broker does by default. Raises `Refused` (405)."""
    if request.flag("force"):
        raise Refused(405, f"Broker doesn't allow forced deletion of {what}")


# --- namespaces ---------------------------------------------------------------------------------------


def list_namespaces(broker: AdministeredBroker, request: Request) -> Answer:
    with answering((NotFound, 404, "Tenant not found")):
        return json_answer(broker.machine.administration.namespaces(request.text("tenant")))


def read_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(NO_NAMESPACE):
        policies = broker.machine.administration.policies_of(request.namespace)
        grants = broker.machine.administration.grants_of(request.namespace)
        kept = broker.machine.administration.namespace_properties(request.namespace)
    record = policies_json(policies, broker.machine.config.cluster)
    record["properties"] = kept
    record["auth_policies"] = {
        "namespace_auth": dict(grants.roles),
        "destination_auth": broker.machine.administration.topic_grants(request.namespace),
        "subscription_auth_roles": dict(grants.subscriptions),
    }
    return json_answer(record)


def create_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    namespace = request.namespace
    values = _policies_of(broker, request) if request.body else {}
    roles = values.pop("auth_policies", None)
    kept = values.pop("properties", None)
    exists = (AlreadyExists, 409, "Namespace already exists")
    with answering((NotFound, 404, "Tenant does not exist"), exists, (LimitReached, 412, "")):
        broker.command(broker.machine.administration.create_namespace, namespace, values)
    try:
        if roles:
            broker.command(broker.machine.administration.grant, namespace, roles)
        if kept:
            broker.command(broker.machine.administration.update_namespace_properties, namespace, kept)
    except InvalidConfiguration:
        broker.command(broker.machine.administration.delete_namespace, namespace)
        raise
    return NO_CONTENT


def delete_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    namespace = request.namespace
    _no_force(request, "namespaces")
    absent = (NotFound, 404, f"Namespace {namespace} does not exist.")
    with answering(absent, (InUse, 409, "Cannot delete non empty namespace")):
        broker.command(broker.machine.administration.delete_namespace, namespace)
    return NO_CONTENT


def unload_namespace(broker: AdministeredBroker, request: Request) -> Answer:
    namespace = request.namespace
    with answering((NotFound, 404, "Namespace not found")):
        broker.command(broker.machine.administration.unload_namespace, namespace)
    return NO_CONTENT


def unload_bundle(broker: AdministeredBroker, request: Request) -> Answer:
    check_bundle(request)
    return unload_namespace(broker, request)


def check_bundle(request: Request) -> None:
    """A bundle in the path has to be the one there is. Raises `Refused`."""
    bundle = request.parameters.get("bundle", WHOLE_BUNDLE)
    if bundle != WHOLE_BUNDLE:
        raise Refused(412, f"Invalid bundle range: {bundle:.100}; there is one bundle, {WHOLE_BUNDLE}")


# --- properties ---------------------------------------------------------------------------------------


def read_properties(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(NO_NAMESPACE):
        return json_answer(broker.machine.administration.namespace_properties(request.namespace))


def update_properties(broker: AdministeredBroker, request: Request) -> Answer:
    """Properties that are not named stay."""
    given = properties(request.json())
    with answering(NO_NAMESPACE):
        broker.command(broker.machine.administration.update_namespace_properties, request.namespace, given)
    return NO_CONTENT


def remove_properties(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(NO_NAMESPACE):
        broker.command(broker.machine.administration.remove_namespace_properties, request.namespace)
    return NO_CONTENT


def read_property(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer with the value as it is, or without a body where the key has none."""
    with answering(NO_NAMESPACE):
        value = broker.machine.administration.namespace_properties(request.namespace).get(
            request.text("key"), ""
        )
    return Answer(200, value.encode(errors="replace"), "text/plain")


def set_property(broker: AdministeredBroker, request: Request) -> Answer:
    given = {request.text("key"): request.text("value")}
    with answering(NO_NAMESPACE):
        broker.command(broker.machine.administration.update_namespace_properties, request.namespace, given)
    return NO_CONTENT


def remove_property(broker: AdministeredBroker, request: Request) -> Answer:
    """Answer with the value that was there."""
    answer = read_property(broker, request)
    key = request.text("key")
    broker.command(broker.machine.administration.remove_namespace_properties, request.namespace, key)
    return answer


def list_topics(broker: AdministeredBroker, request: Request) -> Answer:
    mode = request.query.get("mode", "PERSISTENT")
    if mode not in ("PERSISTENT", "NON_PERSISTENT", "ALL"):
        raise Refused(404, "Not Found")
    with answering(NO_NAMESPACE):
        names = broker.machine.topic_administration.topics(request.namespace)
    domains = {"PERSISTENT": "persistent://", "NON_PERSISTENT": "non-persistent://", "ALL": ""}
    return json_answer([name for name in names if name.startswith(domains[mode])])


def bundles(broker: AdministeredBroker, request: Request) -> Answer:
    with answering(NO_NAMESPACE):
        broker.machine.administration.policies_of(request.namespace)
    return json_answer(BUNDLES)


# --- the record of a namespace ------------------------------------------------------------------------

BUNDLES: dict[str, Any] = {"boundaries": WHOLE_BUNDLE.split("_"), "numBundles": 1}

_NOT_KEPT: dict[str, Any] = {
    "allowed_clusters": [],
    "clusterDispatchRate": {},
    "replicatorDispatchRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "migrated": False,
}
"""Policies with a fixed value, because this broker implements no other. It refuses other values."""


def policies_json(policies: Policies, cluster: str) -> dict[str, Any]:
    record = {**_NOT_KEPT, "replication_clusters": [cluster], "bundles": BUNDLES}
    for name, resource in NAMES_IN_POLICIES.items():
        value = resource.read(policies)
        if value is not None:
            record[name] = value
    for name, resource in BY_CLUSTER.items():
        value = resource.read(policies)
        record[name] = {} if value is None else {cluster: value}
    return record


def _policies_of(broker: AdministeredBroker, request: Request) -> dict[str, object]:
    """The fields of `Policies` that the body sets. Raises `Refused`: 501 for what this broker cannot keep."""
    given = request.json()
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise Refused(400, f"the body has to be a JSON object, not {given!r:.200}")
    values: dict[str, object] = {}
    cluster = broker.machine.config.cluster
    for name, value in given.items():
        if value is None:
            continue
        if name == "replication_clusters":
            others = [each for each in value if each != cluster] if isinstance(value, list) else [value]
            if others:
                names = ", ".join(map(str, others))[:200]
                tenant = request.text("tenant")
                raise Refused(
                    403,
                    f"Cluster [{names}] is not in the list of allowed clusters list for tenant [{tenant}]",
                )
        elif name == "bundles":
            _check_bundles(value)
        elif name == "auth_policies":
            values[name] = _roles_of_policies(value)
        elif name == "properties":
            values[name] = properties(value)
        elif name in BY_CLUSTER:
            values |= _rate_of(name, value, cluster)
        elif name in NAMES_IN_POLICIES:
            values |= NAMES_IN_POLICIES[name].write(value)
        elif name in _NOT_KEPT and (value == _NOT_KEPT[name] or value in ({}, [])):
            continue
        else:
            raise Refused(501, f"the policy {name!r:.100} of a namespace is not implemented by this broker")
    return values


def _rate_of(name: str, value: Any, cluster: str) -> dict[str, object]:
    """The fields of a rate that is given for the one cluster. Raises `Refused`."""
    if not isinstance(value, dict) or not set(value) <= {cluster}:
        raise Refused(412, f"{name}: an object with a rate for {cluster}, not {value!r:.200}")
    return BY_CLUSTER[name].write(value[cluster]) if value else {}


def _roles_of_policies(value: Any) -> dict[str, list[str]]:
    """The actions by role; other permissions cannot be given with a new namespace. Raises `Refused`."""
    value = value if isinstance(value, dict) else {"namespace_auth": None}
    for name, given in value.items():
        if name != "namespace_auth" and given:
            raise Refused(501, f"{name!r:.100} in auth_policies is not implemented by this broker")
    roles = value.get("namespace_auth", {})
    if not isinstance(roles, dict) or not all(
        isinstance(actions, list) and all(each in ACTIONS for each in actions) for actions in roles.values()
    ):
        raise Refused(400, f"namespace_auth: {', '.join(ACTIONS)} by role, not {roles!r:.200}")
    return roles


def _check_bundles(value: Any) -> None:
    """Check the number of bundles. It changes nothing: one broker serves them all. Raises `Refused`."""
    number = value.get("numBundles", 1) if isinstance(value, dict) else None
    if isinstance(number, bool) or not isinstance(number, int) or number > MAX_BUNDLES:
        raise Refused(412, f"bundles: an object with numBundles, not {value!r:.200}")


ROUTES: list[Route] = [
    ("GET", "/admin/v2/tenants", list_tenants),
    ("GET", TENANT, read_tenant),
    ("PUT", TENANT, create_tenant),
    ("POST", TENANT, update_tenant),
    ("DELETE", TENANT, delete_tenant),
    ("GET", "/admin/v2/namespaces/{tenant}", list_namespaces),
    ("GET", NAMESPACE, read_namespace),
    ("PUT", NAMESPACE, create_namespace),
    ("DELETE", NAMESPACE, delete_namespace),
    ("GET", f"{NAMESPACE}/topics", list_topics),
    ("PUT", f"{NAMESPACE}/unload", unload_namespace),
    ("PUT", f"{NAMESPACE}/{{bundle}}/unload", unload_bundle),
    ("GET", f"{NAMESPACE}/properties", read_properties),
    ("PUT", f"{NAMESPACE}/properties", update_properties),
    ("DELETE", f"{NAMESPACE}/properties", remove_properties),
    ("GET", f"{NAMESPACE}/property/{{key}}", read_property),
    ("DELETE", f"{NAMESPACE}/property/{{key}}", remove_property),
    ("PUT", f"{NAMESPACE}/property/{{key}}/{{value}}", set_property),
]
