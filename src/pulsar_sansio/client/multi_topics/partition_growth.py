"""`PartitionGrowth`: from the topics of a consumer of several to its members (rules MULTI-06, MULTI-15).

Each topic is opened as a plain one; where it turns out to have partitions, consumers of these take its place.
From time to time the broker is asked whether there are more of them. It knows nothing of what state the whole
is in: it begins what the group asks for, and the group hears from the members what became of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from ...model.config import ConsumerSpec
from ...model.errors import PulsarError
from ...model.message_id import EARLIEST, LATEST
from ...model.topic_name import TopicName
from ..connecting.services import Services
from .member import Member
from .topic import MemberTopic


@dataclass(frozen=True, slots=True)
class Known:
    """What a consumer of one topic has found out about it, whose place a consumer of its partitions takes."""

    partitions: int
    wire_id: int
    """Nobody has heard of it yet: it is for the first partition's consumer."""
    name: str
    give_up_at: int | None


def not_for_several(spec: ConsumerSpec) -> str | None:
    """What was asked for that only a topic without partitions can have, as nobody knew that it has some
    (MULTI-03)."""
    if not spec.receiver_queue_size:
        return "receiver_queue_size: 1 and more"
    if spec.start_message_id not in (None, EARLIEST, LATEST):
        return "start_message_id: EARLIEST or LATEST"
    return None


class PartitionGrowth(ABC):
    """What is between here and the members is the group's, which sets all of this."""

    _services: Services
    _member_spec: ConsumerSpec
    """What members that join are opened with."""
    _topics: dict[TopicName, MemberTopic]

    @abstractmethod
    def _new_member(
        self, topic: MemberTopic, name: TopicName, spec: ConsumerSpec, wire_id: int | None
    ) -> Member: ...

    @abstractmethod
    def _forget(self, member: Member) -> None:
        """It is not one of the members any more."""

    @abstractmethod
    def _has_room(self, partitions: int) -> bool:
        """Whether there may be so many members more."""

    @abstractmethod
    def _too_many(self, topic: MemberTopic) -> None:
        """It has more partitions than there is room for."""

    @abstractmethod
    def _let_go(self, member: Member) -> None:
        """It is closed, and the others go on."""

    def _find_partitions(self, topic: MemberTopic) -> None:
        """Open it as a plain topic; it says if it is none."""
        member = self._new_member(topic, topic.name, self._member_spec, None)
        topic.missing = {member}
        member.consumer.attachment.on_partitioned = partial(self._partitioned, topic, member)
        member.consumer.attachment.start()

    def _partitioned(self, topic: MemberTopic, member: Member, partitions: int) -> None:
        """It is none: its partitions' consumers take its place."""
        self._forget(member)
        member.consumer.give_way()
        if not self._has_room(partitions):
            self._too_many(topic)
            return
        consumer = member.consumer
        self._open_partitions(topic, partitions, consumer.wire_id, consumer.attachment.gives_up_at)

    def _open_partitions(
        self, topic: MemberTopic, partitions: int, wire_id: int, give_up_at: int | None
    ) -> None:
        topic.partitions = partitions
        members = self._new_partitions(topic, range(partitions), wire_id)
        topic.missing = set(members)
        for member in members:
            member.consumer.attachment.start_as_partition(give_up_at)

    def _new_partitions(
        self, topic: MemberTopic, indexes: Iterable[int], wire_id: int | None = None, late: bool = False
    ) -> list[Member]:
        """Each has its share of the receiver queue (rules FLOW-16, MULTI-15). `late`: they came when the
        others had begun, so whoever began at the end has all that is in them before him."""
        spec = self._member_spec
        if late and not spec.durable:
            spec = replace(spec, start_message_id=EARLIEST, start_message_rollback=0.0)
        assert topic.partitions
        share = spec.max_total_receiver_queue_size // topic.partitions
        spec = replace(spec, receiver_queue_size=max(1, min(spec.receiver_queue_size, share)))
        members = []
        for index in indexes:
            members.append(self._new_member(topic, topic.name.partition_name(index), spec, wire_id))
            wire_id = None
        return members

    def _look_for_growth(self) -> None:
        """Ask how many partitions there are now, of topics that may have more."""
        for topic in self._topics.values():
            if topic.may_grow:
                topic.query = self._services.lookup.partitions(
                    topic.name, partial(self._partitions_known, topic), partial(self._not_known, topic)
                )

    def _not_known(self, topic: MemberTopic, error: PulsarError) -> None:
        """As many as before, until the next time."""
        topic.query = None

    def _partitions_known(self, topic: MemberTopic, partitions: int) -> None:
        """More of them are opened; fewer are not believed (rules PART-10, PART-12)."""
        topic.query = None
        before = topic.partitions
        assert before
        if partitions <= before or not self._has_room(partitions - before):
            return
        topic.partitions = partitions
        topic.growth = self._new_partitions(topic, range(before, partitions), late=True)
        topic.missing = set(topic.growth)
        for member in topic.growth:
            member.consumer.attachment.start_as_partition(None)

    def _growth_failed(self, topic: MemberTopic) -> None:
        """All new ones are closed, and the next time they are tried again (rule PART-11)."""
        growth, topic.growth = topic.growth, []
        topic.missing.clear()
        assert topic.partitions
        topic.partitions -= len(growth)
        for member in growth:
            self._let_go(member)
