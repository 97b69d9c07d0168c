"""Bugs of consumers: permits, the handling of an arriving message, the queue, redelivery, closing."""

from typing import Any

from pulsar_sansio.client.acknowledging.ack_commands import AckCommands
from pulsar_sansio.client.acknowledging.redelivery import Redelivery
from pulsar_sansio.client.arrival import arrival as arrival_module
from pulsar_sansio.client.arrival.arrival import Arrival
from pulsar_sansio.client.consuming.consumer import Consumer
from pulsar_sansio.client.delivery.permits import Permits
from pulsar_sansio.client.delivery.receiver_queue import ReceiverQueue
from pulsar_sansio.model.config import CompressionType
from pulsar_sansio.model.errors import DecompressionFailed
from pulsar_sansio.model.message import Message
from pulsar_sansio.wire import encode_command, proto, unpack_payload

from ..planted_bug import Patches, bug, nothing
from ..preconditions import general as needs

T = proto.BaseCommand


# --- permits -------------------------------------------------------------------------------------------


@bug("BUG-068", caught_by=("INV-C6", "INV-N5"), needs=[needs.redeliver_all])
def permits_of_a_cleared_queue_lost(patches: Patches) -> None:
    """Messages dropped from the queue because they are redelivered give no permits back."""

    def clear(original: Any, self: Any) -> None:
        grant, self._permits._grant = self._permits._grant, None
        original(self)
        self._permits._grant = grant

    patches.around(ReceiverQueue, "clear", clear)


@bug("BUG-068", caught_by=("INV-C6", "INV-N5"), needs=[needs.detaches])
def permits_of_filtered_messages_lost(patches: Patches) -> None:
    """Duplicates and outdated messages are dropped, and their permits with them."""
    dropping = False

    def receive(original: Any, self: Any, *arguments: Any) -> None:
        nonlocal dropping
        dropping = True
        try:
            original(self, *arguments)
        finally:
            dropping = False

    def give_back(original: Any, self: Any, messages: int) -> None:
        if not dropping:
            original(self, messages)

    patches.around(Arrival, "receive", receive)
    patches.around(Permits, "give_back", give_back)


@bug("BUG-068", caught_by=("INV-C6", "INV-N5"))
def permits_of_a_message_lost_now_and_then(patches: Patches) -> None:
    """Where several permits come back together, one of them is forgotten."""

    def give_back(original: Any, self: Any, messages: int) -> None:
        original(self, messages - (messages % 16 == 3))

    patches.around(Permits, "give_back", give_back)


@bug("BUG-069", caught_by=("INV-C6",), needs=[needs.index_acknowledgement_of_batches])
def permits_for_messages_that_were_not_charged(patches: Patches) -> None:
    """A batch of which the broker left messages out gives permits for those back, too."""

    def batch(original: Any, self: Any, place: Any, metadata: Any, payload: Any, *rest: Any) -> None:
        original(self, place, metadata, payload, *rest)
        *_, size, bits, cost = rest
        if bits is not None:
            self._permits.give_back(size - cost)

    patches.around(Arrival, "_batch", batch)


@bug("BUG-069", caught_by=("INV-C6",))
def first_permits_granted_twice(patches: Patches) -> None:
    """The first grant of an attachment is sent twice."""

    def attach(original: Any, self: Any, grant: Any) -> None:
        original(self, grant)
        grant(self.queue_size)

    patches.around(Permits, "attach", attach)


@bug("BUG-069", caught_by=("INV-C6",), needs=[needs.detaches])
def unreported_permits_survive_a_reconnect(patches: Patches) -> None:
    """Permits that were not reported when the connection was lost are added to the next grant."""

    def detach(original: Any, self: Any) -> None:
        unreported = self.unreported
        original(self)
        self.unreported = unreported

    patches.around(Permits, "detach", detach)


@bug("BUG-032", caught_by=("FLOW-08", "INV-C13"))
def flow_of_zero(patches: Patches) -> None:
    """A FLOW is sent whenever permits are looked at, also when there are none."""

    def give_back(self: Any, messages: int) -> None:
        if self._grant is not None:
            granted, self.unreported = self.unreported + messages, 0
            self.at_broker += granted
            self._grant(granted)

    patches.replace(Permits, "give_back", give_back)


