"""Streams: how far the next micro-batch goes, what is committed, what was lost.

The driver keeps one `PulsarStreamReader` in a process of its own for as long as a query runs; it ends without
notice. Where the query is, Spark says with every call: nothing here has to survive. Tasks get a copy of which
only `read` is called.

This module does two things that Spark does not do. Spark does not write down where a query began before the
first micro-batch is through. So a start that depends on the moment (`latest`, a time) is first the end of an
empty micro-batch, the pin batch. It stands in the checkpoint before any message is read. Second, Spark
commits a micro-batch only when it builds the next. So the driver acknowledges by itself after a while without
messages.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pulsar_sansio.schemas import SchemaInfo

from ..link import Link
from ..options.query_options import ReadOptions
from .batch_source import arrow_schema, check_retention, divide, link_settings, read_part, report
from .offsets import NOTHING, Offsets, Place, Position, WantedPositions, from_json, to_json, wanted_at
from .plan import Extent, admit, forward, lost_by_deletion
from .topics import QueryTopics

LOSS_CHECK = 10.0
"""Seconds between two questions where a topic begins now; the first is asked before anything is read."""

CLOSE = 5.0
"""Seconds between two questions where a topic ends that are as good as one: what ended a ledger at the first
was its last entry where the ledger is gone at the second. Otherwise the last entry is unknown."""

SAMPLE_AGE = 10.0
"""Seconds for which one entry of a topic stands for how many messages and bytes its entries have."""


class PulsarStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One run of a streaming query."""

    def __init__(self, options: ReadOptions, schema: Any, definition: SchemaInfo | None = None) -> None:
        """`definition`: the one that the schema was inferred from; None for a schema of the user's."""
        self._options = options
        self._schema = arrow_schema(schema, options)
        self._definition = definition
        self._driver: _Driver | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For tasks, which have sockets of their own."""
        return {**self.__dict__, "_driver": None}

    @property
    def _run(self) -> "_Driver":
        if self._driver is None:
            self._driver = _Driver(self._options)
        return self._driver

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_messages is not None:
            return ReadMaxRows(self._options.max_messages)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._run.freeze()

    def initialOffset(self) -> dict[str, Any]:
        return to_json(self._run.initial())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return to_json(self._run.next_end(from_json(start), limit))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return to_json(self._run.lasts)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return list(self._run.tasks(from_json(start), from_json(end)))

    def commit(self, end: dict[str, Any]) -> None:
        self._run.commit(from_json(end))

    def read(self, partition: Any) -> Iterator[Any]:
        return read_part(self._options, self._schema, partition, self._definition)

    def stop(self) -> None:
        """Close the broker's connections. Spark does not call this: it ends the process."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None


