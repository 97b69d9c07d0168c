"""Policies of Pulsar that this broker has not: never set.

Reading one answers as a Pulsar does where it is not set, removing one does nothing. Setting one is 501 with
its name, except to the one value that holds here anyway.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pulsar_sansio import NotFound

from ..messages import NO_CONTENT, NOTHING_SET, Answer, Refused, Request, answering, json_answer
from ..routes import AdministeredBroker, Handler, Route
from ..topics import TOPIC
from .policies import NAMESPACE
from .rates import NO_DISPATCH_RATE

_NONE = object()
"""The policy has no value: reading answers without a body."""


@dataclass(frozen=True, slots=True)
class Unset:
    """`value`: what reading gives, which is also the value that may be set. `empty`: the status without one.
    `set_by`: the method that would set it. `removable`: whether it has a DELETE. `applied`: what reading the
    effective value gives."""

    value: Any = _NONE
    empty: int = 200
    set_by: str = "POST"
    removable: bool = True
    applied: Any = _NONE


OF_NAMESPACES: dict[str, Unset] = {
    "replicatorDispatchRate": Unset(),
    "persistence": Unset(),
    "persistence/bookieAffinity": Unset(empty=204),
    "antiAffinity": Unset(empty=204),
    "deduplicationSnapshotInterval": Unset(removable=False),
    "offloadPolicies": Unset(),
    "offloadThreshold": Unset(-1, set_by="PUT", removable=False),
    "offloadThresholdInSeconds": Unset(-1, set_by="PUT", removable=False),
    "offloadDeletionLagMs": Unset(set_by="PUT"),
    "entryFilters": Unset(),
    "allowedClusters": Unset([], removable=False),
    "dispatcherPauseOnAckStatePersistent": Unset(False),
    "subscriptionAuthMode": Unset("None", removable=False),
}

OF_TOPICS: dict[str, Unset] = {
    "replicatorDispatchRate": Unset(applied=NO_DISPATCH_RATE),
    "persistence": Unset(),
    "offloadPolicies": Unset(),
    "deduplicationSnapshotInterval": Unset(),
    "entryFilters": Unset(applied={"entryFilterNames": ""}),
    "dispatcherPauseOnAckStatePersistent": Unset(False),
}

Scope = Callable[[Request], str]


def _namespace(request: Request) -> str:
    return request.namespace


def _topic(request: Request) -> str:
    return request.topic


def _check(broker: AdministeredBroker, scope: str) -> None:
    reason = f"Topic {scope} not found" if "://" in scope else "Namespace does not exist"
    with answering((NotFound, 404, reason)):
        broker.machine.administration.policies_of(scope)


def _read(scope_of: Scope, policy: Unset, broker: AdministeredBroker, request: Request) -> Answer:
    _check(broker, scope_of(request))
    value = policy.applied if request.flag("applied") and policy.applied is not _NONE else policy.value
    return Answer(policy.empty) if value is _NONE else json_answer(value)


def _remove(scope_of: Scope, broker: AdministeredBroker, request: Request) -> Answer:
    _check(broker, scope_of(request))
    return NO_CONTENT


def _set(scope_of: Scope, name: str, policy: Unset, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    value = request.json() if request.body else None
    _check(broker, scope)
    if policy.value is not _NONE and type(value) is type(policy.value) and value == policy.value:
        return NO_CONTENT
    kind = "topic" if "://" in scope else "namespace"
    raise Refused(501, f"the policy {name} of a {kind} is not implemented by this broker")


# --- replication: to the one cluster there is ---------------------------------------------------------


def _clusters(scope_of: Scope, shown: bool, broker: AdministeredBroker, request: Request) -> Answer:
    _check(broker, scope_of(request))
    if not shown and not request.flag("applied"):
        return NOTHING_SET
    return json_answer([broker.machine.config.cluster])


def _replicate(scope_of: Scope, broker: AdministeredBroker, request: Request) -> Answer:
    scope = scope_of(request)
    given = request.json()
    _check(broker, scope)
    if not isinstance(given, list):
        raise Refused(400, f"the body has to be a list of clusters, not {given!r:.200}")
    if not given:
        raise Refused(412, "ClusterIds should not be null or empty")
    others = [each for each in given if each != broker.machine.config.cluster]
    if others:
        raise Refused(403, f"Invalid cluster id: {others[0]!s:.100}")
    return NO_CONTENT if "://" in scope else Answer(200)


def _routes() -> list[Route]:
    routes: list[Route] = []
    topic = TOPIC.replace("{domain}", "persistent")
    scopes: list[tuple[str, Scope, dict[str, Unset]]] = [
        (NAMESPACE, _namespace, OF_NAMESPACES),
        (topic, _topic, OF_TOPICS),
    ]
    for prefix, scope_of, policies in scopes:
        for name, policy in policies.items():
            path = f"{prefix}/{name}"
            routes.append(("GET", path, partial(_read, scope_of, policy)))
            routes.append((policy.set_by, path, partial(_set, scope_of, name, policy)))
            if policy.removable:
                routes.append(("DELETE", path, partial(_remove, scope_of)))
        replicate: Handler = partial(_replicate, scope_of)
        routes.append(("GET", f"{prefix}/replication", partial(_clusters, scope_of, prefix is NAMESPACE)))
        routes.append(("POST", f"{prefix}/replication", replicate))
    routes.append(("DELETE", f"{topic}/replication", partial(_remove, _topic)))
    routes.append(("DELETE", f"{NAMESPACE}/removeOffloadPolicies", partial(_remove, _namespace)))
    return routes


ROUTES = _routes()
