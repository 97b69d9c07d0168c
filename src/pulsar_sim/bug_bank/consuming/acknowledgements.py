"""Bugs of acknowledgements: batches and their sets, cumulative ones, grouping, confirmation, losses."""

from typing import Any

from pulsar_sansio.client.acknowledging.ack_commands import AckCommands
from pulsar_sansio.client.acknowledging.ack_grouping import AckGrouping
from pulsar_sansio.client.acknowledging.ack_tracker import AckTracker
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.delivery.ack_records import BatchAcknowledgement
from pulsar_sansio.model.errors import ConnectionLost

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs

# --- single messages and batches -------------------------------------------------------------------------


@bug("BUG-003", caught_by=("INV-C4", "INV-C11"), needs=[needs.nacks])
def negative_acknowledgement_by_id_acknowledges(patches: Patches) -> None:
    """A negative acknowledgement by id acknowledges the message."""

    def negative_acknowledge(original: Any, self: Any, what: Any) -> None:
        if isinstance(what, tuple):
            self.acknowledge(what)
        else:
            original(self, what)

    patches.around(AckCommands, "negative_acknowledge", negative_acknowledge)


@bug("BUG-035", caught_by=("INV-N5", "INV-C4", "INV-C19"), needs=[needs.batches, needs.kept])
def acknowledgements_of_a_batch_overwrite_each_other(patches: Patches) -> None:
    """The client loses one of two acknowledgements made in one batch at about the same time."""

    def acknowledge(original: Any, self: Any, index: int) -> bool:
        in_order = self.in_order
        news = original(self, index)
        if in_order > 0 > self.in_order:
            self._open |= 1
        return bool(news)

    patches.around(BatchAcknowledgement, "acknowledge", acknowledge)


@bug("BUG-036", caught_by=("INV-C4",), needs=[needs.batches])
def one_message_acknowledges_its_batch(patches: Patches) -> None:
    """Acknowledging one message of a batch acknowledges the whole entry."""

    def member(self: Any, record: Any, index: int) -> bool:
        record.acknowledge(index)
        return bool(self.entry(record.position))

    patches.replace(AckTracker, "member", member)


@bug("BUG-036", caught_by=("INV-C4",), needs=[needs.batches])
def an_id_without_its_batch_acknowledges_all(patches: Patches) -> None:
    """An id whose batch is not at hand gets a set of no bits, which reads as "all acknowledged"."""

    def individual(original: Any, self: Any, message_id: Any) -> bool:
        return bool(original(self, message_id._replace(batch_index=-1)))

    patches.around(AckTracker, "individual", individual)


@bug("BUG-037", caught_by=("INV-N5",), needs=[needs.batches, needs.no_index_acknowledgement])
def ids_of_a_batch_never_add_up(patches: Patches) -> None:
    """Each id of a message in a batch counts by itself, so that all of them together acknowledge nothing."""

    def record(self: Any, message_id: Any) -> Any:
        size = message_id.batch_size
        return BatchAcknowledgement(self.deliveries, message_id[:2], size, (1 << size) - 1, None)

    patches.replace(AckTracker, "record", record)


@bug("BUG-038", caught_by=("INV-N5",), needs=[needs.batches])
def a_batch_is_never_complete(patches: Patches) -> None:
    """A batch of which all messages are acknowledged one by one is never acknowledged as a whole."""
    patches.replace(BatchAcknowledgement, "complete", property(lambda self: False))


@bug("BUG-039", caught_by=("INV-C4",), needs=[needs.index_acknowledgement_of_batches])
def ack_set_inverted(patches: Patches) -> None:
    """The set in an acknowledgement names the acknowledged messages, and not the open ones."""
    original = vars(BatchAcknowledgement)["open_bits"].fget

    def open_bits(self: Any) -> int:
        return int((1 << self.size) - 1 - original(self) or 1)

    patches.replace(BatchAcknowledgement, "open_bits", property(open_bits))


@bug(
    "BUG-039",
    caught_by=("INV-C7", "INV-N5", "CHECK-73", "INV-C6", "INV-C19"),
    needs=[needs.index_acknowledgement_of_batches],
)
def parts_of_a_batch_lost_when_redelivered(patches: Patches) -> None:
    """When a batch is delivered again, the client counts messages that the broker left out as not
    acknowledged."""

    def batch(original: Any, self: Any, position: Any, *arguments: Any) -> Any:
        record = original(self, position, *arguments)
        if record.in_order < 0 and record._open:
            record._open |= 1
        return record

    patches.around(AckTracker, "batch", batch)


