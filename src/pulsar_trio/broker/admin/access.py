"""Access to the administration: the role of a request, the permission it needs, and the page it comes from.

Operations need the permissions that Pulsar asks for them. A path without a rule is for superusers.
"""

from base64 import b64decode
from collections.abc import Collection
from ipaddress import ip_address

from pulsar_sansio import AuthenticationError, TopicName

from .messages import JSON, PARTITIONED_METADATA, Refused, Request, topic_name
from .routes import AdministeredBroker

Roles = tuple[str, ...]

STATUS_PAGE = ("status",)
"""Pages of other sites may link to it: it has no number in it."""

OPEN_PATHS = (("metrics",), STATUS_PAGE, ("status", "status.js"), ("status", "status.css"))
"""Paths that need no role: metrics, as in Pulsar (`authenticateMetricsEndpoint`), and the page of the status,
which has no number in it."""

FOR_EVERY_ROLE = (
    ("admin", "v2", "clusters"),
    ("admin", "v2", "brokers", "version"),
    ("admin", "v2", "brokers", "ready"),
)
"""Paths that every role may read."""

LOOKED_UP = {
    "partitions",
    "properties",
    "stats",
    "partitioned-stats",
    "internalStats",
    "partitioned-internalStats",
    "internal-info",
    "backlog",
}
"""Parts of a topic that a role may read when it may produce or consume."""

CONSUMED = {
    "subscriptions",
    "lastMessageId",
    "examinemessage",
    "messageid",
    "ledger",
    "getMessageIdByIndex",
}
"""Parts of a topic that a role may read when it may consume."""

ON_SEVERAL_TOPICS = ("grantPermissionsOnTopics", "revokePermissionsOnTopics")
"""Their bodies name topics of any tenant, so they are for superusers."""

IN_BUFFERS = ("transactionBufferStats", "transactionInBufferStats")
"""Transactions of a topic: a role may read them when it may produce or consume."""

OF_ACKS = ("pendingAckStats", "transactionInPendingAckStats", "positionStatsInPendingAck")
"""Transactions of a subscription: a role may read them when it may consume."""


# --- sites --------------------------------------------------------------------------------------------


def check_site(request: Request, names: Collection[str]) -> None:
    """Refuse what a web page of another site makes a browser send. Raises `Refused`.

    `names`: the names of this broker, in lower case. A page cannot choose an IP address in place of a name
    (DNS rebinding), so every address is accepted.
    """
    host = request.headers.get("host", "")
    name = _name_in(host)
    if name and name not in names and not _is_address(name):
        raise Refused(403, f"this broker has not the name {name!r:.200}; see advertised_host")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        raise Refused(403, "requests of pages of other sites are refused")
    linked = request.path == STATUS_PAGE and request.method == "GET"
    if not linked and request.headers.get("sec-fetch-site", "").lower() in ("cross-site", "same-site"):
        raise Refused(403, "requests of pages of other sites are refused")
    if request.body and request.content_type not in (JSON, PARTITIONED_METADATA):
        raise Refused(415, f"the body has to be {JSON}, not {request.content_type or 'of no type'}")


