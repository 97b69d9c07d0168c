"""Reading a range: the messages of one topic or partition from behind one entry up to another, as record
batches.

The end is decided by position. Positions of messages that never come (markers of transactions, what
compaction or retention has removed, an empty ledger) cannot be waited for, so one of these ends it:

* An entry at the end or behind it has come. The reader drops what is behind the end.
* The broker says that the topic has no message behind the last entry that came. Chunks of incomplete
  messages count.
* The broker says that everything up to the end is acknowledged. The reader acknowledges the messages it has
  delivered, and the broker those that it does not deliver. The reader asks when nothing came for a while.

Otherwise it fails when nothing happens for too long: it never ends early. A message that came in chunks
belongs to the range that its last chunk is in. Where the first ones lie before the range, the reader begins
again, further back, and skips messages of other ranges.

The core restores lost connections and goes on behind the last message that it delivered. The reader reads
nothing until the caller asks for the next batch. It does not know what becomes of the batches, nor how ranges
are made.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from pulsar_sansio import (
    EARLIEST,
    ArrivalCounters,
    LastPosition,
    MessageId,
    Messages,
    PulsarError,
    ReceivedBatch,
    ReceivedSingles,
)
from pulsar_security import KeyFiles

from ..errors import LinkTimeout, RangeReadTimeout, UnreadableMessages
from ..link import Link, last_of
from ..options.option_table import BATCH_BYTES, BATCH_ROWS, RECEIVER_QUEUE
from ..schemas.definitions import Definitions
from ..subscribed import Reading, full_name
from .columns import Builder
from .offsets import NOTHING, Position, Range
from .overtaken import Watch

_log = logging.getLogger("pulsar_spark")

FIRST_PROBE, LONGEST_PROBE = 0.1, 5.0
"""Seconds of silence until the broker is asked whether there is more; each further pause is twice as long."""

PENDING_CHUNKED = 100
"""Messages that may be incomplete at the same time."""

_LOOK_BACK = (1_000, 8_000)
"""Entries to go back for the beginning of a message in chunks; then to the beginning of the ledger, then to
that of the topic."""

AHEAD = 16
"""Ranges that are subscribed to at the same time, of which one is read: many small ones take as long as their
messages, and not as long as so many subscriptions."""

_EVERYTHING = 1 << 31


def read_range(link: Link, wanted: Range, schema: Any, **options: Any) -> Iterator[Any]:
    """`read_ranges` of one."""
    return read_ranges(link, [wanted], schema, **options)


def read_ranges(
    link: Link,
    ranges: Sequence[Range],
    schema: Any,
    *,
    batch_rows: int = BATCH_ROWS,
    batch_bytes: int = BATCH_BYTES,
    timeout_s: float = 120.0,
    read_compacted: bool = False,
    receiver_queue: int = RECEIVER_QUEUE,
    subscription_prefix: str = "spark-reader",
    watch: Callable[[Range], Watch] | None = None,
    key_files: KeyFiles | None = None,
    definitions: Definitions | None = None,
    undecodable_fails: bool = True,
) -> Iterator[Any]:
    """Record batches of exactly `schema`: one range after the other, each in the topic's order. They have at
    least `batch_rows` rows or `batch_bytes` bytes but for the last; one may end a range and begin the next.

    `timeout_s`: seconds without any progress. `receiver_queue`: messages that the broker may send ahead.
    `key_files`: private keys for encrypted messages. `definitions`: decode the column `value`; a message that
    they cannot decode is null, or fails if `undecodable_fails`.
    `watch`: makes the `Watch` that detects ledgers removed meanwhile; without it no loss is detected.

    Raises `RangeReadTimeout`, `UnreadableMessages` for what is damaged, cannot be decrypted or is too large,
    `BadColumn`, `UndecodableMessage`, `RecordBatchTooLarge`, and the `PulsarError`s of a topic that cannot be
    read.
    """
    options = {
        "raw_batches": True,
        "read_compacted": read_compacted,
        "receiver_queue_size": receiver_queue,
        "subscription_prefix": subscription_prefix,
        "max_pending_chunked_messages": PENDING_CHUNKED,
        "incomplete_chunked_message_timeout": 0.0,
        "crypto_key_reader": key_files,
    }
    rows = Builder(schema, definitions, undecodable_fails)
    waiting = deque(
        _RangeReader(link, each, rows, timeout_s, options, watch) for each in ranges if each.start < each.end
    )
    try:
        while waiting:
            for reader in islice(waiting, AHEAD):
                reader.begin()
            reader = waiting[0]
            for _ in reader.parts():
                if rows.rows >= batch_rows or rows.size >= batch_bytes:
                    yield rows.finish()
            reader.close()
            waiting.popleft()
        if rows.rows:
            yield rows.finish()
    finally:
        for reader in islice(waiting, AHEAD):
            reader.close()


class _RangeReader:
    """One range on its way into `rows`."""

    def __init__(
        self,
        link: Link,
        wanted: Range,
        rows: Builder,
        timeout: float,
        options: dict[str, Any],
        watch: Callable[[Range], Watch] | None,
    ) -> None:
        self._link = link
        self._range = replace(wanted, topic=full_name(wanted.topic))
        self._watch = None if watch is None else watch(self._range)
        self._builder = rows
        self._timeout = timeout
        self._options = options
        self._reached = wanted.start
        """Everything up to this entry is done."""
        self._steps_back = 0
        self._reading: Reading | None = None
        self._counters = ArrivalCounters()

    def begin(self) -> None:
        """Subscribe, without waiting for the answer, and without getting anything yet; once."""
        if self._reading is None:
            self._reading = self._subscribe(None, paused=True)

    def parts(self) -> Iterator[None]:
        """Read it; says so whenever something has become rows."""
        self.begin()
        if self._watch is not None:
            self._watch.begin()
        self._go_on()
        while (messages := self._next()) is not None:
            items = deque(messages.items)
            del messages
            while items:  # what was taken is let go: it is not compressed any more
                self._take(items.popleft())
                yield
                if self._reached >= self._range.end:
                    return
        if self._watch is not None:
            self._watch.end(self._reached)

    def close(self) -> None:
        """The reader goes; the link stays."""
        if self._reading is not None:
            self._reading.close()

    # --- inside ----------------------------------------------------------------------------------

    def _subscribe(self, first_chunk: Position | None, *, paused: bool = False) -> Reading:
        """Begin behind what is done. `first_chunk`: to go that far back for chunks."""
        start: MessageId = EARLIEST
        if self._reached != NOTHING:
            start = MessageId(*self._reached, first_chunk=first_chunk)
        return Reading(self._link, self._range.topic, start, paused=paused, **self._options)

    def _go_on(self) -> None:
        """Wait until it is subscribed, and let messages come."""
        reading, client = self._reading, self._link.client
        assert reading is not None
        reading.ready(self._timeout)
        client.resume(time.monotonic_ns(), reading.handle)
        self._counters = client.arrival_counters(reading.handle)

    def _next(self) -> Messages | None:
        """Wait for messages and return them; None where it is known that none will come."""
        client = self._link.client
        deadline = time.monotonic() + self._timeout
        pause = FIRST_PROBE
        while True:
            assert self._reading is not None
            reading = self._reading
            try:
                self._link.wait(partial(self._has_come, reading), pause, str(self._range))
            except LinkTimeout:
                if self._nothing_left(reading):
                    return None
                if time.monotonic() >= deadline:
                    raise self._timed_out() from None
                pause = min(2 * pause, LONGEST_PROBE)
                continue
            if not self._is_cut():
                return client.take(time.monotonic_ns(), reading.handle, _EVERYTHING)
            self._look_back()

    def _has_come(self, reading: Reading) -> bool | None:
        """True if there is something to do, else None. Raises the error that the reader failed with."""
        if reading.over is not None:
            raise reading.over
        self._check_unreadable()
        return True if self._link.client.available(reading.handle) or self._is_cut() else None

    def _take(self, item: Any) -> None:
        """Make rows of it, as far as it is in the range."""
        end = self._range.end
        first, last = _extent(item)
        if last[0] != self._reached[0] and self._watch is not None:
            for before, ledger in _changes(item, self._reached):
                if before < end:
                    self._watch.enter(ledger, before)
        if last > end:
            item = _up_to(item, end)
        if item is not None:
            self._add(item, first)
        self._reached = max(self._reached, last)

    def _add(self, item: Any, first: Position) -> None:
        try:
            self._builder.add(item)
        except PulsarError as error:
            raise UnreadableMessages(
                f"{self._range}: entry {first[0]}:{first[1]} is damaged: {error}"
            ) from error

    def _nothing_left(self, reading: Reading) -> bool:
        """True if the broker says that nothing of the range is still to come.

        Without a connection it cannot say so, and the method returns False."""
        try:
            answer: LastPosition = reading.where(min(self._timeout, 30.0))
        except LinkTimeout:
            return False
        if self._link.client.available(reading.handle) or self._is_cut():
            return False
        if answer.mark_delete is not None and answer.mark_delete >= self._range.end:
            return True
        # A chunk belongs to no message yet: others of it may never come, or belong to the next range.
        came = max(self._reached, self._counters.last_chunk or NOTHING)
        return came >= min(last_of(answer), self._range.end)

    def _timed_out(self) -> RangeReadTimeout:
        return RangeReadTimeout(
            f"{self._range}: nothing came for {self._timeout:g} s (pollTimeoutMs) behind "
            f"{self._reached[0]}:{self._reached[1]}"
        )

    def _check_unreadable(self) -> None:
        """Raise `UnreadableMessages` if an entry of the range did not become a message.

        The broker's own entries and entries outside of the range do not count."""
        counters = self._counters
        span = counters.unreadable
        if span is None or span[1] <= self._range.start or span[0] > self._range.end:
            return
        what = ", ".join(
            f"{getattr(counters, name)} {text}"
            for name, text in _UNREADABLE.items()
            if getattr(counters, name)
        )
        if self._reading is not None and self._reading.undecryptable is not None:
            what += f": {self._reading.undecryptable}"
        raise UnreadableMessages(f"{self._range}: from entry {span[0][0]}:{span[0][1]} on, {what}")

    # --- chunks ----------------------------------------------------------------------------------

    def _is_cut(self) -> bool:
        """True if a chunk of this range has come whose message began before the first entry read."""
        orphan = self._counters.last_orphan
        return orphan is not None and orphan > self._reached and self._steps_back <= len(_LOOK_BACK) + 1

    def _look_back(self) -> None:
        """Begin again, further back. The broker redelivers the messages that came and were not taken."""
        assert self._reading is not None
        step = self._steps_back
        self._steps_back += 1
        ledger, entry = self._reached
        if self._reached == NOTHING or step > len(_LOOK_BACK):
            _log.warning("%s: chunks without a beginning, of messages that are gone", self._range)
            self._steps_back = len(_LOOK_BACK) + 2
            return
        back: Position = (-1, -1)
        if step < len(_LOOK_BACK):
            back = (ledger, max(entry - _LOOK_BACK[step], -1))
        self._reading.close()
        self._reading = self._subscribe(back)
        self._go_on()


