"""Subscriptions over several topics, and their consumers.

Owns the set of topics that a group means, by a matcher of its own, and the record of each topic's member of a
consumer. On the wires every topic has a consumer of its own, with a position, permits and acknowledgements of
its own. A consumer subscribes to no topic twice, and to none that the group does not mean (INV-C16).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType, TopicsPattern

from ..engine.failures import ViolationError
from ..engine.profile import GroupPlan
from .partitioned_topics import PartitionedTopic
from .records.consumer_record import ConsumerRecord
from .records.message_position import Position
from .records.topic_record import TopicRecord

LONGEST_RUN = 64
"""Messages of one topic in a row, at most, for an application that takes them one at a time."""

BEFORE_THE_NAME = "persistent://public/default/"


def retry_topic(group: str) -> str:
    """Return the retry topic of a group."""
    return f"{BEFORE_THE_NAME}retry-{group}"


def dead_topic(group: str) -> str:
    """Return the dead-letter topic of a group."""
    return f"{BEFORE_THE_NAME}dead-{group}"


class GroupTopics:
    """The topics of a group: those of a list, with all their partitions, or those that match a pattern."""

    def __init__(
        self,
        name: str,
        kind: SubscriptionType,
        listed: Sequence[str],
        pattern: str,
        for_seekers: bool = False,
        retry: str = "",
    ) -> None:
        self.name = name
        """The name of the subscription."""
        self.for_seekers = for_seekers
        """The consumers seek, and leave no subscription behind."""
        self.retry = retry
        """The retry topic; empty when the group has none."""
        self.kind = kind
        self.listed = tuple(listed)
        self._pattern = re.compile(pattern) if pattern else None

    def named(self, name: str) -> "GroupTopics":
        """Return the topics for another subscription."""
        pattern = self._pattern.pattern if self._pattern is not None else ""
        return GroupTopics(name, self.kind, self.listed, pattern, self.for_seekers, self.retry)

    @property
    def by_pattern(self) -> bool:
        return self._pattern is not None

    def means(self, topic: str) -> bool:
        """True when the topic, or the topic of the partition, is one of the group."""
        whole = topic.partition("-partition-")[0]
        if self._pattern is not None:
            own = whole.removeprefix(BEFORE_THE_NAME)
            return own != whole and self._pattern.fullmatch(own) is not None
        return topic in self.listed or whole in self.listed or topic == self.retry


class GroupRecord:
    """One consumer of a group, from subscribing to closing."""

    def __init__(self, name: str, topics: GroupTopics, spec: ConsumerSpec, questions: int = 0) -> None:
        """`questions`: requests for last messages that the client may make by itself."""
        self.name = name
        self.topics = topics
        self.spec = spec
        self.wanting = False
        self.members: dict[str, ConsumerRecord] = {}
        """Members by topic: the latest of each, including those that have left."""
        self.left: dict[str, None] = {}
        """Topics that have left for good, or until they join again."""
        self._joined: set[str] = set()
        """Topics whose messages may be delivered: all topics that joined with them are subscribed
        (PART-11)."""
        self._ids: dict[str, int] = {}
        """Topics with the consumer id of their member on wires."""
        self._questions = questions
        self._halted = False
        self._closed = False
        self._waiting: dict[str, dict[Position, None]] = {}
        """By topic, entries that arrived for the first time and of which no message was delivered."""
        self._passed: dict[str, dict[str, int]] = {}
        """By topic and other topic, the messages that the other delivered while such an entry waited."""

    # --- turns of topics ---

    def came(self, topic: str, position: Position) -> None:
        """An entry arrived that no consumer had before. A request for redelivery of everything drops some
        of these entries, so nothing is known after it; nor is it where messages become dead letters on
        arrival, or wait for keys."""
        member = self.members[topic]
        if self.spec.dead_letter is not None or self.spec.crypto_key_reader is not None:
            return
        entry = member.subscription.topic.log.get(position)
        if entry is None or entry.chunk is not None or member.redeliver_all or self.kind.cumulative:
            return
        if not any((*position, index) in member.subscription.delivered for index in range(entry.size)):
            self._waiting.setdefault(topic, {})[position] = None

    def gave(self, topic: str, position: Position, at_once: int) -> None:
        """A message was delivered to an application that takes `at_once` messages. Each topic with messages
        has its turn, a run of messages, before another has a second one (MULTI-19, INV-C16)."""
        mine = self._waiting.get(topic, {})
        mine.pop(position, None)
        self._passed.pop(topic, None)
        most = 2 * max(at_once, LONGEST_RUN if at_once == 1 else 0)
        for other, waiting in self._waiting.items():
            may_give = other in self._joined and not self.members[other].redeliver_all
            if other == topic or not waiting or not may_give:
                continue
            passed = self._passed.setdefault(other, {})
            passed[topic] = passed.get(topic, 0) + 1
            if passed[topic] > most:
                first = next(iter(waiting))
                raise ViolationError(
                    "INV-C16", f"{self.name}: {other} waits with {first}, and {topic} gives more than {most}"
                )

    @property
    def kind(self) -> SubscriptionType:
        return self.topics.kind

    @property
    def halted(self) -> bool:
        return self._halted

    @halted.setter
    def halted(self, halted: bool) -> None:
        self._halted = halted
        for member in self.members.values():
            member.halted = halted

    @property
    def closed(self) -> bool:
        return self._closed

    @closed.setter
    def closed(self, closed: bool) -> None:
        self._closed = closed
        for member in self.members.values():
            member.closed = closed

    def asks(self) -> None:
        """A request goes to all topics, including those still being opened."""
        self._questions += 1
        for member in self.members.values():
            member.questions += 1

    def subscribes(
        self,
        topic: TopicRecord | None,
        name: str,
        consumer_id: int,
        is_open: Callable[[ConsumerRecord], bool],
        whole: PartitionedTopic | None,
    ) -> ConsumerRecord:
        """A SUBSCRIBE to the topic is written under that id; return the record of its member.

        A new id is a new member: of a topic that was created again, or of a partition that could not be
        opened before. `is_open` tells whether a member is still open on some wire. `whole`: the partitioned
        topic that the topic belongs to.
        """
        if topic is None or not self.topics.means(name):
            raise ViolationError("INV-C16", f"{self.name} subscribes to {name}, which is none of its topics")
        topic.subscriptions[self.topics.name].subscribed_again()
        self._waiting.pop(name, None)
        self._passed.pop(name, None)
        known = self.members.get(name)
        if known is not None and self._ids[name] == consumer_id:
            known.rewinds += 1  # it begins again where the subscription is
            known.redelivery_timing.clear()
            return known
        if known is not None and is_open(known):
            raise ViolationError("INV-C16", f"{self.name} subscribes to {name} twice")
        if known is not None:
            known.closed = True
        spec = replace(self.spec, topic=name, receiver_queue_size=self._queue(whole))
        member = ConsumerRecord(self.name, topic.subscriptions[self.topics.name], spec)
        member.questions = self._questions
        member.halted = self._halted
        member.closed = self._closed
        self.members[name] = member
        self._ids[name] = consumer_id
        self.left.pop(name, None)
        self._joined.discard(name)
        return member

    def _queue(self, whole: PartitionedTopic | None) -> int:
        """Return the receiver queue size of one member: partitions share a total (FLOW-16)."""
        most = self.spec.receiver_queue_size
        if whole is None:
            return most
        total = self.spec.max_total_receiver_queue_size
        return max(1, min(most, total // min(whole.believed)))

    def joins(self, *names: str) -> None:
        """The application was told that these topics joined, or that the consumer is ready with them."""
        self._joined.update(names)

    def leaves(self, name: str) -> None:
        """The application was told that a topic has left."""
        member = self.members.get(name)
        if member is None or name in self.left:
            raise ViolationError("INV-C16", f"{self.name}: {name} leaves, and was not there")
        member.closed = True
        self.left[name] = None
        self._joined.discard(name)

    def of(self, topic: str) -> ConsumerRecord:
        """INV-C16: return the member that a message belongs to."""
        member = self.members.get(topic)
        if member is None:
            raise ViolationError("INV-C16", f"{self.name} gives a message of {topic}, where it is not")
        return member


def asked_for(group: GroupPlan, topics: GroupTopics, twice: int = 0) -> str | tuple[str, ...] | TopicsPattern:
    """Return the topics that an application asks for; `twice` of the list are repeated by a short name."""
    if group.pattern:
        return TopicsPattern(f"public/default/{group.pattern}", discovery_interval=group.discovery_interval)
    listed = topics.listed
    if group.partitioned and len(listed) == 1 and not twice:
        return listed[0]
    return (*listed, *(name.rpartition("/")[2] for name in listed[:twice]))
