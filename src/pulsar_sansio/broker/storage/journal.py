"""Group commit: the records that must be durable, and the effects that wait for them.

Machines add records and effects. At most one `Persist` is outstanding; later records go into the next one.
`confirm` delays an answer until everything recorded so far is durable; without outstanding records it answers
at once. The module does not interpret records.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.context import Context
from ..outputs import Output, Persist
from ..records import OF_ITS_OWNER, Record

if TYPE_CHECKING:
    from ..topics.subscription import Subscription
    from ..topics.topic import Topic


class Journal:
    """Records to be written, and the effects that wait for them."""

    def __init__(self, context: Context[Output], flush_interval: int) -> None:
        self._context = context
        self._flush_interval = flush_interval
        self._flush = context.deadlines.slot(self._flush_due)
        self._next_write = 0
        self._outstanding: int | None = None
        self.records: list[Record] = []
        """Records of the next write; the publish path appends here directly."""
        self._publishes: dict[Topic, int] = {}
        self._effects: list[Callable[[], None]] = []
        self._waiting_publishes: dict[Topic, int] = {}
        self._waiting_effects: list[Callable[[], None]] = []
        self._dirty: dict[Subscription, None] = {}
        self._dirty_due = False
        self._cursors_written: frozenset[Subscription] = frozenset()
        """Subscriptions whose cursors are in the write in progress."""

    def published(self, topic: "Topic") -> None:
        """One more entry of `topic` is among the records; `topic.entries_durable` is called for it."""
        publishes = self._publishes
        publishes[topic] = publishes.get(topic, 0) + 1

    def confirm(self, effect: Callable[[], None]) -> None:
        """Run `effect` after everything recorded so far is durable."""
        if self.records or self._dirty_due:
            self._effects.append(effect)
        elif self._outstanding is not None:
            self._waiting_effects.append(effect)
        else:
            effect()

    def cursor_moved(self, subscription: "Subscription") -> None:
        """Record an unconfirmed acknowledgement: it is written with the next batch, or when the flush
        interval ends."""
        self._dirty[subscription] = None
        if self._flush.when is None:
            self._flush.set(self._context.now + self._flush_interval)

    def confirm_cursors(self, effect: Callable[[], None]) -> None:
        """Write every cursor that moved with the next batch, then run `effect`."""
        self._dirty_due = True
        self._effects.append(effect)

    def is_cursor_durable(self, subscription: "Subscription") -> bool:
        """True when the store has the present position."""
        return subscription not in self._dirty and subscription not in self._cursors_written

    def discard_cursor(self, subscription: "Subscription") -> None:
        self._dirty.pop(subscription, None)

    def discard_topic(self, name: str) -> None:
        """Another broker serves the topic: discard its records, and never report its outstanding entries as
        durable.

        A topic of this name may have been deleted and created again.
        """
        self.records = [
            record
            for record in self.records
            if not (isinstance(record, OF_ITS_OWNER) and record.topic == name)
        ]
        for publishes in (self._publishes, self._waiting_publishes):
            for topic in [each for each in publishes if each.name == name]:
                del publishes[topic]
        for subscription in [each for each in self._dirty if each.topic.name == name]:
            del self._dirty[subscription]

    def flush_cursors(self) -> None:
        """Write every cursor that moved with the next batch."""
        if self._dirty:
            self._dirty_due = True

    def _flush_due(self) -> None:
        self.flush_cursors()

    def settle(self) -> None:
        """End an input: emit `Persist` for all records, unless a write is outstanding.

        Records that effects waited for may have been discarded; then an empty batch is written.
        """
        if self._outstanding is not None or not (self.records or self._dirty_due or self._effects):
            return
        for topic in self._publishes:
            self.records.extend(topic.take_sequence_records())
        if self._dirty_due:
            self.records.extend(subscription.cursor_record() for subscription in self._dirty)
            self._cursors_written = frozenset(self._dirty)
            self._dirty.clear()
            self._dirty_due = False
            self._flush.clear()
        records, self.records = self.records, []
        self._waiting_publishes, self._publishes = self._publishes, {}
        self._waiting_effects, self._effects = self._effects, []
        self._outstanding = self._next_write
        self._next_write += 1
        self._context.emit(Persist(self._outstanding, records))

    def persisted(self, write: int) -> None:
        """The outstanding write is durable; a number that is not outstanding is ignored."""
        if write != self._outstanding:
            return
        self._outstanding = None
        self._cursors_written = frozenset()
        publishes, self._waiting_publishes = self._waiting_publishes, {}
        effects, self._waiting_effects = self._waiting_effects, []
        for topic, count in publishes.items():
            topic.entries_durable(count)
        for effect in effects:
            effect()
