"""What an administrator does: tenants, namespaces and policies; what concerns topics is in `topic_admin`.

Commands of the root machine, so that tests, the simulator and an HTTP front end use one thing. Each raises
`LocalProtocolError` (or a subclass, see `mistakes`) for a mistake and has then changed nothing. What clients
have to be told (CLOSE_PRODUCER, CLOSE_CONSUMER) leaves as outputs.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...model.errors import IncompatibleSchema, InvalidConfiguration, TopicNotFound
from ...model.topic_name import TopicName
from ...wire import proto
from ..admin_errors import AlreadyExists, InUse, LimitReached, NotApplicable, NotFound
from ..policies import Policies
from ..records import GrantsSaved, NamespaceDeleted, PoliciesSaved, TenantDeleted, TenantSaved
from ..topics.schemas import PRIMITIVES
from .subscription_admin import text_pairs
from .topic_admin import TopicAdministration

MAX_TENANT_ROLES = 1000
"""Roles of one tenant's administrators; more is taken for a slip of the pen."""


SCHEMA_TYPES: dict[int, str] = {
    int(number): re.sub("(?<=[a-z])(?=[A-Z])", "_", proto.Schema.Type.Name(number)).upper()
    for number in sorted(PRIMITIVES)
}
SCHEMA_TYPES[proto.Schema.Bool] = "BOOLEAN"
"""Types of schemas that can be registered, as Pulsar's HTTP interface names them, by their number."""

MAX_GRANTS = 1000
"""One scope keeps permissions of at most so many roles and subscriptions."""

MAX_GRANT_CHARACTERS = 64 * 1024
"""The names in one scope's permissions have at most so many characters together."""

ACTIONS = ("produce", "consume", "functions", "sources", "sinks", "packages")
"""A role can be permitted to do these, which are Pulsar's names."""


