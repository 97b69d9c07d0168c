"""`Authorization`: what a role may do, by the permissions that administrators granted (TENANT-03).

It decides as Pulsar's `PulsarAuthorizationProvider` does. Every method takes the roles of one client, all of
which need the permission: a connection of a proxy has two.
"""

from collections.abc import Callable, Mapping

from ...model.topic_name import TopicName
from ..records import GrantsSaved
from .broker_authentication import BrokerAuthentication

Roles = tuple[str, ...]


class Authorization:
    """`tenants`: tenant -> the roles of its administrators. `grants`: scope -> permissions.

    Both belong to the broker's metadata and change. Without settings everything is allowed.
    """

    __slots__ = ("_grants", "_superusers", "_tenants", "_wildcards", "enabled")

    def __init__(
        self,
        settings: BrokerAuthentication | None,
        tenants: Mapping[str, Roles],
        grants: Mapping[str, GrantsSaved],
    ) -> None:
        self.enabled = settings is not None and settings.authorization
        self._superusers = frozenset() if settings is None else settings.superusers
        self._wildcards = settings is not None and settings.wildcard_roles
        self._tenants = tenants
        self._grants = grants

    def is_superuser(self, roles: Roles) -> bool:
        return self._all(roles, self._superusers.__contains__)

    def administers(self, roles: Roles, tenant: str) -> bool:
        """True for administrators of a tenant, and for superusers."""
        return self._all(roles, lambda role: self._is_admin(role, tenant))

    def may_produce(self, roles: Roles, topic: TopicName) -> bool:
        return self._all(
            roles, lambda role: self._is_admin(role, topic.tenant) or self._has(role, topic, "produce")
        )

    def may_consume(self, roles: Roles, topic: TopicName, subscription: str = "") -> bool:
        """Without a subscription: the permission to consume from the topic."""
        return self._all(
            roles,
            lambda role: self._is_admin(role, topic.tenant) or self._consumes(role, topic, subscription),
        )

    def may_look_up(self, roles: Roles, topic: TopicName) -> bool:
        """True for roles that may produce or consume."""
        return self._all(
            roles,
            lambda role: (
                self._is_admin(role, topic.tenant)
                or self._has(role, topic, "produce")
                or self._has(role, topic, "consume")
            ),
        )

    def may_list_topics(self, roles: Roles, namespace: str) -> bool:
        """True for roles that may consume from the whole namespace."""
        tenant = namespace.partition("/")[0]
        return self._all(
            roles,
            lambda role: self._is_admin(role, tenant) or self._permits(namespace, role, "consume"),
        )

    def _all(self, roles: Roles, may: Callable[[str], bool]) -> bool:
        return not self.enabled or (bool(roles) and all(map(may, roles)))

    def _is_admin(self, role: str, tenant: str) -> bool:
        return role in self._superusers or role in self._tenants.get(tenant, ())

    def _consumes(self, role: str, topic: TopicName, subscription: str) -> bool:
        """A subscription with roles of its own is for these only."""
        grants = self._grants.get(topic.namespace_name)
        only = dict(grants.subscriptions).get(subscription, ()) if grants is not None else ()
        return (not only or role in only) and self._has(role, topic, "consume")

    def _has(self, role: str, topic: TopicName, action: str) -> bool:
        """A permission on the namespace, the topic, or the partitioned topic of a partition."""
        scopes = (topic.namespace_name, str(topic), str(topic.base))
        return any(self._permits(scope, role, action) for scope in scopes)

    def _permits(self, scope: str, role: str, action: str) -> bool:
        grants = self._grants.get(scope)
        if grants is None:
            return False
        return any(
            action in actions and (granted == role or (self._wildcards and _matches(granted, role)))
            for granted, actions in grants.roles
        )


def _matches(granted: str, role: str) -> bool:
    """True for a granted role with `*` at its end or beginning that stands for this role.

    Another `*` stands for itself, as in Pulsar.
    """
    return (granted.endswith("*") and role.startswith(granted[:-1])) or (
        granted.startswith("*") and role.endswith(granted[1:])
    )
