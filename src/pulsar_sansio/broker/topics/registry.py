"""`TopicRegistry`: the topics that a broker serves, and the checks before a topic is created.

It creates topics for clients and administrators, and knows which are being released to another broker.
"""

from typing import TYPE_CHECKING, TypeAlias

from ...model.errors import NotAllowed, ServiceNotReady, TopicNotFound
from ...model.topic_name import TopicName
from ..metadata import Metadata
from ..records import PartitionsSaved
from ..services import BrokerServices
from ..storage.store import StoredTopic
from .nonpersistent import NonPersistentTopic
from .producing.producers import going_away
from .topic import Topic
from .topic_names import TopicNames, Topics

if TYPE_CHECKING:
    from ..owner import OtherBroker, Owner

AnyTopic: TypeAlias = Topic | NonPersistentTopic

NO_ROOM_FOR_TOPICS = "Exceed maximum number of topics in namespace."


class TopicRegistry:
    """`owner`: tells which broker serves a topic, for one broker of several; None serves every topic."""

    def __init__(
        self, services: BrokerServices, metadata: Metadata, names: TopicNames, owner: "Owner | None"
    ) -> None:
        self._services = services
        self._metadata = metadata
        self.names = names
        """The names of all topics that exist, wherever they are served."""
        self.by_name: Topics[AnyTopic] = Topics(names if owner is None else None)
        """The topics that this broker serves."""
        self.releasing: set[str] = set()
        """Names of topics that are not served any more and are not durable as a whole yet."""
        self._owner = owner

    # --- checks ---------------------------------------------------------------------------------------

    def partitions_for(self, topic: TopicName, create: bool) -> int:
        """Return the number of partitions, 0 for a topic without. Raises `TopicNotFound` (WIRE-03)."""
        name = str(topic)
        if topic.partition >= 0:
            if not create and name not in self.names:
                raise TopicNotFound(f"Topic {name} does not exist")
            return 0
        partitions = self._metadata.partitions.get(name)
        if partitions is not None:
            return partitions
        if name in self.by_name:
            return 0
        policies = self._metadata.effective_policies(topic)
        if not create or not policies.auto_topic_creation:
            raise TopicNotFound(f"Topic {name} does not exist")
        if policies.auto_topic_partitions:
            most = self._services.config.max_partitions_per_topic
            if most and policies.auto_topic_partitions > most:
                raise NotAllowed(f"Number of partitions should be less than or equal to {most}")
            self._check_room(topic.namespace_name, policies.auto_topic_partitions)
            self.create_partitions(topic, policies.auto_topic_partitions)
            return policies.auto_topic_partitions
        return 0

    def has_or_may_create(self, topic: TopicName) -> bool:
        """True for a topic that exists, wherever it is served, and for one that a client may create."""
        text = str(topic)
        if text in self.names or text in self._metadata.partitions:
            return True
        if topic.partition in range(self._metadata.partitions.get(str(topic.base), 0)):
            return True
        return self._metadata.effective_policies(topic).auto_topic_creation is not False

    def has_room(self, namespace: str, count: int) -> bool:
        """True when the policies of the namespace allow `count` more topics in it."""
        most = self._metadata.policies[namespace].over(self._metadata.defaults).max_topics
        return not most or self.names.count(namespace) + count <= most

    def _check_room(self, namespace: str, count: int) -> None:
        if not self.has_room(namespace, count):
            raise NotAllowed(NO_ROOM_FOR_TOPICS)

    def other_broker(self, topic: str, authoritative: bool) -> "OtherBroker | None":
        """Return the broker that serves a topic; None for this one. Raises `ServiceNotReady`."""
        if self._owner is None or topic in self.by_name:
            return None
        return self._owner(topic, authoritative)

    def _check_served(self, topic: str) -> None:
        """Raise `ServiceNotReady` where a topic that is not served here must not be created here either."""
        if topic in self.releasing or self.other_broker(topic, False) is not None:
            raise ServiceNotReady(f"{topic} is not served by this broker")

    # --- topics ---------------------------------------------------------------------------------------

    def for_use(self, name: TopicName, create: bool) -> AnyTopic:
        """Return the topic of a PRODUCER or SUBSCRIBE, created where policies allow. Raises the refusal."""
        text = str(name)
        topic = self.by_name.get(text)
        if topic is not None:
            if topic.closing:
                raise going_away()
            return topic
        self._metadata.check_namespace(name.namespace_name)
        self._check_served(text)
        if text in self._metadata.partitions:
            raise NotAllowed(f"{text} is a partitioned topic: use its partitions")
        partitions = self._metadata.partitions.get(str(name.base)) if name.partition >= 0 else None
        if partitions is None:
            if not create or not self._metadata.effective_policies(name).auto_topic_creation:
                raise TopicNotFound(f"Topic {text} does not exist")
        elif name.partition >= partitions:
            raise TopicNotFound(f"Topic {text} does not exist: {name.base} has fewer partitions")
        if len(self.by_name) >= self._services.config.max_topics:
            raise NotAllowed("Exceed maximum number of topics")
        if partitions is None:
            self._check_room(name.namespace_name, 1)
        return self.make(name)

    def make(self, name: TopicName) -> AnyTopic:
        """Create a topic and serve it."""
        policies = self._metadata.effective_policies(name)
        topic: AnyTopic
        if name.persistent:
            topic = Topic(self._services, name, policies, None)
        else:
            topic = NonPersistentTopic(self._services, name, policies)
        self.by_name[str(name)] = topic
        return topic

    def restore(self, name: TopicName, stored: StoredTopic) -> None:
        """Serve a persistent topic that the store holds."""
        policies = self._metadata.effective_policies(name)
        self.by_name[str(name)] = Topic(self._services, name, policies, stored)

    def create_partitions(self, name: TopicName, partitions: int) -> None:
        """Set the number of partitions, and create those that are missing.

        New partitions get the durable subscriptions of the first partition.
        """
        first = self.by_name.get(str(name.partition_name(0)))
        self._metadata.partitions[str(name)] = partitions
        self._services.journal.records.append(PartitionsSaved(str(name), partitions))
        for index in range(partitions):
            partition = name.partition_name(index)
            if str(partition) in self.by_name or str(partition) in self.releasing:
                continue
            made = self.make(partition)
            if isinstance(made, Topic) and isinstance(first, Topic):
                for subscription in first.subscriptions.values():
                    if subscription.durable:
                        made.subscribe(subscription.name, made.log.first - 1, True, subscription.properties)
