"""Bugs of consumers and readers that move: seeks, readers, and questions whether there is more."""

from typing import Any

from pulsar_sansio.client.acknowledging.ack_grouping import AckGrouping
from pulsar_sansio.client.arrival.arrival import Arrival
from pulsar_sansio.client.arrival.delivery_start import DeliveryStart
from pulsar_sansio.client.arrival.undelivered_entries import UndeliveredEntries
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.consuming.reader import Reader
from pulsar_sansio.client.delivery.receiver_queue import ReceiverQueue
from pulsar_sansio.client.positions import seeking as seeking_module
from pulsar_sansio.client.positions.last_message import LastMessage
from pulsar_sansio.client.positions.positions import Positions
from pulsar_sansio.client.positions.seeking import Seeking
from pulsar_sansio.model.errors import TimedOut
from pulsar_sansio.model.message_id import EARLIEST, LATEST, MessageId

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs
from ..preconditions import reading as reading_needs

# --- seeking -------------------------------------------------------------------------------------------


@bug("BUG-060", caught_by=("INV-C7", "INV-C3", "INV-C4", "INV-C6"), needs=[reading_needs.roams])
def queued_messages_survive_a_seek(patches: Patches) -> None:
    """Messages in the queue when the subscription was moved are delivered all the same."""

    def open_command(original: Any, self: Any, *arguments: Any) -> Any:
        queue = self._queue
        kept = (queue._items, queue._waiting, queue._singles)
        sought = self._positions._seeking.current is not None
        if sought:
            queue._items, queue._waiting, queue._singles = type(queue._items)(), 0, None
        frame = original(self, *arguments)
        if sought:
            queue._items, queue._waiting, queue._singles = kept
        return frame

    patches.around(Consumer, "open_command", open_command)
    patches.replace(ReceiverQueue, "forget", nothing)


@bug("BUG-060", caught_by=("INV-C7",), needs=[reading_needs.roams])
def a_seek_is_done_when_it_is_answered(patches: Patches) -> None:
    """The seek is done with the broker's answer; messages that arrived before are still in the queue."""

    def succeeded(self: Any, _reply: Any) -> None:
        seek, self.current = self.current, None
        self._pending = None
        self._slot.clear()
        self._settle(seek, None)

    patches.replace(Seeking, "_succeeded", succeeded)


@bug("BUG-061", caught_by=("INV-C7", "INV-N5"), needs=[reading_needs.roams])
def a_seek_that_is_answered_first_never_ends(patches: Patches) -> None:
    """The answer to SEEK comes before the consumer is attached again, and the client does not look for it
    then."""

    def attach(original: Any, self: Any, connection: Any) -> None:
        if self.current is not None and self._answered:
            self._connection = connection
            self._slot.clear()
            return
        original(self, connection)

    patches.around(Seeking, "attach", attach)


@bug("BUG-062", caught_by=("INV-C7", "INV-N5"), needs=[reading_needs.roams, needs.fault("seek_refused")])
def a_refused_seek_is_not_told(patches: Patches) -> None:
    """The broker refuses a seek, and the application is not told."""

    def refused(original: Any, self: Any, error: Any) -> None:
        self._pending = None
        self._slot.clear()

    patches.around(Seeking, "_refused", refused)


@bug(
    "BUG-062",
    caught_by=("INV-C7", "INV-C3", "INV-C15"),
    needs=[reading_needs.roams, needs.fault("seek_refused")],
)
def a_refused_seek_is_done(patches: Patches) -> None:
    """The broker refuses a seek, and the application is told that it is done."""

    def refused(original: Any, self: Any, error: Any) -> None:
        self._pending = None
        self._finish(None)

    patches.around(Seeking, "_refused", refused)


@bug("own", caught_by=("INV-N5", "INV-C7", "INV-C3", "INV-C4"), needs=[reading_needs.roams, needs.detaches])
def a_seek_that_was_lost_is_done(patches: Patches) -> None:
    """The connection is lost before a SEEK is answered; when there is another one, it counts as done."""

    def attach(original: Any, self: Any, connection: Any) -> None:
        if self.current is not None:
            self._owner.on_moved(self.current.target, self.current.inclusive)
            self._answered, self.sent_on = True, connection
        original(self, connection)

    patches.around(Seeking, "attach", attach)


@bug("own", caught_by=("INV-C4", "INV-C7", "INV-N5"), needs=[reading_needs.roams_and_acknowledges])
def acknowledgements_survive_a_seek(patches: Patches) -> None:
    """Acknowledgements made and not sent before a seek are sent after it: the cursor goes where it was."""

    patches.replace(AckGrouping, "drop", nothing)


