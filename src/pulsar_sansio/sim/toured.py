"""Where somebody may be in one topic who moves about in several.

Owns, for the subscription of one topic, what seeks of all topics together mean: one is done here at some
moment between the question and its answer, which comes when it is done everywhere. Until then messages may be
from before it and from after; from then on they are from after it alone.
"""

from .records import ConsumerRecord, Place, TopicRecord
from .roamer import Roamed
from .whereabouts import START, Base, after, whole

ANYWHERE = 2**63
"""In place of a moment: of whoever went to the end nobody knows when."""


class Toured(Roamed):
    """A subscription to one of several topics that are moved about in together."""

    def __init__(self, topic: TopicRecord, name: str) -> None:
        super().__init__(topic, name, compacted=False)
        self._under_way: dict[int, Base] = {}
        """Request -> where it goes: those that may still be done here."""
        self._failed: list[Base] = []
        """Where it may have gone, or may still go, since the last seek that was done."""
        self._came_since: Place | None = None
        """What came last since a seek was asked for that is under way."""

    def subscribed_again(self) -> None:
        """It begins where the subscription is. Of a batch the broker keeps the place of the whole entry."""
        where = self.where
        for base in [*self._failed, *self._under_way.values()]:
            where.perhaps_at(_whenever(base))
        for ledger, entry, index in [each.place for each in where.bases if each.place[2] > 0]:
            where.perhaps_at(Base((ledger, entry, index - 1)))
            where.perhaps_at(Base(whole((ledger, entry, index))))
        where.back()

    def is_sought(self, request: int, base: Base) -> None:
        self._under_way[request] = base
        self._came_since = None
        self.where.unsettled(_whenever(base))

    def done(self, request: int, base: Base, now: int) -> None:
        """It is there for sure, and perhaps has gone on from there already. Seeks of one topic are done in
        the order in which they were asked for: one that a later one's answer overtakes was done before."""
        if request not in self._under_way:
            return
        for earlier in [each for each in self._under_way if each <= request]:
            del self._under_way[earlier]
        self._failed.clear()
        there = base if base.since is None else Base(base.place, since=now)
        self.where.moved(there)
        if self._came_since is not None:
            self.where.perhaps_at(Base(after(self._came_since)))
        for other in self._under_way.values():
            self.where.unsettled(_whenever(other))
        self.sought = True

    def not_done(self, request: int) -> None:
        """Nobody knows whether it was."""
        sought = self._under_way.pop(request, None)
        if sought is None:
            return
        base = _whenever(sought)
        self._failed.append(base)
        self.where.unsettled(base)

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
            self._came_since = place
            for base in self._under_way.values():
                self.where.unsettled(_whenever(base))


def _whenever(base: Base) -> Base:
    """The same, at whatever moment it gets there."""
    return base if base.since is None else Base(base.place, since=ANYWHERE)
