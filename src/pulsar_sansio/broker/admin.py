"""What an administrator does: tenants, namespaces, policies, topics, and looking inside.

Commands of the root machine, so that tests, the simulator and an HTTP front end use one thing. Each raises
`LocalProtocolError` (or a subclass) for a mistake and has then changed nothing. What clients have to be told
(CLOSE_PRODUCER, CLOSE_CONSUMER) leaves as outputs.
"""

from typing import TYPE_CHECKING, Any

from ..core.context import Context
from ..model.errors import InvalidConfiguration, LocalProtocolError
from ..model.message_id import MessageId
from ..model.topic_name import TopicName
from .config import BrokerConfig
from .inspection import internal_stats, topic_stats
from .journal import Journal
from .outputs import Output
from .policies import Policies
from .schemas import Schemas
from .store import PartitionsSaved, PoliciesSaved, TenantSaved
from .topic import Topic

if TYPE_CHECKING:
    from .broker import AnyTopic

MAX_PARTITIONS = 10_000
"""More is taken for a slip of the pen."""


class NoSuchThing(LocalProtocolError):
    """The tenant, namespace or topic named does not exist."""


class AlreadyThere(LocalProtocolError):
    """The tenant, namespace or topic named exists."""


class Administration:
    """The administrator's half of `Broker`."""

    config: BrokerConfig
    context: Context[Output]
    journal: Journal
    schemas: Schemas
    tenants: set[str]
    policies: dict[str, Policies]
    partitions: dict[str, int]
    all_topics: "dict[str, AnyTopic]"

    if TYPE_CHECKING:

        def _settle(self) -> None: ...
        def effective_policies(self, topic: TopicName) -> Policies: ...
        def make_topic(self, name: TopicName) -> AnyTopic: ...
        def topic_names(self, namespace: str) -> list[str]: ...

    # --- tenants, namespaces, policies ----------------------------------------------------------------

    def create_tenant(self, now: int, tenant: str) -> None:
        """Raises `AlreadyThere`, or `InvalidConfiguration` for a bad name."""
        self.context.now = now
        TopicName.parse(f"persistent://{tenant}/namespace/topic")
        if tenant in self.tenants:
            raise AlreadyThere(f"tenant {tenant} exists")
        self.tenants.add(tenant)
        self.journal.records.append(TenantSaved(tenant))
        self._settle()

    def create_namespace(self, now: int, namespace: str) -> None:
        """`tenant/namespace`. Raises `NoSuchThing` without the tenant, `AlreadyThere`."""
        self.context.now = now
        TopicName.parse(f"persistent://{namespace}/topic")
        tenant = namespace.split("/")[0]
        if tenant not in self.tenants:
            raise NoSuchThing(f"no tenant {tenant}; create it first")
        if namespace in self.policies:
            raise AlreadyThere(f"namespace {namespace} exists")
        self.policies[namespace] = Policies()
        self.journal.records.append(PoliciesSaved(namespace, Policies()))
        self._settle()

    def set_policy(self, now: int, scope: str, policy: str, value: object) -> None:
        """Set one field of `Policies` for a namespace (`tenant/namespace`) or a topic (full or base name).

        None removes it. Takes effect at once, also for topics in use. Raises `NoSuchThing`,
        `InvalidConfiguration`.
        """
        self.context.now = now
        if "://" in scope:
            scope = str(TopicName.parse(scope))
            if scope not in self.all_topics and scope not in self.partitions:
                raise NoSuchThing(f"no topic {scope}")
        elif scope not in self.policies:
            raise NoSuchThing(f"no namespace {scope}")
        changed = self.policies.get(scope, Policies()).with_policy(policy, value)
        self.policies[scope] = changed
        self.journal.records.append(PoliciesSaved(scope, changed))
        for topic in list(self.all_topics.values()):
            if scope in (topic.topic_name.namespace_name, topic.name, str(topic.topic_name.base)):
                topic.set_policies(self.effective_policies(topic.topic_name))
        self._settle()

    # --- topics ---------------------------------------------------------------------------------------

    def create_topic(self, now: int, topic: str) -> None:
        """A topic without partitions. Raises `AlreadyThere`, `NoSuchThing` without the namespace."""
        self.context.now = now
        name = self._new_name(topic)
        self.make_topic(name)
        self._settle()

    def create_partitioned_topic(self, now: int, topic: str, partitions: int) -> None:
        """A topic of `partitions` (1 to 10 000) partitions, which are created too."""
        self.context.now = now
        name = self._new_name(topic)
        self._check_partitions(partitions)
        if name.partition >= 0:
            raise InvalidConfiguration(f"{topic} is itself the name of a partition")
        self._create_partitions(name, partitions)
        self._settle()

    def update_partitions(self, now: int, topic: str, partitions: int) -> None:
        """More partitions; fewer is not possible. Raises `NoSuchThing`, `InvalidConfiguration`."""
        self.context.now = now
        name = TopicName.parse(topic)
        present = self.partitions.get(str(name))
        if present is None:
            raise NoSuchThing(f"{name} is no partitioned topic")
        self._check_partitions(partitions)
        if partitions <= present:
            raise InvalidConfiguration(f"partitions: more than the {present} there are, not {partitions}")
        self._create_partitions(name, partitions)
        self._settle()

    def _new_name(self, topic: str) -> TopicName:
        name = TopicName.parse(topic)
        if name.namespace_name not in self.policies:
            raise NoSuchThing(f"no namespace {name.namespace_name}")
        if str(name) in self.all_topics or str(name) in self.partitions:
            raise AlreadyThere(f"topic {name} exists")
        return name

    @staticmethod
    def _check_partitions(partitions: int) -> None:
        if (
            isinstance(partitions, bool)
            or not isinstance(partitions, int)
            or not 1 <= partitions <= MAX_PARTITIONS
        ):
            raise InvalidConfiguration(f"partitions: 1 to {MAX_PARTITIONS}, not {partitions!r}")

    def _create_partitions(self, name: TopicName, partitions: int) -> None:
        """New partitions of a topic get the subscriptions that the present ones have."""
        first = self.all_topics.get(str(name.partition_name(0)))
        self.partitions[str(name)] = partitions
        self.journal.records.append(PartitionsSaved(str(name), partitions))
        for index in range(partitions):
            partition = name.partition_name(index)
            if str(partition) in self.all_topics:
                continue
            made = self.make_topic(partition)
            if isinstance(made, Topic) and isinstance(first, Topic):
                for subscription in first.subscriptions.values():
                    if subscription.durable:
                        made.subscribe(subscription.name, made.log.first - 1, True, subscription.properties)

    def _topics_of(self, topic: str) -> "list[AnyTopic]":
        """The topic, or every partition of it. Raises `NoSuchThing`."""
        name = TopicName.parse(topic)
        if str(name) in self.partitions:
            names = [str(name.partition_name(index)) for index in range(self.partitions[str(name)])]
            return [self.all_topics[each] for each in names if each in self.all_topics]
        if str(name) not in self.all_topics:
            raise NoSuchThing(f"no topic {name}")
        return [self.all_topics[str(name)]]

    def unload(self, now: int, topic: str) -> None:
        """Send producers and consumers away; they come back and find what is durable (GAP-37)."""
        self.context.now = now
        for each in self._topics_of(topic):
            each.unload()
        self._settle()

    def terminate(self, now: int, topic: str) -> MessageId:
        """No more messages. The id of the last one, or (-1, -1).

        Not for partitioned or non-persistent topics.
        """
        self.context.now = now
        if str(TopicName.parse(topic)) in self.partitions:
            raise LocalProtocolError(f"{topic} is partitioned: terminate each partition")
        (only,) = self._topics_of(topic)
        if not isinstance(only, Topic):
            raise LocalProtocolError(f"{topic} is not persistent and cannot be terminated")
        only.terminate()
        self._settle()
        ledger_id, entry_id = only.log.position(only.log.end - 1)
        return (
            MessageId(ledger_id, entry_id, only.partition)
            if entry_id >= 0
            else MessageId(-1, -1, only.partition)
        )

    def delete_topic(self, now: int, topic: str, force: bool = False) -> None:
        """Away with the topic, partitions and all.

        Raises `LocalProtocolError` while it is used, unless `force`.
        """
        self.context.now = now
        topics = self._topics_of(topic)
        if not force:
            for each in topics:
                if each.producers.by_name or each.subscriptions:
                    raise LocalProtocolError(
                        f"{each.name} has {len(each.producers.by_name)} producers and "
                        f"{len(each.subscriptions)} "
                        "subscriptions; delete them first, or force it"
                    )
        name = str(TopicName.parse(topic))
        for each in topics:
            each.delete()
            del self.all_topics[each.name]
            self.policies.pop(each.name, None)
        if self.partitions.pop(name, None):
            self.journal.records.append(PartitionsSaved(name, 0))
            self.policies.pop(name, None)
        if TopicName.parse(topic).partition < 0:
            self.schemas.forget(TopicName.parse(topic))
        self._settle()

    def reset_cursor(self, now: int, topic: str, subscription: str, position: MessageId | int) -> None:
        """Move a subscription to a message id or to a publish time (ms); its consumers reconnect."""
        self.context.now = now
        for each in self._topics_of(topic):
            found = each.subscriptions.get(subscription)
            if not isinstance(each, Topic) or found is None:
                raise NoSuchThing(f"no subscription {subscription} of persistent topic {each.name}")
            if isinstance(position, MessageId):
                offset = each.log.offset(position.ledger_id, position.entry_id)
            else:
                offset = each.log.find_publish_time(position)
            each.subscriptions[subscription].seek(offset - 1, None)
        self._settle()

    # --- looking --------------------------------------------------------------------------------------

    def topics(self, namespace: str) -> list[str]:
        """Full names of the namespace's topics, partitions one by one. Raises `NoSuchThing`."""
        if namespace not in self.policies:
            raise NoSuchThing(f"no namespace {namespace}")
        return self.topic_names(namespace)

    def stats(self, topic: str) -> dict[str, Any]:
        """As `GET …/stats`, and in our words: `backlog`, `available_permits`, `unacked`."""
        (only,) = self._topics_of(topic)
        return topic_stats(only)

    def internal_stats(self, topic: str) -> dict[str, Any]:
        """As `GET …/internalStats`: ledgers and cursors of a persistent topic."""
        (only,) = self._topics_of(topic)
        if not isinstance(only, Topic):
            raise LocalProtocolError(f"{topic} is not persistent: there is nothing inside")
        return internal_stats(only)

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
