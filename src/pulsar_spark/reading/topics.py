"""This module asks the broker which topics a query reads, where they end, and what is in them.

The driver's side of reading, in blocking calls on a `Link`. It answers questions and decides nothing: how far
a micro-batch goes and what counts as lost is `plan`'s. Everything comes over the protocol itself; there is no
administration to ask.
"""

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from pulsar_sansio import EARLIEST, LATEST, ConsumerBusy, InitialPosition, MessageId, PulsarError, TopicName
from pulsar_sansio import TopicNotFound as NoSuchTopic

from ..errors import InvalidOption, LinkTimeout, SubscriptionBusy, TopicNotFound
from ..link import Link, last_of
from ..options.query_options import ReadOptions
from ..subscribed import Hold, Reading
from .offsets import (
    NOTHING,
    AtTime,
    BehindEntry,
    Offsets,
    OfSubscription,
    Place,
    Position,
    WantedPositions,
    Where,
)
from .plan import EntryRun, Extent

T = TypeVar("T")

_BEHIND_ALL = 1 << 40
"""An entry that no ledger has."""

_PAUSE = 0.05
"""Seconds between two attempts."""

WATCHED = 2_000
"""Topics whose ends are asked for over a reader that stays open; of more, one after the other."""

REMEMBERED = 64
"""Ledgers of a topic whose ends are remembered."""

PEEK_TIMEOUT = 5.0
"""Seconds for one entry to come that is known to be there; limits are estimates, and do without it."""


