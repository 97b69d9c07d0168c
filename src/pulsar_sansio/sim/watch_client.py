"""The clients' ends of the wires: what a client may write, knowing what has arrived.

Sees frames in the order in which the client sees them: its own when they are written, the broker's when they
arrive. So every check here is strict: a frame that had to wait for another one was written too early if that
one had not arrived. What an arriving frame forbids counts from the end of the input that brought it, because
the client may have answered an earlier frame of the same input. Feeds the reference model with what the
producers put on the wire.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..model.config import ClientConfig, CompressionType, ProducerAccessMode
from ..model.errors import ClosedError
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
from .clock import SECOND
from .model import ReferenceModel
from .network import GARBAGE, Wire
from .partitioned import PartitionedTopic
from .records import (
    Chunk,
    ConsumerRecord,
    Entry,
    Lane,
    Position,
    ProducerRecord,
    Sent,
    SubscriptionRecord,
    complete_chunks,
)
from .violations import ViolationError

if TYPE_CHECKING:
    from .nodes import ClientNode

T = proto.BaseCommand

Handler: TypeAlias = "Callable[[Wire, ClientEnd, Any], None]"

LIMIT = 64 * 1024 * 1024


class ProducerEnd:
    """A producer id on one wire."""

    __slots__ = ("chunks", "closed", "lane", "last_of_key", "last_sequence", "last_ticket", "ready", "record")

    def __init__(self, record: ProducerRecord, lane: Lane) -> None:
        self.record = record
        self.lane = lane
        self.chunks: tuple[Sent, int, int] | None = None
        """The message of which some chunks were written: the last one, and how many there are."""
        self.ready = False
        self.closed = False
        self.last_sequence = -1
        self.last_ticket = -1
        self.last_of_key: dict[str | None, int] = {}
        """The same for each key, where batches are made by key."""


class ConsumerEnd:
    """A consumer id on one wire."""

    __slots__ = ("arrived", "chunks", "closed", "dismissed", "granted", "handle", "queue", "ready", "record")

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
        self.chunks: dict[Position, int] = {}
        """When each chunk arrived first."""


class Farewell:
    """A consumer that the client is closing."""

    __slots__ = ("consumer",)

    def __init__(self, consumer: ConsumerEnd) -> None:
        self.consumer = consumer


class Looking:
    """A lookup, and how many redirects it follows."""

    __slots__ = ("redirects", "topic")

    def __init__(self, topic: str, redirects: int) -> None:
        self.topic = topic
        self.redirects = redirects


class ClientEnd:
    """What one wire looks like from its client."""

    __slots__ = (
        "connected",
        "connecting",
        "consumers",
        "dead",
        "heard_at",
        "lookups",
        "over",
        "pings",
        "pongs",
        "producers",
        "refused",
        "requests",
        "used_at",
    )

    def __init__(self) -> None:
        self.connecting = False
        self.dead = False
        """Garbage has arrived."""
        self.over = False
        """The broker has ended its direction."""
        self.refused = False
        """A SEND_ERROR has arrived."""
        self.heard_at = 0
        """When the last frame arrived."""
        self.used_at = 0
        """When the client last wrote a frame that is neither PING nor PONG."""
        self.lookups = 0
        """Asked on it."""
        self.connected = False
        self.producers: dict[int, ProducerEnd] = {}
        self.consumers: dict[int, ConsumerEnd] = {}
        self.requests: dict[int, Any] = {}
        """Requests without an answer yet: id -> what waits for it."""
        self.pings = 0
        """PINGs without an answer."""
        self.pongs = 0
        """PONGs that may still be written."""

    @property
    def is_empty(self) -> bool:
        """Nobody is open on it; what strangers send changes nothing in that."""
        ends: list[ProducerEnd | ConsumerEnd] = [*self.producers.values(), *self.consumers.values()]
        return all(each.closed or each.record.closed or not each.ready for each in ends)


_SIGNS_OF_LIFE = (T.PING, T.PONG)
_BEFORE_CONNECTED = (T.CONNECT, T.PING, T.PONG)


class ClientWatch:
    """All clients' ends. Producers and consumers are recognised by the tags the workload gives them."""

    def __init__(self, model: ReferenceModel) -> None:
        self.model = model
        self.ends: dict[int, ClientEnd] = {}
        """By number of the wire."""
        self.handles: dict[str, int] = {}
        """Consumer name -> handle, for asking how many messages wait in the client."""
        self._redirected: dict[tuple[str, str], tuple[bool, int]] = {}
        """Client and topic of a lookup that was redirected in the input being handled: whether with
        authority, and how often in a row."""
        self._chunks: dict[Sent, dict[int, bytes]] = {}
        """Messages of which some chunks were written."""
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
            T.LOOKUP: self._wrote_lookup,
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
            T.LOOKUP_RESPONSE: self._got_lookup_response,
            T.PARTITIONED_METADATA_RESPONSE: self._got_answer,
            T.ACK_RESPONSE: self._got_answer,
            T.MESSAGE: self._got_message,
            T.SEND_ERROR: self._got_send_error,
            T.ACTIVE_CONSUMER_CHANGE: self._got_active_change,
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
        if not end.connected and kind not in _BEFORE_CONNECTED:
            raise ViolationError("INV-N1", f"wire {wire.number}: command {kind} before CONNECTED")
        handler = self._written.get(kind)
        if handler is None:
            raise ViolationError("INV-N1", f"wire {wire.number}: a client writes command {kind}")
        if kind not in _SIGNS_OF_LIFE:
            end.used_at = wire.network.clock.now
        handler(wire, end, command)

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        handler = self._arrived.get(kind)
        end = self.end(wire)
        if kind == GARBAGE:
            end.dead = True
            return
        end.heard_at = wire.network.clock.now
        if handler is not None and not end.dead:
            handler(wire, end, command)

    def ends_link(self, wire: Wire, reason: str, config: ClientConfig) -> None:
        """INV-N7, INV-N9: the client ends a link. One that works is left alone: others use it, too."""
        end = self.ends.get(wire.number)
        if end is None or not end.connected or end.dead or end.over or end.refused:
            return
        silence = wire.network.clock.now - end.heard_at
        idle = wire.network.clock.now - end.used_at
        if (
            silence < round(config.keepalive_interval * SECOND)
            and not ("not used" in reason and idle >= 60 * SECOND and end.is_empty)
            and end.lookups <= config.max_rejected_requests
            and reason != "the client is closed"
            and not wire.to_client.is_due(GARBAGE)
        ):
            rule = "INV-N7" if "PING" in reason else "INV-N9"
            raise ViolationError(rule, f"wire {wire.number} works and is ended: {reason}")

    def settled(self, wire: Wire) -> None:
        """The client has dealt with what arrived: pings are answered by now (WIRE-17)."""
        if self._closed:
            for each in self._closed:
                each.closed = True
            self._closed.clear()
        if self._redirected:
            self._redirected.clear()
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

    def _wrote_lookup(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        """INV-N8: a lookup that follows a redirect says what the redirect said, and there is an end to it."""
        redirected = self._redirected.pop((wire.client.name, command.topic), None)
        times = 0
        if redirected is not None:
            authoritative, times = redirected
            if command.authoritative is not authoritative:
                raise ViolationError(
                    "INV-N8",
                    f"{wire.client.name}: the redirect of {command.topic} said authoritative="
                    f"{authoritative}, the next lookup does not",
                )
            if times > wire.client.config.max_lookup_redirects:  # type: ignore[attr-defined]
                raise ViolationError("INV-N8", f"{wire.client.name}: {command.topic} is redirected for ever")
        end.lookups += 1
        self._request(wire, end, command.request_id, Looking(command.topic, times))

    def _wrote_producer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        tag = next((each.value for each in command.metadata if each.key == "tag"), "")
        record = self.model.producers.get(tag)
        if record is None:
            raise ViolationError("INV-P10", f"wire {wire.number}: PRODUCER with unknown properties")
        known = end.producers.get(command.producer_id)
        if known is not None and known.ready and not known.closed and known not in self._closed:
            raise ViolationError("INV-N4", f"wire {wire.number}: producer {command.producer_id} opened twice")
        topic = self.model.topics.get(command.topic)
        whole = record.topic
        if topic is None or not (
            topic is whole or (isinstance(whole, PartitionedTopic) and whole.index_of(topic) >= 0)
        ):
            raise ViolationError("INV-N4", f"{record.tag} opens a producer on {command.topic}")
        producer = ProducerEnd(record, record.lane(topic))
        end.producers[command.producer_id] = producer
        self._request(wire, end, command.request_id, producer)

    def _wrote_subscribe(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        record = self.model.consumers.get(command.consumer_name)
        if record is None:
            raise ViolationError("INV-N4", f"wire {wire.number}: SUBSCRIBE by {command.consumer_name!r}")
        known = end.consumers.get(command.consumer_id)
        if known is not None and known.ready and not known.closed and known not in self._closed:
            raise ViolationError("INV-N4", f"wire {wire.number}: consumer {command.consumer_id} opened twice")
        consumer = ConsumerEnd(record, self.handles.get(record.name, 0))
        record.farewell = False
        end.consumers[command.consumer_id] = consumer
        self._request(wire, end, command.request_id, consumer)

    def _wrote_send(self, wire: Wire, end: ClientEnd, command: Send) -> None:
        producer = end.producers.get(command.producer_id)
        if producer is None or not producer.ready or producer.closed:
            raise ViolationError("INV-P10", f"wire {wire.number}: SEND of a producer that is not open there")
        record, lane = producer.record, producer.lane
        topic = lane.topic
        entry = topic.sends.get(command.payload)
        if entry is None:
            entry = self._parse(record, command)
            topic.sends[command.payload] = entry
            frame = (command.sequence_id, 0 if entry.chunk is None else entry.chunk.number)
            known = lane.frames.setdefault(frame, command.payload)
            if known is not command.payload:
                raise ViolationError(
                    "INV-P6", f"{record.tag}: sequence id {command.sequence_id} is used twice"
                )
            for sent in entry.messages:
                if sent.topic is not topic:
                    self.model.routed(sent, topic)
        else:
            frame = (command.sequence_id, 0 if entry.chunk is None else entry.chunk.number)
            if lane.frames.get(frame) != command.payload:
                raise ViolationError("INV-P6", f"{record.tag}: sent again under another sequence id")
        if (entry.chunk is not None or producer.chunks is not None) and self._goes_on(producer, entry):
            return
        highest = command.highest_sequence_id
        if command.sequence_id <= producer.last_sequence:
            raise ViolationError(
                "INV-P6", f"{record.tag}: sequence id {command.sequence_id} after {producer.last_sequence}"
            )
        if producer.last_sequence < 0 and record.spec.initial_sequence_id is not None:
            self._check_first(producer, command)
        producer.last_sequence = command.sequence_id if highest is None else highest
        messages = entry.messages
        if record.by_key:
            self._check_key(producer, messages)
            return
        first, last = messages[0].ticket, messages[-1].ticket
        # Everything unsettled must be on this attachment before anything younger (INV-P3, INV-P6).
        pending = record.pending
        if pending:
            oldest = next(iter(pending))
            for ticket in range(max(oldest, producer.last_ticket + 1), first):
                if ticket in pending and pending[ticket].topic is topic:
                    raise ViolationError("INV-P6", f"{record.tag}: ticket {first} overtakes {ticket}")
        if first <= producer.last_ticket:
            raise ViolationError("INV-P6", f"{record.tag}: ticket {first} is sent twice on one attachment")
        producer.last_ticket = last
        if entry.chunk is None or entry.chunk.number == entry.chunk.total - 1:
            for sent in messages:
                sent.wires += 1

    @staticmethod
    def _check_first(producer: ProducerEnd, command: Send) -> None:
        """PROD-04: the first message that was ever written has the id behind the one that was given."""
        initial = producer.record.spec.initial_sequence_id
        assert initial is not None
        first = min(sequence_id for sequence_id, _ in producer.lane.frames)
        if not initial < first or (first != initial + 1 and not producer.record.by_key):
            raise ViolationError("INV-P6", f"{producer.record.tag} begins with {first}, not behind {initial}")

    @staticmethod
    def _check_key(producer: ProducerEnd, messages: tuple[Sent, ...]) -> None:
        """An entry has messages of one key; of those of a key none overtakes another (INV-P3, INV-P6)."""
        record, key = producer.record, messages[0].key
        last = producer.last_of_key.get(key, -1)
        first = messages[0].ticket
        if any(sent.key != key for sent in messages):
            raise ViolationError("INV-P3", f"{record.tag}: a batch mixes {key!r} with other keys")
        if first <= last:
            raise ViolationError("INV-P6", f"{record.tag}: ticket {first} is sent after {last} of its key")
        for ticket, sent in record.pending.items():
            if last < ticket < first and sent.key == key and sent.topic is producer.lane.topic:
                raise ViolationError("INV-P6", f"{record.tag}: ticket {first} overtakes {ticket} of its key")
        producer.last_of_key[key] = messages[-1].ticket
        for sent in messages:
            sent.wires += 1

    @staticmethod
    def _goes_on(producer: ProducerEnd, entry: Entry) -> bool:
        """INV-P6: nothing comes between the chunks of a message, and none is left out. On a new attachment
        those that are not confirmed are written: it may begin with any. Whether this is one that follows
        another."""
        before, chunk = producer.chunks, entry.chunk
        sent = entry.messages[0]
        whole = chunk is None or chunk.number == chunk.total - 1
        producer.chunks = None if chunk is None or whole else (sent, chunk.number, chunk.total)
        if before is None:
            return False
        same, number, _ = before
        if chunk is not None and same is sent:
            if chunk.number != number + 1:
                raise ViolationError("INV-P6", f"{sent}: chunk {chunk.number} after {number}")
            sent.wires += whole
            return True
        if same.outcome == "":
            raise ViolationError("INV-P6", f"{sent} comes between the chunks of {same}")
        return False

    def _parse(self, record: ProducerRecord, command: Send) -> Entry:
        """The messages of a SEND, as submitted; anything else is not what the application gave (INV-P2)."""
        unpacked = unpack_payload(command.payload)
        metadata = unpacked.metadata
        payload = bytes(unpacked.payload)
        if unpacked.checksum_ok is not True:
            raise ViolationError("INV-P2", f"{record.tag}: SEND without a right checksum")
        if metadata.uuid is not None:
            return self._parse_chunk(record, command, metadata, payload)
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

    def _parse_chunk(self, record: ProducerRecord, command: Send, metadata: Any, payload: bytes) -> Entry:
        """One chunk of a message; with the last one it must be what was submitted (INV-C11)."""
        sent = self.model.by_identity.get(dict(metadata.properties).get("n", ""))
        number, total = metadata.chunk_id, metadata.num_chunks_from_msg
        if sent is None or sent.producer is not record:
            raise ViolationError("INV-P2", f"{record.tag} sends a chunk of {sent}")
        if command.num_messages != 1 or command.is_chunk is not True:
            raise ViolationError("INV-P2", f"{sent}: a chunk that is not marked as one message's")
        if not 0 <= number < total or total < 2 or not payload:
            raise ViolationError("INV-C11", f"{sent}: chunk {number} of {total}, {len(payload)} bytes")
        size, limit = metadata.total_chunk_msg_size, record.spec.chunk_max_message_size
        if limit is not None and len(payload) > limit:
            raise ViolationError("INV-C11", f"{sent}: a chunk of {len(payload)} bytes, {limit} are allowed")
        parts = self._chunks.setdefault(sent, {})
        parts[number] = payload
        if len(parts) == total:
            joined = b"".join(parts[each] for each in range(total))
            del self._chunks[sent]
            codec = CompressionType(metadata.compression or 0)
            if len(joined) != size:
                raise ViolationError("INV-C11", f"{sent}: {len(joined)} bytes in chunks, {size} announced")
            if codec is not CompressionType.NONE:
                joined = bytes(decompress(codec, joined, metadata.uncompressed_size or 0, LIMIT))
            if joined != sent.payload:
                raise ViolationError("INV-C11", f"{sent}: its chunks make something else")
        return Entry(command.payload, (sent,), Chunk(number, total))

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
        try:
            waiting = node.client.available(consumer.handle)
        except ClosedError:  # it has ended; its news has not been read yet
            waiting = 0
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
            if entry.chunk is not None:
                self._check_chunk(wire, consumer, subscription, position)
                continue
            still_open = subscription.open_bits(position)
            read = not consumer.record.spec.durable and position <= consumer.record.floor[:2]
            if still_open & ~(bits or 0) and not read:  # what lies before a reader's start id is let go
                raise ViolationError(
                    "INV-C4",
                    f"{name}: acknowledges {position} set {bits}; the application left {still_open:b} open",
                )

    def _check_chunk(
        self, wire: Wire, consumer: ConsumerEnd, subscription: SubscriptionRecord, position: Position
    ) -> None:
        """INV-C11: a chunk is acknowledged with its message; without it only where there is another copy of
        it, or when its time is over."""
        topic = subscription.topic
        sent, chunk = topic.log[position].source, topic.log[position].chunk
        assert chunk is not None
        for last, parts in complete_chunks(sent.chunks, chunk.total).items():
            if position in parts and subscription.is_acknowledged((*last, 0)):
                return
        record = consumer.record
        if not record.spec.durable and position <= record.floor[:2]:
            return
        copies = [each for each, number in sent.chunks if number == chunk.number]
        waited = wire.network.clock.now - consumer.chunks.get(position, wire.network.clock.now)
        limit = round(record.spec.incomplete_chunked_message_timeout * SECOND)
        if len(copies) < 2 and waited < limit:
            raise ViolationError(
                "INV-C11",
                f"{record.name}: acknowledges {position}, chunk {chunk.number} of {sent}, by itself",
            )
        subscription.let_go.add(position)
        if topic.log[position].messages:
            subscription.acknowledged.add((*position, 0))

    def _wrote_redeliver(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        """Only what was asked for, and never an empty list by mistake (INV-C9)."""
        consumer = self._consumer(wire, end, command.consumer_id, "REDELIVER")
        record = consumer.record
        if record.subscription.kind.cumulative:
            if record.requests_to_rewind:
                record.requests_to_rewind -= 1
            elif record.refused:
                record.refused.clear()
            else:
                raise ViolationError("INV-C9", f"{record.name}: asks for redelivery by itself")
            return
        if not command.message_ids:
            if not record.redeliver_all:
                raise ViolationError("INV-C9", f"{record.name}: asks for everything again by itself")
            return
        asked = {(each.ledgerId, each.entryId) for each in command.message_ids}
        for position in asked:
            missing = set(record.subscription.topic.chunks_of(position)) - asked
            if missing:
                raise ViolationError(
                    "INV-C9", f"{record.name}: asks for {position}, and not for the chunks {missing}"
                )
        for each in command.message_ids:
            position = (each.ledgerId, each.entryId)
            left = record.refused.get(position, 0)
            if not left:
                how = "once more than it was told" if position in record.nacked else "by itself"
                raise ViolationError("INV-C9", f"{record.name}: asks for {position} {how}")
            record.refused[position] = left - 1
            record.given_back.add(position)

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
        if isinstance(what, ProducerEnd) and type(command) is proto.CommandProducerSuccess:
            if not command.producer_ready:  # there is another answer when it is its turn
                end.requests[command.request_id] = what
                return
            self._has_access(what, command)
        if isinstance(what, (ProducerEnd, ConsumerEnd)):
            what.ready = True
            if what.record.closed and not what.closed:
                raise ViolationError(
                    "INV-N4",
                    f"wire {wire.number}: request {command.request_id} opens what nobody has any more, and "
                    f"the broker was not told",
                )
        elif isinstance(what, Farewell) and not what.consumer.dismissed:
            what.consumer.record.farewell = True

    def _has_access(self, producer: ProducerEnd, command: Any) -> None:
        """INV-P11: exclusive access has an epoch of its own, which nobody else ever has."""
        record, lane = producer.record, producer.lane
        if record.spec.access_mode is ProducerAccessMode.SHARED or not command.HasField("topic_epoch"):
            return
        epoch = command.topic_epoch
        owner = self.model.epochs.setdefault((lane.topic.name, epoch), record)
        if owner is not record:
            raise ViolationError("INV-P11", f"{record.tag} and {owner.tag} have epoch {epoch}")
        if lane.epoch is not None and epoch < lane.epoch:
            raise ViolationError("INV-P11", f"{record.tag}: epoch {epoch} after {lane.epoch}")
        lane.epoch = epoch

    def _got_lookup_response(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        what = end.requests.pop(command.request_id, None)
        if (
            isinstance(what, Looking)
            and command.response == proto.CommandLookupTopicResponse.Redirect
            and command.brokerServiceUrl
        ):
            key = (wire.client.name, what.topic)
            self._redirected[key] = (command.authoritative, what.redirects + 1)

    def _got_send_error(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        end.refused = True

    def _got_active_change(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        """The last request may have been ignored; it may be made again."""
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.record.requests_to_rewind += 1

    def _got_message(self, wire: Wire, end: ClientEnd, command: MessageCommand) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            position = (command.ledger_id, command.entry_id)
            consumer.record.given_back.discard(position)
            entry = consumer.record.subscription.topic.log.get(position)
            if entry is not None:
                size = entry.size
                if entry.chunk is not None:
                    consumer.chunks.setdefault(position, wire.network.clock.now)
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