class _Driver:
    """The driver's state of a running query; the driver can find all of it out again."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._link = Link(options.service_url, **link_settings(options))
        self._topics = QueryTopics(options, self._link)
        self._names: list[str] = []
        self._discovered_at = float("-inf")
        self.lasts: Offsets = {}
        """The ends of the topics when the broker was asked last."""
        self._missing: list[str] = []
        """The topics that did not exist then."""
        self._asked_at = float("-inf")
        self._frozen = False
        """Trigger.AvailableNow: `lasts` stays as it is."""
        self._initial: Offsets | None = None
        self._pinned = True
        """True if the beginning is written down, or does not depend on the moment."""
        self._checked_at: dict[str, float] = {}
        """By topic: when it was looked at for what is lost."""
        self._samples: dict[str, tuple[float, float, float]] = {}
        """By topic: when an entry was looked at, its messages, its bytes."""
        self._acknowledged: Offsets = {}
        self._quiet_since = time.monotonic()

    def close(self) -> None:
        """Let go of the broker."""
        self._link.close()

    # --- the beginning ---------------------------------------------------------------------------

    def initial(self) -> Offsets:
        """Return where a query without a checkpoint begins. Every call returns an equal answer."""
        if self._initial is None:
            options = self._options
            if options.starting_timestamp is not None:
                wanted = wanted_at(options.starting_timestamp)
            else:
                wanted = options.starting or WantedPositions(Place.LATEST, {}, {})
            if not self._frozen:
                self._ask()
            self._require(known={})
            self._initial = self._topics.resolve(wanted, self.lasts)
            self._pinned = not wanted.moves
        return self._initial

    # --- how far ---------------------------------------------------------------------------------

    def freeze(self) -> None:
        """From now on there is nothing new."""
        self._ask()
        self._frozen = True

    def next_end(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """The end of the next micro-batch, which begins at `start`."""
        if not self._pinned and start == self._initial:
            self._pinned = True
            return start
        self._pinned = True
        if not self._frozen:
            self._pause()
            self._ask()
        if self._options.fail_on_data_loss:
            self._require(known=start)
        self._note_committed(start)
        for lost in lost_by_deletion(start, self.lasts):
            report(lost, self._options)
        start = {name: position for name, position in start.items() if name in self.lasts}
        end = self._limited(start, limit)
        if end != start:
            self._quiet_since = time.monotonic()
        return end

    def _pause(self) -> None:
        """Wait, as Spark asks again at once where nothing is new. The link serves its sockets meanwhile."""
        until = self._asked_at + self._options.offset_poll_s
        while (left := until - time.monotonic()) > 0:
            self._link.serve(left)

    def _ask(self) -> None:
        """Ask where the topics end, and now and then which there are."""
        now = time.monotonic()
        if self._missing or now - self._discovered_at >= self._options.topic_discovery_s:
            self._names = self._topics.discover()
            self._discovered_at = now
        before, pause = self.lasts, now - self._asked_at
        self.lasts, self._missing = self._topics.lasts(self._names)
        self._asked_at = time.monotonic()
        for name, last in self.lasts.items():
            self._topics.note_end(name, before.get(name, NOTHING), last, watched=pause <= CLOSE)

    def _require(self, known: Mapping[str, Position]) -> None:
        """Raises `TopicNotFound` where a topic that was named is not there, and was not there before. A query
        that goes on after a loss does not ask: what it has given up is not in its offsets any more."""
        if self._missing:
            self.lasts, self._missing = self._topics.wait_for(self._names, known)

    def _limited(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """Everything, or about as much as the limit says."""
        end = forward(start, self.lasts)
        if isinstance(limit, ReadMaxRows):
            budget, of = float(limit.max_rows), 1
        elif isinstance(limit, ReadMaxBytes):
            budget, of = float(limit.max_bytes), 2
        else:
            return end
        extents: dict[str, Extent] = {}
        weights: dict[str, float] = {}
        for name, last in end.items():
            place = start.get(name, NOTHING)
            if place < last:
                extents[name] = self._topics.extent(name, place, last)
                weights[name] = self._sample(name, place)[of]
        return admit(start, end, extents, weights, budget)

    def _sample(self, name: str, start: Position) -> tuple[float, float, float]:
        """Messages and bytes of an entry: half of what was seen last, half of what was thought before."""
        known, now = self._samples.get(name), time.monotonic()
        if known is not None and now - known[0] < SAMPLE_AGE:
            return known
        messages, size = map(float, self._topics.weight(name, start))
        if known is not None:
            messages, size = (known[1] + messages) / 2, (known[2] + size) / 2
        self._samples[name] = now, messages, max(size, 1.0)
        return self._samples[name]

    # --- the tasks -------------------------------------------------------------------------------

    def tasks(self, start: Offsets, end: Offsets) -> list[Any]:
        """Return the tasks of a micro-batch, whose end is written down. A repeated micro-batch has equal
        tasks."""
        self._pinned = True
        now = time.monotonic()
        due = {
            name: start.get(name, NOTHING)
            for name, reached in end.items()
            if start.get(name, NOTHING) < reached
            and now - self._checked_at.get(name, float("-inf")) >= LOSS_CHECK
        }
        there = check_retention(self._topics, self._options, due)
        self._checked_at.update(dict.fromkeys(there, now))
        gone = set(due) - set(there)
        return divide(
            self._topics, self._options, start, {name: end[name] for name in end if name not in gone}
        )

    # --- the subscription ------------------------------------------------------------------------

    def _note_committed(self, start: Offsets) -> None:
        """The micro-batch that ended at `start` is committed. What comes behind it is held; what lies before
        is acknowledged when nothing has come for a while, or nothing will."""
        options = self._options
        if options.subscription is None:
            return
        idle = time.monotonic() - self._quiet_since >= options.idle_ack_s > 0 or self._frozen
        for name in self.lasts:
            if idle or name not in self._acknowledged:
                self._acknowledge(name, start.get(name, NOTHING))

    def commit(self, end: Offsets) -> None:
        """Spark has written down that everything up to `end` is done."""
        if self._options.subscription is not None:
            for name, position in end.items():
                if name in self.lasts:
                    self._acknowledge(name, position)

    def _acknowledge(self, name: str, position: Position) -> None:
        if name not in self._acknowledged or self._acknowledged[name] < position:
            self._topics.acknowledge(name, position)
            self._acknowledged[name] = position