@bug("BUG-007", caught_by=("INV-C3", "INV-N5", "INV-C1"), needs=[needs.grouped])
def unread_messages_taken_for_duplicates(patches: Patches) -> None:
    """A message that follows one whose acknowledgement waits is taken for acknowledged, too."""

    def covers(original: Any, self: Any, position: Any) -> bool:
        return original(self, position) or (position[0], position[1] - 1) in self.entries

    patches.around(AckTracker, "covers", covers)


@bug("BUG-007", caught_by=("INV-C4", "INV-C3", "INV-N5", "INV-C1"), needs=[needs.grouped, needs.batches])
def unread_parts_taken_for_duplicates(patches: Patches) -> None:
    """When a batch whose acknowledgements wait is redelivered, the client takes the whole batch for
    acknowledged."""

    def batch(original: Any, self: Any, position: Any, *arguments: Any) -> Any:
        waits = position in self._parts
        record = original(self, position, *arguments)
        if waits:
            record.in_order, record._open = -2, 0
        return record

    patches.around(AckTracker, "batch", batch)


# --- cumulative ------------------------------------------------------------------------------------------


@bug(
    "BUG-034", caught_by=("INV-C7", "INV-N5", "INV-C1", "INV-C4"), needs=[needs.cumulative, needs.last_reset]
)
def cumulative_mark_survives_its_connection(patches: Patches) -> None:
    """A cumulative acknowledgement counts as sent before it is, also when its connection is lost. Messages
    redelivered below it are dropped as duplicates."""

    def forget_sent(self: Any) -> None:
        if self._position is not None:
            self._sent = self._position
            self._position = self._position_record = None

    def covers(original: Any, self: Any, position: Any) -> bool:
        sent = self._sent
        return original(self, position) or (sent is not None and position < sent[:2])

    patches.replace(AckTracker, "forget_sent", forget_sent)
    patches.around(AckTracker, "covers", covers)


@bug("BUG-034", caught_by=("INV-C3", "INV-N5", "INV-C1"), needs=[needs.cumulative])
def what_is_below_the_cumulative_mark_is_a_duplicate(patches: Patches) -> None:
    """The client drops messages redelivered below the last cumulative acknowledgement, whatever became of
    that acknowledgement."""

    def covers(original: Any, self: Any, position: Any) -> bool:
        sent = self._sent
        return original(self, position) or (sent is not None and position <= (sent[0], sent[1] + 1))

    patches.around(AckTracker, "covers", covers)


@bug("own", caught_by=("INV-C4",), needs=[needs.cumulative])
def cumulative_one_too_far(patches: Patches) -> None:
    """A cumulative acknowledgement includes the next entry."""

    def cumulative(original: Any, self: Any, record: Any, message_id: Any) -> bool:
        following = message_id._replace(entry_id=message_id.entry_id + 1, batch_index=-1)
        return bool(original(self, None, following))

    patches.around(AckTracker, "cumulative", cumulative)


@bug("own", caught_by=("CHECK-73", "INV-C4"), needs=[needs.cumulative, needs.batches])
def cumulative_in_a_batch_takes_all_of_it(patches: Patches) -> None:
    """A cumulative acknowledgement of a message in a batch acknowledges the messages behind it as well."""

    def cumulative(original: Any, self: Any, record: Any, message_id: Any) -> bool:
        return bool(original(self, record, message_id._replace(batch_index=-1)))

    patches.around(AckTracker, "cumulative", cumulative)


@bug(
    "own",
    caught_by=("INV-C4",),
    needs=[needs.cumulative, needs.index_acknowledgement_of_batches, needs.detaches],
)
def a_batch_that_is_whole_by_now_has_an_empty_set(patches: Patches) -> None:
    """A cumulative acknowledgement of a part of a batch was lost. When it is sent again nothing is left of
    the batch, and the set is empty."""

    def drain(original: Any, self: Any) -> Any:
        drained = original(self)
        for number, ack in enumerate(drained):
            if ack.position is not None and ack.records and ack.ids[0][2] is None:
                drained[number] = ack._replace(ids=[(*ack.ids[0][:2], 0)])
        return drained

    patches.around(AckTracker, "drain", drain)


