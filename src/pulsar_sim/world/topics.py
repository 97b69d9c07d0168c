"""`WorldTopics`: the topics of a world, and their records in the reference model.

Owns the names: plain topics and partitions, those of groups, those of copies, and those that appear later. It
knows nothing of brokers, and nothing of the topics that were deleted.
"""

from pulsar_sansio.model.config import SubscriptionType

from ..apps.consumer_app import dead_letters
from ..engine.profile import AUDIT, GroupPlan, Profile
from ..model.multi_topics_subscriptions import BEFORE_THE_NAME, GroupTopics, dead_topic, retry_topic
from ..model.partitioned_topics import PartitionedTopic
from ..model.positions.multi_topics_position import MultiTopicsSoughtSubscription
from ..model.records.subscription_record import SubscriptionRecord
from ..model.records.topic_record import TopicRecord
from ..model.reference_model import ReferenceModel


class WorldTopics:
    """All topics of one world."""

    def __init__(self, profile: Profile, model: ReferenceModel) -> None:
        self._model = model
        self._deduplication = profile.deduplication
        self.names: list[str] = [f"{BEFORE_THE_NAME}t{index}" for index in range(profile.topics)]
        """The topics that exist, with partitions after the plain ones."""
        self.of_groups: list[GroupTopics] = [
            *(_of_group(f"group-{index}", group) for index, group in enumerate(profile.groups)),
            *(
                _of_group(f"tour-{index}", seeker.group, for_seekers=True)
                for index, seeker in enumerate(profile.multi_topics_seekers)
            ),
        ]
        """The topics of the groups that must receive everything, then those of the groups that seek."""
        for name in self.names:
            self._record(name)
        self.partitioned = [f"{BEFORE_THE_NAME}p{index}" for index in range(len(profile.partitioned))]
        """The partitioned topics, without their partitions."""
        for name, plan in zip(self.partitioned, profile.partitioned, strict=True):
            model.partitioned[name] = PartitionedTopic(name, self._deduplication)
            self.add_partitions(name, plan.partitions)
        for index, subscription in enumerate(profile.subscriptions):
            topic = model.topics[self.names[subscription.topic]]
            topic.subscriptions[f"sub-{index}"] = SubscriptionRecord(topic, f"sub-{index}", subscription.kind)
        self._add_copies(profile)
        for topic in model.topics.values():
            _audit(topic)

    def _add_copies(self, profile: Profile) -> None:
        """Add the topics that consumers copy messages to."""
        model = self._model
        for index in sorted({plan.subscription for plan in profile.consumers if plan.dead_letters}):
            name = dead_letters(index)
            model.copy_topics.add(name)
            model.topics[name] = TopicRecord(name, self._deduplication)
            self.names.append(name)
        for topics in self.of_groups:
            if topics.retry:
                model.retry_topics[topics.retry] = None
                for name in (topics.retry, dead_topic(topics.name)):
                    model.copy_topics.add(name)
                    self._record(name)
                    self.names.append(name)

    def _record(self, name: str) -> TopicRecord:
        """Record a topic or partition, with the groups' subscriptions to it."""
        record = self._model.topics[name] = TopicRecord(name, self._deduplication)
        for group in self.of_groups:
            if group.means(name):
                record.subscriptions[group.name] = (
                    MultiTopicsSoughtSubscription(record, group.name)
                    if group.for_seekers
                    else SubscriptionRecord(record, group.name, group.kind)
                )
        return record

    def appearing(self, index: int) -> str:
        """Return the name of a topic that is created later."""
        return f"{BEFORE_THE_NAME}n{index}"

    def add(self, name: str) -> None:
        """Record a topic that may exist from now on."""
        _audit(self._record(name))
        self.names.append(name)

    def add_partitions(self, name: str, count: int) -> None:
        """Give a partitioned topic `count` partitions."""
        whole = self._model.partitioned[name]
        for index in range(len(whole.partitions), count):
            partition = f"{name}-partition-{index}"
            record = self._record(partition)
            _audit(record)
            whole.partitions.append(record)
            self.names.append(partition)
        whole.counts.append(count)


def _of_group(name: str, group: GroupPlan, for_seekers: bool = False) -> GroupTopics:
    listed = [f"{BEFORE_THE_NAME}t{topic}" for topic in group.topics]
    listed += [f"{BEFORE_THE_NAME}p{topic}" for topic in group.partitioned]
    retry = retry_topic(name) if group.retry else ""
    return GroupTopics(name, group.kind, listed, group.pattern, for_seekers, retry)


def _audit(record: TopicRecord) -> None:
    """Add the subscription of the reader that audits the topic at the end."""
    record.subscriptions[AUDIT] = SubscriptionRecord(record, AUDIT, SubscriptionType.EXCLUSIVE)
