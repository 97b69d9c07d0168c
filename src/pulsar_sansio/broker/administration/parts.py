"""`Parts`: shared by the objects that carry out an administrator's commands. It finds the topics that
commands name.

A command names a topic by any of its names. The methods find the topic, and raise the administrator's errors.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ...model.topic_name import TopicName
from ..admin_errors import NotApplicable, NotFound
from ..metadata import Metadata
from ..schemas.registry import Schemas
from ..services import BrokerServices
from ..topics.registry import AnyTopic, TopicRegistry
from ..topics.topic import Topic


@dataclass(frozen=True, slots=True)
class Parts:
    """`settle`: every command that changes anything calls it at its end."""

    services: BrokerServices
    metadata: Metadata
    topics: TopicRegistry
    schemas: Schemas
    settle: Callable[[], None]

    def existing(self, topic: str) -> str:
        """Return the full name of a topic, partitioned or not. Raises `NotFound`."""
        name = str(TopicName.parse(topic))
        if name not in self.topics.by_name and name not in self.metadata.partitions:
            raise NotFound(f"no topic {name}")
        return name

    def topic(self, topic: str) -> AnyTopic:
        """Raises `NotFound`, or `NotApplicable` for a partitioned topic."""
        name = self.existing(topic)
        if name in self.metadata.partitions:
            raise NotApplicable(f"{name} is partitioned: name one of its partitions")
        return self.topics.by_name[name]

    def persistent_topic(self, topic: str) -> Topic:
        """Raises `NotFound`, or `NotApplicable` for a partitioned or non-persistent topic."""
        found = self.topic(topic)
        if not isinstance(found, Topic):
            raise NotApplicable(f"{found.name} is not persistent")
        return found

    def topics_of(self, topic: str) -> list[AnyTopic]:
        """Return the topic, or each of its partitions that exists. Raises `NotFound`."""
        name = self.existing(topic)
        served = self.topics.by_name
        if name not in self.metadata.partitions:
            return [served[name]]
        base = TopicName.parse(name)
        names = [str(base.partition_name(index)) for index in range(self.metadata.partitions[name])]
        return [served[each] for each in names if each in served]

    def topics_in(self, namespace: str) -> list[AnyTopic]:
        """Return the topics of a namespace that this broker serves. Raises `NotFound`."""
        self.metadata.require_namespace(namespace)
        return [each for each in self.topics.by_name.values() if each.topic_name.namespace_name == namespace]

    def subscribed_topics(self, topic: str, subscription: str) -> list[Topic]:
        """Return the topic or its partitions. Raises `NotFound` unless each has this subscription."""
        topics = []
        for each in self.topics_of(topic):
            known = each.subscriptions if isinstance(each, Topic) and isinstance(subscription, str) else ()
            if not isinstance(each, Topic) or subscription not in known:
                raise NotFound(f"no subscription {subscription} of persistent topic {each.name}")
            topics.append(each)
        return topics

    def subscribed_topic(self, topic: str, subscription: str) -> Topic:
        """Raises `NotFound`, or `NotApplicable` for a partitioned topic."""
        topics = self.subscribed_topics(topic, subscription)
        if len(topics) != 1 or topics[0].name != str(TopicName.parse(topic)):
            raise NotApplicable(f"{topic} has partitions")
        return topics[0]
