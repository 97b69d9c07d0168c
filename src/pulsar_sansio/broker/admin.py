"""What an administrator does: tenants, namespaces and policies; what concerns topics is in `topic_admin`.

Commands of the root machine, so that tests, the simulator and an HTTP front end use one thing. Each raises
`LocalProtocolError` (or a subclass, see `mistakes`) for a mistake and has then changed nothing. What clients
have to be told (CLOSE_PRODUCER, CLOSE_CONSUMER) leaves as outputs.
"""

from collections.abc import Iterable, Mapping

from ..model.errors import InvalidConfiguration
from ..model.topic_name import TopicName
from .mistakes import AlreadyThere, NoSuchThing, StillInUse
from .policies import Policies
from .store import NamespaceDeleted, PoliciesSaved, TenantDeleted, TenantSaved
from .topic_admin import TopicAdministration

MAX_TENANT_ROLES = 1000
"""Roles of one tenant's administrators; more is taken for a slip of the pen."""


class Administration(TopicAdministration):
    """The administrator's half of `Broker`."""

    tenants: dict[str, tuple[str, ...]]

    # --- tenants --------------------------------------------------------------------------------------

    def create_tenant(self, now: int, tenant: str, admin_roles: Iterable[str] = ()) -> None:
        """`admin_roles` are kept and shown; there is no authorization that would ask for them.

        Raises `AlreadyThere`, or `InvalidConfiguration` for a bad name or roles that are not text.
        """
        self.context.now = now
        _check_text("tenant", tenant)
        TopicName.parse(f"persistent://{tenant}/namespace/topic")
        roles = _roles(admin_roles)
        if tenant in self.tenants:
            raise AlreadyThere(f"tenant {tenant} exists")
        self._save_tenant(tenant, roles)

    def update_tenant(self, now: int, tenant: str, admin_roles: Iterable[str]) -> None:
        """Other roles. Raises `NoSuchThing`, `InvalidConfiguration`."""
        self.context.now = now
        roles = _roles(admin_roles)
        if tenant not in self.tenants:
            raise NoSuchThing(f"no tenant {tenant}")
        self._save_tenant(tenant, roles)

    def _save_tenant(self, tenant: str, roles: tuple[str, ...]) -> None:
        self.tenants[tenant] = roles
        self.journal.records.append(TenantSaved(tenant, roles))
        self._settle()

    def delete_tenant(self, now: int, tenant: str) -> None:
        """Raises `NoSuchThing`, or `StillInUse` while it has namespaces."""
        self.context.now = now
        if tenant not in self.tenants:
            raise NoSuchThing(f"no tenant {tenant}")
        if namespaces := self.namespaces(tenant):
            raise StillInUse(f"tenant {tenant} has {len(namespaces)} namespaces; delete them first")
        del self.tenants[tenant]
        self.journal.records.append(TenantDeleted(tenant))
        self._settle()

    # --- namespaces -----------------------------------------------------------------------------------

    def create_namespace(
        self, now: int, namespace: str, policies: Mapping[str, object] | None = None
    ) -> None:
        """`tenant/namespace`, with these policies from the start.

        Raises `NoSuchThing` without the tenant, `AlreadyThere`, `InvalidConfiguration`.
        """
        self.context.now = now
        _check_text("namespace", namespace)
        TopicName.parse(f"persistent://{namespace}/topic")
        made = Policies().with_policies(policies or {})
        tenant = namespace.split("/")[0]
        if tenant not in self.tenants:
            raise NoSuchThing(f"no tenant {tenant}; create it first")
        if namespace in self.policies:
            raise AlreadyThere(f"namespace {namespace} exists")
        self.policies[namespace] = made
        self.journal.records.append(PoliciesSaved(namespace, made))
        self._settle()

    def namespaces(self, tenant: str) -> list[str]:
        """`tenant/namespace`, sorted. Raises `NoSuchThing`."""
        if tenant not in self.tenants:
            raise NoSuchThing(f"no tenant {tenant}")
        return sorted(
            scope for scope in self.policies if "://" not in scope and scope.startswith(f"{tenant}/")
        )

    def delete_namespace(self, now: int, namespace: str) -> None:
        """Raises `NoSuchThing`, or `StillInUse` while there are topics in it."""
        self.context.now = now
        self._check_namespace(namespace)
        topics = (topic.topic_name.namespace_name for topic in self.all_topics.values())
        if namespace in topics or self.partitioned_topics(namespace):
            raise StillInUse(f"namespace {namespace} has topics; delete them first")
        del self.policies[namespace]
        self.journal.records.append(NamespaceDeleted(namespace))
        self._settle()

    def unload_namespace(self, now: int, namespace: str) -> None:
        """`unload` for every topic of it. Raises `NoSuchThing`."""
        self.context.now = now
        self._check_namespace(namespace)
        for topic in list(self.all_topics.values()):
            if topic.topic_name.namespace_name == namespace:
                topic.unload()
        self._settle()

    # --- policies -------------------------------------------------------------------------------------

    def set_policy(self, now: int, scope: str, policy: str, value: object) -> None:
        """Set one field of `Policies` for a namespace (`tenant/namespace`) or a topic (full or base name).

        None removes it. Takes effect at once, also for topics in use. Raises `NoSuchThing`,
        `InvalidConfiguration`.
        """
        _check_text("policy", policy)
        self.set_policies(now, scope, {policy: value})

    def set_policies(self, now: int, scope: str, values: Mapping[str, object]) -> None:
        """`set_policy` for several fields, all of them or none."""
        self.context.now = now
        scope = self._policy_scope(scope)
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

        Raises `NoSuchThing`.
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
            raise NoSuchThing(f"no topic {name}")
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


def _roles(given: Iterable[str]) -> tuple[str, ...]:
    roles = tuple(given)
    if len(roles) > MAX_TENANT_ROLES or not all(isinstance(role, str) and role for role in roles):
        raise InvalidConfiguration(f"admin_roles: at most {MAX_TENANT_ROLES} names, not {roles!r:.200}")
    return tuple(sorted(dict.fromkeys(roles)))
