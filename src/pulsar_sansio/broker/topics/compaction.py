"""Compaction of a topic: only the last message of every key stays (rules COMPACT-01 to COMPACT-03).

It goes through what is durable twice, as Pulsar's compactor does: first to learn which message is the last
one of its key, then to write down those. A message without payload says that its key is gone; one without a
key is of no use to anybody who reads compacted, and left out. What cannot be read (encrypted batches) stays
if it has a key.

A message in chunks stays as a whole, and counts from its last chunk on: one that was never finished replaces
nothing. What is not finished where a compaction ends stays, for those who read on behind it, until nobody can
be expected to finish it.

The topic itself is left alone: consumers that do not read compacted see everything. A durable subscription
with a name of its own keeps the entries that were not compacted yet. It runs when an administrator says so,
and where policies have a threshold when more than that is not compacted. Work goes in steps, so that
everybody else is served in between.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...model.errors import PulsarError
from ..records import EntryAdded, TopicCompacted
from .chunks import Assembly, Unfinished
from .compacted_view import CompactedView
from .messages import messages_of, without

if TYPE_CHECKING:
    from .topic import Topic

SUBSCRIPTION = "__compaction"
"""The name of the subscription that keeps what is to be compacted, as with a Java broker."""

ENTRIES_PER_STEP = 1000

UNFINISHED_FOR = 6 * 3600 * 1000
"""Milliseconds after which a message in chunks is given up whose producer is not there: as long as
deduplication remembers who is absent, by default. Consumers give up after a minute."""

Winner = tuple[Sequence[int], int]
"""The last message of a key: offsets, several of one in chunks, and index in the batch."""


class Compaction:
    """One topic's: what it has come to, and the one that runs."""

    def __init__(self, topic: "Topic", stored: TopicCompacted | None) -> None:
        self._topic = topic
        self._slot = topic.context.deadlines.slot(self._step)
        self._work: Iterator[None] | None = None
        self._started = 0
        self.view = None if stored is None else CompactedView(stored)
        self.status = "NOT_RUN"
        """In the words of Pulsar's administration: NOT_RUN, RUNNING, SUCCESS or ERROR."""
        self.last_error = ""
        self.removed = 0
        """Messages that the last one has left out."""
        self.succeeded_at = 0
        self.failed_at = 0
        """Wall time in ms; 0 is never."""
        self.duration = 0
        """Of the last one, in ms."""

    @property
    def running(self) -> bool:
        return self._work is not None

    def retain_uncompacted(self) -> None:
        """Where topics are compacted by themselves, nothing goes before it was."""
        topic = self._topic
        if topic.policies.compaction_threshold and SUBSCRIPTION not in topic.subscriptions:
            topic.subscribe(SUBSCRIPTION, topic.log.first - 1, True)

    def start_if_due(self) -> None:
        """Where more is not compacted than policies allow; an attempt that failed is repeated."""
        threshold = self._topic.policies.compaction_threshold
        if threshold and self._work is None and self._not_compacted() > threshold:
            self.start()

    def _not_compacted(self) -> int:
        """Bytes."""
        topic = self._topic
        keeper = topic.subscriptions.get(SUBSCRIPTION)
        first = topic.log.first if keeper is None else keeper.cursor.mark_delete + 1
        return topic.log.size_from(max(first, topic.log.first))

    def start(self) -> None:
        """Compact what is durable now; none may be running."""
        topic = self._topic
        assert self._work is None
        if SUBSCRIPTION not in topic.subscriptions:
            topic.subscribe(SUBSCRIPTION, topic.log.first - 1, True)
        self.status = "RUNNING"
        self._started = topic.services.wall_time
        self._work = self._compact(topic.log.durable_end - 1)
        self._slot.set(topic.context.now)

    def stop(self) -> None:
        """The topic goes away; what was done of a compaction is forgotten."""
        self._slot.clear()
        if self._work is not None:
            self._work = None
            self.status = "NOT_RUN"

    def _step(self) -> None:
        work = self._work
        assert work is not None
        try:
            next(work)
        except StopIteration:
            return
        except PulsarError as error:
            self._work = None
            self.status, self.last_error = "ERROR", str(error)
            self.failed_at = self._topic.services.wall_time
            return
        self._slot.set(self._topic.context.now)

    def _compact(self, horizon: int) -> Iterator[None]:
        """The whole of it; it waits after every `ENTRIES_PER_STEP`."""
        latest: dict[str, Winner] = {}
        assembly = Assembly()
        for number, (offset, entry) in enumerate(self._entries(horizon)):
            for index, message in enumerate(messages_of(entry.data)):
                if message.key is None:
                    continue
                chunk = message.chunk
                offsets = (offset,) if chunk is None else assembly.take(offset, chunk)
                if offsets is None:
                    continue
                if message.empty:
                    latest.pop(message.key, None)
                else:
                    latest[message.key] = offsets, index
            if number % ENTRIES_PER_STEP == ENTRIES_PER_STEP - 1:
                yield
        winners: dict[int, list[int]] = {}
        for chunks, index in latest.values():
            for offset in chunks:
                winners.setdefault(offset, []).append(index)
        for begun in filter(self._may_be_finished, assembly.unfinished()):
            winners.update((offset, [0]) for offset in begun.offsets)
        kept: list[tuple[int, EntryAdded]] = []
        removed = 0
        for number, (offset, entry) in enumerate(self._entries(horizon)):
            left = _remaining(entry, winners.get(offset, []))
            if left is not None:
                kept.append((offset, left))
            if left is not entry:
                removed += entry.messages - len(winners.get(offset, []))
            if number % ENTRIES_PER_STEP == ENTRIES_PER_STEP - 1:
                yield
        self._finish(horizon, kept, removed)

    def _may_be_finished(self, message: Unfinished) -> bool:
        """Its producer is there, or may come again."""
        topic = self._topic
        producer, published = message.latest.producer, message.latest.publish_time
        return producer in topic.producers.by_name or topic.services.wall_time - published < UNFINISHED_FOR

    def _entries(self, horizon: int) -> Iterator[tuple[int, EntryAdded]]:
        """What there is to compact, with its offsets: what the last compaction has left, and all after it.

        What has gone meanwhile is not: an administrator may move its subscription on, or delete it.
        """
        view, log = self.view, self._topic.log
        first = log.first
        if view is not None:
            yield from zip(view.offsets, view.entries, strict=True)
            first = max(first, view.horizon + 1)
        for offset in range(first, horizon + 1):
            if offset >= log.first:
                yield offset, log.entry(offset)

    def _finish(self, horizon: int, kept: list[tuple[int, EntryAdded]], removed: int) -> None:
        topic = self._topic
        record = TopicCompacted(
            topic.name,
            topic.services.ledger_ids.take(),
            horizon,
            tuple(offset for offset, _ in kept),
            tuple(entry for _, entry in kept),
        )
        topic.journal.records.append(record)
        work = self._work
        topic.journal.confirm(lambda: self._done(work, record, removed))

    def _done(self, work: Iterator[None] | None, record: TopicCompacted, removed: int) -> None:
        """It is durable: from now on it is what is read. `work`: which compaction it was."""
        if work is None or self._work is not work:  # stopped, and perhaps another one runs
            return
        topic = self._topic
        self._work = None
        self.view = CompactedView(record)
        self.status, self.last_error = "SUCCESS", ""
        self.removed = removed
        self.succeeded_at = topic.services.wall_time
        self.duration = self.succeeded_at - self._started
        keeper = topic.subscriptions.get(SUBSCRIPTION)
        if keeper is not None:
            keeper.skip_up_to(record.horizon)

    def stats(self) -> dict[str, Any]:
        """With a Java broker's names."""
        return {
            "lastCompactionRemovedEventCount": self.removed,
            "lastCompactionSucceedTimestamp": self.succeeded_at,
            "lastCompactionFailedTimestamp": self.failed_at,
            "lastCompactionDurationTimeInMills": self.duration,
        }


def _remaining(entry: EntryAdded, winners: list[int]) -> EntryAdded | None:
    """What stays of an entry: all, some of its messages, or nothing."""
    if len(winners) == entry.messages:
        return entry
    messages = messages_of(entry.data)
    if len(messages) != entry.messages:  # a batch that cannot be read is one message, by the key of all
        return entry if winners else None
    if not winners:
        return None
    return EntryAdded(
        entry.topic,
        entry.ledger_id,
        entry.entry_id,
        entry.messages,
        entry.publish_time,
        without(entry.data, winners),
        entry.deliver_at,
        last_index=entry.last_index,
        received_at=entry.received_at,
    )
