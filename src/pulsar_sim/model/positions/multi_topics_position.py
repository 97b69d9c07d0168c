"""The position in one topic of a consumer that seeks in several.

Owns, for the subscription of one topic, the effect of seeks in all topics. A seek is done in this topic at
some moment between request and answer; the answer comes when it is done in all. Until then messages may be
from before or after the seek; from then on they are from after it.
"""

from ..records.consumer_record import ConsumerRecord
from ..records.message_position import MessagePosition
from ..records.topic_record import TopicRecord
from .expected_position import START, Base, after
from .single_topic_position import SoughtSubscription

ANYWHERE = 2**63
"""Stands in place of a moment: the time at which a seek to the end was done is unknown."""


class MultiTopicsSoughtSubscription(SoughtSubscription):
    """A subscription to one of several topics that a consumer seeks in together."""

    def __init__(self, topic: TopicRecord, name: str) -> None:
        super().__init__(topic, name, compacted=False)
        self.reads = False
        """Only the client remembers the position."""
        self._under_way: dict[int, Base] = {}
        """Requests that may still be done in this topic, each with its base."""
        self._not_joined: set[int] = set()
        """Requests made before the consumer joined this topic."""
        self._failed: list[Base] = []
        """Positions that the subscription may have moved to, or may still move to, since the last completed
        seek."""
        self._came_since: dict[int, MessagePosition] = {}
        """Requests in progress, each with the last message since."""
        self._came_while_sought: MessagePosition | None = None
        """The last message during the last completed seek: readers may acknowledge it if it is from after the
        seek."""

    def all_up_to(self, message_position: MessagePosition) -> bool:
        came = self._came_while_sought
        return (came is not None and message_position <= came) or super().all_up_to(message_position)

    def subscribed_again(self) -> None:
        """The consumer begins where the subscription is. For a batch the broker keeps the position of the
        whole entry."""
        where = self.where
        if self.reads:
            self._reads_on()
            return
        self.may_be_out_of_date()
        for base in [*self._failed, *self._under_way.values()]:
            where.may_be_at(_at_any_moment(base))
        where.may_be_as_kept()
        where.back()

    def _reads_on(self) -> None:
        """A reader goes on behind its last message. When it began at the end of the topic, that end is
        unknown until a message has arrived. Any unanswered seek may have been done."""
        where = self.where
        if where.last is None:
            where.bases = [
                base if base.since is None else Base(base.message_position, since=ANYWHERE)
                for base in where.bases
            ]
        for base in [*self._failed, *self._under_way.values()]:
            where.unsettled(_at_any_moment(base))

    def is_sought(self, request: int, base: Base, joined: bool = True) -> None:
        """`joined`: the client is subscribed to this topic. A topic that joins later may begin at its earlier
        position, or at the start."""
        self._under_way[request] = base
        if not joined:
            self._not_joined.add(request)
        self.where.unsettled(_at_any_moment(base))

    def done(self, request: int, base: Base, now: int) -> None:
        """The seek is done, and the consumer may have read on already. Seeks of one topic are done in the
        order of their requests, so all earlier ones were done before."""
        if request not in self._under_way:
            return
        if request in self._not_joined:
            self._not_joined.discard(request)
            self.not_done(request)  # its position is unchanged, unless it has joined in between
            self.where.may_be_at(START)
            return
        came = self._came_since.get(request)
        for earlier in [each for each in self._under_way if each <= request]:
            del self._under_way[earlier]
            self._came_since.pop(earlier, None)
        self._failed.clear()
        there = base if base.since is None else Base(base.message_position, since=now)
        self.where.moved(there)
        self._came_while_sought = came
        if came is not None:
            self.where.may_be_at(Base(after(came)))
        for other in self._under_way.values():
            self.where.unsettled(_at_any_moment(other))
        self.sought = True

    def not_done(self, request: int) -> None:
        """The seek may have been done or not."""
        sought = self._under_way.pop(request, None)
        self._came_since.pop(request, None)
        if sought is None:
            return
        base = _at_any_moment(sought)
        self._failed.append(base)
        self.where.unanswered(base)

    def may_be_gone(self) -> None:
        """The subscription may have been removed."""
        self._failed.append(START)
        self.where.unsettled(START)

    def begins_anew(self) -> None:
        """The subscription was removed."""
        self._failed.clear()
        self.where.moved(START)
        self.sought = False

    def check_order(self, consumer: ConsumerRecord, message_position: MessagePosition) -> None:
        super().check_order(consumer, message_position)
        if self._under_way:
            for request, base in self._under_way.items():
                self._came_since[request] = message_position
                self.where.unsettled(_at_any_moment(base))


def _at_any_moment(base: Base) -> Base:
    """Return the base with an unknown moment."""
    return base if base.since is None else Base(base.message_position, since=ANYWHERE)
