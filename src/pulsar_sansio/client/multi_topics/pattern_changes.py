"""`PatternChanges`: topics of a pattern that join and leave while their consumer is open (PATTERN-04, -05).

`PatternTopics` finds out which topics there are. `PatternChanges` opens the new ones as far as there is room,
and closes those that are gone. The consumer of several decides what an ended member means.
"""

from typing import Protocol

from ...model.config import TopicsPattern
from ...model.errors import PulsarError, TooManyPartitions
from ...model.topic_name import TopicName
from ..connecting.services import Services
from ..outputs import TopicLeft
from .members import Members
from .partition_growth import PartitionGrowth
from .patterns.pattern import PatternTopics
from .topic import MemberTopic


class PatternOwner(Protocol):
    """The consumer of several topics, as its pattern sees it."""

    handle: int

    @property
    def is_opening(self) -> bool:
        """True while some of the first topics are not subscribed yet, and none has failed."""
        ...

    @property
    def is_ready(self) -> bool:
        """True from `ConsumerReady` until the application asks for the end."""
        ...

    def finish_opening(self) -> None:
        """Become ready when all topics are opened."""
        ...

    def fail_opening(self, error: PulsarError) -> None:
        """The consumer cannot be opened."""
        ...


class PatternChanges:
    """`topics`: the topics that the pattern matches, as `PatternTopics` knows them."""

    __slots__ = ("_context", "_growth", "_members", "_most", "_owner", "_pattern", "topics")

    def __init__(
        self,
        services: Services,
        owner: PatternOwner,
        pattern: TopicsPattern,
        members: Members,
        growth: PartitionGrowth,
    ) -> None:
        self._context = services.context
        self._owner = owner
        self._pattern = pattern
        self._members = members
        self._growth = growth
        self._most = services.config.max_partitions
        growth.on_too_many = self._too_many
        self.topics = PatternTopics(services, owner.handle, pattern, self._on_topics, owner.fail_opening)

    def close_for_now(self, topic: MemberTopic) -> None:
        """Close a topic that could not be opened while the others go on; the pattern tries it again."""
        self.close_topic(topic)
        self.topics.look_again()

    def close_topic(self, topic: MemberTopic) -> None:
        """Close all members of a topic. Its subscription stays at the broker: the application did not ask
        to remove it."""
        del self._growth.topics[topic.name]
        topic.cancel_query()
        topic.missing.clear()
        reported = self._owner.is_ready and topic.opened
        for member in list(topic.members):
            if reported and member not in topic.growth:
                self._context.emit(TopicLeft(self._owner.handle, member.name, None))
            self._members.close_one(member)

    def _on_topics(self, names: set[TopicName]) -> None:
        """Open the topics that are new, close those that are gone (PATTERN-04, PATTERN-05)."""
        owner, topics = self._owner, self._growth.topics
        if not (owner.is_opening or owner.is_ready):
            return
        for name in sorted(names - topics.keys(), key=str):
            self._growth.open(name)
        for name in sorted(topics.keys() - names, key=str):
            self.close_topic(topics[name])
        if owner.is_opening:
            owner.finish_opening()

    def _too_many(self, topic: MemberTopic) -> None:
        """A topic has more partitions than there is room for."""
        if self._owner.is_opening:
            text = f"pattern {self._pattern} matches more topics and partitions than {self._most}"
            self._owner.fail_opening(TooManyPartitions(f"{text} (max_partitions)"))
        else:
            self.close_for_now(topic)
