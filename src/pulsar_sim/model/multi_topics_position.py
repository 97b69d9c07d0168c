"""Where somebody may be in one topic who moves about in several.

Owns, for the subscription of one topic, what seeks of all topics together mean: one is done here at some
moment between the question and its answer, which comes when it is done everywhere. Until then messages may be
from before it and from after; from then on they are from after it alone.
"""

from .expected_position import START, Base, after
from .records import ConsumerRecord, Place, TopicRecord
from .single_topic_position import SoughtSubscription

ANYWHERE = 2**63
"""In place of a moment: of whoever went to the end nobody knows when."""


class MultiTopicsSoughtSubscription(SoughtSubscription):
    """A subscription to one of several topics that are moved about in together."""

    def __init__(self, topic: TopicRecord, name: str) -> None:
        super().__init__(topic, name, compacted=False)
        self.reads = False
        """Nothing remembers where it is but its client."""
        self._under_way: dict[int, Base] = {}
        """Request -> where it goes: those that may still be done here."""
        self._not_joined: set[int] = set()
        """Requests from before it was one of the topics."""
        self._failed: list[Base] = []
        """Where it may have gone, or may still go, since the last seek that was done."""
        self._came_since: dict[int, Place] = {}
        """Request under way -> what came last since it was asked for."""
        self._came_while_sought: Place | None = None
        """The same of the last seek that was done: readers may acknowledge it, if it is from after that."""

    def all_up_to(self, place: Place) -> bool:
        came = self._came_while_sought
        return (came is not None and place <= came) or super().all_up_to(place)

    def subscribed_again(self) -> None:
        """It begins where the subscription is. Of a batch the broker keeps the place of the whole entry."""
        where = self.where
        if self.reads:
            self._reads_on()
            return
        self.perhaps_long_ago()
        for base in [*self._failed, *self._under_way.values()]:
            where.perhaps_at(_whenever(base))
        where.perhaps_as_kept()
        where.back()

    def _reads_on(self) -> None:
        """A reader goes on behind what came last. Of the end of a topic nobody knows where it was until
        something has come; and some seek of which nothing was heard may have been done."""
        where = self.where
        if where.last is None:
            where.bases = [
                base if base.since is None else Base(base.place, since=ANYWHERE) for base in where.bases
            ]
        for base in [*self._failed, *self._under_way.values()]:
            where.unsettled(_whenever(base))

    def is_sought(self, request: int, base: Base, joined: bool = True) -> None:
        """`joined`: its client is subscribed here; a topic that joins later may begin where it was left, or
        where it begins."""
        self._under_way[request] = base
        if not joined:
            self._not_joined.add(request)
        self.where.unsettled(_whenever(base))

    def done(self, request: int, base: Base, now: int) -> None:
        """It is there for sure, and perhaps has gone on from there already. Seeks of one topic are done in
        the order in which they were asked for: one that a later one's answer overtakes was done before."""
        if request not in self._under_way:
            return
        if request in self._not_joined:
            self._not_joined.discard(request)
            self.not_done(request)  # it is where it was, unless it has joined in between
            self.where.perhaps_at(START)
            return
        came = self._came_since.get(request)
        for earlier in [each for each in self._under_way if each <= request]:
            del self._under_way[earlier]
            self._came_since.pop(earlier, None)
        self._failed.clear()
        there = base if base.since is None else Base(base.place, since=now)
        self.where.moved(there)
        self._came_while_sought = came
        if came is not None:
            self.where.perhaps_at(Base(after(came)))
        for other in self._under_way.values():
            self.where.unsettled(_whenever(other))
        self.sought = True

    def not_done(self, request: int) -> None:
        """Nobody knows whether it was."""
        sought = self._under_way.pop(request, None)
        self._came_since.pop(request, None)
        if sought is None:
            return
        base = _whenever(sought)
        self._failed.append(base)
        self.where.unanswered(base)

    def may_be_gone(self) -> None:
        """It is removed, or not."""
        self._failed.append(START)
        self.where.unsettled(START)

    def begins_anew(self) -> None:
        """It was removed."""
        self._failed.clear()
        self.where.moved(START)
        self.sought = False

    def check_order(self, consumer: ConsumerRecord, place: Place) -> None:
        super().check_order(consumer, place)
        if self._under_way:
            for request, base in self._under_way.items():
                self._came_since[request] = place
                self.where.unsettled(_whenever(base))


def _whenever(base: Base) -> Base:
    """The same, at whatever moment it gets there."""
    return base if base.since is None else Base(base.place, since=ANYWHERE)
