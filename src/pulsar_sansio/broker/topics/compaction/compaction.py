"""Compaction of a topic: only the last message of every key is kept (rule COMPACT-01).

As Pulsar's compactor, it reads the durable entries twice: first to find the last message of each key, then to
write those down. A message without payload deletes its key. A message without a key is left out. A batch that
cannot be read, because it is encrypted, is kept if it has a key.

A chunked message is kept or removed as a whole, and counts from its last chunk on. A message whose last chunk
is missing replaces nothing. Its chunks are kept for consumers that read on after the horizon, until its
producer is not expected to finish it.

Compaction does not change the topic: consumers that do not read compacted receive every message. A durable
subscription of its own keeps the entries that are not compacted yet. Compaction runs on an administrator's
command, and where more bytes are not compacted than policies allow. It works in steps, so that clients are
served in between.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ....model.errors import PulsarError
from ....wire import MetadataDecoder
from ...records import EntryAdded, TopicCompacted
from ..chunks import Assembly, Unfinished
from ..messages import messages_of, without
from .compacted_view import CompactedView

if TYPE_CHECKING:
    from ..topic import Topic

SUBSCRIPTION = "__compaction"
"""The name of the subscription that keeps entries until they are compacted, as with a Java broker."""

ENTRIES_PER_STEP = 1000

UNFINISHED_FOR = 6 * 3600 * 1000
"""Milliseconds after which the chunks of an unfinished message are removed, where its producer is not
connected.

Deduplication remembers an absent producer for that long, by default. Consumers wait for one minute.
"""

Winner = tuple[Sequence[int], int]
"""The last message of a key: the offsets of its chunks, or of its one entry, and its batch index."""


class Compaction:
    """The compaction of one topic: its last result, and the run in progress."""

    def __init__(self, topic: "Topic", stored: TopicCompacted | None) -> None:
        self._topic = topic
        self._slot = topic.context.deadlines.slot(self._step)
        self._work: Iterator[None] | None = None
        self._started = 0
        self.view: CompactedView | None = None
        if stored is not None:
            self._show(stored)
        self.status = "NOT_RUN"
        """NOT_RUN, RUNNING, SUCCESS or ERROR, as Pulsar's administration names them."""
        self.last_error = ""
        self.removed = 0
        """The number of messages that the last run removed."""
        self.succeeded_at = 0
        self.failed_at = 0
        """The moments at which a run succeeded and failed last: wall time in ms; 0 is never."""
        self.duration = 0
        """The duration of the last run, in ms."""

    @property
    def running(self) -> bool:
        return self._work is not None

    def retain_uncompacted(self) -> None:
        """Create the subscription of compaction where policies have a threshold."""
        topic = self._topic
        if topic.policies.compaction_threshold and SUBSCRIPTION not in topic.subscriptions:
            topic.subscribe(SUBSCRIPTION, topic.log.first - 1, True)

    def start_if_due(self) -> None:
        """Start where more bytes are not compacted than policies allow; a failed run is repeated."""
        threshold = self._topic.policies.compaction_threshold
        if threshold and self._work is None and self._not_compacted() > threshold:
            self.start()

    def _not_compacted(self) -> int:
        """The number of bytes that are not compacted."""
        topic = self._topic
        keeper = topic.subscriptions.get(SUBSCRIPTION)
        first = topic.log.first if keeper is None else keeper.cursor.mark_delete + 1
        return topic.log.size_from(max(first, topic.log.first))

    def start(self) -> None:
        """Compact the entries that are durable now. No other run may be in progress."""
        topic = self._topic
        assert self._work is None
        if SUBSCRIPTION not in topic.subscriptions:
            topic.subscribe(SUBSCRIPTION, topic.log.first - 1, True)
        self.status = "RUNNING"
        self._started = topic.services.wall_time
        self._work = self._compact(topic.transactions.read_end - 1)
        self._slot.set(topic.context.now)

    def stop(self) -> None:
        """Abandon a run in progress, since the topic is unloaded or deleted."""
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
        """Compact up to `horizon`, with a pause after every `ENTRIES_PER_STEP` entries."""
        latest: dict[str, Winner] = {}
        assembly = Assembly()
        decoder = MetadataDecoder()
        for number, (offset, entry) in enumerate(self._entries(horizon)):
            for index, message in enumerate(messages_of(entry.data, decoder)):
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
            left = _remaining(entry, winners.get(offset, []), decoder)
            if left is not None:
                kept.append((offset, left))
            if left is not entry:
                removed += entry.messages - len(winners.get(offset, []))
            if number % ENTRIES_PER_STEP == ENTRIES_PER_STEP - 1:
                yield
        self._finish(horizon, kept, removed)

    def _may_be_finished(self, message: Unfinished) -> bool:
        """True when the producer of the message is connected, or may still reconnect."""
        topic = self._topic
        producer, published = message.latest.producer, message.latest.publish_time
        return producer in topic.producers.by_name or topic.services.wall_time - published < UNFINISHED_FOR

    def _entries(self, horizon: int) -> Iterator[tuple[int, EntryAdded]]:
        """Yield the entries to compact with their offsets: those that the last run kept, and all after them.

        Entries deleted meanwhile are left out: an administrator may move the subscription of compaction, or
        delete it.
        """
        view, log, hidden = self.view, self._topic.log, self._topic.transactions.hidden
        first = log.first
        if view is not None:
            yield from zip(view.offsets, view.entries, strict=True)
            first = max(first, view.horizon + 1)
        for offset in range(first, horizon + 1):
            if offset >= log.first and offset not in hidden:
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
        """Make the durable result of a run the topic's compacted view. `work`: the run that produced it."""
        if work is None or self._work is not work:  # The run was stopped; another one may be in progress.
            return
        topic = self._topic
        self._work = None
        self._show(record)
        self.status, self.last_error = "SUCCESS", ""
        self.removed = removed
        self.succeeded_at = topic.services.wall_time
        self.duration = self.succeeded_at - self._started
        keeper = topic.subscriptions.get(SUBSCRIPTION)
        if keeper is not None:
            keeper.skip_up_to(record.horizon)

    def _show(self, record: TopicCompacted) -> None:
        """Replace the view, and count the entries of the new one."""
        self.discard()
        self.view = CompactedView(record)
        self._topic.services.stored_bytes.add(len(self.view.entries), self.view.size)

    def discard(self) -> None:
        """Count the entries of the view no more."""
        if self.view is not None:
            self._topic.services.stored_bytes.add(-len(self.view.entries), -self.view.size)

    def stats(self) -> dict[str, Any]:
        """Return the stats by the Java broker's names."""
        return {
            "lastCompactionRemovedEventCount": self.removed,
            "lastCompactionSucceedTimestamp": self.succeeded_at,
            "lastCompactionFailedTimestamp": self.failed_at,
            "lastCompactionDurationTimeInMills": self.duration,
        }


def _remaining(entry: EntryAdded, winners: list[int], decoder: MetadataDecoder) -> EntryAdded | None:
    """Return the entry without the messages that others replace: unchanged, rewritten, or None."""
    if len(winners) == entry.messages:
        return entry
    messages = messages_of(entry.data, decoder)
    if len(messages) != entry.messages:  # A batch that cannot be read counts as one message.
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
