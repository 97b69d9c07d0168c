"""Bugs of table views, and of topics that are compacted: at the clients that read them, at the broker."""

from typing import Any

from pulsar_sansio.broker.topics.compaction import compaction as compaction_module
from pulsar_sansio.broker.topics.compaction.compacted_view import CompactedView
from pulsar_sansio.client.arrival.arrival import Arrival
from pulsar_sansio.client.consuming import consumer as consumer_module
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.multi_topics.partition_growth import PartitionGrowth
from pulsar_sansio.client.outputs import TableChanged
from pulsar_sansio.client.table_view import TableView

from ..planted_bug import Patches, bug
from ..preconditions import general as needs
from ..preconditions import reading as reading_needs

# --- table views ---------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-C18",), needs=[reading_needs.tables])
def a_table_is_ready_before_it_is_read(patches: Patches) -> None:
    """A table view does not wait for messages that were there when the application asked."""
    patches.replace(TableView, "_look", lambda self, what: self._done(what))


@bug("own", caught_by=("INV-C18",), needs=[reading_needs.tables_of_partitions])
def a_table_is_ready_with_the_first_partition(patches: Patches) -> None:
    """When one of several partitions is read to its end, the table view counts all as read."""

    def passed(original: Any, self: Any, item: Any) -> None:
        before = [(each, len(each.waits_for or ())) for each in self._catching_up]
        original(self, item)
        for each, count in before:
            if each.waits_for is not None and len(each.waits_for) < count:
                each.waits_for.clear()

    patches.around(TableView, "_mark_read", passed)


@bug("own", caught_by=("INV-C18",), needs=[reading_needs.tables])
def deleted_keys_stay_in_the_table(patches: Patches) -> None:
    """A message without payload does not delete its key."""

    def put(original: Any, self: Any, items: Any, changes: Any) -> None:
        before = dict(self._table)
        original(self, items, changes)
        for key in before.keys() - self._table.keys():
            self._table[key] = before[key]
        changes[:] = [change for change in changes if change[1] is not None]

    patches.around(TableView, "_put", put)


@bug("own", caught_by=("INV-C18",), needs=[reading_needs.tables])
def the_first_value_of_a_batch_stays(patches: Patches) -> None:
    """When several values of a key come together, the table view keeps the first one."""

    def put(original: Any, self: Any, items: Any, changes: Any) -> None:
        original(self, list(items)[::-1], changes)

    patches.around(TableView, "_put", put)


@bug("own", caught_by=("INV-C18",), needs=[reading_needs.tables])
def the_last_change_is_not_told(patches: Patches) -> None:
    """When several changes come together, the table view leaves out the last one."""

    def put(original: Any, self: Any, items: Any, changes: Any) -> None:
        original(self, items, changes)
        if len(changes) > 1:
            changes.pop()

    patches.around(TableView, "_put", put)


@bug("own", caught_by=("INV-C18",), needs=[reading_needs.tables])
def changes_are_told_twice(patches: Patches) -> None:
    """The table view tells the application every change twice."""

    def read(original: Any, self: Any) -> None:
        emit = self._context.emit

        def twice(output: Any) -> None:
            emit(output)
            if isinstance(output, TableChanged):
                emit(output)

        self._context.emit = twice
        try:
            original(self)
        finally:
            self._context.emit = emit

    patches.around(TableView, "_read", read)


@bug("own", caught_by=("INV-C18",), needs=[reading_needs.tables, needs.detaches])
def a_table_is_empty_after_a_reconnect(patches: Patches) -> None:
    """The table begins anew when the connection is lost, and its reader goes on where it was."""

    def on_output(original: Any, self: Any, output: Any) -> None:
        if type(output).__name__ == "Detached":
            self._table.clear()
            self.size = 0
        original(self, output)

    patches.around(TableView, "_on_output", on_output)


