"""`PartitionGrowth`: the topics of a consumer of several, and the members that their partitions become (rules
MULTI-06, MULTI-15).

Each topic is opened as a plain one. When it turns out to have partitions, consumers of these replace its
consumer. At an interval the broker is asked for more partitions. `PartitionGrowth` opens members; the
consumer of several is told by the members whether they became ready.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from ...model.config import ConsumerSpec
from ...model.errors import PulsarError
from ...model.message_id import EARLIEST, LATEST
from ...model.topic_name import TopicName
from ..connecting.services import Services
from .member import Member
from .members import Members
from .topic import MemberTopic


@dataclass(frozen=True, slots=True)
class Known:
    """The knowledge of a consumer of one topic, for the consumer of the partitions that replaces it."""

    partitions: int
    wire_id: int
    """A consumer id that no broker has seen yet: for the first partition's consumer."""
    name: str
    give_up_at: int | None


def not_for_several(spec: ConsumerSpec) -> str | None:
    """Name an option that only a topic without partitions can have; None when `spec` has none (MULTI-03)."""
    if not spec.receiver_queue_size:
        return "receiver_queue_size: 1 and more"
    if spec.start_message_id not in (None, EARLIEST, LATEST):
        return "start_message_id: EARLIEST or LATEST"
    return None


def _never(topic: MemberTopic) -> None:
    raise AssertionError(f"{topic.name} was asked for by name: there is room for it")


class PartitionGrowth:
    """`interval`: nanoseconds between two lookups of a topic's partitions, 0 for none. `is_ready()`: the
    whole is open, and may grow."""

    __slots__ = (
        "_context",
        "_interval",
        "_is_ready",
        "_members",
        "_services",
        "_timer",
        "on_too_many",
        "topics",
    )

    def __init__(
        self,
        services: Services,
        members: Members,
        interval: int,
        is_ready: Callable[[], bool],
    ) -> None:
        self._context = services.context
        self._services = services
        self._members = members
        self._interval = interval
        self._is_ready = is_ready
        self._timer = services.context.deadlines.slot(self._ask_for_partitions)
        self.topics: dict[TopicName, MemberTopic] = {}
        """The topics that were asked for, or that the pattern matches."""
        self.on_too_many: Callable[[MemberTopic], None] = _never
        """Called with a topic that has more partitions than there is room for."""

    def start(self) -> None:
        """Begin to ask for more partitions."""
        if self._interval:
            self._timer.set(self._context.now + self._interval)

    def stop(self) -> None:
        """Ask no more."""
        self._timer.clear()
        self.cancel_queries()

    def cancel_queries(self) -> None:
        """End the lookups that are under way, so that no partition joins now."""
        for topic in self.topics.values():
            topic.cancel_query()

    # --- opening ---

    def open(self, name: TopicName) -> None:
        """Open a topic as a plain one; its consumer finds out whether it has partitions."""
        topic = self.topics[name] = MemberTopic(name)
        member = self._members.open(topic, topic.name, self._members.spec, None)
        topic.missing = {member}
        member.consumer.attachment.on_partitioned = partial(self._partitioned, topic, member)
        member.consumer.attachment.start()

    def open_partitions(
        self, topic: MemberTopic, partitions: int, wire_id: int, give_up_at: int | None
    ) -> None:
        """Open the partitions of a topic. `wire_id`: a consumer id for the first one. `give_up_at`: when the
        application stops waiting, in nanoseconds."""
        topic.partitions = partitions
        members = self._new_partitions(topic, range(partitions), wire_id)
        topic.missing = set(members)
        for member in members:
            member.consumer.attachment.start_as_partition(give_up_at)

    def _partitioned(self, topic: MemberTopic, member: Member, partitions: int) -> None:
        """A topic has partitions: their consumers replace its consumer."""
        self._members.discard(member)
        member.consumer.hand_over()
        if not self._members.has_room(partitions):
            self.on_too_many(topic)
            return
        consumer = member.consumer
        self.open_partitions(topic, partitions, consumer.wire_id, consumer.attachment.gives_up_at)

    def _new_partitions(
        self, topic: MemberTopic, indexes: Iterable[int], wire_id: int | None = None, late: bool = False
    ) -> list[Member]:
        """Make members for partitions, each with its share of the receiver queue (rules FLOW-16, MULTI-15).

        `late`: the partitions came when the others were open. A consumer that started at LATEST reads them
        from their beginning.
        """
        spec = self._members.spec
        if late and not spec.durable:
            spec = replace(spec, start_message_id=EARLIEST, start_message_rollback=0.0)
        assert topic.partitions
        share = spec.max_total_receiver_queue_size // topic.partitions
        spec = replace(spec, receiver_queue_size=max(1, min(spec.receiver_queue_size, share)))
        members = []
        for index in indexes:
            members.append(self._members.open(topic, topic.name.partition_name(index), spec, wire_id))
            wire_id = None
        return members

    # --- growth ---

    def _ask_for_partitions(self) -> None:
        """Ask at every interval until the consumer closes (rules MULTI-06, PART-07, PART-08, PART-09)."""
        self._timer.set(self._context.now + self._interval)
        if self._is_ready():
            self._look_for_growth()

    def _look_for_growth(self) -> None:
        """Look up the partitions of all topics that may have more."""
        for topic in self.topics.values():
            if topic.may_grow:
                topic.query = self._services.lookup.partitions(
                    topic.name, partial(self._partitions_known, topic), partial(self._not_known, topic)
                )

    def _not_known(self, topic: MemberTopic, error: PulsarError) -> None:
        """A lookup failed: keep the partitions until the next lookup."""
        topic.query = None

    def _partitions_known(self, topic: MemberTopic, partitions: int) -> None:
        """Open new partitions; a smaller number is ignored (rules PART-10, PART-12)."""
        topic.query = None
        before = topic.partitions
        assert before
        if partitions <= before or not self._members.has_room(partitions - before):
            return
        topic.partitions = partitions
        topic.growth = self._new_partitions(topic, range(before, partitions), late=True)
        topic.missing = set(topic.growth)
        for member in topic.growth:
            member.consumer.attachment.start_as_partition(None)

    def give_up(self, topic: MemberTopic) -> None:
        """Close all new partitions of a topic, because one could not be opened. The next lookup tries again
        (rule PART-11)."""
        growth, topic.growth = topic.growth, []
        topic.missing.clear()
        assert topic.partitions
        topic.partitions -= len(growth)
        for member in growth:
            self._members.close_one(member)