@bug("BUG-064", caught_by=("INV-C7", "INV-C3"), needs=[reading_needs.roams, needs.batches])
def a_seek_into_a_batch_goes_to_its_beginning(patches: Patches) -> None:
    """Messages of the batch that lie before the one that was sought are delivered."""

    def start_at(original: Any, self: Any, start: Any, inclusive: bool) -> None:
        if start is not None and start.batch_index >= 0:
            start = MessageId(*start[:3])
            inclusive = True
        original(self, start, inclusive)

    patches.around(DeliveryStart, "start_at", start_at)


@bug("BUG-065", caught_by=("INV-C7", "INV-C3", "INV-N5", "INV-C11"), needs=[reading_needs.roams_among_chunks])
def an_inclusive_start_at_a_message_in_chunks(patches: Patches) -> None:
    """A consumer that seeks to a message in chunks begins with its last chunk, and never gets the message."""

    def command(original: Any, wire_id: int, request_id: int, target: Any) -> Any:
        if isinstance(target, MessageId):
            target = target._replace(first_chunk=None)
        return original(wire_id, request_id, target)

    patches.around(seeking_module, "_command", command)


@bug("own", caught_by=("INV-C7",), needs=[reading_needs.roams])
def every_seek_is_inclusive(patches: Patches) -> None:
    """The message that was sought is delivered, although the application asked for the one behind it."""

    def seek(original: Any, self: Any, request: Any, target: Any, inclusive: bool) -> None:
        original(self, request, target, True)

    patches.around(Seeking, "seek", seek)


@bug("own", caught_by=("INV-C7",), needs=[reading_needs.roams])
def seeks_overtake_each_other(patches: Patches) -> None:
    """When several seeks wait, the client does the last one first."""

    def begin(original: Any, self: Any) -> None:
        if len(self.waiting) > 1:
            self.waiting.rotate(1)
        original(self)

    patches.around(Seeking, "_begin", begin)


@bug("BUG-067", caught_by=("INV-C6", "INV-N5"), needs=[reading_needs.roams])
def messages_before_the_start_keep_their_permits(patches: Patches) -> None:
    """A message that is dropped because it lies before the place that was sought gives no permits back."""

    def skip(self: Any, position: Any) -> None:
        self._counters.before_start += 1
        self.passes(position)
        if self._durable:
            self.finish(position)

    patches.replace(UndeliveredEntries, "skip", skip)


# --- readers -------------------------------------------------------------------------------------------


@bug("BUG-028", caught_by=("INV-C3", "INV-C7"), needs=[reading_needs.reads, needs.detaches])
def an_inclusive_reader_reads_the_last_one_again(patches: Patches) -> None:
    """A reader that began with a message itself begins after a reconnect with the last message delivered to
    it."""

    def resume_after(original: Any, self: Any, last: Any, *since: Any) -> None:
        inclusive = self.inclusive
        original(self, last, *since)
        if inclusive:
            self.start_at(last, True)

    patches.around(DeliveryStart, "resume_after", resume_after)