def _name_in(host: str) -> str:
    """Return the name or address of a Host header, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


# --- roles --------------------------------------------------------------------------------------------


def identify(broker: AdministeredBroker, request: Request) -> Roles:
    """Return the roles of a request: its own, and the one that a proxy names. Raises `Refused` (401)."""
    authenticator = broker.machine.authenticator
    if authenticator is None or request.path in OPEN_PATHS:
        return ()
    try:
        method, data = _credentials(request)
        role = broker.machine.authenticate(broker.now(), method, data, request.certificate)
    except (AuthenticationError, ValueError):
        raise Refused(401, "Authentication required") from None
    original = request.headers.get("x-original-principal", "").strip()
    if original == role:
        original = ""
    if broker.machine.authorization.enabled and not authenticator.valid_principals(role, original):
        raise Refused(401, "Invalid roles.")
    return (original, role) if original else (role,)


def _credentials(request: Request) -> tuple[str, bytes]:
    """Return the method and the credentials. Raises `ValueError` for Basic without Base64."""
    given = request.headers.get("authorization", "")
    scheme, _, rest = given.partition(" ")
    if scheme.lower() == "bearer":
        return "token", rest.strip().encode("latin-1")
    if scheme.lower() == "basic":
        return "basic", b64decode(rest.strip(), validate=True)
    method = request.headers.get("x-pulsar-auth-method-name", "")
    return method or ("none" if request.certificate is None else "tls"), given.encode("latin-1")


# --- permissions --------------------------------------------------------------------------------------


def authorize(broker: AdministeredBroker, roles: Roles, request: Request) -> None:
    """Raises `Refused` (401, 403) when the roles lack the permission for a request whose path is known."""
    authorization = broker.machine.authorization
    if not authorization.enabled or request.path in OPEN_PATHS:
        return
    reads = request.method in ("GET", "HEAD")
    match request.path:
        case ("admin", "v2", "namespaces", part) if part in ON_SEVERAL_TOPICS:
            _check_superuser(broker, roles)
            allowed = True
        case ("admin", "v2", "namespaces", tenant):
            allowed = authorization.administers(roles, tenant)
        case ("admin", "v2", "namespaces", tenant, namespace, *rest):
            if {"clearBacklog", "unsubscribe"} & set(rest[:2]) or (reads and rest == ["topics"]):
                allowed = authorization.may_list_topics(roles, f"{tenant}/{namespace}")
            else:
                allowed = authorization.administers(roles, tenant)
        case ("admin", "v2", "persistent" | "non-persistent", tenant, namespace, *rest) if reads and (
            not rest or rest == ["partitioned"]
        ):
            allowed = authorization.may_list_topics(roles, f"{tenant}/{namespace}")
        case ("admin", "v2", "persistent", tenant, _, _, subscription, "dispatchRate") if (
            subscription != "subscription" or request.method in ("GET", "HEAD", "POST")
        ):  # The policy of a subscription; PUT and DELETE mean a subscription of this name.
            allowed = authorization.administers(roles, tenant)
        case ("admin", "v2", "persistent" | "non-persistent" as domain, tenant, namespace, topic, *rest):
            allowed = _may_use(broker, roles, topic_name(domain, tenant, namespace, topic), reads, rest)
        case ("admin", "v2", "schemas", tenant, namespace, topic, *rest):
            name = topic_name("persistent", tenant, namespace, topic)
            if reads or rest in (["version"], ["compatibility"]):
                allowed = authorization.may_look_up(roles, name)
            elif request.method == "POST":
                allowed = authorization.may_produce(roles, name)
            else:
                allowed = authorization.administers(roles, tenant)
        case ("admin", "v3", "transactions", part, tenant, namespace, topic, *_) if part in IN_BUFFERS:
            allowed = authorization.may_look_up(roles, topic_name("persistent", tenant, namespace, topic))
        case ("admin", "v3", "transactions", part, tenant, namespace, topic, name, *_) if part in OF_ACKS:
            topic_of = topic_name("persistent", tenant, namespace, topic)
            allowed = authorization.may_consume(roles, topic_of, name)
        case ("lookup", "v2", "topic", domain, tenant, namespace, topic, *_):
            allowed = _may_look_up(broker, roles, topic_name(domain, tenant, namespace, topic))
        case ("topics", domain, tenant, namespace, topic, *_):
            allowed = authorization.may_produce(roles, topic_name(domain, tenant, namespace, topic))
        case path if reads and path in FOR_EVERY_ROLE:
            allowed = True
        case _:
            _check_superuser(broker, roles)
            allowed = True
    if not allowed:
        wanted = f"{request.method} /{'/'.join(request.path)}"
        raise Refused(403, f"role {' and '.join(roles)}: no permission for {wanted}"[:500])


def _check_superuser(broker: AdministeredBroker, roles: Roles) -> None:
    """Raises `Refused`."""
    if not broker.machine.authorization.is_superuser(roles):
        raise Refused(401, "This operation requires super-user access")


def _may_use(
    broker: AdministeredBroker, roles: Roles, topic: TopicName, reads: bool, rest: list[str]
) -> bool:
    """Decide on a part of a topic."""
    authorization = broker.machine.authorization
    match rest:
        case ("subscription", subscription, *_):
            return authorization.may_consume(roles, topic, subscription)
        case ("all_subscription", *_):
            return authorization.may_consume(roles, topic)
        case ("backlogSize",):
            return authorization.may_consume(roles, topic)
        case (part, *_) if reads and part in CONSUMED:
            return authorization.may_consume(roles, topic)
        case (part,) if reads and part in LOOKED_UP:
            return _may_look_up(broker, roles, topic)
    return authorization.administers(roles, topic.tenant)


def _may_look_up(broker: AdministeredBroker, roles: Roles, topic: TopicName) -> bool:
    """Every role may look up the transaction coordinators, as over Pulsar's own protocol."""
    coordinators = broker.machine.coordinators
    if coordinators.is_coordinator(topic) or coordinators.partitions_of(topic) is not None:
        return True
    return broker.machine.authorization.may_look_up(roles, topic)
