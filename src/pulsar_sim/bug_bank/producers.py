"""Bugs of producers: sequence ids, batches, resending, receipts, window, timeouts, flushes, closing."""

from typing import Any

from pulsar_sansio.client.outputs import RequestDone, SendFailed, Writable
from pulsar_sansio.client.producing.admission import Admission
from pulsar_sansio.client.producing.entry_builder import EntryBuilder
from pulsar_sansio.client.producing.open_batch import OpenBatch
from pulsar_sansio.client.producing.producer import Producer
from pulsar_sansio.client.producing.receipt_ids import ReceiptIds
from pulsar_sansio.client.producing.send_encoder import SendEncoder
from pulsar_sansio.client.producing.send_window import SendWindow
from pulsar_sansio.model.errors import RemoteProtocolError, TimedOut
from pulsar_sansio.model.message_id import MessageId

from .planted_bug import Patches, bug, nothing
from .preconditions import general as needs

# --- sequence ids and batches --------------------------------------------------------------------------


@bug("BUG-021", caught_by=("INV-P6", "INV-P2"), needs=[needs.singles])
def sequence_ids_of_pairs_swapped(patches: Patches) -> None:
    """The producer draws a sequence id before it queues the message. Two messages sent at about the same time
    exchange their ids."""

    def single(original: Any, self: Any, message: Any, sequence_id: int, publish_time: int) -> Any:
        return original(self, message, sequence_id ^ 1, publish_time)

    patches.around(SendEncoder, "single", single)