class QueryTopics:
    """The topics of one query, through one link.

    `options` says which. Nothing is opened before it is needed. Methods raise `LinkTimeout` where the broker
    does not answer within `operationTimeoutMs`, and `TopicNotFound`.
    """

    def __init__(self, options: ReadOptions, link: Link) -> None:
        self._options = options
        self._link = link
        self._timeout = options.operation_timeout_s
        self._watched: dict[str, Reading] = {}
        self._holds: dict[str, Hold] = {}
        self._runs: dict[str, dict[int, ClosedLedger]] = {}
        """By topic: its ledgers that take no more entries, as far as they were looked at."""

    # --- which topics ----------------------------------------------------------------------------

    def discover(self) -> list[str]:
        """Every topic partition, and topic without partitions, in order. A name that does not exist is among
        them as it is: `lasts` reports it as missing."""
        if self._options.topics_pattern is None:
            topics = list(self._options.topics)
        else:
            pattern = self._options.topics_pattern
            topics = self._try(
                lambda: self._link.topics(_namespace(pattern), pattern, self._timeout),
                "the topics of a pattern",
            )
        found: list[str] = []
        for topic in topics:
            name = TopicName.parse(topic)
            count = 0
            if name.partition < 0:
                count = self._try(partial(self._partitions, topic), f"the partitions of {topic}")
            found += [str(name.partition_name(index)) for index in range(count)] or [str(name)]
        return found

    def _partitions(self, topic: str) -> int:
        try:
            return self._link.partitions(topic, self._timeout)
        except NoSuchTopic:
            return 0

    # --- where they end --------------------------------------------------------------------------

    def lasts(self, names: Iterable[str]) -> tuple[Offsets, list[str]]:
        """Return where each of these topics ends, and those that do not exist."""
        names = list(names)
        found: Offsets = {}
        missing: list[str] = []
        for begin in range(0, len(names), WATCHED):
            some = names[begin : begin + WATCHED]
            for name in some:  # all at once: the later readers are ready when the first one is
                self._watch(name)
            for name in some:
                try:
                    found[name] = self._try(partial(self._last, name), f"the end of {name}")
                except NoSuchTopic:
                    missing.append(name)
                    self.forget(name)
            if len(names) > WATCHED:
                for name in some:
                    self.forget(name)
        return found, missing

    def wait_for(self, names: Iterable[str], known: Iterable[str] = ()) -> tuple[Offsets, list[str]]:
        """Return the last positions and the missing topics, as `lasts`, and wait for a named topic that does
        not exist as `waitForTopicsMs` says. Raises `TopicNotFound` after that time. A topic that is `known`
        to have existed, by itself or in partitions, is not waited for."""
        names = list(names)
        existed = {*known, *(str(TopicName.parse(name).base) for name in known)}
        deadline = time.monotonic() + self._options.wait_for_topics_s
        while True:
            found, missing = self.lasts(names)
            unknown = [name for name in missing if name in self._options.topics and name not in existed]
            if not unknown:
                return found, missing
            if time.monotonic() >= deadline:
                raise TopicNotFound(
                    f"topic {unknown[0]} does not exist at {self._options.service_url}, and reading does not "
                    "create it (option waitForTopicsMs waits for it)"
                )
            self._link.serve(_PAUSE)
            names = self.discover()

    def _watch(self, name: str) -> Reading:
        watched = self._watched.get(name)
        if watched is None or watched.over is not None:
            watched = self._watched[name] = Reading(self._link, name, LATEST, paused=True, **self._naming())
        return watched

    def _last(self, name: str) -> Position:
        watched = self._watch(name)
        watched.ready(self._timeout)
        return last_of(watched.where(self._timeout))

    def forget(self, name: str) -> None:
        """Close everything that was opened for this topic."""
        self._runs.pop(name, None)
        for kept in (self._watched, self._holds):
            gone = kept.pop(name, None)
            if gone is not None:
                gone.close()

    def close(self) -> None:
        """Leave everything that was opened; the link stays, for others of this process."""
        for name in {*self._watched, *self._holds}:
            self.forget(name)

    # --- places ----------------------------------------------------------------------------------

    def begins(self, name: str) -> Position:
        """The place before the first entry that is still there."""
        return self._try(
            lambda: self._link.first_position(name, self._timeout, **self._naming()),
            f"the beginning of {name}",
        )

    def resolve(self, wanted: WantedPositions, lasts: Offsets) -> Offsets:
        """Positions for places. Raises `InvalidOption` for a topic that is named and not read."""
        read = set(lasts) | {str(TopicName.parse(name).base) for name in lasts}
        strange = sorted(wanted.named() - read)
        if strange:
            raise InvalidOption(
                f"offsets are given for {strange[0]}, which is not read; read are {', '.join(sorted(lasts))}"
            )
        return {name: self._place(name, wanted.of(name), last) for name, last in lasts.items()}

    def _place(self, name: str, where: Where, last: Position) -> Position:
        match where:
            case Place.EARLIEST:
                return NOTHING
            case Place.LATEST:
                return last
            case BehindEntry(position):
                return position
            case AtTime(publish_time):
                return self.at_time(name, publish_time)
            case OfSubscription(subscription):
                return self._of_subscription(name, subscription)
        raise AssertionError(where)

    def at_time(self, name: str, publish_time: int) -> Position:
        """The place before what was published at that time (milliseconds since 1970) or later."""
        return self._try(
            lambda: self._link.position_at(name, publish_time, self._timeout, **self._naming()),
            f"a place by time in {name}",
        )

    def _of_subscription(self, name: str, subscription: str) -> Position:
        hold = self._held(name, subscription)
        try:
            return hold.mark_delete(self._timeout) or NOTHING
        finally:
            hold.close()

    # --- the subscription that keeps data ----------------------------------------------------------

    def hold(self, name: str) -> Hold:
        """The query's own subscription of this topic, opened once; made at the beginning if there is none.
        Raises `SubscriptionBusy` where another consumer holds it."""
        held = self._holds.get(name)
        if held is None or held.over is not None:
            assert self._options.subscription is not None
            held = self._holds[name] = self._held(name, self._options.subscription)
        return held

    def acknowledge(self, name: str, position: Position) -> None:
        """The query's subscription is done with everything up to `position`; it holds what comes behind."""

        def acknowledge() -> None:
            held = self.hold(name)
            if position != NOTHING:
                held.acknowledge_up_to(position, self._timeout)

        self._try(acknowledge, f"acknowledging {name}")

    def held(self, name: str, start: Position, begins: Position) -> bool:
        """True if nothing behind `start` is gone, though its ledger is and the topic begins at `begins` now.
        That holds where the query's own subscription did not get beyond `start`. Then `start` was the
        ledger's end, and the method notes it."""
        mark_delete = self._try(
            lambda: self.hold(name).mark_delete(self._timeout), f"the place of the subscription of {name}"
        )
        if mark_delete is None or mark_delete > start:
            return False
        self._runs.setdefault(name, {})[start[0]] = ClosedLedger(start[1], begins[0])
        return True

    def _held(self, name: str, subscription: str) -> Hold:
        try:
            return self._link.hold(
                name, subscription, initial=InitialPosition.EARLIEST, timeout=self._timeout
            )
        except ConsumerBusy:
            raise SubscriptionBusy(
                f"subscription {subscription} of {name} is in use: another run of this query holds it, or "
                "another application has the same name for its own"
            ) from None

    # --- which entries ---------------------------------------------------------------------------

    def extent(self, name: str, start: Position, end: Position) -> Extent:
        """The entries behind `start` and up to `end`. Ledgers that are full are looked at once."""
        ledgers = self._runs.setdefault(name, {})
        place = start
        runs: list[EntryRun] = []
        if place == NOTHING and place < end:
            place = self.begins(name)
            if place == NOTHING:
                place = (end[0], -1)
        while place[0] < end[0]:
            if place[0] not in ledgers:
                ledgers[place[0]] = self._look_at(name, place[0], end)
            ledger = ledgers[place[0]]
            if place[1] < ledger.last:
                runs.append(EntryRun(place[0], place[1] + 1, ledger.last))
            place = (ledger.next, -1)
        if place < end:
            runs.append(EntryRun(end[0], place[1] + 1, end[1]))
        return runs

    def note_end(self, name: str, before: Position, last: Position, *, watched: bool) -> None:
        """The topic ended at `before` and ends at `last` now. Where that is another ledger, look at how the
        one before ended, as long as it is there: once it is gone, no call tells whether all of it was read.
        `watched`: where it is gone already, `before` is taken for its end."""
        if before == NOTHING or before[0] >= last[0]:
            return
        self.extent(name, before, last)
        ledgers = self._runs[name]
        if watched and ledgers[before[0]].last < before[1]:
            ledgers[before[0]].last = before[1]
        for number in sorted(ledgers)[:-REMEMBERED]:
            del ledgers[number]

    def next_ledger(self, name: str, position: Position) -> int | None:
        """The ledger after that of `position`, where it is known that `position` is the end of its own."""
        ledger = self._runs.get(name, {}).get(position[0])
        return ledger.next if ledger is not None and ledger.last == position[1] >= 0 else None

    def ends_of_ledgers(self, name: str) -> list[Position]:
        """The last entries of ledgers that were looked at."""
        return [(number, ledger.last) for number, ledger in self._runs.get(name, {}).items()]

    def _look_at(self, name: str, ledger: int, end: Position) -> "ClosedLedger":
        """The end of a ledger that has one, and the ledger that comes after it. A reader that begins behind
        all of it has acknowledged its last entry, and gets the first message behind it."""
        with self._link.reading(
            name,
            MessageId(ledger, _BEHIND_ALL),
            timeout=self._timeout,
            receiver_queue_size=1,
            **self._naming(),
        ) as reader:
            done = reader.where(self._timeout).mark_delete or NOTHING
            first = self._first(reader)
        following = first[0].ledger_id if first else end[0]
        return ClosedLedger(done[1] if done[0] == ledger else -1, max(following, ledger + 1))

    def ledger(self, name: str, number: int, end: Position) -> "ClosedLedger":
        """A ledger before the one of `end`, as it is now; its `last` is -1 where it is not there any more."""
        return self._try(lambda: self._look_at(name, number, end), f"ledger {number} of {name}")

    def weight(self, name: str, start: Position) -> tuple[int, int]:
        """Return the number of messages in the first entry behind `start`, and the bytes of their payloads.
        Return (1, 0) where none comes."""
        begin = EARLIEST if start == NOTHING else MessageId(*start)
        with self._link.reading(
            name, begin, timeout=self._timeout, receiver_queue_size=1, **self._naming()
        ) as reader:
            first = self._first(reader)
        if not first:
            return 1, 0
        message_id, size = first
        count = max(1, message_id.batch_size)
        return count, size * count

    def _first(self, reader: Reading) -> tuple[MessageId, int] | None:
        """The first message that comes: its id, and the bytes of its payload."""
        client = self._link.client
        try:
            self._link.wait(
                lambda: client.available(reader.handle) or None, PEEK_TIMEOUT, f"an entry of {reader.topic}"
            )
        except LinkTimeout:
            return None
        message = client.take(time.monotonic_ns(), reader.handle, 1)[0]
        return message.message_id, len(message.data)

    # --- inside ----------------------------------------------------------------------------------

    def _naming(self) -> dict[str, str]:
        return {"subscription_prefix": self._options.reader_name_prefix}

    def _try(self, ask: Callable[[], T], what: str) -> T:
        """Ask, and again while a topic is on its way from one broker to another."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return ask()
            except PulsarError as error:
                if not error.retryable:
                    raise
                if time.monotonic() >= deadline:
                    raise LinkTimeout(f"{what}: {error} ({self._options.service_url})") from error
                self._link.serve(_PAUSE)


class ClosedLedger:
    """A ledger that takes no more entries."""

    __slots__ = ("last", "next")

    def __init__(self, last: int, following: int) -> None:
        self.last = last
        """Its last entry; -1 where it has none."""
        self.next = following
        """The ledger of the next entry."""


def _namespace(pattern: str) -> str:
    parts = pattern.rpartition("://")[2].split("/")
    return "/".join(parts[:2]) if len(parts) >= 3 else "public/default"