@bug("own", caught_by=("INV-N11", "INV-N1"), needs=[reading_needs.tables])
def the_end_of_a_table_is_told_too_late(patches: Patches) -> None:
    """The client says that it is closed, and tells the end of a table view later."""

    def reader_ended(self: Any, handle: int, error: Any) -> None:
        self._root_ended(handle, error)
        self._context.deadlines.slot(lambda: self._end(error)).set(self._context.now)

    patches.replace(TableView, "_reader_ended", reader_ended)


@bug("own", caught_by=("exception",), needs=[reading_needs.tables_close])
def an_answer_to_a_table_that_is_closed(patches: Patches) -> None:
    """Answers that cross a close ask a reader that is closed."""
    patches.replace(Consumer, "is_closing", property(lambda self: False))


@bug("own", caught_by=("INV-N5", "INV-C18"), needs=[reading_needs.tables_that_grow])
def a_table_does_not_grow(patches: Patches) -> None:
    """A table view reads the partitions that there were when it was opened, and no others."""

    def look_for_growth(original: Any, self: Any) -> None:
        if not self._members.spec.read_compacted:
            original(self)

    patches.around(PartitionGrowth, "_look_for_growth", look_for_growth)


# --- what compaction leaves, at the client ---------------------------------------------------------------


@bug("own", caught_by=("INV-C17",), needs=[reading_needs.reads_compacted])
def compacted_reading_is_not_requested(patches: Patches) -> None:
    """A consumer that is to read the compacted topic subscribes as any other consumer does."""

    def command(original: Any, *arguments: Any, **options: Any) -> Any:
        made = original(*arguments, **options)
        made.read_compacted = False
        return made

    patches.around(consumer_module, "subscribe_command", command)


@bug("own", caught_by=("INV-C2", "INV-C17", "INV-C3"), needs=[reading_needs.reads_compacted, needs.batches])
def placeholders_are_delivered(patches: Patches) -> None:
    """A message that compaction has taken out of a batch is delivered as an empty message."""

    def without_skipped(original: Any, self: Any, batch: Any, place: Any, size: int, bits: int) -> int:
        before = self.counters.compacted_out
        kept: int = original(self, batch, place, size, bits)
        if self.counters.compacted_out > before:
            for index, payload in enumerate(batch.payloads):
                if not payload and bits >> index & 1:
                    kept |= 1 << index
        return kept

    patches.around(Arrival, "_without_skipped", without_skipped)


# --- what compaction leaves, at the broker ---------------------------------------------------------------


@bug(
    "own", caught_by=("INV-C17", "INV-C18"), needs=[reading_needs.reads_compacted, reading_needs.compactions]
)
def compaction_takes_one_more(patches: Patches) -> None:
    """Compaction also takes away the first message that has to stay of every entry from which it takes
    any."""

    def left_of(original: Any, entry: Any, winners: Any, decoder: Any) -> Any:
        return original(entry, winners[1:] if len(winners) < entry.messages else winners, decoder)

    patches.around(compaction_module, "_remaining", left_of)


@bug(
    "own",
    caught_by=("INV-C17", "INV-C18", "INV-N5", "exception"),
    needs=[reading_needs.reads_compacted, reading_needs.compactions],
)
def the_first_after_the_horizon_is_passed_over(patches: Patches) -> None:
    """A reader that has read everything that compaction has left goes on one entry too late."""

    def dispatch(original: Any, self: Any, dispatcher: Any, consumer: Any) -> None:
        original(self, dispatcher, consumer)
        if dispatcher.read == self.horizon + 1:
            dispatcher.read += 1

    patches.around(CompactedView, "dispatch", dispatch)


@bug(
    "own", caught_by=("INV-C17", "INV-C18"), needs=[reading_needs.reads_compacted, reading_needs.compactions]
)
def deleted_keys_come_back(patches: Patches) -> None:
    """Compaction keeps the last message with a payload, although a later one says that the key is gone."""

    def messages_of(original: Any, data: bytes, decoder: Any) -> Any:
        found = original(data, decoder)
        return [each._replace(key=None) if each.empty else each for each in found]

    patches.around(compaction_module, "messages_of", messages_of)
