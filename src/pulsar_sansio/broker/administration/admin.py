"""`Administration`: an administrator's commands for tenants, namespaces, policies, permissions
and properties.

Tests, the simulator and an HTTP front end call them. Each command raises `LocalProtocolError` (or a subclass,
see `admin_errors`) for a mistake and then changes nothing. Notices to clients (CLOSE_PRODUCER,
CLOSE_CONSUMER) leave as outputs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...model.errors import InvalidConfiguration
from ...model.topic_name import TopicName
from ..admin_errors import AlreadyExists, InUse, LimitReached, NotFound
from ..policies import Policies
from ..records import GrantsSaved, NamespaceDeleted, PoliciesSaved, TenantDeleted, TenantSaved
from ..serving.lookups import text_pairs
from .parts import Parts

MAX_TENANT_ROLES = 1000
"""The number of administrator roles that one tenant may have; a longer list is taken for a mistake."""


MAX_GRANTS = 1000
"""The number of roles and subscriptions that may have permissions in one scope."""

MAX_GRANT_CHARACTERS = 64 * 1024
"""The number of characters that all names in one scope's permissions may have together."""

ACTIONS = ("produce", "consume", "functions", "sources", "sinks", "packages")
"""The actions that a role can be permitted, by Pulsar's names."""


TOO_LARGE = (
    "topic-level maxMessageSize must be greater than or equal to 0 and must be smaller than that in the "
    "broker-level"
)
"""The refusal of a policy `max_message_size` that is negative, or above the broker's."""