@bug("BUG-070", caught_by=("INV-N5", "INV-C6"), needs=[needs.detaches])
def no_permits_after_a_reconnect(patches: Patches) -> None:
    """The FLOW of a second attachment could not be written, and counts as written."""

    def on_opened(original: Any, self: Any, connection: Any, reply: Any) -> None:
        again, before = self._ready, len(connection.unwritten)
        original(self, connection, reply)
        if again and len(connection.unwritten) > before:
            connection.unwritten.pop()

    patches.around(Consumer, "on_opened", on_opened)


@bug("BUG-052", caught_by=("INV-C6", "INV-N5"))
def flow_dropped_when_something_waits_to_be_written(patches: Patches) -> None:
    """A FLOW is dropped when the connection has something else to write."""

    def on_opened(original: Any, self: Any, connection: Any, reply: Any) -> None:
        original(self, connection, reply)
        grant = self.permits._grant

        def grant_sometimes(permits: int) -> None:
            if not connection.unwritten:
                grant(permits)

        self.permits._grant = grant_sometimes

    patches.around(Consumer, "on_opened", on_opened)


# --- what becomes of an arriving message -----------------------------------------------------------------


@bug("BUG-001", caught_by=("INV-C3", "INV-C1", "INV-N5", "INV-C6"), needs=[needs.detaches])
def queue_cleared_again_after_a_reconnect(patches: Patches) -> None:
    """A second reconnect, already under way, clears the queue of the first: the prefetched messages are
    gone."""

    def on_opened(original: Any, self: Any, connection: Any, reply: Any) -> None:
        self.clear_again = self._ready
        original(self, connection, reply)

    def on_message(original: Any, self: Any, connection: Any, command: Any) -> None:
        original(self, connection, command)
        if self.clear_again:
            self.clear_again = False
            self._queue.clear()

    patches.around(Consumer, "on_opened", on_opened)
    patches.around(Consumer, "on_message", on_message)


@bug("BUG-001", caught_by=("INV-C3", "INV-C6", "INV-A3"), needs=[needs.detaches])
def queue_kept_over_a_reconnect(patches: Patches) -> None:
    """The consumer delivers queued messages as well as the copies that the broker sends again because of the
    reconnect."""

    def open_command(original: Any, self: Any, *arguments: Any) -> Any:
        queue = self._queue
        kept = (queue._items, queue._waiting, queue._singles)
        queue._items, queue._waiting, queue._singles = type(queue._items)(), 0, None
        frame = original(self, *arguments)
        queue._items, queue._waiting, queue._singles = kept
        return frame

    patches.around(Consumer, "open_command", open_command)


@bug("BUG-002", caught_by=("INV-C3", "INV-C1", "INV-N5", "INV-C6"))
def first_message_of_an_attachment_lost(patches: Patches) -> None:
    """The consumer is registered a moment after the subscription is confirmed. A message that came with the
    confirmation is lost."""

    def on_opened(original: Any, self: Any, connection: Any, reply: Any) -> None:
        self.registered = False
        original(self, connection, reply)

    def on_message(original: Any, self: Any, connection: Any, command: Any) -> None:
        if self.registered:
            original(self, connection, command)
        self.registered = True

    patches.around(Consumer, "on_opened", on_opened)
    patches.around(Consumer, "on_message", on_message)


@bug("BUG-015", caught_by=("INV-N5", "INV-P2"))
def first_messages_are_not_announced(patches: Patches) -> None:
    """Messages that come before the application has attached its listener are never announced. Nor are they
    to the reader that checks the log, which finds it empty."""

    def on_message(original: Any, self: Any, connection: Any, command: Any) -> None:
        if not getattr(self, "listening", False):
            self.listening = self._queue.announced = True
        original(self, connection, command)

    patches.around(Consumer, "on_message", on_message)


@bug("own", caught_by=("INV-N5", "INV-P2"), needs=[needs.redeliver_all])
def messages_after_a_cleared_queue_are_not_announced(patches: Patches) -> None:
    """Once a redelivery has emptied the queue, the application is not told that messages are there."""

    def clear(original: Any, self: Any) -> None:
        original(self)
        self.announced = True

    patches.around(ReceiverQueue, "clear", clear)