_UNREADABLE = {
    "discarded": "messages are damaged (checksum, compression or batch)",
    "undecryptable": "messages are encrypted and cannot be decrypted (encryption.keyFiles)",
    "chunks_oversized": "chunks are of messages that are too large",
    "chunks_dropped": f"chunks are of more than {PENDING_CHUNKED} messages at the same time",
}


def _extent(item: Any) -> tuple[Position, Position]:
    """Its first and its last entry."""
    if isinstance(item, ReceivedBatch):
        return item.entry.position, item.entry.position
    if isinstance(item, ReceivedSingles):
        return item.positions[0], item.positions[-1]
    return item[0].entry.position, item[-1].entry.position


def _changes(item: Any, before: Position) -> Iterator[tuple[Position, int]]:
    """Where the entries of an item, which come behind `before`, go from one ledger to another: the last of
    the one, and the other."""
    if isinstance(item, ReceivedBatch):
        positions: Sequence[Position] = (item.entry.position,)
    elif isinstance(item, ReceivedSingles):
        positions = item.positions
    else:
        positions = [message.entry.position for message in item]
    for position in positions:
        if position[0] != before[0]:
            yield before, position[0]
        before = position


def _up_to(item: Any, end: Position) -> Any:
    """Return the part of an item up to the end; None where there is none."""
    if isinstance(item, ReceivedBatch):
        return None
    if isinstance(item, ReceivedSingles):
        kept = sum(position <= end for position in item.positions)
        if not kept:
            return None
        return item._replace(
            positions=item.positions[:kept], headers=item.headers[:kept], payloads=item.payloads[:kept]
        )
    messages: Sequence[Any] = [message for message in item if message.entry.position <= end]
    return messages or None
