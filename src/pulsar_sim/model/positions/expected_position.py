"""The position of a consumer that seeks: which message may come next.

Owns the answer, from requests and arrived messages: the message behind the last one, or at one of the
positions where the subscription may be. There are several positions when a seek was not answered or
acknowledgements may have been lost. It knows nothing of consumers; it compares with the log of the reference
model.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from pulsar_sansio.wire import unpack_payload

from ..records.message_position import BEFORE_ALL, MessagePosition, Position
from ..records.topic_record import TopicRecord

MOST_BASES = 12
"""Positions remembered, at most; with more of them any message may come."""


@dataclass(frozen=True, slots=True)
class Base:
    """A position to begin at: the first message from `message_position` on."""

    message_position: MessagePosition
    since: int | None = None
    """Messages submitted up to this moment, in nanoseconds, may be skipped, because the consumer began at the
    end."""
    time: int | None = None
    """Milliseconds since 1970: messages published before are skipped."""
    known: MessagePosition = BEFORE_ALL
    """For a seek to a time, `time` counts only before this position: later messages come, whatever time they
    carry."""


START = Base(BEFORE_ALL)


class ExpectedPosition:
    """The expected position of one consumer in one topic."""

    def __init__(self, topic: TopicRecord, compacted: bool = False) -> None:
        self.topic = topic
        self._compacted = compacted
        """Messages that compaction may remove need not come."""
        self.bases: list[Base] = [START]
        """Positions where the subscription may be."""
        self.last: MessagePosition | None = None
        """The last message; None when the next one is the first since the consumer attached."""
        self.furthest: MessagePosition | None = None
        """The furthest message that came since the last move."""
        self._first: MessagePosition | None = None
        """The first message that came since the last move."""
        self._torn: MessagePosition | None = None
        """The furthest message that came before the consumer began again."""
        self._times: dict[Position, int] = {}
        self._judged = 0, True
        """For the first element's number of entries: whether they lie in the order of their publish times."""

    def moved(self, *bases: Base) -> None:
        """The subscription is at one of these positions now."""
        self.bases = list(bases)
        self.last = self.furthest = self._first = self._torn = None

    def may_be_at(self, base: Base) -> None:
        """The subscription may be at this position too."""
        if base not in self.bases:
            self.bases.append(base)
        if len(self.bases) > MOST_BASES:
            self.bases = [Base(BEFORE_ALL, since=2**63)]

    def unsettled(self, base: Base) -> None:
        """From now on the subscription may be at this position instead."""
        for each in [*self.may_begin, base]:
            self.may_be_at(each)
        self.last = None

    def unanswered(self, base: Base) -> None:
        """A seek to this position was given up: it may be done already, or later, or never."""
        self.unsettled(base)
        self._kept(base)

    def may_be_as_kept(self) -> None:
        """The consumer may have lost what the broker does not know."""
        for base in list(self.bases):
            self._kept(base)

    def _kept(self, base: Base) -> None:
        """Add the position that the broker keeps: the named message, or its whole entry. Only the consumer
        knew that the message behind it was next."""
        ledger, entry, index = base.message_position
        if index > 0:
            self.may_be_at(Base((ledger, entry, index - 1)))
            self.may_be_at(Base(whole(base.message_position)))

    def back(self) -> None:
        """The consumer begins again where the subscription is."""
        self.last = None
        self._torn = self.furthest

    @property
    def may_begin(self) -> list[Base]:
        return [Base(after(self.last))] if self.last is not None else self.bases

    def came(self, message_position: MessagePosition) -> str:
        """Record a message; return what is wrong with it, or an empty text."""
        wrong = [self._wrong(base, message_position) for base in self.may_begin]
        self.last = message_position
        self.furthest = max(message_position, self.furthest or message_position)
        self._first = min(message_position, self._first or message_position)
        return "" if "" in wrong else "; ".join(dict.fromkeys(wrong))

    def _wrong(self, base: Base, message_position: MessagePosition) -> str:
        if message_position < base.message_position:
            return f"it lies before {base.message_position}"
        if (
            base.time is not None
            and message_position < base.known
            and self._in_order
            and self.published(message_position[:2]) < base.time
        ):
            return f"it was published before {base.time}"
        for other in self._message_positions(base.message_position):
            if other >= message_position:
                break
            if not self._may_be_passed(base, other):
                return f"{other} was left out, from {base.message_position} on"
        return ""

    def _may_be_passed(self, base: Base, message_position: MessagePosition) -> bool:
        if self._compacted and self.topic.compacted.may_lack(message_position):
            return True
        first_chunk = self.topic.chunks_of(message_position[:2])[0]
        if self._is_cut(first_chunk, message_position):
            return True
        if self._torn is not None and first_chunk < base.message_position[:2] < message_position[:2]:
            return True  # the cursor lies between its chunks, and the consumer began again there
        if base.since is not None:
            return self.topic.log[message_position[:2]].messages[message_position[2]].sent_at <= base.since
        return base.time is not None and (
            not self._in_order or self.published(message_position[:2]) < base.time
        )

    def _is_cut(self, first_chunk: Position, message_position: MessagePosition) -> bool:
        """True when the consumer may have begun behind the first chunk of the message, and so never had all
        chunks. It may also have begun again there, with everything acknowledged up to a message in between. A
        consumer that sought that message has it."""
        if self._torn is not None and first_chunk < self._torn[:2] < message_position[:2]:
            return True
        if first_chunk == message_position[:2] or (
            self._first is not None and first_chunk >= self._first[:2]
        ):
            return False
        return any(
            base.since is not None
            or base.time is not None
            or (first_chunk < base.message_position[:2] and base.message_position != message_position)
            for base in self.bases
        )

    def may_be_ignored(self, message_position: MessagePosition) -> bool:
        """True when the message lies before one of the positions where the subscription may be."""
        return any(
            message_position < base.message_position or self._may_be_passed(base, message_position)
            for base in self.bases
        )

    def has_more(self, until: MessagePosition) -> bool:
        """True when a message before `until` must still come for the first time, whatever the position."""
        bases = self.bases if self.furthest is None else [Base(after(self.furthest))]
        return all(self._is_more(base, until) for base in bases)

    def _is_more(self, base: Base, until: MessagePosition) -> bool:
        for message_position in self._message_positions(base.message_position):
            if message_position >= until:
                break
            if not self._may_be_passed(base, message_position):
                return True
        return False

    def lacks(self, first: MessagePosition, until: MessagePosition) -> bool:
        """True when a message from `first` on, and before `until`, must come to a consumer that begins
        there."""
        for message_position in self._message_positions(first):
            if message_position >= until:
                break
            if not (self._compacted and self.topic.compacted.may_lack(message_position)):
                return True
        return False

    @property
    def least(self) -> MessagePosition:
        """Return the least position at which the next message may lie."""
        return min(base.message_position for base in self.may_begin)

    def _message_positions(self, first: MessagePosition) -> Iterator[MessagePosition]:
        """Yield the positions of all known messages from `first` on."""
        order, log = self.topic.order, self.topic.log
        for index in range(bisect_left(order, first[:2]), len(order)):
            position = order[index]
            if position[0] <= self.topic.gone:
                continue
            for number in range(len(log[position].messages)):
                if (*position, number) >= first:
                    yield (*position, number)

    @property
    def end(self) -> MessagePosition:
        """Return the position behind all known messages."""
        last = self.topic.last_message
        return BEFORE_ALL if last is None else (last[0], last[1] + 1, -1)

    def published(self, position: Position) -> int:
        """Return the publish time of an entry, in milliseconds since 1970."""
        found = self._times.get(position)
        if found is None:
            payload = self.topic.log[position].payload
            found = self._times[position] = unpack_payload(payload).metadata.publish_time
        return found

    @property
    def _in_order(self) -> bool:
        """True when entries lie in the order of their publish times, which brokers assume."""
        order = self.topic.order
        if len(order) != self._judged[0]:
            times = [self.published(position) for position in order]
            self._judged = len(order), times == sorted(times)
        return self._judged[1]


def after(message_position: MessagePosition) -> MessagePosition:
    """Return the first position behind `message_position`."""
    return (message_position[0], message_position[1], message_position[2] + 1)


def whole(message_position: MessagePosition) -> MessagePosition:
    """Return the first position of the entry."""
    return (message_position[0], message_position[1], -1)