@bug("BUG-005", caught_by=("INV-C3", "INV-C1", "INV-N5"))
def message_lost_that_does_not_fit(patches: Patches) -> None:
    """The client takes a message off the queue to see whether it fits into the limit of the request, and
    loses it if not."""

    def take(original: Any, self: Any, limit: int, whole_batches: bool = False) -> Any:
        taken = original(self, limit, whole_batches)
        return taken[:-1] if len(taken) == limit > 1 else taken

    patches.around(ReceiverQueue, "take", take)


@bug("BUG-016", caught_by=("INV-C2",), needs=[needs.rich])
def null_values_arrive_empty(patches: Patches) -> None:
    """A null value, which deletes a key in a compacted topic, arrives as an empty payload."""
    patches.replace(Message, "value", property(lambda self: self.data))


@bug("BUG-016", caught_by=("INV-C2",), needs=[needs.rich, needs.singles])
def null_values_taken_for_damage(patches: Patches) -> None:
    """A message with a null value is reported to the broker as damaged, and so never delivered."""

    def receive(original: Any, self: Any, command: Any, *rest: Any) -> None:
        metadata = unpack_payload(command.payload).metadata
        if metadata.null_value:
            position = (command.ledger_id, command.entry_id)
            self.undelivered.discard(position, 1, proto.CommandAck.DecompressionError)
        else:
            original(self, command, *rest)

    patches.around(Arrival, "receive", receive)


@bug("BUG-017", caught_by=("INV-C2",), needs=[needs.rich, needs.singles, needs.compressed])
def empty_payloads_not_decompressed(patches: Patches) -> None:
    """A compressed message that is empty is taken for damaged."""

    def decompress(original: Any, codec: Any, data: Any, size: int, limit: int) -> Any:
        if not size:
            raise DecompressionFailed("nothing to decompress")
        return original(codec, data, size, limit)

    patches.around(arrival_module, "decompress", decompress)


@bug(
    "BUG-117",
    caught_by=("INV-C2",),
    needs=[lambda profile: any(each.compression is CompressionType.LZ4 for each in profile.producers)],
)
def lz4_of_the_wrong_format(patches: Patches) -> None:
    """LZ4 is read in its frame format, although Pulsar uses blocks."""

    def decompress(original: Any, codec: Any, data: Any, size: int, limit: int) -> Any:
        if codec == CompressionType.LZ4 and bytes(data[:4]) != b"\x04\x22\x4d\x18":
            raise DecompressionFailed("not an LZ4 frame")
        return original(codec, data, size, limit)

    patches.around(arrival_module, "decompress", decompress)


@bug("own", caught_by=("INV-C2",), needs=[needs.rich])
def keys_lost(patches: Patches) -> None:
    """Messages arrive without their keys."""
    patches.replace(Message, "key", property(lambda self: None))


@bug("BUG-012", caught_by=("INV-C3", "INV-C4"), needs=[needs.redeliver_all, needs.in_order])
def outdated_messages_delivered(patches: Patches) -> None:
    """The consumer delivers messages that were on their way when it asked for everything again. Earlier
    messages are delivered later. A cumulative acknowledgement between the two acknowledges messages that the
    application has not seen."""

    def receive(original: Any, self: Any, command: Any, epoch: int, limit: int, decoder: Any) -> None:
        original(self, command, 0, limit, decoder)

    patches.around(Arrival, "receive", receive)


@bug("BUG-053", caught_by=("INV-C8", "INV-N5"), needs=[needs.redeliver_all, needs.in_order])
def epoch_ahead_of_the_broker(patches: Patches) -> None:
    """The broker is not told of a new epoch, so that everything it sends looks outdated."""

    def request_all(original: Any, self: Any, connection: Any) -> None:
        self.epoch -= 1
        original(self, connection)
        self.epoch += 1

    patches.around(Redelivery, "_request_all", request_all)


@bug("BUG-053", caught_by=("INV-N5", "INV-C6"), needs=[needs.failover, needs.redeliver_all])
def epoch_of_a_consumer_that_is_not_active(patches: Patches) -> None:
    """A Failover consumer whose turn it is not raises its epoch with a request that the broker ignores."""

    def active_changed(self: Any, active: bool) -> None:
        pass

    patches.replace(Redelivery, "active_changed", active_changed)


# --- redelivery ----------------------------------------------------------------------------------------


@bug("BUG-019", caught_by=("INV-C9", "INV-N5", "INV-C1"), needs=[needs.nacks])
def redelivery_never_asked_for(patches: Patches) -> None:
    """The client does not ask for negatively acknowledged messages; on this connection they are never
    redelivered."""
    patches.replace(Redelivery, "_negative_due", nothing)


