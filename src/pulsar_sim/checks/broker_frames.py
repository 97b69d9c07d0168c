"""The brokers' ends of the wires: the frames that a broker may write, given those it has processed.

Sees the frames that the broker has read, in order, and then the frames that it writes because of them. One
input may bring several frames, and the broker answers some before it has read the others. So a frame makes
others legal from the beginning of its input, and illegal from its end.

Keeps, for every consumer, the permits left by recount, and for every subscription the acknowledgements that
the broker has received; reports entries' positions to the reference model. A killed broker may forget what it
had not confirmed, and nothing else.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from pulsar_sansio.model.config import SubscriptionType
from pulsar_sansio.wire import Ack, Flow, MessageCommand, Send, SendReceipt, proto

from ..engine.failures import ViolationError
from ..engine.network import Wire
from ..engine.profile import FAR_LEDGERS
from ..model.key_ranges import hold, overlap, ranges_of, slot_of
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.entry import StoredEntry
from ..model.records.message_position import MessagePosition, Position
from ..model.records.subscription_record import SubscriptionRecord
from ..model.records.topic_record import TopicRecord
from ..model.reference_model import ReferenceModel
from .broker_side_state import BrokerConsumer, BrokerEnd, BrokerProducer, SubscriptionState

if TYPE_CHECKING:
    from ..engine.nodes.broker_node import BrokerNode

T = proto.BaseCommand

_BROKER_BLOCK = b"\x0e\x02"
"""The beginning of broker entry metadata; its size follows in four bytes."""

Handler: TypeAlias = "Callable[[Wire, BrokerEnd, Any], None]"

Key: TypeAlias = tuple[bool, str, str]
"""A subscription: whether it is of the cluster that topics migrate to, topic, name."""


REFUSALS = frozenset((T.ERROR, T.SEND_ERROR))
"""Commands that are an error, with a text for people."""


class BrokerWatch:
    """All brokers' ends of the wires."""

    def __init__(self, model: ReferenceModel, batch_index: bool) -> None:
        self.model = model
        self.batch_index = batch_index
        self.ends: defaultdict[int, BrokerEnd] = defaultdict(BrokerEnd)
        self.subscriptions: dict[Key, SubscriptionState] = {}
        self._migrated: dict[tuple[str, str], None] = {}
        """Pairs (broker, topic) that the broker was told to send to another cluster."""
        self._stale_owners: dict[tuple[str, str], dict[Key, SubscriptionState]] = {}
        """The subscriptions of each (broker, topic) that the broker believes to serve while another broker
        does."""
        self._later: list[tuple[Handler, Wire, BrokerEnd, Any]] = []
        """Frames of the current input, whose prohibitions count from its end."""
        self._loose: dict[Position, None] = {}
        """Entries whose redelivery the current input asks for, perhaps more than once."""
        self._arrived: dict[int, Handler] = {
            T.PRODUCER: self._got_producer,
            T.SUBSCRIBE: self._got_subscribe,
            T.SEND: self._got_send,
            T.FLOW: self._got_flow,
            T.ACK: self._got_ack,
            T.REDELIVER_UNACKNOWLEDGED_MESSAGES: self._got_redeliver,
            T.CLOSE_CONSUMER: self._got_close_consumer,
            T.SEEK: self._got_seek,
            T.UNSUBSCRIBE: self._got_unsubscribe,
        }
        self._written: dict[int, Handler] = {
            T.PRODUCER_SUCCESS: self._wrote_success,
            T.SUCCESS: self._wrote_success,
            T.ERROR: self._wrote_error,
            T.SEND_RECEIPT: self._wrote_receipt,
            T.SEND_ERROR: self._wrote_send_error,
            T.MESSAGE: self._wrote_message,
            T.ACK_RESPONSE: self._wrote_ack_response,
            T.CLOSE_CONSUMER: self._consumer_gone,
            T.ACTIVE_CONSUMER_CHANGE: self._wrote_active,
        }

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        handler = self._arrived.get(kind)
        if handler is not None:
            handler(wire, self.ends[wire.number], command)

    def settled(self) -> None:
        """The input is handled, and the broker has written all frames about it."""
        self._loose.clear()
        if self._later:
            later, self._later = self._later, []
            for handler, wire, end, command in later:
                handler(wire, end, command)

    def wire_closing(self, wire: Wire, reason: str) -> None:
        """The broker is about to close the wire: its consumers may lose their entries at any moment.

        `reason` is for people, and for the checks of those reasons that have rules.
        """
        end = self.ends.get(wire.number)
        if end is not None:
            for consumer in end.consumers.values():
                consumer.loose = True

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        if kind in REFUSALS and not command.message:
            raise ViolationError("INV-N18", f"{wire.broker.name}: an error without a text: {command}")
        handler = self._written.get(kind)
        if handler is not None:
            handler(wire, self.ends[wire.number], command)

    def wire_closed(self, wire: Wire) -> None:
        """The broker knows that the wire is gone: release what its consumers hold."""
        end = self.ends.pop(wire.number, None)
        if end is not None:
            for consumer in end.consumers.values():
                self._release(consumer)

    def died(self, broker: str, wires: list[Wire], topics: list[tuple[bool, str]]) -> None:
        """A broker was killed: it may forget what it had not confirmed of its topics."""
        for stray in [each for each in self._stale_owners if each[0] == broker]:
            del self._stale_owners[stray]
        for wire in wires:
            self.ends.pop(wire.number, None)
        for (far, topic, _), state in self.subscriptions.items():
            if (far, topic) in topics:
                state.forget_unconfirmed()
        for _, topic in topics:
            self._lose_unsaved(topic)

    def moved(self, topic: str, before: str, now: str, orderly: bool) -> None:
        """Another broker serves the topic. Unless the move was `orderly`, the new broker knows only what was
        confirmed; the previous one continues with its own state until it learns of the move (`learned`)."""
        self._stale_owners.pop((now, topic), None)
        if orderly:
            return
        self._lose_unsaved(topic)
        self._stale_owners[before, topic] = {
            key: state for key, state in self.subscriptions.items() if key[:2] == (False, topic)
        }
        for key, state in self.subscriptions.items():
            if key[:2] == (False, topic):
                successor = self.subscriptions[key] = SubscriptionState(state.record, self.batch_index)
                successor.durable_bits, successor.durable_upto = dict(state.durable_bits), state.durable_upto
                successor.memory_bits, successor.memory_upto = dict(state.durable_bits), state.durable_upto
                successor.before, successor.origin = state, state.origin

    def _lose_unsaved(self, topic: str) -> None:
        record = self.model.topics.get(topic)
        if record is not None:  # otherwise nothing of the topic is kept
            record.lose_unsaved()

    def learned(self, broker: str, topic: str) -> None:
        """A broker has learned that it does not serve the topic."""
        self._stale_owners.pop((broker, topic), None)

    def migrates(self, broker: str, topic: str) -> None:
        """A broker is told that a topic has migrated to another cluster."""
        self._migrated[broker, topic] = None

    def check_acknowledged(self, consumer: ConsumerRecord, message_positions: list[MessagePosition]) -> None:
        """INV-C4: the broker has received these acknowledgements, because the client reported them as
        confirmed.

        Two cases prove nothing: a message that was negatively acknowledged after its acknowledgement, and an
        incomplete entry where the broker keeps whole entries only.
        """
        record = consumer.subscription
        near, far = (self.subscriptions.get((each, record.topic.name, record.name)) for each in (False, True))
        for message_position in message_positions:
            position = message_position[:2]
            state = far if message_position[0] >= FAR_LEDGERS else near
            if state is None or position in consumer.nacked or (consumer.sent_far and state is near):
                continue
            if message_position[0] <= record.topic.gone:
                continue
            by_index = self.batch_index and consumer.spec.batch_index_acknowledgement
            if not by_index and len(record.topic.log[position].messages) > 1:
                continue
            if not all(
                state.ever_acknowledged(each) >> message_position[2] & 1
                for each in record.topic.chunks_of(position)
            ):
                raise ViolationError(
                    "INV-C4",
                    f"{consumer.name}: {message_position} is acknowledged, and the broker was not told",
                )

    # --- producers ---

    def _got_producer(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        topic = self.model.topics.get(command.topic) or self.model.nonpersistent.get(command.topic)
        if topic is not None:
            end.opening[command.request_id] = (command.producer_id, BrokerProducer(topic))

    def _got_send(self, wire: Wire, end: BrokerEnd, command: Send) -> None:
        producer = end.producers.get(command.producer_id)
        if producer is not None:
            producer.pending.append(command)

    def _wrote_receipt(self, wire: Wire, end: BrokerEnd, command: SendReceipt) -> None:
        producer = end.producers.get(command.producer_id)
        send = producer.pending.popleft() if producer is not None and producer.pending else None
        if producer is None or send is None or send.sequence_id != command.sequence_id:
            raise ViolationError(
                "BROKER-41", f"wire {wire.number}: receipt {command.sequence_id} answers no SEND in order"
            )
        if not producer.topic.persistent:
            return
        if command.ledger_id is not None and command.ledger_id >= 0 and command.entry_id is not None:
            position = (command.ledger_id, command.entry_id)
            producer.topic.stored(position, producer.topic.sends[send.payload])

    def _wrote_send_error(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        producer = end.producers.get(command.producer_id)
        if producer is not None and producer.pending:
            producer.pending.popleft()

    # A producer's state stays when it is closed: receipts of writes in progress follow.

    # --- consumers ---

    def _got_subscribe(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        if command.topic in self.model.nonpersistent:
            end.nonpersistent_consumers.add(command.consumer_id)
            return
        record = self.model.topics[command.topic].subscriptions.get(command.subscription)
        if record is None or command.consumer_id in end.consumers:
            return
        key, known = self._known(wire, record)
        state = known.get(key)
        if (
            state is None or not command.durable
        ):  # a subscription that is not durable begins again with each consumer
            state = known[key] = SubscriptionState(record, self.batch_index)
        at_broker = BrokerConsumer(command.consumer_name, state)
        at_broker.ranges = ranges_of(command)
        end.opening[command.request_id] = (command.consumer_id, at_broker)

    def _known(self, wire: Wire, record: SubscriptionRecord) -> tuple[Key, dict[Key, SubscriptionState]]:
        """Return a subscription's key, and all subscriptions of its topic as the broker knows them."""
        broker: BrokerNode = wire.broker  # type: ignore[assignment]
        topic = record.topic.name
        known = self._stale_owners.get((broker.name, topic), self.subscriptions)
        return (broker.cluster.far, topic, record.name), known

    def _wrote_success(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        opened = end.opening.pop(command.request_id, None)
        if opened is not None:
            identifier, at_broker = opened
            if isinstance(at_broker, BrokerProducer):
                if (wire.broker.name, at_broker.topic.name) in self._migrated:
                    raise ViolationError(
                        "INV-N13",
                        f"{wire.broker.name} takes a producer on {at_broker.topic.name}, which has migrated",
                    )
                end.producers[identifier] = at_broker
            else:
                key, known = self._known(wire, at_broker.state.record)
                state = known.get(key)
                if state is not None and state.origin is at_broker.state.origin:
                    at_broker.state = state  # another one, if the topic was released and adopted meanwhile
                if at_broker.ranges:
                    self._check_ranges(at_broker)
                end.consumers[identifier] = at_broker

    def _check_ranges(self, consumer: BrokerConsumer) -> None:
        """SUBT-08: no two consumers have a key in common."""
        for end in self.ends.values():
            for other in end.consumers.values():
                if (
                    other.state is consumer.state
                    and not other.loose
                    and overlap(consumer.ranges, other.ranges)
                ):
                    raise ViolationError(
                        "SUBT-08", f"{consumer.name} is admitted, and {other.name} owns some of its keys"
                    )

    def _wrote_error(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        end.opening.pop(command.request_id, None)

    def _got_flow(self, wire: Wire, end: BrokerEnd, command: Flow) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.permits += command.message_permits

    def _wrote_message(self, wire: Wire, end: BrokerEnd, command: MessageCommand) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if command.consumer_id in end.nonpersistent_consumers:
            return
        if consumer is None:
            raise ViolationError("BROKER-29", f"wire {wire.number}: MESSAGE to a consumer that is not there")
        state = consumer.state
        topic = state.record.topic
        position = (command.ledger_id, command.entry_id)
        entry = topic.log.get(position)
        payload = _as_stored(command.payload)
        if entry is None:
            entry = self._discovered(topic, position, payload)
        elif entry.payload != payload and not (
            state.record.reads_compacted and topic.compacted.is_left_of(position, entry, payload)
        ):
            rule = "INV-C17" if state.record.reads_compacted else "INV-C2"
            raise ViolationError(rule, f"{topic.name} {position}: delivered with other bytes than stored")
        if consumer.permits <= 0:
            raise ViolationError(
                "INV-C6", f"{consumer.name}: {position} is sent with {consumer.permits} permits"
            )
        size = entry.size
        everything = (1 << size) - 1
        still_open = everything if command.ack_set is None else command.ack_set & everything
        consumer.permits -= still_open.bit_count()
        consumer.largest = max(consumer.largest, size)
        if still_open & state.acknowledged(position) & everything:
            raise ViolationError(
                "INV-C5",
                f"{topic.name}/{state.record.name}: {position} is "
                f"delivered again, {still_open:b} is "
                f"acknowledged",
            )
        if state.record.kind.cumulative:
            if position <= consumer.floor and consumer.rewinds:
                consumer.rewinds -= 1
            elif position <= consumer.floor:
                raise ViolationError("INV-C3", f"{consumer.name}: {position} is sent after {consumer.floor}")
            consumer.floor = position
        else:
            holder = state.holders.get(position)
            if holder is not None and consumer.loose and not holder.loose:
                return  # the broker sent it here before it read the close: each wire is written separately
            if holder is not None and not holder.loose and position not in self._loose:
                raise ViolationError("SUBT-06", f"{consumer.name}: {position} is pending at {holder.name}")
            if consumer.ranges and entry.key is not None and not hold(consumer.ranges, slot_of(entry.key)):
                raise ViolationError(
                    "SUBT-08", f"{consumer.name}: {position} has the key {entry.key!r}, which is not its own"
                )
            if state.record.kind is SubscriptionType.KEY_SHARED and entry.key is not None:
                self._check_key(consumer, entry.key, position)
            state.holders[position] = consumer
            consumer.pending[position] = None

    def _check_key(self, consumer: BrokerConsumer, key: str, position: Position) -> None:
        """INV-C12: while a consumer holds messages of a key, no other consumer gets any."""
        state = consumer.state
        keyed = state.keys.setdefault(key, {})
        for other in [each for each in keyed if each not in state.holders]:
            del keyed[other]
        for other in keyed:
            holder = state.holders[other]
            if holder is not consumer and not holder.loose and other not in self._loose:
                raise ViolationError(
                    "INV-C12",
                    f"{consumer.name}: {position} has the key {key!r}, of which {holder.name} has {other}",
                )
        keyed[position] = None

    def _wrote_active(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.rewinds += 1

    def _discovered(self, topic: TopicRecord, position: Position, payload: bytes) -> StoredEntry:
        """Record an entry that was stored by a broker that died before its receipt."""
        entry = topic.sends.get(payload)
        if entry is None:
            raise ViolationError("INV-C2", f"{topic.name} {position}: delivered, but never sent by anybody")
        topic.stored(position, entry)
        return topic.log[position]

    def _got_ack(self, wire: Wire, end: BrokerEnd, command: Ack) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is None:
            return
        state = consumer.state
        self._later.append((self._acknowledged, wire, end, command))
        if command.ack_type == proto.CommandAck.Individual:
            for ledger, entry_id, _ in command.message_ids:
                position = (ledger, entry_id)
                holder = state.holders.get(position)
                if holder is not None and state.is_whole(command, position):
                    del state.holders[position]
                    holder.pending.pop(position, None)
        if command.request_id is not None:
            end.acknowledging[command.request_id] = (state, command)

    def _acknowledged(self, wire: Wire, end: BrokerEnd, command: Ack) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is None or consumer.unsubscribing:
            return
        self._apply(consumer.state, command, durable=False)

    @staticmethod
    def _apply(state: SubscriptionState, command: Ack, durable: bool) -> None:
        cumulative = command.ack_type == proto.CommandAck.Cumulative
        apply = state.acknowledge_up_to if cumulative else state.acknowledge
        for ledger, entry_id, bits in command.message_ids:
            apply((ledger, entry_id), bits, durable)

    def _wrote_ack_response(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        waiting = end.acknowledging.pop(command.request_id, None)
        if waiting is None:
            raise ViolationError(
                "INV-N1", f"wire {wire.number}: ACK_RESPONSE {command.request_id} to nothing"
            )
        if command.HasField("error"):
            return
        state, acknowledgement = waiting
        consumer = end.consumers.get(acknowledgement.consumer_id)
        if consumer is not None and consumer.unsubscribing:
            return
        self._apply(state, acknowledgement, durable=True)

    def _got_redeliver(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is None:
            return
        if consumer.state.record.kind.cumulative:
            consumer.rewinds += 1
        elif not command.message_ids:
            consumer.loose = True
            self._later.append((self._redelivered, wire, end, command))
        else:
            for each in command.message_ids:
                position = (each.ledgerId, each.entryId)
                if consumer.state.holders.get(position) is consumer:
                    del consumer.state.holders[position]
                    consumer.pending.pop(position, None)
                self._loose[position] = None
            self._later.append((self._asked_again, wire, end, command))

    def _asked_again(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        """Release what was delivered in the same input before the broker read the request."""
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            for each in command.message_ids:
                position = (each.ledgerId, each.entryId)
                if consumer.state.holders.get(position) is consumer:
                    del consumer.state.holders[position]
                    consumer.pending.pop(position, None)

    def _redelivered(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            self._release(consumer)

    def _got_seek(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        """Forget all acknowledgements: entries may be delivered again, even those acknowledged in the same
        input."""
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.state.forget()
            self._later.append((self._sought, wire, end, consumer.state))

    @staticmethod
    def _sought(wire: Wire, end: BrokerEnd, state: SubscriptionState) -> None:
        state.forget()

    def _got_unsubscribe(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        self._later.append((self._forgotten, wire, end, command))

    def _forgotten(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        """The subscription is removed, or will be; a new one of its name begins again."""
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.unsubscribing = True
            consumer.state.forget()
            consumer.state.holders.clear()

    def _got_close_consumer(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.loose = True
            self._later.append((self._consumer_gone, wire, end, command))
        for request, (identifier, at_broker) in list(end.opening.items()):
            if identifier == command.consumer_id and isinstance(at_broker, BrokerConsumer):
                del end.opening[request]  # if the consumer is admitted at all, it leaves at once

    def _consumer_gone(self, wire: Wire, end: BrokerEnd, command: Any) -> None:
        consumer = end.consumers.pop(command.consumer_id, None)
        if consumer is not None:
            self._release(consumer)

    @staticmethod
    def _release(consumer: BrokerConsumer) -> None:
        for position in consumer.pending:
            if consumer.state.holders.get(position) is consumer:
                del consumer.state.holders[position]
        consumer.pending.clear()
        consumer.loose = False


def _as_stored(payload: bytes) -> bytes:
    """Return headers and payload of a MESSAGE without the broker entry metadata in front of them."""
    if not payload.startswith(_BROKER_BLOCK):
        return payload
    return payload[6 + int.from_bytes(payload[2:6], "big") :]