@bug("BUG-022", caught_by=("INV-P6", "INV-P4", "INV-P2"), needs=[needs.detaches])
def counter_restarts_with_the_connection(patches: Patches) -> None:
    """The sequence counter begins again whenever a connection opens."""

    def attached(original: Any, self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self.entry_builder.next_sequence_id = self._window.messages

    patches.around(Admission, "attached", attached)


@bug(
    "BUG-022",
    caught_by=("INV-P2", "INV-P4", "INV-P1"),
    needs=[needs.deduplication, needs.producers_close, needs.named],
)
def the_brokers_last_id_ignored(patches: Patches) -> None:
    """A producer that takes over a name begins with id 0, and deduplication drops its messages."""

    def attached(
        original: Any, self: Any, connection: Any, name: str, identifier: int, last: int, version: bytes
    ) -> None:
        original(self, connection, name, identifier, -1, version)

    patches.around(Admission, "attached", attached)


@bug("BUG-023", caught_by=("CHECK-46", "INV-P3"), needs=[needs.batches, needs.rich])
def bare_payloads_behind_the_others(patches: Patches) -> None:
    """The producer sorts the messages of a batch by their content, not by the order of sending."""

    def fold(original: Any, self: Any) -> None:
        before = len(self._parts)
        original(self)
        if before and len(self._parts) > before:
            self._parts.insert(0, self._parts.pop())

    patches.around(OpenBatch, "_fold", fold)


@bug("BUG-024", caught_by=("CHECK-46", "INV-P6", "INV-P4"), needs=[needs.batches])
def highest_id_of_a_batch_by_counting(patches: Patches) -> None:
    """A batch's highest sequence id is its first plus the number of its messages."""

    def batch(original: Any, self: Any, first: Any, time: int, lowest: int, highest: int, *rest: Any) -> Any:
        return original(self, first, time, lowest, lowest + rest[0], *rest)

    patches.around(SendEncoder, "batch", batch)


@bug("BUG-017", caught_by=("INV-P2", "INV-C2"), needs=[needs.rich])
def properties_of_empty_messages_lost(patches: Patches) -> None:
    """The producer sends a message without a payload also without its key, properties and other fields."""

    def take(original: Any, self: Any, message: Any, ticket: int, publish_time: int) -> None:
        if not isinstance(message, bytes) and not message.payload:
            message = b""
        original(self, message, ticket, publish_time)

    patches.around(EntryBuilder, "take", take)


# --- resending -----------------------------------------------------------------------------------------


@bug("BUG-018", caught_by=("INV-P6", "INV-N5", "INV-P1"), needs=[needs.detaches])
def pending_forgotten_on_a_reconnect(patches: Patches) -> None:
    """The producer resends no pending message after a reconnect."""
    patches.replace(Producer, "_send_again", nothing)


@bug("BUG-020", caught_by=("INV-P10", "INV-P6", "INV-P3"), needs=[needs.detaches])
def sends_before_the_pending_are_sent_again(patches: Patches) -> None:
    """The producer sends new messages on a new connection before it has resent the pending ones."""

    def open_command(original: Any, self: Any, request_id: int, connection: Any) -> Any:
        if self._was_ready:
            self._entry_builder.connection = connection
        return original(self, request_id, connection)

    patches.around(Producer, "open_command", open_command)


@bug("BUG-020", caught_by=("INV-P6", "INV-P3"), needs=[needs.detaches, needs.slow_batches])
def the_open_batch_overtakes_the_pending(patches: Patches) -> None:
    """The producer sends a batch that was open at the reconnect before the pending messages, and again with
    them."""

    def attached(original: Any, self: Any, connection: Any, *rest: Any) -> None:
        if self.encoder is not None:
            self.connection = connection
        original(self, connection, *rest)

    patches.around(EntryBuilder, "attached", attached)


@bug("BUG-020", caught_by=("INV-P6", "INV-P3"), needs=[needs.detaches])
def pending_sent_again_in_reverse(patches: Patches) -> None:
    """The producer resends pending messages newest first after a reconnect."""

    def send_again(self: Any, connection: Any) -> None:
        for entry in reversed(self._window.entries):
            connection.write(entry.frame)

    patches.replace(Producer, "_send_again", send_again)


@bug("BUG-090", caught_by=("INV-P6", "INV-P2"), needs=[needs.detaches])
def buffer_of_a_pending_message_reused(patches: Patches) -> None:
    """The producer resends the oldest message with the bytes of a later one, which reused its buffer."""

    def send_again(original: Any, self: Any, connection: Any) -> None:
        entries = self._window.entries
        if len(entries) > 1:
            entries[0].frame = entries[-1].frame
        original(self, connection)

    patches.around(Producer, "_send_again", send_again)


@bug("BUG-091", caught_by=("INV-P6", "INV-N5", "INV-P1", "INV-N9"), needs=[needs.detaches])
def oldest_not_sent_again(patches: Patches) -> None:
    """The producer resends all pending messages after a reconnect, except the oldest."""

    def send_again(self: Any, connection: Any) -> None:
        for entry in list(self._window.entries)[1:]:
            connection.write(entry.frame)

    patches.replace(Producer, "_send_again", send_again)


@bug("BUG-091", caught_by=("INV-N5", "INV-P1"), needs=[needs.detaches])
def resent_messages_are_not_awaited(patches: Patches) -> None:
    """The producer does not register a resent message for its receipt again, so that the receipt finds no
    message."""

    def send_again(original: Any, self: Any, connection: Any) -> None:
        original(self, connection)
        for entry in self._window.entries:
            entry.sequence_id += 2**62

    patches.around(Producer, "_send_again", send_again)


# --- receipts ------------------------------------------------------------------------------------------


@bug("BUG-025", caught_by=("INV-P2", "INV-P9", "INV-P1"), needs=[needs.fault("receipt_repeated")])
def any_receipt_is_the_oldests(patches: Patches) -> None:
    """A receipt confirms the oldest message, whatever its sequence id."""

    def on_receipt(original: Any, self: Any, connection: Any, receipt: Any) -> None:
        if self.entries:
            receipt = receipt._replace(sequence_id=self.entries[0].sequence_id)
        original(self, connection, receipt)

    patches.around(SendWindow, "on_receipt", on_receipt)


@bug("BUG-027", caught_by=("INV-P2", "INV-P9"), needs=[needs.fault("receipt_repeated")])
def late_receipt_confirms_the_next(patches: Patches) -> None:
    """A repeated receipt confirms the message after the one it belongs to."""

    def on_receipt(original: Any, self: Any, connection: Any, receipt: Any) -> None:
        if self.entries and receipt.sequence_id < self.entries[0].sequence_id:
            receipt = receipt._replace(sequence_id=self.entries[0].sequence_id)
        original(self, connection, receipt)

    patches.around(SendWindow, "on_receipt", on_receipt)


@bug("BUG-025", caught_by=("INV-N9",), needs=[needs.fault("receipt_repeated")])
def late_receipt_ends_the_connection(patches: Patches) -> None:
    """A repeated receipt counts as one out of order. All producers and consumers of the connection must
    reconnect, and again at every receipt that is late because of it."""

    def on_receipt(original: Any, self: Any, connection: Any, receipt: Any) -> None:
        if self.entries and receipt.sequence_id < self.entries[0].sequence_id:
            connection.close(RemoteProtocolError("a receipt out of order"))
        else:
            original(self, connection, receipt)

    patches.around(SendWindow, "on_receipt", on_receipt)


@bug("BUG-026", caught_by=("INV-P2", "INV-P9"), needs=[needs.batches])
def ids_of_a_batch_all_the_first(patches: Patches) -> None:
    """All messages of a batch get the id of the first."""

    def iterate(self: Any) -> Any:
        for ledger_id, entry_id, count, _ in self._rows:
            for _ in range(count):
                yield MessageId(ledger_id, entry_id, self._partition, min(count - 2, 0), count)

    patches.replace(ReceiptIds, "__iter__", iterate)


@bug("BUG-089", caught_by=("INV-P1", "INV-P2", "INV-P8", "INV-N5"), needs=[needs.batches])
def only_the_first_of_a_batch_is_told(patches: Patches) -> None:
    """The receipt of a batch reaches only the first of its messages."""

    def add(original: Any, self: Any, ledger_id: int, entry_id: int, count: int, *rest: Any) -> None:
        original(self, ledger_id, entry_id, 1, *rest)

    patches.around(ReceiptIds, "add", add)


@bug("BUG-110", caught_by=("INV-P1",), needs=[needs.singles])
def failed_after_it_was_confirmed(patches: Patches) -> None:
    """Now and then a message that was confirmed fails as well."""

    def on_receipt(original: Any, self: Any, connection: Any, receipt: Any) -> None:
        entry = self.entries[0] if self.entries else None
        original(self, connection, receipt)
        if entry is not None and entry.sequence_id % 16 == 0 and entry not in self.entries:
            self._context.emit(SendFailed(self._handle, entry.first_ticket, 1, TimedOut("late")))

    patches.around(SendWindow, "on_receipt", on_receipt)


@bug("BUG-092", caught_by=("INV-N5", "INV-P1"), needs=[needs.detaches])
def a_lost_receipt_is_waited_for(patches: Patches) -> None:
    """When a receipt is missing and a later one arrives, the producer does nothing about it."""

    def on_receipt(original: Any, self: Any, connection: Any, receipt: Any) -> None:
        if receipt.sequence_id % 20 != 19 and (
            not self.entries or receipt.sequence_id <= self.entries[0].sequence_id
        ):
            original(self, connection, receipt)

    patches.around(SendWindow, "on_receipt", on_receipt)


# --- window, timeouts, flushes -------------------------------------------------------------------------


@bug("BUG-083", caught_by=("INV-P7",), needs=[needs.timeouts_in_small_windows, needs.detaches])
def window_released_twice(patches: Patches) -> None:
    """Failed messages leave the window twice, so that its limit loses its effect."""

    def fail_all(original: Any, self: Any, error: Any) -> None:
        messages = self.messages
        original(self, error)
        self.messages -= messages

    patches.around(SendWindow, "fail_all", fail_all)


@bug("BUG-085", caught_by=("INV-P7",), needs=[needs.batches_in_small_windows])
def window_of_a_batch_released_as_of_one(patches: Patches) -> None:
    """A confirmed batch frees the place of one message."""

    def on_receipt(original: Any, self: Any, connection: Any, receipt: Any) -> None:
        entry = self.entries[0] if self.entries else None
        original(self, connection, receipt)
        if entry is not None and (not self.entries or self.entries[0] is not entry):
            self.messages += entry.count - 1

    patches.around(SendWindow, "on_receipt", on_receipt)


@bug(
    "BUG-085",
    caught_by=("INV-N5", "INV-P1"),
    needs=[needs.timeouts_in_small_windows, needs.reconnects],
)
def window_of_failed_messages_kept(patches: Patches) -> None:
    """Messages that timed out keep their places in the window."""

    def fail_all(original: Any, self: Any, error: Any) -> None:
        messages = self.messages
        original(self, error)
        self.messages = messages

    patches.around(SendWindow, "fail_all", fail_all)


@bug("BUG-084", caught_by=("INV-N5",), needs=[needs.small_windows])
def waiter_for_room_never_woken(patches: Patches) -> None:
    """An application that was told of a full window is not told when it has room again."""

    def settled(original: Any, self: Any) -> None:
        outputs = self.entry_builder._context.outputs
        before = len(outputs)
        original(self)
        if len(outputs) > before and type(outputs[before]) is Writable:
            del outputs[before]

    patches.around(Admission, "settled", settled)


@bug("BUG-087", caught_by=("INV-P1",), needs=[needs.send_timeouts, needs.reconnects])
def sends_do_not_time_out(patches: Patches) -> None:
    """The send timeout does nothing."""
    patches.replace(SendWindow, "_check_timeout", nothing)


@bug("BUG-087", caught_by=("INV-P1",), needs=[needs.send_timeouts, needs.reconnects])
def only_the_oldest_times_out(patches: Patches) -> None:
    """When several messages time out, only the oldest entry fails. The others stay, and the producer does not
    check them again."""

    def timed_out(self: Any) -> None:
        entry = self._window.entries[0]
        self._window.fail_entry(entry, TimedOut("not confirmed in time"))

    patches.replace(Producer, "_timed_out", timed_out)


@bug("BUG-092", caught_by=("INV-N5", "INV-P1"), needs=[needs.short_send_timeouts, needs.reconnects])
def a_timeout_poisons_the_producer(patches: Patches) -> None:
    """After messages timed out, the producer accepts messages and never sends them."""

    def timed_out(original: Any, self: Any) -> None:
        original(self)
        self._entry_builder.connection = None
        self._entry_builder.poisoned = True

    patches.around(Producer, "_timed_out", timed_out)

    def send_again(original: Any, self: Any, connection: Any) -> None:
        original(self, connection)
        if getattr(self, "poisoned", False):
            self.connection = None

    patches.around(EntryBuilder, "send_again", send_again)


@bug("own", caught_by=("INV-P1",), needs=[needs.reconnects])
def sends_time_out_too_early(patches: Patches) -> None:
    """Messages time out after a tenth of the send timeout; without a send timeout, after 1 s."""

    def init(original: Any, self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self._send_timeout = self._send_timeout // 10 or 1_000_000_000

    patches.around(SendWindow, "__init__", init)


@bug("BUG-088", caught_by=("INV-P8",), needs=[needs.flushes])
def flush_done_when_asked_for(patches: Patches) -> None:
    """A flush is done as soon as the messages are written."""

    def flush(self: Any, request: int, end: int) -> None:
        self._context.emit(RequestDone(request, None))

    patches.replace(SendWindow, "flush", flush)


@bug("BUG-088", caught_by=("INV-P8",), needs=[needs.flushes, needs.batches])
def flush_forgets_the_open_batch(patches: Patches) -> None:
    """A flush sends the open batch, but waits only for the messages sent before it."""

    def push(original: Any, self: Any) -> None:
        self._admission.unflushed = self._admission.oldest_unsettled()
        if self._window.entries:
            last = self._window.entries[-1]
            self._admission.unflushed = last.first_ticket + last.count
        original(self)

    def flush(original: Any, self: Any, request: int, end: int) -> None:
        original(self, request, min(end, self.on_settled.__self__.unflushed))

    patches.around(Producer, "push", push)
    patches.around(SendWindow, "flush", flush)


@bug("BUG-088", caught_by=("INV-P8", "INV-N1"), needs=[needs.flushes])
def flush_answered_twice(patches: Patches) -> None:
    """A flush that waited is answered twice."""

    def settle_flushes(original: Any, self: Any, oldest_unsettled: int) -> bool:
        outputs = self._context.outputs
        before = len(outputs)
        waiting = original(self, oldest_unsettled)
        outputs.extend(list(outputs)[before:])
        return bool(waiting)

    patches.around(SendWindow, "settle_flushes", settle_flushes)


# --- closing -------------------------------------------------------------------------------------------


@bug("BUG-011", caught_by=("INV-P1",), needs=[needs.producers_close, needs.batches])
def close_forgets_the_open_batch(patches: Patches) -> None:
    """Closing drops the open batch without a report to the application."""

    def fail(original: Any, self: Any, error: Any) -> None:
        self._batch_timer.clear()
        self.batch.clear()
        original(self, error)

    patches.around(EntryBuilder, "fail", fail)


@bug("own", caught_by=("INV-P8",), needs=[needs.slow_batches])
def batches_stay_open_much_too_long(patches: Patches) -> None:
    """The producer sends a batch that does not become full after thirty times its delay."""

    def begin(original: Any, self: Any, *others: Any) -> None:
        original(self, *others)
        self._batch_delay = 30 * self._batch_delay + 3_000_000_000

    patches.around(EntryBuilder, "__init__", begin)


@bug("BUG-011", caught_by=("INV-P1", "INV-P8"), needs=[needs.producers_close])
def close_forgets_what_is_pending(patches: Patches) -> None:
    """Closing drops pending messages without reporting their outcome to the application."""

    def end(original: Any, self: Any, error: Any) -> None:
        self._window.entries.clear()
        original(self, error)

    patches.around(Producer, "_end", end)


@bug("own", caught_by=("INV-N11",))
def timer_left_after_the_close(patches: Patches) -> None:
    """A closed producer leaves its send timer running."""

    def end(original: Any, self: Any, error: Any) -> None:
        original(self, error)
        self._window._timer.set(self._services.context.now + 3600 * 1_000_000_000)

    patches.around(Producer, "_end", end)