@bug("BUG-008", caught_by=("INV-N5",), needs=[reading_needs.whispers_to_readers, needs.detaches])
def a_reader_resumes_by_positions_that_are_not_stored(patches: Patches) -> None:
    """After a reconnect a reader of a non-persistent topic goes on behind the place of the last message: 0:0,
    as that of every other one."""

    def init(original: Any, self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self._durable = arguments[0].spec.durable

    patches.around(Positions, "__init__", init)


@bug(
    "own",
    caught_by=("INV-C15", "INV-C7", "INV-C3"),
    needs=[reading_needs.reads_chunks, needs.fault("cut_between_chunks")],
)
def the_start_is_forgotten_with_a_chunk(patches: Patches) -> None:
    """A reader to which only a chunk had come is attached again where it began, and delivers the message
    before its start."""
    patches.replace(DeliveryStart, "begin_again", nothing)

    def start_at(original: Any, self: Any, start: Any, inclusive: bool) -> None:
        original(self, start, inclusive)
        self.filters = start is not None and start not in (EARLIEST, LATEST)

    patches.around(DeliveryStart, "start_at", start_at)


@bug("own", caught_by=("INV-C3", "INV-C7", "INV-C18"), needs=[reading_needs.reads, needs.detaches])
def a_reader_begins_anew(patches: Patches) -> None:
    """After a reconnect a reader begins where it began at first."""
    patches.replace(DeliveryStart, "resume_after", nothing)


@bug("own", caught_by=("INV-C3", "INV-C7", "INV-C18"), needs=[reading_needs.reads_partitions, needs.detaches])
def only_the_first_partition_goes_on(patches: Patches) -> None:
    """After a reconnect of a reader of several partitions, all partitions but the first begin anew."""
    others: list[Any] = []

    def init(original: Any, self: Any, services: Any, *parts: Any) -> None:
        original(self, services, *parts)
        if services.source.partition > 0:
            others.append(self.start)

    def resume_after(original: Any, self: Any, last: Any, *since: Any) -> None:
        if not any(self is other for other in others):
            original(self, last, *since)

    patches.around(Arrival, "__init__", init)
    patches.around(DeliveryStart, "resume_after", resume_after)


@bug("own", caught_by=("INV-C3", "INV-C7"), needs=[reading_needs.reads, needs.detaches])
def a_reader_forgets_the_target_of_its_seek(patches: Patches) -> None:
    """After a seek and a reconnect a reader goes on where it was before the seek."""

    def moved(original: Any, self: Any, target: Any, inclusive: bool) -> None:
        start, was = self._start.message_id, self._start.inclusive
        original(self, target, inclusive)
        if not self._durable and start is not None and isinstance(target, MessageId):
            self._start.start_at(start, was)

    patches.around(Positions, "on_moved", moved)


@bug("own", caught_by=("INV-C4",), needs=[reading_needs.reads])
def a_reader_acknowledges_what_it_was_not_asked_for(patches: Patches) -> None:
    """The reader acknowledges one entry more than was delivered."""

    def read(original: Any, self: Any) -> None:
        last = self._queue.last
        if last is not None:
            ledger, entry = last[0].position
            self.acknowledge_cumulative(MessageId(ledger, entry + 1))

    patches.around(Reader, "_acknowledge_read", read)


# --- is there more? ------------------------------------------------------------------------------------


@bug("BUG-063", caught_by=("INV-C15",), needs=[reading_needs.asks])
def there_is_more_as_before_the_seek(patches: Patches) -> None:
    """The client's knowledge of the last message, and of the one last delivered, survives a seek."""

    def moved(original: Any, self: Any, target: Any, inclusive: bool) -> None:
        last, known = self._queue.last_delivered, self._known_last
        original(self, target, inclusive)
        self._arrival.undelivered.passed, self._known_last = last, known

    patches.around(Positions, "on_moved", moved)


@bug("BUG-063", caught_by=("INV-C15",), needs=[reading_needs.asks])
def the_end_counts_as_more(patches: Patches) -> None:
    """The last message counts as one that is still to come, although it was delivered."""

    def is_more(original: Any, self: Any, answer: Any) -> Any:
        reached = self._reached()
        return original(self, answer) or (reached is not None and answer.last[:2] == reached)

    patches.around(Positions, "_is_more", is_more)


@bug("BUG-063", caught_by=("INV-C15",), needs=[reading_needs.asks])
def nothing_more_than_what_is_queued(patches: Patches) -> None:
    """The client does not ask the broker: a message that is not in the queue does not exist for it."""

    def is_more(self: Any, answer: Any) -> bool:
        return bool(self._queue.available)

    patches.replace(Positions, "_is_more", is_more)


@bug(
    "BUG-066",
    caught_by=("INV-N6", "INV-C15", "INV-A3"),
    needs=[reading_needs.asks, needs.fault("last_message_refused")],
)
def a_refused_question_is_asked_again_at_once(patches: Patches) -> None:
    """A broker that cannot say which message is the last one is asked until it can."""

    def send(original: Any, self: Any, connection: Any, question: Any) -> None:
        failed = question.failed

        def again(error: Any) -> None:
            question.failed = failed
            if self._connection is None or isinstance(error, TimedOut):
                failed(error)
            else:
                self._open.append(question)
                self._send(self._connection, question)

        question.failed = again
        original(self, connection, question)

    patches.around(LastMessage, "_send", send)


@bug("BUG-108", caught_by=("INV-C15",), needs=[reading_needs.asks, needs.detaches])
def questions_are_lost_with_the_connection(patches: Patches) -> None:
    """An application that asked for the last message gets no answer when the connection is lost before the
    answer."""

    def detach(original: Any, self: Any) -> None:
        original(self)
        self._open.clear()
        self._slot.clear()

    patches.around(LastMessage, "detach", detach)
