"""When a consumer may ask for messages again: after a negative acknowledgement, or after the acknowledgement
timeout.

Owns, for one consumer, the moments from which it may ask: for each negatively acknowledged entry the end of
its delay, and for each delivered one the end of its timeout (UNACK-01, NACK-02). It shares no code with the
machine and counts no ticks: early is not allowed, late only as far as ticks and timers explain.
"""

from dataclasses import dataclass

from pulsar_sansio.model.config import ConsumerSpec, RedeliveryBackoff

from ..engine.clock import SECOND

Position = tuple[int, int]

LATEST = 3 * SECOND
"""Nanoseconds by which a consumer may ask late, beside the ticks of its timeout, and a producer may write a
batch late. Timers are late, and due requests wait for others to go with them."""

MOST_TICKS = 3
"""Ticks of the acknowledgement timeout: the current one, one more, and one for rounding a backoff."""


@dataclass(slots=True)
class DeliveredEntry:
    """An entry with delivered messages that the application has not acknowledged."""

    due: int
    """Virtual time, in nanoseconds, from which the entry may be asked for."""
    left: set[int]
    """Messages not acknowledged since, by index in the batch."""
    taken: set[int]
    """Messages delivered and not negatively acknowledged, by index in the batch."""

    @property
    def silent(self) -> bool:
        """True when the application has a message without an acknowledgement of either kind."""
        return not self.taken.isdisjoint(self.left)


class RedeliveryTiming:
    """The redelivery timing of one consumer."""

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
        self._open: dict[Position, DeliveredEntry] = {}
        self._refused: dict[Position, dict[int, int]] = {}
        """The end of the delay of each negatively acknowledged message, by entry and index."""
        self._before: dict[Position, int] = {}
        """The end of the delay of an entry that was negatively acknowledged and arrived since without a
        request: the consumer may ask for it, but need not."""

    def arrived(self, position: Position) -> None:
        """An entry arrived: its earlier negative acknowledgements need no request any more. On subscriptions
        in order everything is asked for, whatever has arrived."""
        if not self._in_order:
            refused = self._refused.pop(position, None)
            if refused is not None:
                self._before[position] = min(refused.values())

    def delivered(self, positions: list[Position], size: int, index: int, count: int, now: int) -> None:
        """The application took message `index` of `size` of these entries, which were redelivered `count`
        times; several entries are chunks."""
        if not self._timeout:
            return
        due = now + self._timeout + (0 if self._backoff is None else delay(self._backoff, count))
        for position in positions:
            known = self._open.get(position)
            if known is None:
                self._open[position] = DeliveredEntry(due, set(range(size)), {index})
            else:
                known.due = due
                known.taken.add(index)
                known.left.add(index)

    def acknowledged(self, positions: list[Position], index: int) -> None:
        """The message is acknowledged; its entry is done when no message is left (UNACK-07)."""
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
        """A copy of the message is stored: it needs no acknowledgement from the application."""
        for position in positions:
            known = self._open.get(position)
            if known is not None:
                known.taken.discard(index)

    def acknowledged_through(self, last: Position, index: int) -> None:
        """The message is acknowledged, with everything before it."""
        for position in [each for each in self._open if each < last]:
            del self._open[position]
        for each in range(index + 1):
            self.acknowledged([last], each)

    def reconsume_later(self, positions: list[Position], in_part: bool, cumulative: bool) -> None:
        """An entry, or a message of it, is copied: that counts as its acknowledgement, and cumulatively as
        that of all before it."""
        settled = [] if in_part else positions
        if cumulative:
            settled = settled + [each for each in [*self._open, *self._refused] if each < min(positions)]
        for position in settled:
            self._open.pop(position, None)
            self._refused.pop(position, None)

    def refused(self, positions: list[Position], index: int, count: int, now: int) -> None:
        """The message is negatively acknowledged; of two moments the earlier one counts."""
        due = now + delay(self._negative, count)
        for position in positions:
            known = self._open.get(position)
            if known is not None:
                known.taken.discard(index)
            refused = self._refused.setdefault(position, {})
            refused[index] = min(due, refused.get(index, due))

    def refusal_is_due(self, position: Position, now: int) -> bool:
        """True when the delay of all negatively acknowledged messages of an entry is over, or one of an
        earlier delivery."""
        refused = self._refused.get(position, {})
        return now >= max(refused.values(), default=now) or now >= self._before.get(position, now + 1)

    def is_due(self, position: Position, now: int) -> bool:
        """True when the timeout of an entry has expired."""
        known = self._open.get(position)
        return known is not None and known.silent and now >= known.due

    def any_due(self, now: int) -> bool:
        """True when the timeout of any entry has expired; then everything is asked for."""
        found = any(each.due <= now for each in self._open.values() if each.silent)
        if found:
            self._open.clear()
        return found

    def asked_for(self, position: Position) -> None:
        """The entry is asked for: whichever the reason, it is redelivered, and the other reason is void."""
        self._open.pop(position, None)
        self._refused.pop(position, None)
        self._before.pop(position, None)

    def any_refusal_is_due(self, now: int) -> bool:
        return any(due <= now for refused in self._refused.values() for due in refused.values())

    def forgotten(self, now: int) -> list[Position]:
        """Return the entries that should have been asked for by now."""
        if not self._open and not self._refused:
            return []
        found = [
            position for position, each in self._open.items() if each.silent and now > each.due + self._latest
        ]
        dues = [(position, max(each.values())) for position, each in self._refused.items()]
        return found + [position for position, due in dues if now > due + LATEST]

    def clear(self) -> None:
        """Forget everything, because all entries are redelivered."""
        self._open.clear()
        self._refused.clear()
        self._before.clear()


def delay(backoff: RedeliveryBackoff, count: int) -> int:
    """Return the nanoseconds that a message waits after `count` deliveries (BACK-03)."""
    return round(min(backoff.max_delay, backoff.min_delay * backoff.multiplier ** min(count, 60)) * SECOND)