class Administration(TopicAdministration):
    """The administrator's half of `Broker`."""

    tenants: dict[str, tuple[str, ...]]

    if TYPE_CHECKING:

        @property
        def wall_time(self) -> int: ...

    # --- tenants --------------------------------------------------------------------------------------

    def create_tenant(self, now: int, tenant: str, admin_roles: Iterable[str] = ()) -> None:
        """`admin_roles` are kept and shown; there is no authorization that would ask for them.

        Raises `AlreadyExists`, or `InvalidConfiguration` for a bad name or roles that are not text.
        """
        self.context.now = now
        _check_text("tenant", tenant)
        TopicName.parse(f"persistent://{tenant}/namespace/topic")
        roles = _roles(admin_roles)
        if tenant in self.tenants:
            raise AlreadyExists(f"tenant {tenant} exists")
        self._save_tenant(tenant, roles)

    def update_tenant(self, now: int, tenant: str, admin_roles: Iterable[str]) -> None:
        """Other roles. Raises `NotFound`, `InvalidConfiguration`."""
        self.context.now = now
        roles = _roles(admin_roles)
        if tenant not in self.tenants:
            raise NotFound(f"no tenant {tenant}")
        self._save_tenant(tenant, roles)

    def _save_tenant(self, tenant: str, roles: tuple[str, ...]) -> None:
        self.tenants[tenant] = roles
        self.journal.records.append(TenantSaved(tenant, roles))
        self._settle()

    def delete_tenant(self, now: int, tenant: str) -> None:
        """Raises `NotFound`, or `InUse` while it has namespaces."""
        self.context.now = now
        if tenant not in self.tenants:
            raise NotFound(f"no tenant {tenant}")
        if namespaces := self.namespaces(tenant):
            raise InUse(f"tenant {tenant} has {len(namespaces)} namespaces; delete them first")
        del self.tenants[tenant]
        self.journal.records.append(TenantDeleted(tenant))
        self._settle()

    # --- namespaces -----------------------------------------------------------------------------------

    def create_namespace(
        self, now: int, namespace: str, policies: Mapping[str, object] | None = None
    ) -> None:
        """`tenant/namespace`, with these policies from the start.

        Raises `NotFound` without the tenant, `AlreadyExists`, `InvalidConfiguration`.
        """
        self.context.now = now
        _check_text("namespace", namespace)
        TopicName.parse(f"persistent://{namespace}/topic")
        made = Policies().with_policies(policies or {})
        tenant = namespace.split("/")[0]
        if tenant not in self.tenants:
            raise NotFound(f"no tenant {tenant}; create it first")
        if namespace in self.policies:
            raise AlreadyExists(f"namespace {namespace} exists")
        self.policies[namespace] = made
        self.journal.records.append(PoliciesSaved(namespace, made))
        self._settle()

    def namespaces(self, tenant: str) -> list[str]:
        """`tenant/namespace`, sorted. Raises `NotFound`."""
        if tenant not in self.tenants:
            raise NotFound(f"no tenant {tenant}")
        return sorted(
            scope for scope in self.policies if "://" not in scope and scope.startswith(f"{tenant}/")
        )

    def delete_namespace(self, now: int, namespace: str) -> None:
        """Raises `NotFound`, or `InUse` while there are topics in it."""
        self.context.now = now
        self._check_namespace(namespace)
        topics = (topic.topic_name.namespace_name for topic in self.all_topics.values())
        if namespace in topics or self.partitioned_topics(namespace):
            raise InUse(f"namespace {namespace} has topics; delete them first")
        self._forget_scope(namespace)
        self.journal.records.append(NamespaceDeleted(namespace))
        self._settle()

    def unload_namespace(self, now: int, namespace: str) -> None:
        """`unload` for every topic of it. Raises `NotFound`."""
        self.context.now = now
        self._check_namespace(namespace)
        for topic in list(self.all_topics.values()):
            if topic.topic_name.namespace_name == namespace:
                topic.unload()
        self._settle()

    # --- permissions ----------------------------------------------------------------------------------

    def grants_of(self, scope: str) -> GrantsSaved:
        """Give the permissions on a namespace (`tenant/namespace`) or a topic. Raises `NotFound`."""
        scope = self._policy_scope(scope)
        return self.grants.get(scope, GrantsSaved(scope))

    def topic_grants(self, namespace: str) -> dict[str, dict[str, tuple[str, ...]]]:
        """Give the permissions on topics of the namespace, by full name, where there are some."""
        return {
            scope: dict(grants.roles)
            for scope, grants in sorted(self.grants.items())
            if "://" in scope and grants.roles and TopicName.parse(scope).namespace_name == namespace
        }

    def grant(self, now: int, scope: str, roles: Mapping[str, Iterable[str]]) -> None:
        """Set the actions of these roles, some of `ACTIONS`; no actions revoke the role's permission.

        Permissions are kept and shown; there is no authorization that would ask for them. Raises
        `NotFound`, `InvalidConfiguration`.
        """
        present = self.grants_of(scope)
        roles = {role: tuple(actions) for role, actions in roles.items()}
        for role, actions in roles.items():
            _check_text("role", role)
            if not set(actions) <= set(ACTIONS):
                raise InvalidConfiguration(f"actions: some of {', '.join(ACTIONS)}; not {actions!r:.200}")
        self._save_grants(now, replace(present, roles=_changed(present.roles, roles)))

    def grant_subscription(self, now: int, namespace: str, roles: Mapping[str, Iterable[str]]) -> None:
        """Set which roles may use these subscriptions of a namespace; no roles revoke.

        Raises `NotFound`, `InvalidConfiguration`.
        """
        self._check_namespace(namespace)
        present = self.grants_of(namespace)
        roles = {subscription: tuple(names) for subscription, names in roles.items()}
        for subscription, names in roles.items():
            _check_text("subscription", subscription)
            for name in names:
                _check_text("role", name)
        changed = _changed(present.subscriptions, roles)
        self._save_grants(now, replace(present, subscriptions=changed))

    def _save_grants(self, now: int, grants: GrantsSaved) -> None:
        self.context.now = now
        pairs = [*grants.roles, *grants.subscriptions]
        characters = sum(len(name) + sum(map(len, values)) for name, values in pairs)
        if len(pairs) > MAX_GRANTS or characters > MAX_GRANT_CHARACTERS:
            raise InvalidConfiguration(
                f"permissions of {grants.scope}: at most {MAX_GRANTS}, of {MAX_GRANT_CHARACTERS} characters"
            )
        self.grants[grants.scope] = grants
        if not grants.roles and not grants.subscriptions:
            del self.grants[grants.scope]
        self.journal.records.append(grants)
        self._settle()

    # --- schemas --------------------------------------------------------------------------------------

    def schema(self, topic: str, version: int | None = None) -> dict[str, Any]:
        """As `GET …/schema`; None is the latest version. Raises `NotFound`."""
        try:
            wanted = None if version is None else version.to_bytes(8, "big")
            saved = self.schemas.get(TopicName.parse(topic), wanted)
        except (TopicNotFound, OverflowError):
            raise NotFound(f"no schema of {topic}") from None
        return {
            "version": saved.version,
            "type": SCHEMA_TYPES[saved.type],
            "timestamp": saved.timestamp,
            "data": saved.data.decode(),
            "properties": dict(saved.properties),
        }

    def register_schema(
        self, now: int, topic: str, kind: str, data: str = "", properties: Mapping[str, str] | None = None
    ) -> int:
        """The version of this schema, registered now if it is the first; the topic need not exist. `kind`: a
        name of `SCHEMA_TYPES`.

        Raises `NotFound` without the namespace, `InvalidConfiguration`, `LimitReached`, or `NotApplicable` for
        another type than the present one.
        """
        self.context.now = now
        name = self._name_for_schema(topic)
        if kind not in SCHEMA_TYPES.values():
            raise InvalidConfiguration(
                f"type of a schema: {', '.join(SCHEMA_TYPES.values())}; not {kind!r:.100}"
            )
        number = next(number for number, each in SCHEMA_TYPES.items() if each == kind)
        schema = proto.Schema(
            name="", type=proto.Schema.Type.Name(number), schema_data=data.encode(errors="replace")
        )
        for key, value in text_pairs(properties):
            schema.properties.add(key=key, value=value)
        try:
            version = self.schemas.register(name, schema, self.wall_time)
        except IncompatibleSchema as error:
            raise NotApplicable(error.text) from None
        self._settle()
        return int.from_bytes(version, "big")

    def delete_schema(self, now: int, topic: str, force: bool = False) -> int:
        """The number of the version that says so; with `force` all versions are forgotten, and it is -1.

        Raises `NotFound` without the namespace, `LimitReached`.
        """
        self.context.now = now
        version = -1
        if force:
            name = TopicName.parse(topic)
            self._check_namespace(name.namespace_name)
            self.schemas.forget(name)
        else:
            name = self._name_for_schema(topic)
            version = self.schemas.delete(name, self.wall_time)
        self._settle()
        return version

    def _name_for_schema(self, topic: str) -> TopicName:
        """The topic need not exist, so that only this limit bounds the registry (`BrokerConfig.max_topics`).

        Raises `NotFound` without the namespace, `LimitReached`.
        """
        name = TopicName.parse(topic)
        self._check_namespace(name.namespace_name)
        most = self.config.max_topics
        if not self.schemas.has_room(name, most):
            raise LimitReached(f"schemas: {most} topics have one; delete some with force")
        return name

    # --- policies -------------------------------------------------------------------------------------

    def set_policy(self, now: int, scope: str, policy: str, value: object) -> None:
        """Set one field of `Policies` for a namespace (`tenant/namespace`) or a topic (full or base name).

        None removes it. Takes effect at once, also for topics in use. Raises `NotFound`,
        `InvalidConfiguration`.
        """
        _check_text("policy", policy)
        self.set_policies(now, scope, {policy: value})

    def set_policies(self, now: int, scope: str, values: Mapping[str, object]) -> None:
        """`set_policy` for several fields, all of them or none."""
        self.context.now = now
        scope = self._policy_scope(scope)
        if "://" in scope and "max_topics" in values:
            raise InvalidConfiguration("policy max_topics: only a namespace has it")
        changed = self.policies.get(scope, Policies()).with_policies(values)
        if not changed.retention_exceeds_quotas:
            kind = "topic" if "://" in scope else "namespace"
            raise InvalidConfiguration(
                f"Retention Quota must exceed configured backlog quota for {kind}."
                if any(name.startswith("retention") for name in values)
                else f"Backlog Quota exceeds configured retention quota for {kind}. "
                "Please increase retention quota and retry"
            )
        self.policies[scope] = changed
        self.journal.records.append(PoliciesSaved(scope, changed))
        for topic in list(self.all_topics.values()):
            if scope in (topic.topic_name.namespace_name, topic.name, str(topic.topic_name.base)):
                topic.set_policies(self.effective_policies(topic.topic_name))
        self._settle()

    def policies_of(self, scope: str, applied: bool = False) -> Policies:
        """What is set for just this namespace or topic; `applied`: what counts, inherited values included.

        Raises `NotFound`.
        """
        scope = self._policy_scope(scope)
        if not applied:
            return self.policies.get(scope, Policies())
        if "://" in scope:
            return self.effective_policies(TopicName.parse(scope))
        return self.policies[scope].over(self.defaults)

    def _policy_scope(self, scope: str) -> str:
        if not isinstance(scope, str) or "://" not in scope:
            self._check_namespace(scope)
            return scope
        name = str(TopicName.parse(scope))
        if name not in self.all_topics and name not in self.partitions:
            raise NotFound(f"no topic {name}")
        return name

    # --- dates ----------------------------------------------------------------------------------------

    @staticmethod
    def wall_text(wall_time: int) -> str:
        """ISO 8601, in UTC; `wall_time` in milliseconds since 1970."""
        days, seconds = divmod(wall_time // 1000, 86_400)
        # the Gregorian calendar in eras of 400 years that begin in March, so that leap days come last
        era, day_of_era = divmod(days + 719_468, 146_097)
        year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
        day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
        month = (5 * day_of_year + 2) // 153
        day = day_of_year - (153 * month + 2) // 5 + 1
        month, year = (month + 3, year) if month < 10 else (month - 9, year + 1)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{era * 400 + year:04}-{month:02}-{day:02}T{clock}Z"


def _check_text(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise InvalidConfiguration(f"{what}: a name, not {name!r}")


def _changed(
    present: tuple[tuple[str, tuple[str, ...]], ...], changes: Mapping[str, Iterable[str]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The pairs with some values replaced; an empty one goes."""
    changed = dict(present) | {name: tuple(dict.fromkeys(values)) for name, values in changes.items()}
    return tuple((name, values) for name, values in changed.items() if values)


def _roles(given: Iterable[str]) -> tuple[str, ...]:
    roles = tuple(given)
    if len(roles) > MAX_TENANT_ROLES or not all(isinstance(role, str) and role for role in roles):
        raise InvalidConfiguration(f"admin_roles: at most {MAX_TENANT_ROLES} names, not {roles!r:.200}")
    return tuple(sorted(dict.fromkeys(roles)))