@bug("BUG-048", caught_by=("INV-C9", "INV-N5", "INV-C1"), needs=[needs.nacks])
def ids_negatively_acknowledged_in_vain(patches: Patches) -> None:
    """A negative acknowledgement by id is ignored; only messages themselves count."""

    def negative_acknowledge(original: Any, self: Any, what: Any) -> None:
        if not isinstance(what, tuple):
            original(self, what)

    patches.around(AckCommands, "negative_acknowledge", negative_acknowledge)


@bug("BUG-047", caught_by=("INV-C9",), needs=[needs.nacks_when_shared])
def everything_asked_for_by_an_empty_list(patches: Patches) -> None:
    """The client sends an empty list of messages to redeliver, which means all messages."""

    def request(self: Any, connection: Any, places: Any) -> None:
        command = proto.CommandRedeliverUnacknowledgedMessages(consumer_id=self._wire_id)
        connection.write(encode_command(T.REDELIVER_UNACKNOWLEDGED_MESSAGES, command))
        self._queue.remove(set(places))

    patches.replace(Redelivery, "_request", request)


@bug("BUG-046", caught_by=("INV-C9",), needs=[needs.nacks_when_shared])
def one_too_many_asked_for(patches: Patches) -> None:
    """Asking for one entry again takes the next one with it."""

    def request(original: Any, self: Any, connection: Any, places: Any) -> None:
        ledger, entry = places[-1]
        original(self, connection, [*places, (ledger, entry + 1)])

    patches.around(Redelivery, "_request", request)


@bug("BUG-045", caught_by=("INV-C9",), needs=[needs.nacks])
def asked_for_again_and_again(patches: Patches) -> None:
    """An entry that was asked for stays in the list, and is asked for again and again."""

    def due(original: Any, self: Any) -> None:
        now = self._context.now
        again = [place for place, when in self.negative._when.items() if when <= now]
        original(self)
        if self._connection is not None:
            for place in again:
                self.negative.add_after_delay(place, 0, now + 100_000_000)
            self._schedule()

    patches.around(Redelivery, "_negative_due", due)


@bug("BUG-051", caught_by=("INV-C9", "INV-A3"), needs=[needs.nacks_when_shared])
def acknowledged_messages_asked_for_again(patches: Patches) -> None:
    """A message that is acknowledged after a negative acknowledgement stays in the list of messages to ask
    for."""
    patches.replace(Redelivery, "acknowledged", nothing)


@bug("BUG-049", caught_by=("INV-C9",), needs=[needs.nacks_in_order, needs.cumulative])
def cumulatively_acknowledged_messages_asked_for_again(patches: Patches) -> None:
    """A cumulative acknowledgement leaves the messages that it covers in the list of messages to ask for."""
    patches.replace(Redelivery, "acknowledged_through", nothing)


@bug("BUG-045", caught_by=("INV-C9", "INV-C19"), needs=[needs.timeouts_when_shared, needs.batches])
def asked_for_again_and_still_in_the_queue(patches: Patches) -> None:
    """Messages of an entry that is asked for again stay in the queue, and are delivered twice."""
    patches.replace(ReceiverQueue, "remove", lambda self, places: 0)
    patches.replace(ReceiverQueue, "withdraw", lambda self, place, index: 0)


# --- closing -------------------------------------------------------------------------------------------


@bug("BUG-004", caught_by=("INV-P2", "INV-C5", "INV-C1", "CHECK-57"))
def close_unsubscribes(patches: Patches) -> None:
    """Closing a consumer removes its subscription, and with it the messages that the topic keeps for it."""

    def close_command(self: Any, request_id: int) -> bytes:
        command = proto.CommandUnsubscribe(consumer_id=self.wire_id, request_id=request_id)
        return encode_command(T.UNSUBSCRIBE, command)

    patches.replace(Consumer, "close_command", close_command)


@bug("own", caught_by=("INV-C14", "INV-N17"), needs=[needs.consumers_close])
def messages_after_the_close(patches: Patches) -> None:
    """A consumer that is being closed goes on delivering the messages in its queue."""

    def stop(self: Any, error: object) -> None:
        self._connection = None
        self._ack_commands.close()
        self._redelivery.detach()
        self.permits.detach()

    patches.replace(Consumer, "_stop", stop)
