"""`Metadata`: tenants, namespaces, partitioned topics, and what administrators keep with them.

The broker's copy of what a cluster keeps in its metadata store. It finds the policies of a topic. It knows no
topic that is served.
"""

from ..model.errors import TopicNotFound
from ..model.topic_name import TopicName
from .admin_errors import NotFound
from .config import BrokerConfig
from .policies import Policies
from .records import PoliciesSaved, PropertiesSaved, TenantSaved
from .storage.journal import Journal
from .storage.store import StoredState

FIRST_NAMESPACES = ("public/default", "pulsar/system")
"""The namespaces of a fresh broker, as of a fresh cluster."""


class Metadata:
    """A scope is a namespace (`tenant/namespace`) or a topic (its full name)."""

    def __init__(self, config: BrokerConfig, journal: Journal, state: StoredState) -> None:
        self._journal = journal
        self.defaults = config.policies()
        self.tenants = dict(state.tenants)
        """Tenant -> the roles of its administrators."""
        self.policies = dict(state.policies)
        """Scope -> policies: every namespace, and the topics that have policies of their own."""
        self.partitions = dict(state.partitions)
        """Full name of a partitioned topic -> the number of its partitions."""
        self.properties = dict(state.properties)
        self.grants = dict(state.grants)
        for namespace in FIRST_NAMESPACES:
            self._create_first(namespace)

    def _create_first(self, namespace: str) -> None:
        tenant = namespace.split("/")[0]
        if tenant not in self.tenants:
            self.tenants[tenant] = ()
            self._journal.records.append(TenantSaved(tenant))
        if namespace not in self.policies:
            self.policies[namespace] = Policies()
            self._journal.records.append(PoliciesSaved(namespace, Policies()))

    def effective_policies(self, topic: TopicName) -> Policies:
        """Merge policies: a topic's own win over its partitioned topic's, its namespace's, the broker's."""
        policies = self.policies.get(topic.namespace_name, Policies()).over(self.defaults)
        for name in dict.fromkeys((str(topic.base), str(topic))):
            own = self.policies.get(name)
            if own is not None:
                policies = own.over(policies)
        return policies

    def check_namespace(self, namespace: str) -> None:
        """Raise `TopicNotFound` where the namespace does not exist (seen: java-unknown-namespace)."""
        if namespace not in self.policies:
            raise TopicNotFound("Namespace not found")

    def require_namespace(self, namespace: str) -> None:
        """Raise the administrator's error, `NotFound`, where the namespace does not exist."""
        if not isinstance(namespace, str) or namespace not in self.policies or "://" in namespace:
            raise NotFound(f"no namespace {namespace}")

    def partitioned_topics(self, namespace: str) -> list[str]:
        """Full names, sorted."""
        return sorted(name for name in self.partitions if TopicName.parse(name).namespace_name == namespace)

    def set_properties(self, scope: str, pairs: tuple[tuple[str, str], ...]) -> None:
        """Keep these properties in place of the present ones; none removes them."""
        self.properties[scope] = pairs
        if not pairs:
            del self.properties[scope]
        self._journal.records.append(PropertiesSaved(scope, pairs))

    def discard(self, scope: str) -> None:
        """Discard all that is kept for a namespace or topic, which is deleted."""
        self.policies.pop(scope, None)
        self.properties.pop(scope, None)
        self.grants.pop(scope, None)