class Administration:
    """Commands that name a tenant, a namespace, or what is kept for a namespace or topic."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._context = parts.services.context
        self._journal = parts.services.journal
        self._metadata = parts.metadata
        self._topics = parts.topics
        self._settle = parts.settle

    # --- tenants --------------------------------------------------------------------------------------

    def create_tenant(self, now: int, tenant: str, admin_roles: Iterable[str] = ()) -> None:
        """Create a tenant. `admin_roles` may do everything in it, where the broker authorizes.

        Raises `AlreadyExists`, `LimitReached`, or `InvalidConfiguration` for a bad name or roles that are not
        text.
        """
        self._context.now = now
        _check_text("tenant", tenant)
        TopicName.parse(f"persistent://{tenant}/namespace/topic")
        roles = _roles(admin_roles)
        if tenant in self._metadata.tenants:
            raise AlreadyExists(f"tenant {tenant} exists")
        limit = self._parts.services.config.max_tenants
        if limit and len(self._metadata.tenants) >= limit:
            raise LimitReached("Exceed the maximum number of tenants")
        self._save_tenant(tenant, roles)

    def update_tenant(self, now: int, tenant: str, admin_roles: Iterable[str]) -> None:
        """Replace the roles of a tenant. Raises `NotFound`, `InvalidConfiguration`."""
        self._context.now = now
        roles = _roles(admin_roles)
        if tenant not in self._metadata.tenants:
            raise NotFound(f"no tenant {tenant}")
        self._save_tenant(tenant, roles)

    def _save_tenant(self, tenant: str, roles: tuple[str, ...]) -> None:
        self._metadata.tenants[tenant] = roles
        self._journal.records.append(TenantSaved(tenant, roles))
        self._settle()

    def delete_tenant(self, now: int, tenant: str) -> None:
        """Raises `NotFound`, or `InUse` while the tenant has namespaces."""
        self._context.now = now
        if tenant not in self._metadata.tenants:
            raise NotFound(f"no tenant {tenant}")
        if namespaces := self.namespaces(tenant):
            raise InUse(f"tenant {tenant} has {len(namespaces)} namespaces; delete them first")
        del self._metadata.tenants[tenant]
        self._journal.records.append(TenantDeleted(tenant))
        self._settle()

    # --- namespaces -----------------------------------------------------------------------------------

    def create_namespace(
        self, now: int, namespace: str, policies: Mapping[str, object] | None = None
    ) -> None:
        """Create `tenant/namespace` with these policies.

        Raises `NotFound` where the tenant does not exist, `AlreadyExists`, `LimitReached`,
        `InvalidConfiguration`.
        """
        self._context.now = now
        _check_text("namespace", namespace)
        TopicName.parse(f"persistent://{namespace}/topic")
        made = Policies().with_policies(policies or {})
        tenant = namespace.split("/")[0]
        if tenant not in self._metadata.tenants:
            raise NotFound(f"no tenant {tenant}; create it first")
        if namespace in self._metadata.policies:
            raise AlreadyExists(f"namespace {namespace} exists")
        limit = self._parts.services.config.max_namespaces_per_tenant
        if limit and len(self.namespaces(tenant)) >= limit:
            raise LimitReached(f"Exceed the maximum number of namespace in tenant :{tenant}")
        self._metadata.policies[namespace] = made
        self._journal.records.append(PoliciesSaved(namespace, made))
        self._settle()

    def namespaces(self, tenant: str) -> list[str]:
        """Return the `tenant/namespace` of each namespace, sorted. Raises `NotFound`."""
        if tenant not in self._metadata.tenants:
            raise NotFound(f"no tenant {tenant}")
        return sorted(
            scope
            for scope in self._metadata.policies
            if "://" not in scope and scope.startswith(f"{tenant}/")
        )

    def delete_namespace(self, now: int, namespace: str) -> None:
        """Raises `NotFound`, or `InUse` while the namespace has topics."""
        self._context.now = now
        self._metadata.require_namespace(namespace)
        if self._parts.topics_in(namespace) or self._metadata.partitioned_topics(namespace):
            raise InUse(f"namespace {namespace} has topics; delete them first")
        self._metadata.discard(namespace)
        self._journal.records.append(NamespaceDeleted(namespace))
        self._settle()

    def unload_namespace(self, now: int, namespace: str) -> None:
        """Unload every topic of the namespace. Raises `NotFound`."""
        self._context.now = now
        self._metadata.require_namespace(namespace)
        for topic in self._parts.topics_in(namespace):
            topic.unload()
        self._settle()

    # --- permissions ----------------------------------------------------------------------------------

    def grants_of(self, scope: str) -> GrantsSaved:
        """Return the permissions on a namespace (`tenant/namespace`) or a topic. Raises `NotFound`."""
        scope = self._policy_scope(scope)
        return self._metadata.grants.get(scope, GrantsSaved(scope))

    def topic_grants(self, namespace: str) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return full topic name -> role -> actions, for topics of the namespace that have permissions."""
        return {
            scope: dict(grants.roles)
            for scope, grants in sorted(self._metadata.grants.items())
            if "://" in scope and grants.roles and TopicName.parse(scope).namespace_name == namespace
        }

    def grant(self, now: int, scope: str, roles: Mapping[str, Iterable[str]]) -> None:
        """Set the actions of these roles, some of `ACTIONS`; no actions revoke the role's permission.

        A broker without authorization stores and shows them only. Raises `NotFound`, `InvalidConfiguration`.
        """
        present = self.grants_of(scope)
        roles = {role: tuple(actions) for role, actions in roles.items()}
        for role, actions in roles.items():
            _check_text("role", role)
            if not set(actions) <= set(ACTIONS):
                raise InvalidConfiguration(f"actions: some of {', '.join(ACTIONS)}; not {actions!r:.200}")
        self._save_grants(now, replace(present, roles=_changed(present.roles, roles)))

    def grant_subscription(self, now: int, namespace: str, roles: Mapping[str, Iterable[str]]) -> None:
        """Set the roles that may use these subscriptions of a namespace; no roles revoke the permission.

        Raises `NotFound`, `InvalidConfiguration`.
        """
        self._metadata.require_namespace(namespace)
        present = self.grants_of(namespace)
        roles = {subscription: tuple(names) for subscription, names in roles.items()}
        for subscription, names in roles.items():
            _check_text("subscription", subscription)
            for name in names:
                _check_text("role", name)
        changed = _changed(present.subscriptions, roles)
        self._save_grants(now, replace(present, subscriptions=changed))

    def _save_grants(self, now: int, grants: GrantsSaved) -> None:
        self._context.now = now
        pairs = [*grants.roles, *grants.subscriptions]
        characters = sum(len(name) + sum(map(len, values)) for name, values in pairs)
        if len(pairs) > MAX_GRANTS or characters > MAX_GRANT_CHARACTERS:
            raise InvalidConfiguration(
                f"permissions of {grants.scope}: at most {MAX_GRANTS}, of {MAX_GRANT_CHARACTERS} characters"
            )
        self._metadata.grants[grants.scope] = grants
        if not grants.roles and not grants.subscriptions:
            del self._metadata.grants[grants.scope]
        self._journal.records.append(grants)
        self._settle()

    # --- policies -------------------------------------------------------------------------------------

    def set_policy(self, now: int, scope: str, policy: str, value: object) -> None:
        """Set one field of `Policies` for a namespace (`tenant/namespace`) or a topic (full or base name).

        None removes the policy. The change takes effect at once, also for topics in use. Raises `NotFound`,
        `InvalidConfiguration`.
        """
        _check_text("policy", policy)
        self.set_policies(now, scope, {policy: value})

    def set_policies(self, now: int, scope: str, values: Mapping[str, object]) -> None:
        """Set several fields as `set_policy` does, either all of them or none."""
        self._context.now = now
        scope = self._policy_scope(scope)
        if "://" in scope and "max_topics" in values:
            raise InvalidConfiguration("policy max_topics: only a namespace has it")
        size = values.get("max_message_size")
        if isinstance(size, int) and size > self._parts.services.config.max_message_size:
            raise InvalidConfiguration(TOO_LARGE)
        if "://" not in scope and "dispatch_rates" in values:
            raise InvalidConfiguration("policy dispatch_rates: only a topic has it")
        changed = self._metadata.policies.get(scope, Policies()).with_policies(values)
        if not changed.retention_exceeds_quotas:
            kind = "topic" if "://" in scope else "namespace"
            raise InvalidConfiguration(
                f"Retention Quota must exceed configured backlog quota for {kind}."
                if any(name.startswith("retention") for name in values)
                else f"Backlog Quota exceeds configured retention quota for {kind}. "
                "Please increase retention quota and retry"
            )
        self._metadata.policies[scope] = changed
        self._journal.records.append(PoliciesSaved(scope, changed))
        for topic in list(self._topics.by_name.values()):
            if scope in (topic.topic_name.namespace_name, topic.name, str(topic.topic_name.base)):
                topic.set_policies(self._metadata.effective_policies(topic.topic_name))
        self._settle()

    def policies_of(self, scope: str, applied: bool = False) -> Policies:
        """Return the policies set for just this namespace or topic; with `applied`, inherited values too.

        Raises `NotFound`.
        """
        scope = self._policy_scope(scope)
        if not applied:
            return self._metadata.policies.get(scope, Policies())
        if "://" in scope:
            return self._metadata.effective_policies(TopicName.parse(scope))
        return self._metadata.policies[scope].over(self._metadata.defaults)

    def _policy_scope(self, scope: str) -> str:
        if not isinstance(scope, str) or "://" not in scope:
            self._metadata.require_namespace(scope)
            return scope
        return self._parts.existing(scope)

    # --- properties -----------------------------------------------------------------------------------

    def topic_properties(self, topic: str) -> dict[str, str]:
        """Return the properties that administrators keep with the topic. Raises `NotFound`."""
        return dict(self._metadata.properties.get(self._parts.existing(topic), ()))

    def update_topic_properties(self, now: int, topic: str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others. Raises `NotFound`, `InvalidConfiguration`."""
        self._change_properties(now, self._parts.existing(topic), properties)

    def remove_topic_property(self, now: int, topic: str, key: str) -> None:
        """Remove a property; an absent key changes nothing. Raises `NotFound`."""
        self._change_properties(now, self._parts.existing(topic), {}, (key,))

    def namespace_properties(self, namespace: str) -> dict[str, str]:
        """Return the properties that administrators keep with the namespace. Raises `NotFound`."""
        self._metadata.require_namespace(namespace)
        return dict(self._metadata.properties.get(namespace, ()))

    def update_namespace_properties(self, now: int, namespace: str, properties: Mapping[str, str]) -> None:
        """Set these properties and keep the others. Raises `NotFound`, `InvalidConfiguration`."""
        self._metadata.require_namespace(namespace)
        self._change_properties(now, namespace, properties)

    def remove_namespace_properties(self, now: int, namespace: str, key: str | None = None) -> None:
        """Remove a property, or all of them for None; an absent key changes nothing. Raises `NotFound`."""
        present = self.namespace_properties(namespace)
        self._change_properties(now, namespace, {}, present if key is None else (key,))

    def _change_properties(
        self, now: int, scope: str, changed: Mapping[str, str], removed: Iterable[str] = ()
    ) -> None:
        self._context.now = now
        properties = {**dict(self._metadata.properties.get(scope, ())), **changed}
        for key in removed:
            properties.pop(key, None)
        self._metadata.set_properties(scope, text_pairs(properties))
        self._settle()


def _check_text(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise InvalidConfiguration(f"{what}: a name, not {name!r}")


def _changed(
    present: tuple[tuple[str, tuple[str, ...]], ...], changes: Mapping[str, Iterable[str]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the pairs with some values replaced; a pair with an empty value is removed."""
    changed = dict(present) | {name: tuple(dict.fromkeys(values)) for name, values in changes.items()}
    return tuple((name, values) for name, values in changed.items() if values)


def _roles(given: Iterable[str]) -> tuple[str, ...]:
    roles = tuple(given)
    if len(roles) > MAX_TENANT_ROLES or not all(isinstance(role, str) and role for role in roles):
        raise InvalidConfiguration(f"admin_roles: at most {MAX_TENANT_ROLES} names, not {roles!r:.200}")
    return tuple(sorted(dict.fromkeys(roles)))