# --- sending them ----------------------------------------------------------------------------------------


@bug("BUG-040", caught_by=("INV-N5", "INV-C4"), needs=[needs.detaches])
def acknowledgements_while_detached_lost(patches: Patches) -> None:
    """The client throws away acknowledgements that wait when the connection is lost."""

    def detach(original: Any, self: Any, cause: Any) -> None:
        original(self, cause)
        self._tracker.discard_waiting()

    patches.around(AckGrouping, "detach", detach)


@bug("BUG-041", caught_by=("INV-N5", "INV-C4"), needs=[needs.kept, needs.ungrouped])
def lists_acknowledged_in_vain(patches: Patches) -> None:
    """Acknowledging a list does nothing where acknowledgements are not grouped."""

    def acknowledge_all(original: Any, self: Any, what: Any) -> bool:
        return bool(original(self, [] if not self._ack_grouping._group_time else what))

    patches.around(AckCommands, "_acknowledge_all", acknowledge_all)


@bug("BUG-042", caught_by=("INV-N5",), needs=[needs.grouped])
def acknowledgements_wait_for_ever(patches: Patches) -> None:
    """Acknowledgements that are not enough for a group are never sent."""

    def something_waits(original: Any, self: Any) -> None:
        original(self)
        if self._group_time:
            self._slot.clear()

    patches.around(AckGrouping, "something_waits", something_waits)


@bug("BUG-052", caught_by=("INV-N5", "INV-C4"))
def acknowledgements_dropped_by_a_slow_writer(patches: Patches) -> None:
    """An acknowledgement is dropped when the connection has something else to write."""

    def send(original: Any, self: Any, connection: Any, ack: Any, confirm: bool) -> Any:
        return None if connection.unwritten else original(self, connection, ack, confirm)

    patches.around(AckGrouping, "_send", send)


@bug("own", caught_by=("INV-N5", "INV-C4"), needs=[needs.consumers_close, needs.grouped])
def close_forgets_acknowledgements(patches: Patches) -> None:
    """Acknowledgements that wait are not sent before a close."""

    def close(original: Any, self: Any, *how: Any) -> None:
        self._acknowledgements.tracker.discard_waiting()
        original(self, *how)

    patches.around(Consumer, "close", close)


# --- confirmation ----------------------------------------------------------------------------------------


@bug("own", caught_by=("INV-C4",), needs=[needs.receipts])
def confirmed_before_it_is(patches: Patches) -> None:
    """A flush of acknowledgements is done when they are written, not when they are confirmed."""

    def settle(original: Any, self: Any, flush: Any) -> None:
        flush.awaited.clear()
        flush.waiting = False
        original(self, flush)

    patches.around(AckGrouping, "_settle", settle)


@bug("own", caught_by=("INV-N5", "INV-C4"), needs=[needs.receipts, needs.detaches])
def unconfirmed_acknowledgements_forgotten(patches: Patches) -> None:
    """The client does not send again acknowledgements that were sent and not confirmed when the connection
    was lost."""
    patches.replace(AckTracker, "put_back", nothing)


@bug(
    "BUG-111",
    caught_by=("INV-N9",),
    needs=[needs.receipts, needs.fault("acknowledgement_refused")],
)
def an_acknowledgement_that_fails_ends_the_connection(patches: Patches) -> None:
    """An acknowledgement that the broker refuses ends the connection, which other producers and consumers
    use, too."""

    def answered(original: Any, self: Any, sent: Any, reply: Any) -> None:
        connection = sent.connection
        original(self, sent, reply)
        if reply.HasField("error"):
            connection.close(ConnectionLost("an acknowledgement failed"))

    patches.around(AckGrouping, "_answered", answered)


@bug("own", caught_by=("INV-N5", "INV-N1"), needs=[needs.receipts, needs.detaches])
def confirmation_never_comes(patches: Patches) -> None:
    """An application waits for ever for a confirmation that was lost with its connection."""

    def attach(original: Any, self: Any, connection: Any) -> None:
        flushes, self._flushes = self._flushes, []
        original(self, connection)
        self._flushes = flushes

    patches.around(AckGrouping, "attach", attach)
