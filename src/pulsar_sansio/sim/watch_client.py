"""The clients' ends of the wires: what a client may write, knowing what has arrived.

Sees frames in the order in which the client sees them: its own when they are written, the broker's when they
arrive. So every check here is strict: a frame that had to wait for another one was written too early if that
one had not arrived. What an arriving frame forbids counts from the end of the input that brought it, because
the client may have answered an earlier frame of the same input. Feeds the reference model with what the
producers put on the wire.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..model.config import CompressionType
from ..wire import (
    Ack,
    Flow,
    MessageCommand,
    Send,
    decompress,
    proto,
    split_batch,
    unpack_payload,
)
from .model import ConsumerRecord, Entry, ProducerRecord, ReferenceModel, Sent
from .network import GARBAGE, Wire
from .violations import ViolationError

if TYPE_CHECKING:
    from .nodes import ClientNode

T = proto.BaseCommand

Handler: TypeAlias = "Callable[[Wire, ClientEnd, Any], None]"

LIMIT = 64 * 1024 * 1024


class ProducerEnd:
    """A producer id on one wire."""

    __slots__ = ("closed", "last_sequence", "last_ticket", "ready", "record")

    def __init__(self, record: ProducerRecord) -> None:
        self.record = record
        self.ready = False
        self.closed = False
        self.last_sequence = -1
        self.last_ticket = -1


class ConsumerEnd:
    """A consumer id on one wire."""

    __slots__ = ("arrived", "closed", "dismissed", "granted", "handle", "queue", "ready", "record")

    def __init__(self, record: ConsumerRecord, handle: int) -> None:
        self.record = record
        self.handle = handle
        self.queue = record.spec.receiver_queue_size
        self.ready = False
        self.closed = False
        self.dismissed = False
        """Closed by the broker."""
        self.granted = 0
        self.arrived = 0
        """Messages, those masked by an ack set excepted."""


class Farewell:
    """A consumer that the client is closing."""

    __slots__ = ("consumer",)

    def __init__(self, consumer: ConsumerEnd) -> None:
        self.consumer = consumer


class ClientEnd:
    """What one wire looks like from its client."""

    __slots__ = ("connected", "connecting", "consumers", "dead", "pings", "pongs", "producers", "requests")

    def __init__(self) -> None:
        self.connecting = False
        self.dead = False
        """Garbage has arrived."""
        self.connected = False
        self.producers: dict[int, ProducerEnd] = {}
        self.consumers: dict[int, ConsumerEnd] = {}
        self.requests: dict[int, Any] = {}
        """Requests without an answer yet: id -> what waits for it."""
        self.pings = 0
        """PINGs without an answer."""
        self.pongs = 0
        """PONGs that may still be written."""


class ClientWatch:
    """All clients' ends. Producers and consumers are recognised by the tags the workload gives them."""

    def __init__(self, model: ReferenceModel) -> None:
        self.model = model
        self.ends: dict[int, ClientEnd] = {}
        """By number of the wire."""
        self.handles: dict[str, int] = {}
        """Consumer name -> handle, for asking how many messages wait in the client."""
        self._closed: list[ProducerEnd | ConsumerEnd] = []
        """Closed by the broker in the input being handled."""
        self._written: dict[int, Handler] = {
            T.CONNECT: self._wrote_connect,
            T.PRODUCER: self._wrote_producer,
            T.SUBSCRIBE: self._wrote_subscribe,
            T.SEND: self._wrote_send,
            T.ACK: self._wrote_ack,
            T.FLOW: self._wrote_flow,
            T.REDELIVER_UNACKNOWLEDGED_MESSAGES: self._wrote_redeliver,
            T.CLOSE_PRODUCER: self._wrote_close_producer,
            T.CLOSE_CONSUMER: self._wrote_close_consumer,
            T.UNSUBSCRIBE: self._wrote_request,
            T.LOOKUP: self._wrote_request,
            T.PARTITIONED_METADATA: self._wrote_request,
            T.GET_LAST_MESSAGE_ID: self._wrote_request,
            T.SEEK: self._wrote_request,
            T.PING: self._wrote_nothing_special,
            T.PONG: self._wrote_pong,
        }
        self._arrived: dict[int, Handler] = {
            T.CONNECTED: self._got_connected,
            T.PRODUCER_SUCCESS: self._got_answer,
            T.SUCCESS: self._got_answer,
            T.ERROR: self._got_answer,
            T.LOOKUP_RESPONSE: self._got_answer,
            T.PARTITIONED_METADATA_RESPONSE: self._got_answer,
            T.ACK_RESPONSE: self._got_answer,
            T.MESSAGE: self._got_message,
            T.CLOSE_PRODUCER: self._got_close_producer,
            T.CLOSE_CONSUMER: self._got_close_consumer,
            T.PING: self._got_ping,
        }

    def end(self, wire: Wire) -> ClientEnd:
        end = self.ends.get(wire.number)
        if end is None:
            end = self.ends[wire.number] = ClientEnd()
        return end

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        end = self.end(wire)
        if not end.connected and kind not in (T.CONNECT, T.PING, T.PONG):
            raise ViolationError("INV-N1", f"wire {wire.number}: command {kind} before CONNECTED")
        handler = self._written.get(kind)
        if handler is None:
            raise ViolationError("INV-N1", f"wire {wire.number}: a client writes command {kind}")
        handler(wire, end, command)

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        handler = self._arrived.get(kind)
        end = self.end(wire)
        if kind == GARBAGE:
            end.dead = True
        elif handler is not None and not end.dead:
            handler(wire, end, command)

    def settled(self, wire: Wire) -> None:
        """The client has dealt with what arrived: pings are answered by now (WIRE-17)."""
        if self._closed:
            for each in self._closed:
                each.closed = True
            self._closed.clear()
        end = self.ends.get(wire.number)
        if end is not None and end.pings and wire.client_open:
            raise ViolationError("INV-N7", f"wire {wire.number}: a PING is not answered at once")

    def forget(self, wire: Wire) -> None:
        self.ends.pop(wire.number, None)

    # --- what clients write ---

    def _wrote_nothing_special(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        pass

    def _wrote_connect(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        if end.connecting:
            raise ViolationError("INV-N1", f"wire {wire.number}: CONNECT twice")
        end.connecting = True

    def _wrote_pong(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        if not end.pongs:
            raise ViolationError("INV-N7", f"wire {wire.number}: a PONG nobody asked for")
        end.pongs -= 1
        end.pings = 0  # one PONG may say all that many would

    def _request(self, wire: Wire, end: ClientEnd, request_id: int, what: Any) -> None:
        if request_id in end.requests:
            raise ViolationError(
                "INV-N1", f"wire {wire.number}: request id {request_id} is outstanding twice"
            )
        end.requests[request_id] = what

    def _wrote_request(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._request(wire, end, command.request_id, None)

    def _wrote_producer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        tag = next((each.value for each in command.metadata if each.key == "tag"), "")
        record = self.model.producers.get(tag)
        if record is None:
            raise ViolationError("INV-P10", f"wire {wire.number}: PRODUCER with unknown properties")
        known = end.producers.get(command.producer_id)
        if known is not None and known.ready and not known.closed:
            raise ViolationError("INV-N4", f"wire {wire.number}: producer {command.producer_id} opened twice")
        producer = ProducerEnd(record)
        end.producers[command.producer_id] = producer
        self._request(wire, end, command.request_id, producer)

    def _wrote_subscribe(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        record = self.model.consumers.get(command.consumer_name)
        if record is None:
            raise ViolationError("INV-N4", f"wire {wire.number}: SUBSCRIBE by {command.consumer_name!r}")
        known = end.consumers.get(command.consumer_id)
        if known is not None and known.ready and not known.closed:
            raise ViolationError("INV-N4", f"wire {wire.number}: consumer {command.consumer_id} opened twice")
        consumer = ConsumerEnd(record, self.handles.get(record.name, 0))
        record.farewell = False
        end.consumers[command.consumer_id] = consumer
        self._request(wire, end, command.request_id, consumer)

    def _wrote_send(self, wire: Wire, end: ClientEnd, command: Send) -> None:
        producer = end.producers.get(command.producer_id)
        if producer is None or not producer.ready or producer.closed:
            raise ViolationError("INV-P10", f"wire {wire.number}: SEND of a producer that is not open there")
        record = producer.record
        entry = record.topic.sends.get(command.payload)
        if entry is None:
            entry = self._parse(record, command)
            record.topic.sends[command.payload] = entry
            known = record.frames.setdefault(command.sequence_id, command.payload)
            if known is not command.payload:
                raise ViolationError(
                    "INV-P6", f"{record.tag}: sequence id {command.sequence_id} is used twice"
                )
        elif record.frames.get(command.sequence_id) != command.payload:
            raise ViolationError("INV-P6", f"{record.tag}: sent again under another sequence id")
        highest = command.highest_sequence_id
        if command.sequence_id <= producer.last_sequence:
            raise ViolationError(
                "INV-P6", f"{record.tag}: sequence id {command.sequence_id} after {producer.last_sequence}"
            )
        producer.last_sequence = command.sequence_id if highest is None else highest
        messages = entry.messages
        first, last = messages[0].ticket, messages[-1].ticket
        # Everything unsettled must be on this attachment before anything younger (INV-P3, INV-P6).
        pending = record.pending
        if pending:
            oldest = next(iter(pending))
            for ticket in range(max(oldest, producer.last_ticket + 1), first):
                if ticket in pending:
                    raise ViolationError("INV-P6", f"{record.tag}: ticket {first} overtakes {ticket}")
        if first <= producer.last_ticket:
            raise ViolationError("INV-P6", f"{record.tag}: ticket {first} is sent twice on one attachment")
        producer.last_ticket = last
        for sent in messages:
            sent.wires += 1

    def _parse(self, record: ProducerRecord, command: Send) -> Entry:
        """The messages of a SEND, as submitted; anything else is not what the application gave (INV-P2)."""
        unpacked = unpack_payload(command.payload)
        metadata = unpacked.metadata
        payload = bytes(unpacked.payload)
        if unpacked.checksum_ok is not True:
            raise ViolationError("INV-P2", f"{record.tag}: SEND without a right checksum")
        codec = CompressionType(metadata.compression or 0)
        if codec is not CompressionType.NONE:
            payload = bytes(decompress(codec, payload, metadata.uncompressed_size or 0, LIMIT))
        by_identity = self.model.by_identity
        messages: list[Sent] = []
        if metadata.num_messages_in_batch is None:
            found = by_identity.get(payload or dict(metadata.properties).get("n", ""))
            if found is not None:
                messages.append(found)
            count = 1
        else:
            count = metadata.num_messages_in_batch
            batch = split_batch(payload, count)
            for index, value in enumerate(batch.payloads):
                value = bytes(value)
                found = by_identity.get(value or dict(batch.single(index).properties).get("n", ""))
                if found is not None:
                    messages.append(found)
        if len(messages) != count or count != command.num_messages:
            raise ViolationError(
                "INV-P2", f"{record.tag}: a SEND of {command.num_messages} holds something else"
            )
        previous = messages[0].ticket - 1
        for sent in messages:
            if sent.producer is not record:
                raise ViolationError("INV-P2", f"{record.tag} sends {sent}")
            if sent.ticket <= previous:
                raise ViolationError("INV-P3", f"{record.tag}: {sent} stands out of order in its batch")
            previous = sent.ticket
        return Entry(command.payload, tuple(messages))

    def _consumer(self, wire: Wire, end: ClientEnd, consumer_id: int, what: str) -> ConsumerEnd:
        consumer = end.consumers.get(consumer_id)
        if consumer is None or not consumer.ready or consumer.closed:
            raise ViolationError("INV-N2", f"wire {wire.number}: {what} of a consumer that is not open there")
        return consumer

    def _wrote_flow(self, wire: Wire, end: ClientEnd, command: Flow) -> None:
        consumer = self._consumer(wire, end, command.consumer_id, "FLOW")
        if command.message_permits <= 0:
            raise ViolationError("INV-C13", f"{consumer.record.name}: FLOW of {command.message_permits}")
        consumer.granted += command.message_permits
        node: ClientNode = wire.client  # type: ignore[assignment]
        waiting = node.client.available(consumer.handle) if not consumer.record.closed else 0
        if consumer.granted - consumer.arrived + waiting > consumer.queue:
            raise ViolationError(
                "INV-C6",
                f"{consumer.record.name}: granted {consumer.granted}, arrived "
                f"{consumer.arrived}, waiting {waiting}: "
                f"more than a queue of {consumer.queue}",
            )

    def _wrote_ack(self, wire: Wire, end: ClientEnd, command: Ack) -> None:
        """Nothing is acknowledged that the application did not acknowledge (INV-C4)."""
        consumer = self._consumer(wire, end, command.consumer_id, "ACK")
        subscription = consumer.record.subscription
        name = consumer.record.name
        if command.request_id is not None:
            self._request(wire, end, command.request_id, None)
        if command.validation_error is not None:
            raise ViolationError("INV-C2", f"{name}: reports validation error {command.validation_error}")
        if command.ack_type == proto.CommandAck.Cumulative:
            if not subscription.kind.cumulative:
                raise ViolationError(
                    "INV-C4", f"{name}: cumulative acknowledgement on {subscription.kind.value}"
                )
            for ledger, entry_id, bits in command.message_ids:
                position = (ledger, entry_id)
                entry = subscription.topic.log.get(position)
                size = len(entry.messages) if entry is not None else 1
                upto = size - 1
                if bits:
                    upto = (bits & -bits).bit_length() - 2
                place = (*position, upto)
                if entry_id >= 0 and place > subscription.cumulative and not subscription.all_up_to(place):
                    raise ViolationError("INV-C4", f"{name}: acknowledges up to {place} by itself")
            return
        for ledger, entry_id, bits in command.message_ids:
            position = (ledger, entry_id)
            entry = subscription.topic.log.get(position)
            if entry is None:
                raise ViolationError("INV-C4", f"{name}: acknowledges {position}, which is not in the log")
            still_open = subscription.open_bits(position)
            if still_open & ~(bits or 0):
                raise ViolationError(
                    "INV-C4",
                    f"{name}: acknowledges {position} set {bits}; the application left {still_open:b} open",
                )

    def _wrote_redeliver(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        """Only what was asked for, and never an empty list by mistake (INV-C9)."""
        consumer = self._consumer(wire, end, command.consumer_id, "REDELIVER")
        record = consumer.record
        if record.subscription.kind.cumulative:
            if not record.nacked and not record.redeliver_all:
                raise ViolationError("INV-C9", f"{record.name}: asks for redelivery by itself")
            return
        if not command.message_ids:
            if not record.redeliver_all:
                raise ViolationError("INV-C9", f"{record.name}: asks for everything again by itself")
            return
        for each in command.message_ids:
            if (each.ledgerId, each.entryId) not in record.nacked:
                raise ViolationError(
                    "INV-C9", f"{record.name}: asks for {each.ledgerId}:{each.entryId} by itself"
                )

    def _wrote_close_producer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._request(wire, end, command.request_id, None)
        producer = end.producers.get(command.producer_id)
        if producer is not None:
            producer.closed = True

    def _wrote_close_consumer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        self._request(wire, end, command.request_id, Farewell(consumer) if consumer is not None else None)
        if consumer is not None:
            consumer.closed = True

    # --- what arrives ---

    def _got_connected(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        end.connected = True

    def _got_answer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        what = end.requests.pop(command.request_id, None)
        if type(command) is proto.CommandError:
            return
        if isinstance(what, (ProducerEnd, ConsumerEnd)):
            what.ready = True
        elif isinstance(what, Farewell) and not what.consumer.dismissed:
            what.consumer.record.farewell = True

    def _got_message(self, wire: Wire, end: ClientEnd, command: MessageCommand) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            entry = consumer.record.subscription.topic.log.get((command.ledger_id, command.entry_id))
            if entry is not None:
                size = len(entry.messages)
                masked = command.ack_set
                consumer.arrived += size if masked is None else (masked & ((1 << size) - 1)).bit_count()

    def _got_close_producer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        producer = end.producers.get(command.producer_id)
        if producer is not None:
            self._closed.append(producer)

    def _got_close_consumer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            self._closed.append(consumer)
            consumer.dismissed = True

    def _got_ping(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        end.pings += 1
        end.pongs += 1


def held_back(consumer: ConsumerEnd, waiting: int) -> int:
    """Permits the client has not given back although the messages are gone; `waiting` of them are still in
    it."""
    return consumer.queue - (consumer.granted - consumer.arrived) - waiting
