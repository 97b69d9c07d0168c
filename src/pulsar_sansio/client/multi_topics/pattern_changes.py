"""`PatternChanges`: topics of a pattern that come and go while their consumer is open (PATTERN-04, -05).

Which topics there are is found out by `pattern_topics`; here those that are new join the consumer of several,
and those that are gone leave it, as far as there is room. What becomes of one that joins, the consumer hears
from its members; what its states mean is its own business.
"""

from abc import abstractmethod

from ...model.errors import PulsarError, TooManyPartitions
from ...model.topic_name import TopicName
from ..connecting.services import ClientContext
from ..outputs import TopicLeft
from .gathered_requests import GatheredRequests
from .member import Member
from .partition_growth import PartitionGrowth
from .pattern import PatternTopics
from .topic import MemberTopic


class PatternChanges(PartitionGrowth):
    """What is between here and the members is the group's, which sets all of this."""

    handle: int
    _context: ClientContext
    _pattern: PatternTopics | None
    """None where all topics were asked for by name: then none comes, and none leaves by this."""
    _alive: dict[Member, None]
    """All members that have not ended."""
    _requests: GatheredRequests

    @property
    @abstractmethod
    def _opening(self) -> bool:
        """Some of the first topics are not subscribed yet, and none has failed."""

    @property
    @abstractmethod
    def _ready(self) -> bool:
        """The application was told that it is open, and has not asked for its end."""

    @abstractmethod
    def _ready_if_all_are(self) -> None:
        """Where nobody is left to wait for, opening is over."""

    @abstractmethod
    def _topics_not_known(self, error: PulsarError) -> None:
        """It cannot be opened."""

    @abstractmethod
    def _strike(self, member: Member) -> None:
        """It is none of those that are subscribed."""

    @abstractmethod
    def _describe(self) -> str:
        """The topics, in words."""

    def _topics_are(self, names: set[TopicName]) -> None:
        """Those that are new join, those that are gone leave (PATTERN-04, PATTERN-05)."""
        if not (self._opening or self._ready):
            return
        for name in sorted(names - self._topics.keys(), key=str):
            self._topics[name] = MemberTopic(name)
            self._find_partitions(self._topics[name])
        for name in sorted(self._topics.keys() - names, key=str):
            self._leave(self._topics[name])
        if self._opening:
            self._ready_if_all_are()

    def _leave(self, topic: MemberTopic) -> None:
        """Nothing is left of it; its subscription is not removed, as nobody asked for that."""
        del self._topics[topic.name]
        topic.stop_asking()
        told = self._ready and topic.opened
        for member in list(topic.members):
            if told and member not in topic.growth:
                self._context.emit(TopicLeft(self.handle, member.name, None))
            self._let_go(member)

    def _has_room(self, partitions: int) -> bool:
        """Of a pattern, a broker says both how many topics and how many partitions there are."""
        return self._pattern is None or len(self._alive) + partitions <= self._services.config.max_partitions

    def _too_many(self, topic: MemberTopic) -> None:
        if self._opening:
            most = self._services.config.max_partitions
            text = f"pattern {self._describe()} matches more topics and partitions than {most}"
            self._topics_not_known(TooManyPartitions(f"{text} (max_partitions)"))
        else:
            self._leave_for_now(topic)

    def _leave_for_now(self, topic: MemberTopic) -> None:
        """The others go on, and it is tried again."""
        self._leave(topic)
        if self._pattern is not None:
            self._pattern.look_again()

    def _let_go(self, member: Member) -> None:
        """It is closed, and the others go on: from now on nothing is asked of it, and nothing taken."""
        self._strike(member)
        self._requests.leave(member.name)
        member.leave()
