"""Groups: what is remembered of a subscription over several topics, and of a consumer of all of them.

Owns which topics a group means, by a matcher of its own, and the record of each topic's part of a consumer:
to the wires every topic has a consumer for itself, with a place, permits and verdicts of its own. No topic is
subscribed twice by one consumer, and none that the group does not mean (INV-C16).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType, TopicsPattern

from ..engine.failures import ViolationError
from ..engine.profile import GroupPlan
from .partitioned_topics import PartitionedTopic
from .records import ConsumerRecord, Position, TopicRecord

LONGEST_RUN = 64
"""Messages that one topic gives in a row, at most, to who takes them one by one."""

BEFORE_THE_NAME = "persistent://public/default/"


def retry_topic(group: str) -> str:
    """Where messages of a group wait that are consumed later."""
    return f"{BEFORE_THE_NAME}retry-{group}"


def dead_topic(group: str) -> str:
    """Where those go that have waited too often."""
    return f"{BEFORE_THE_NAME}dead-{group}"


class GroupTopics:
    """Which topics a group means: those of a list, with all their partitions, or those whose names match."""

    def __init__(
        self,
        name: str,
        kind: SubscriptionType,
        listed: Sequence[str],
        pattern: str,
        toured: bool = False,
        retry: str = "",
    ) -> None:
        self.name = name
        """Of the subscription."""
        self.toured = toured
        """Somebody moves about in them, and leaves nothing behind."""
        self.retry = retry
        """Where its messages wait that are to be consumed later; nothing where none are."""
        self.kind = kind
        self.listed = tuple(listed)
        self._pattern = re.compile(pattern) if pattern else None

    def named(self, name: str) -> "GroupTopics":
        """The same topics, for another subscription."""
        pattern = self._pattern.pattern if self._pattern is not None else ""
        return GroupTopics(name, self.kind, self.listed, pattern, self.toured, self.retry)

    @property
    def by_pattern(self) -> bool:
        return self._pattern is not None

    def means(self, topic: str) -> bool:
        """Whether a topic, or a partition, is one of these."""
        whole = topic.partition("-partition-")[0]
        if self._pattern is not None:
            own = whole.removeprefix(BEFORE_THE_NAME)
            return own != whole and self._pattern.fullmatch(own) is not None
        return topic in self.listed or whole in self.listed or topic == self.retry


class GroupRecord:
    """One consumer of a group, from subscribing to closing."""

    def __init__(self, name: str, topics: GroupTopics, spec: ConsumerSpec, questions: int = 0) -> None:
        """`questions`: for last messages, that it may ask by itself."""
        self.name = name
        self.topics = topics
        self.spec = spec
        self.wanting = False
        self.members: dict[str, ConsumerRecord] = {}
        """By the name of their topic: the latest of each, and those that have left."""
        self.left: dict[str, None] = {}
        """Topics that have left it for good, or until they join again."""
        self._joined: set[str] = set()
        """Topics whose messages may be handed out: all that came with them are subscribed (PART-11)."""
        self._ids: dict[str, int] = {}
        """Topic -> the consumer id that its part has on wires."""
        self._questions = questions
        self._halted = False
        self._closed = False
        self._waiting: dict[str, dict[Position, None]] = {}
        """Topic -> entries that have come for the first time, and of which nothing was handed out."""
        self._passed: dict[str, dict[str, int]] = {}
        """Topic -> another -> messages that it gave while such an entry waited."""

    # --- whose turn it is ---

    def came(self, topic: str, position: Position) -> None:
        """An entry that nobody had before has come. Who asks for everything again drops some of them, which
        is not said of which, so from then on nothing is known; nor where some become dead letters as they
        come."""
        member = self.members[topic]
        if self.spec.dead_letter is not None:
            return
        entry = member.subscription.topic.log.get(position)
        if entry is None or entry.chunk is not None or member.redeliver_all or self.kind.cumulative:
            return
        if not any((*position, index) in member.subscription.delivered for index in range(entry.size)):
            self._waiting.setdefault(topic, {})[position] = None

    def gave(self, topic: str, position: Position, at_once: int) -> None:
        """A message was handed out, where an application takes so many at once. Every topic that has
        something has its turn, a run of messages, before another has one again (MULTI-19, INV-C16)."""
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
        """A question is put to all topics, those included that are only being opened."""
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
        """A SUBSCRIBE to the topic is written under that id; the record of its part.

        A new id is a new part: of a topic that has come back, or of a partition that could not be opened
        before. `is_open` says whether a part is still open on some wire. `whole`: what the topic is a
        partition of.
        """
        if topic is None or not self.topics.means(name):
            raise ViolationError("INV-C16", f"{self.name} subscribes to {name}, which is none of its topics")
        topic.subscriptions[self.topics.name].subscribed_again()
        self._waiting.pop(name, None)
        self._passed.pop(name, None)
        known = self.members.get(name)
        if known is not None and self._ids[name] == consumer_id:
            known.rewinds += 1  # it begins again where the subscription is
            known.unjudged.clear()
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
        """Messages that one part prefetches, at most: partitions share a total (rule FLOW-16)."""
        most = self.spec.receiver_queue_size
        if whole is None:
            return most
        total = self.spec.max_total_receiver_queue_size
        return max(1, min(most, total // min(whole.believed)))

    def joins(self, *names: str) -> None:
        """The application was told that these are there, or that the whole is ready with them."""
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
        """The part that a message belongs to (INV-C16)."""
        member = self.members.get(topic)
        if member is None:
            raise ViolationError("INV-C16", f"{self.name} gives a message of {topic}, where it is not")
        return member


def asked_for(group: GroupPlan, topics: GroupTopics, twice: int = 0) -> str | tuple[str, ...] | TopicsPattern:
    """What an application says to have them all; so many of the list a second time, in short."""
    if group.pattern:
        return TopicsPattern(f"public/default/{group.pattern}", discovery_interval=group.discovery_interval)
    listed = topics.listed
    if group.partitioned and len(listed) == 1 and not twice:
        return listed[0]
    return (*listed, *(name.rpartition("/")[2] for name in listed[:twice]))
