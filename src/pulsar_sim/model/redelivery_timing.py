"""When a consumer may ask for messages again: because they were refused, or because nobody said anything.

Owns, for one consumer, the moments from which it may ask: of each entry that was refused, when its delay is
over, and of each that was handed out and not judged, when its time is (UNACK-01, NACK-02). It shares no code
with the machine and counts no ticks: early is not allowed, late is by as much as ticks and timers explain.
"""

from dataclasses import dataclass

from pulsar_sansio.model.config import ConsumerSpec, RedeliveryBackoff

from ..engine.clock import SECOND

Position = tuple[int, int]

LATEST = 3 * SECOND
"""How late a consumer may ask, beside the ticks of its timeout, and a producer write its batch: timers are
late, and what is due waits for others to be asked for together with it."""

MOST_TICKS = 3
"""Of the acknowledgement timeout: the one that has begun, one more, and one to which a backoff is rounded."""


@dataclass(slots=True)
class HandedOut:
    """An entry of which an application has messages that it has not judged."""

    due: int
    """Nanoseconds: from when on it may be asked for."""
    left: set[int]
    """Messages that were not acknowledged since, by index in the batch."""
    given: set[int]
    """Messages that the application has and has not refused, by index in the batch."""

    @property
    def silent(self) -> bool:
        """The application has something that it has said nothing of."""
        return not self.given.isdisjoint(self.left)


class RedeliveryTiming:
    """Of one consumer."""

    __slots__ = (
        "_asked",
        "_backoff",
        "_before",
        "_in_order",
        "_latest",
        "_negative",
        "_open",
        "_refused",
        "_timeout",
    )

    def __init__(self, spec: ConsumerSpec) -> None:
        self._in_order = spec.subscription_type.cumulative
        self._timeout = round(spec.acknowledgement_timeout * SECOND)
        self._latest = LATEST + round(MOST_TICKS * spec.acknowledgement_timeout_tick * SECOND)
        self._backoff = spec.acknowledgement_timeout_backoff
        negative = spec.negative_acknowledgement_backoff
        delay = spec.negative_acknowledgement_delay
        self._negative = negative or RedeliveryBackoff(delay, delay)
        self._open: dict[Position, HandedOut] = {}
        self._refused: dict[Position, dict[int, int]] = {}
        """When the delay of each message of an entry is over that was refused."""
        self._before: dict[Position, int] = {}
        """When the delay of an entry is over that was refused, and has come again since without being asked
        for: it need not be asked for, but may."""

    def arrived(self, position: Position) -> None:
        """That entry has come: what was refused of it before need not be asked for any more. Where messages
        come in order everything is asked for, whatever has come."""
        if not self._in_order:
            refused = self._refused.pop(position, None)
            if refused is not None:
                self._before[position] = min(refused.values())

    def handed_out(self, positions: list[Position], size: int, index: int, count: int, now: int) -> None:
        """The application has message `index` of `size` of that entry, or one in these chunks; it was
        delivered `count` times before."""
        if not self._timeout:
            return
        due = now + self._timeout + (0 if self._backoff is None else delay(self._backoff, count))
        for position in positions:
            known = self._open.get(position)
            if known is None:
                self._open[position] = HandedOut(due, set(range(size)), {index})
            else:
                known.due = due
                known.given.add(index)
                known.left.add(index)

    def acknowledged(self, positions: list[Position], index: int) -> None:
        """That message is; its entry is judged when nothing of it is left (UNACK-07)."""
        for position in positions:
            known = self._open.get(position)
            if known is not None:
                known.left.discard(index)
                if not known.left:
                    del self._open[position]
            refused = self._refused.get(position)
            if refused is not None and not self._in_order:
                refused.pop(index, None)
                if not refused:
                    del self._refused[position]

    def copied(self, positions: list[Position], index: int) -> None:
        """A copy of that message is safe: it need not be judged any more."""
        for position in positions:
            known = self._open.get(position)
            if known is not None:
                known.given.discard(index)

    def acknowledged_through(self, last: Position, index: int) -> None:
        """Everything before that message of this entry is, and it."""
        for position in [each for each in self._open if each < last]:
            del self._open[position]
        for each in range(index + 1):
            self.acknowledged([last], each)

    def put_off(self, positions: list[Position], in_part: bool, cumulative: bool) -> None:
        """An entry, or a message of it, is copied: that is its verdict, or that of all before it, too."""
        judged = [] if in_part else positions
        if cumulative:
            judged = judged + [each for each in [*self._open, *self._refused] if each < min(positions)]
        for position in judged:
            self._open.pop(position, None)
            self._refused.pop(position, None)

    def refused(self, positions: list[Position], index: int, count: int, now: int) -> None:
        """That message of an entry is; of two moments of it the earlier one counts."""
        due = now + delay(self._negative, count)
        for position in positions:
            known = self._open.get(position)
            if known is not None:
                known.given.discard(index)
            refused = self._refused.setdefault(position, {})
            refused[index] = min(due, refused.get(index, due))

    def refusal_is_due(self, position: Position, now: int) -> bool:
        """Whether the delay is over of all messages of an entry that were refused, or one of an earlier
        delivery."""
        refused = self._refused.get(position, {})
        return now >= max(refused.values(), default=now) or now >= self._before.get(position, now + 1)

    def is_due(self, position: Position, now: int) -> bool:
        """Whether the time of an entry is over."""
        known = self._open.get(position)
        return known is not None and known.silent and now >= known.due

    def any_due(self, now: int) -> bool:
        """The same, of any; where it is, everything is asked for."""
        found = any(each.due <= now for each in self._open.values() if each.silent)
        if found:
            self._open.clear()
        return found

    def asked_for(self, position: Position) -> None:
        """For whichever reason: it comes again, and is not to be asked for because of the other, too."""
        self._open.pop(position, None)
        self._refused.pop(position, None)
        self._before.pop(position, None)

    def any_refusal_is_due(self, now: int) -> bool:
        return any(due <= now for refused in self._refused.values() for due in refused.values())

    def forgotten(self, now: int) -> list[Position]:
        """What should have been asked for by now."""
        if not self._open and not self._refused:
            return []
        found = [
            position for position, each in self._open.items() if each.silent and now > each.due + self._latest
        ]
        dues = [(position, max(each.values())) for position, each in self._refused.items()]
        return found + [position for position, due in dues if now > due + LATEST]

    def clear(self) -> None:
        """Everything comes again by itself."""
        self._open.clear()
        self._refused.clear()
        self._before.clear()


def delay(backoff: RedeliveryBackoff, count: int) -> int:
    """Nanoseconds that a message waits that was delivered `count` times before (BACK-03)."""
    return round(min(backoff.max_delay, backoff.min_delay * backoff.multiplier ** min(count, 60)) * SECOND)
