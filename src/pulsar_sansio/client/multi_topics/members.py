"""`Members`: the consumers of which a consumer of several topics consists, one for each plain topic and each
partition.

`Members` opens and closes them, and keeps what members that join later need: the spec, the pause and the
blocks of `Message.processing`. It does not know the state of the whole.
"""

from dataclasses import replace

from ...model.config import ConsumerSpec
from ...model.message import ProcessingMaker
from ...model.message_id import MessageId
from ...model.topic_name import TopicName
from ..connecting.services import Services
from ..delivery.merged_queue import MergedQueue
from ..explanation import ExplainedPart, several
from ..joint.gathered_requests import GatheredRequests
from ..statistics import ConsumerStatistics
from .member import Group, Member
from .topic import MemberTopic


class Members:
    """`spec`: what members are opened with, except the topic. `limit`: the most members of a pattern, None
    for topics that were asked for by name."""

    __slots__ = (
        "_processing",
        "_former",
        "_group",
        "_limit",
        "_queue",
        "_requests",
        "_services",
        "alive",
        "by_topic",
        "spec",
    )

    def __init__(
        self,
        services: Services,
        group: Group,
        spec: ConsumerSpec,
        queue: MergedQueue,
        requests: GatheredRequests,
        limit: int | None,
    ) -> None:
        self._services = services
        self._group = group
        self.spec = spec
        self._queue = queue
        self._requests = requests
        self._limit = limit
        self.by_topic: dict[str, Member] = {}
        """Members that are subscribed, or will be again, by the names of their topics."""
        self.alive: dict[Member, None] = {}
        """All members that have not ended."""
        self._processing: ProcessingMaker | None = None
        self._former = ConsumerStatistics()
        """The counts of members that have ended."""

    # --- coming and going ---

    def has_room(self, more: int) -> bool:
        """Tell whether so many members more are allowed. A broker decides how many topics and partitions a
        pattern has, so only a pattern has a limit."""
        return self._limit is None or len(self.alive) + more <= self._limit

    def open(self, topic: MemberTopic, name: TopicName, spec: ConsumerSpec, wire_id: int | None) -> Member:
        """Make a member for a topic or partition; the caller starts its attachment."""
        member = Member(
            self._services,
            self._group,
            topic,
            replace(spec, topic=str(name)),
            wire_id,
            create_topic=self._limit is None,
        )
        if self._processing is not None:
            member.consumer.set_processing(self._processing)
        self.alive[member] = None
        self.by_topic[member.name] = member
        topic.members[member] = None
        return member

    def close_one(self, member: Member) -> None:
        """Close a member while the others go on. From now on no request waits for it, and no message is taken
        from it."""
        self.remove(member)
        self._requests.detach(member.name)
        member.close()

    def remove(self, member: Member) -> None:
        """Take a member from the subscribed ones, and its queue from the merged queue."""
        if self.by_topic.get(member.name) is member:
            del self.by_topic[member.name]
        self._queue.remove(member.consumer.queue)

    def discard(self, member: Member) -> None:
        """A member has ended: keep only its counts."""
        self.alive.pop(member, None)
        self._former += member.consumer.statistics()
        member.topic.members.pop(member, None)
        self.remove(member)

    # --- all of them ---

    def explain(self) -> list[str]:
        """Explain why nothing moves, in a line for each topic and partition, up to a limit."""
        parts = [
            ExplainedPart(each.name, each.ready and each.detached is None, each.consumer.explain())
            for each in self.alive
        ]
        return several(parts, "topics and partitions")

    @property
    def subscribed(self) -> list[str]:
        """The topics and partitions that are subscribed, or will be again after a reconnect."""
        return sorted(member.name for member in self.by_topic.values() if member.ready)

    def statistics(self) -> ConsumerStatistics:
        """Add up the counts of all topics, including those that have left (MULTI-35)."""
        return sum((member.consumer.statistics() for member in self.alive), self._former)

    def checkpoint(self) -> dict[str, MessageId]:
        """Return the position in every topic."""
        positions: dict[str, MessageId] = {}
        for member in self.by_topic.values():
            positions.update(member.consumer.checkpoint())
        return positions

    def set_processing(self, processing: ProcessingMaker) -> None:
        """Set what `Message.processing` of all members, and of those that join, calls."""
        self._processing = processing
        for member in self.alive:
            member.consumer.set_processing(processing)

    def pause(self) -> None:
        """Pause all members, and those that join (MULTI-28)."""
        self.spec = replace(self.spec, start_paused=True)
        for member in self.by_topic.values():
            member.consumer.pause()

    def resume(self) -> None:
        """Resume all members, and those that join."""
        self.spec = replace(self.spec, start_paused=False)
        for member in self.by_topic.values():
            member.consumer.resume()

    def redeliver_unacknowledged(self) -> None:
        """Have everything unacknowledged redelivered in all topics (MULTI-27)."""
        for member in self.by_topic.values():
            member.consumer.redeliver_unacknowledged()

    def check_last_message(self) -> None:
        """Raise `LocalProtocolError` when one of the topics has no last message."""
        for member in self.by_topic.values():
            member.consumer.check_last_message()
