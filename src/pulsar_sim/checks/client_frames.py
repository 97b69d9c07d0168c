"""The clients' ends of the wires: the frames that a client may write, given those that have arrived.

Owns the producers and consumers that are open on each wire, the handshake, requests and their answers,
lookups, and keepalive frames. `send_frames` and `receive_frames` check the frames of producers and consumers.

Sees frames in the client's order: its own when they are written, the broker's when it has read them. So every
check is strict: a frame that depends on another was written too early if the client had not read that one. An
arriving frame forbids others from the end of its input on, because the client may have answered an earlier
frame of the same input.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pulsar_sansio.model.config import ClientConfig
from pulsar_sansio.model.errors import ClosedError
from pulsar_sansio.wire import Ack, Flow, MessageCommand, Send, proto

from ..engine.clock import SECOND
from ..engine.failures import ViolationError
from ..engine.network import GARBAGE, Wire
from ..model.key_ranges import ranges_of
from ..model.partitioned_topics import PartitionedTopic
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.producer_record import ProducerRecord
from ..model.reference_model import ReferenceModel
from .client_side_state import ClientEnd, PendingClose, PendingLookup, PendingWatch
from .copy_frames import CopyProducerEnd, CopyWatch
from .credentials import CredentialWatch
from .encrypted_frames import EncryptionWatch
from .receive_frames import (
    ConsumerEnd,
    check_redelivery,
    got_message,
    wrote_ack,
    wrote_flow,
    wrote_last_message_id,
    wrote_redeliver,
)
from .redirects import RedirectWatch
from .schema_frames import SchemaWatch
from .send_frames import ProducerEnd, SendWatch

if TYPE_CHECKING:
    from ..engine.nodes.broker_node import BrokerNode
    from ..engine.nodes.client_node import ClientNode

T = proto.BaseCommand

Handler: TypeAlias = "Callable[[ClientWatch, Wire, ClientEnd, Any], None]"


MOST_QUESTIONS = 30
"""Requests of one client within a second: for the partitions of a topic, the topics of a namespace, or one
consumer's place on a topic. Several applications may open handles there, and retry."""

_NO_USE = (T.AUTH_RESPONSE, T.PING, T.PONG)
"""Frames that a client also writes over a connection that no handle uses."""
_BEFORE_CONNECTED = (T.CONNECT, T.AUTH_RESPONSE, T.PING, T.PONG)


class ClientWatch:
    """All clients' ends of the wires. Producers and consumers are recognised by tags from the workload."""

    def __init__(
        self, model: ReferenceModel, credentials: CredentialWatch, encryption: EncryptionWatch
    ) -> None:
        self.model = model
        self.credentials = credentials
        self.encryption = encryption
        self._sends = SendWatch(model, encryption)
        self._copies = CopyWatch(model, encryption)
        self._schemas = SchemaWatch(model)
        self.ends: defaultdict[int, ClientEnd] = defaultdict(ClientEnd)
        """Ends of wires by wire number."""
        self.handles: dict[str, int] = {}
        """Consumer names with their handles, for asking how many messages wait in the client."""
        self._redirects = RedirectWatch()
        self._questions: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
        """The times of requests within a second, by client and the topic or namespace that they are about."""
        self._closed: list[ProducerEnd | ConsumerEnd] = []
        """Producers and consumers that the broker closed in the current input."""
        self._sent_far: list[ProducerRecord | ConsumerRecord] = []
        """Producers and consumers that were told in the current input that their topic has migrated."""

    def wrote(self, wire: Wire, kind: int, command: Any) -> None:
        end = self.ends[wire.number]
        if not end.connected and kind not in _BEFORE_CONNECTED:
            raise ViolationError("INV-N1", f"wire {wire.number}: command {kind} before CONNECTED")
        handler = self._HANDLERS_OF_WRITTEN.get(kind)
        if handler is None:
            raise ViolationError("INV-N1", f"wire {wire.number}: a client writes command {kind}")
        if kind not in _NO_USE:
            end.used_at = wire.network.clock.now
        handler(self, wire, end, command)

    def got(self, wire: Wire, kind: int, command: Any) -> None:
        handler = self._HANDLERS_OF_ARRIVED.get(kind)
        end = self.ends[wire.number]
        end.arrived_at = wire.network.clock.now
        if handler is not None:
            handler(self, wire, end, command)

    def got_garbage(self, wire: Wire) -> None:
        """Bytes that are no frame have arrived."""
        self.ends[wire.number].dead = True

    def ends_link(self, wire: Wire, reason: str, config: ClientConfig) -> None:
        """INV-N7, INV-N9: the client ends a link. It must not end a working link, because other handles use
        it too."""
        end = self.ends.get(wire.number)
        if end is None or not end.connected or end.dead or end.over or end.refused:
            return
        if self.credentials.excuses_end(wire, wire.network.clock.now):
            return
        silence = wire.network.clock.now - end.arrived_at
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
        """The client has handled the input: each PING in it is answered (WIRE-17)."""
        if self._closed:
            for each in self._closed:
                each.closed = True
            self._closed.clear()
        if self._sent_far:
            for record in self._sent_far:
                record.sent_far = True
            self._sent_far.clear()
        self._redirects.settled()
        self.credentials.settled(wire)
        end = self.ends.get(wire.number)
        if end is not None and end.pings and wire.client_open:
            raise ViolationError("INV-N7", f"wire {wire.number}: a PING is not answered at once")

    def check_late(self, now: int) -> None:
        """Check that open producers and consumers write what is due; faults of brokers and network are no
        excuse."""
        for end in self.ends.values():
            if end.dead or end.over:
                continue
            for consumer in end.consumers.values():
                if consumer.ready and not consumer.closed:
                    check_redelivery(consumer, now)
            for producer in end.producers.values():
                if producer.ready and not producer.closed and type(producer) is ProducerEnd:
                    self._sends.check_batch(producer, self._schemas.waited_until(producer), now)

    def forget(self, wire: Wire) -> None:
        end = self.ends.pop(wire.number, None)
        for consumer in () if end is None else end.consumers.values():
            consumer.record.subscription.detached()
        self.credentials.forget(wire)
        self._schemas.forget(wire)

    # --- what clients write ---

    def _wrote_ping(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        pass

    def _wrote_connect(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        if end.connecting:
            raise ViolationError("INV-N1", f"wire {wire.number}: CONNECT twice")
        end.connecting = True
        self.credentials.wrote_connect(wire, command)

    def _wrote_auth_response(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self.credentials.wrote_response(wire, command)

    def _wrote_pong(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        if not end.pongs:
            raise ViolationError("INV-N7", f"wire {wire.number}: a PONG without a PING")
        end.pongs -= 1
        end.pings = 0  # one PONG may answer several PINGs

    def _request(self, wire: Wire, end: ClientEnd, request_id: int, what: Any) -> None:
        if request_id in end.requests:
            raise ViolationError(
                "INV-N1", f"wire {wire.number}: request id {request_id} is outstanding twice"
            )
        end.requests[request_id] = what

    def _wrote_request(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._request(wire, end, command.request_id, None)

    def _wrote_seek(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = self._consumer(wire, end, command.consumer_id, "SEEK")
        consumer.held_from = None
        consumer.record.deliveries.moves()
        self._request(wire, end, command.request_id, None)

    def _wrote_unsubscribe(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = self._consumer(wire, end, command.consumer_id, "UNSUBSCRIBE")
        consumer.record.removed = True
        self._request(wire, end, command.request_id, None)

    def _wrote_last_message_id(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = self._consumer(wire, end, command.consumer_id, "GET_LAST_MESSAGE_ID")
        self._request(wire, end, command.request_id, None)
        wrote_last_message_id(consumer, wire.network.clock.now)

    def _wrote_consumer_stats(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._consumer(wire, end, command.consumer_id, "CONSUMER_STATS")
        self._request(wire, end, command.request_id, None)

    def _wrote_partitions(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._wrote_question(wire, end, command, command.topic)

    def _wrote_topics(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._wrote_question(wire, end, command, command.namespace)

    def _wrote_question(self, wire: Wire, end: ClientEnd, command: Any, about: str) -> None:
        """Count a request of a kind that a broker may reject too often."""
        self._check_request_rate(wire, about)
        end.lookups += 1
        self._request(wire, end, command.request_id, None)

    def _check_request_rate(self, wire: Wire, about: str) -> None:
        """INV-N6: the client does not repeat one request again and again."""
        now = wire.network.clock.now
        recent = self._questions[wire.client.name, about]
        recent.append(now)
        while recent[0] < now - SECOND:
            recent.popleft()
        if len(recent) > MOST_QUESTIONS:
            raise ViolationError("INV-N6", f"{wire.client.name}: asks about {about} again and again")

    def _wrote_watch(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        if command.watcher_id in end.watchers:
            raise ViolationError(
                "INV-N4", f"wire {wire.number}: watcher {command.watcher_id} is opened twice"
            )
        waiting = [each.watcher for each in end.requests.values() if isinstance(each, PendingWatch)]
        if command.watcher_id in waiting:
            raise ViolationError(
                "INV-N4", f"wire {wire.number}: watcher {command.watcher_id} is asked for twice"
            )
        self._request(wire, end, command.request_id, PendingWatch(command.watcher_id))

    def _wrote_watch_close(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        """The request that opened the watcher may be unanswered; an answer that arrives now opens nothing."""
        end.watchers.discard(command.watcher_id)
        for request, what in end.requests.items():
            if isinstance(what, PendingWatch) and what.watcher == command.watcher_id:
                end.requests[request] = None
        self._request(wire, end, command.request_id, None)

    def _wrote_lookup(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        limit: int = wire.client.config.max_lookup_redirects  # type: ignore[attr-defined]
        times = self._redirects.lookup(wire.client.name, command.topic, command.authoritative, limit)
        end.lookups += 1
        self._request(wire, end, command.request_id, PendingLookup(command.topic, times))

    def _wrote_producer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        tag = next((each.value for each in command.metadata if each.key == "tag"), "")
        record = self.model.producers.get(tag)
        if record is None and command.topic in self.model.copy_topics:
            copy_producer = self._copies.opened(self.model.topics[command.topic], command.producer_name)
            self._schemas.wrote_producer(copy_producer, command, wire)
            end.producers[command.producer_id] = copy_producer
            self._request(wire, end, command.request_id, copy_producer)
            return
        if record is None:
            raise ViolationError("INV-P10", f"wire {wire.number}: PRODUCER with unknown properties")
        known = end.producers.get(command.producer_id)
        if known is not None and known.ready and not known.closed and known not in self._closed:
            raise ViolationError("INV-N4", f"wire {wire.number}: producer {command.producer_id} opened twice")
        self._check_cluster(wire, record, record.tag)
        self.encryption.opens(record, command)
        topic = self.model.topics.get(command.topic) or self.model.nonpersistent.get(command.topic)
        whole = record.topic
        if topic is None or not (
            topic is whole or (isinstance(whole, PartitionedTopic) and whole.index_of(topic) >= 0)
        ):
            raise ViolationError("INV-N4", f"{record.tag} opens a producer on {command.topic}")
        producer = ProducerEnd(record, record.lane(topic))
        self._schemas.wrote_producer(producer, command, wire)
        end.producers[command.producer_id] = producer
        self._request(wire, end, command.request_id, producer)

    def _wrote_subscribe(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        record = self._subscriber(command)
        if record is None:
            raise ViolationError("INV-N4", f"wire {wire.number}: SUBSCRIBE by {command.consumer_name!r}")
        known = end.consumers.get(command.consumer_id)
        if known is not None and known.ready and not known.closed and known not in self._closed:
            raise ViolationError("INV-N4", f"wire {wire.number}: consumer {command.consumer_id} opened twice")
        self._check_cluster(wire, record, record.name)
        self._check_request_rate(wire, f"{record.name} on {command.topic}")
        policy = record.spec.key_shared
        if ranges_of(command) != ((policy.ranges or ()) if policy is not None else ()):
            raise ViolationError("SUBT-08", f"{record.name} asks for the keys {ranges_of(command)}")
        if command.read_compacted is not record.spec.read_compacted:
            raise ViolationError("INV-C17", f"{record.name}: read_compacted is {command.read_compacted}")
        self._schemas.wrote_subscribe(record, command, wire)
        if record.subscription.named_by_client:
            record.subscription.is_called(command.subscription)
        consumer = ConsumerEnd(record, self.handles.get(record.name, 0), _is_far(wire))
        record.close_answered = False
        record.deliveries.subscribes()
        end.consumers[command.consumer_id] = consumer
        self._request(wire, end, command.request_id, consumer)

    def _subscriber(self, command: Any) -> ConsumerRecord | None:
        """Return the record of a consumer that subscribes; for several topics, that of its member."""
        name, topic = command.consumer_name, command.topic
        group = self.model.groups.get(name)
        if group is None:
            return self.model.consumers.get(name)
        found = self.model.topics.get(topic)
        whole = self.model.whole_of(topic)
        return group.subscribes(found, topic, command.consumer_id, self._is_open, whole)

    def _is_open(self, record: ConsumerRecord) -> bool:
        """True when the consumer is open on some wire, as its client knows."""
        return any(
            each.record is record and each.ready and not each.closed and each not in self._closed
            for end in self.ends.values()
            for each in end.consumers.values()
        )

    def _wrote_send(self, wire: Wire, end: ClientEnd, command: Send) -> None:
        producer = end.producers.get(command.producer_id)
        if producer is None or not producer.ready or producer.closed:
            raise ViolationError("INV-P10", f"wire {wire.number}: SEND of a producer that is not open there")
        self._schemas.wrote_send(producer, command, wire)
        if type(producer) is CopyProducerEnd:
            self._schemas.wrote_letter(producer, self._copies.wrote(producer, command))
        elif producer.lane.topic.persistent:
            self._sends.wrote(producer, command, wire.network.clock.now)

    def _wrote_schema_question(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._request(wire, end, command.request_id, None)
        self._schemas.asked(wire, command)

    def _wrote_registration(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._request(wire, end, command.request_id, None)
        self._schemas.wrote_registration(wire, command)

    def _consumer(self, wire: Wire, end: ClientEnd, consumer_id: int, what: str) -> ConsumerEnd:
        consumer = end.consumers.get(consumer_id)
        if consumer is None or not consumer.ready or consumer.closed:
            raise ViolationError("INV-N2", f"wire {wire.number}: {what} of a consumer that is not open there")
        return consumer

    def _wrote_flow(self, wire: Wire, end: ClientEnd, command: Flow) -> None:
        consumer = self._consumer(wire, end, command.consumer_id, "FLOW")
        node: ClientNode = wire.client  # type: ignore[assignment]

        def waiting() -> int:
            if consumer.record.name in self.model.groups:  # the share of this topic is unknown
                return 0
            try:
                return max(node.client.available(consumer.handle), self._schemas.held(consumer))
            except ClosedError:  # the consumer has ended; its application has not read that output yet
                return 0

        wrote_flow(consumer, command, waiting)

    def _wrote_ack(self, wire: Wire, end: ClientEnd, command: Ack) -> None:
        consumer = self._consumer(wire, end, command.consumer_id, "ACK")
        if command.request_id is not None:
            self._request(wire, end, command.request_id, None)
        wrote_ack(consumer, command, wire.network.clock.now)

    def _wrote_redeliver(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = self._consumer(wire, end, command.consumer_id, "REDELIVER")
        consumer.held_from = None
        wrote_redeliver(consumer, command, wire.network.clock.now)

    def _wrote_close_producer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._request(wire, end, command.request_id, None)
        producer = end.producers.get(command.producer_id)
        if producer is not None:
            producer.closed = True

    def _wrote_close_consumer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        self._request(wire, end, command.request_id, PendingClose(consumer) if consumer is not None else None)
        if consumer is not None:
            consumer.closed = True

    # --- what arrives ---

    def _got_auth_challenge(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self.credentials.challenged(wire, wire.network.clock.now)

    def _got_connected(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        end.connected = True

    def _got_answer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        what = end.requests.pop(command.request_id, None)
        if type(command) is proto.CommandError:
            return
        if isinstance(what, ProducerEnd) and type(command) is proto.CommandProducerSuccess:
            if not command.producer_ready:  # a second answer follows when the producer gets access
                end.requests[command.request_id] = what
                return
            if (
                not what.closed
            ):  # otherwise the answer is late, and the producer may have been reopened meanwhile
                self._sends.has_access(what, command)
                self._schemas.has_version(what, command.schema_version)
        if isinstance(what, (ProducerEnd, ConsumerEnd)):
            what.ready = True
            if isinstance(what, ProducerEnd):
                what.ready_at = wire.network.clock.now
            if what.record.closed and not what.closed:
                raise ViolationError(
                    "INV-N4",
                    f"wire {wire.number}: request {command.request_id} opens a closed handle, and "
                    f"the broker was not told",
                )
        elif isinstance(what, PendingWatch):
            end.watchers.add(what.watcher)
        elif isinstance(what, PendingClose) and not what.consumer.dismissed:
            what.consumer.record.close_answered = True

    def _got_partitions(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._redirects.got_partitions()
        self._got_answer(wire, end, command)

    def _got_lookup_response(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        what = end.requests.pop(command.request_id, None)
        if (
            isinstance(what, PendingLookup)
            and command.response == proto.CommandLookupTopicResponse.Redirect
            and command.brokerServiceUrl
        ):
            again = what.redirects + 1
            self._redirects.redirected(wire.client.name, what.topic, command.authoritative, again)

    def _got_schema(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._got_answer(wire, end, command)
        self._schemas.answered(wire, command, end.consumers.values())

    def _got_registration(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        self._got_answer(wire, end, command)
        self._schemas.got_registration(wire, command)

    def _got_receipt(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        producer = end.producers.get(command.producer_id)
        if type(producer) is CopyProducerEnd:
            self._copies.got_receipt(producer, command, wire.network.clock.now)

    def _got_send_error(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        end.refused = True

    def _got_active_change(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        """The broker may have ignored the last request; the client may repeat it."""
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.record.requests_to_rewind += 1

    def _got_message(self, wire: Wire, end: ClientEnd, command: MessageCommand) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            self._schemas.gets_message(consumer, command)
            got_message(consumer, command, wire.network.clock.now)
            group = self.model.groups.get(consumer.record.name)
            waits = self._schemas.may_wait(consumer.record)
            if group is not None and not consumer.closed and not waits:
                topic = consumer.record.subscription.topic.name
                group.came(topic, (command.ledger_id, command.entry_id))

    def _got_close_producer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        producer = end.producers.get(command.producer_id)
        if producer is not None:
            self._closed.append(producer)

    def _got_close_consumer(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        consumer = end.consumers.get(command.consumer_id)
        if consumer is not None:
            self._closed.append(consumer)
            consumer.dismissed = True
            consumer.record.subscription.detached()

    def _got_migrated(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        producers = command.resource_type == proto.CommandTopicMigrated.Producer
        ends: Mapping[int, ProducerEnd | ConsumerEnd] = end.producers if producers else end.consumers
        moved = ends.get(command.resource_id)
        if moved is not None:
            self._sent_far.append(moved.record)

    @staticmethod
    def _check_cluster(wire: Wire, record: ProducerRecord | ConsumerRecord, what: str) -> None:
        """INV-N13: a handle that was sent to another cluster goes there, and stays."""
        if record.sent_far and not _is_far(wire):
            raise ViolationError(
                "INV-N13", f"{what} goes to {wire.broker.name}, it was sent to another cluster"
            )

    def _got_ping(self, wire: Wire, end: ClientEnd, command: Any) -> None:
        end.pings += 1
        end.pongs += 1

    _HANDLERS_OF_WRITTEN: ClassVar[dict[int, Handler]] = {
        T.CONNECT: _wrote_connect,
        T.AUTH_RESPONSE: _wrote_auth_response,
        T.PRODUCER: _wrote_producer,
        T.SUBSCRIBE: _wrote_subscribe,
        T.SEND: _wrote_send,
        T.ACK: _wrote_ack,
        T.FLOW: _wrote_flow,
        T.REDELIVER_UNACKNOWLEDGED_MESSAGES: _wrote_redeliver,
        T.CLOSE_PRODUCER: _wrote_close_producer,
        T.CLOSE_CONSUMER: _wrote_close_consumer,
        T.UNSUBSCRIBE: _wrote_unsubscribe,
        T.LOOKUP: _wrote_lookup,
        T.PARTITIONED_METADATA: _wrote_partitions,
        T.GET_LAST_MESSAGE_ID: _wrote_last_message_id,
        T.CONSUMER_STATS: _wrote_consumer_stats,
        T.SEEK: _wrote_seek,
        T.GET_SCHEMA: _wrote_schema_question,
        T.GET_OR_CREATE_SCHEMA: _wrote_registration,
        T.GET_TOPICS_OF_NAMESPACE: _wrote_topics,
        T.WATCH_TOPIC_LIST: _wrote_watch,
        T.WATCH_TOPIC_LIST_CLOSE: _wrote_watch_close,
        T.PING: _wrote_ping,
        T.PONG: _wrote_pong,
        T.TC_CLIENT_CONNECT_REQUEST: _wrote_request,
        T.NEW_TXN: _wrote_request,
        T.ADD_PARTITION_TO_TXN: _wrote_request,
        T.ADD_SUBSCRIPTION_TO_TXN: _wrote_request,
        T.END_TXN: _wrote_request,
    }
    _HANDLERS_OF_ARRIVED: ClassVar[dict[int, Handler]] = {
        T.CONNECTED: _got_connected,
        T.AUTH_CHALLENGE: _got_auth_challenge,
        T.PRODUCER_SUCCESS: _got_answer,
        T.SUCCESS: _got_answer,
        T.ERROR: _got_answer,
        T.LOOKUP_RESPONSE: _got_lookup_response,
        T.PARTITIONED_METADATA_RESPONSE: _got_partitions,
        T.GET_TOPICS_OF_NAMESPACE_RESPONSE: _got_answer,
        T.GET_SCHEMA_RESPONSE: _got_schema,
        T.GET_OR_CREATE_SCHEMA_RESPONSE: _got_registration,
        T.WATCH_TOPIC_LIST_SUCCESS: _got_answer,
        T.ACK_RESPONSE: _got_answer,
        T.GET_LAST_MESSAGE_ID_RESPONSE: _got_answer,
        T.CONSUMER_STATS_RESPONSE: _got_answer,
        T.TC_CLIENT_CONNECT_RESPONSE: _got_answer,
        T.NEW_TXN_RESPONSE: _got_answer,
        T.ADD_PARTITION_TO_TXN_RESPONSE: _got_answer,
        T.ADD_SUBSCRIPTION_TO_TXN_RESPONSE: _got_answer,
        T.END_TXN_RESPONSE: _got_answer,
        T.MESSAGE: _got_message,
        T.SEND_ERROR: _got_send_error,
        T.SEND_RECEIPT: _got_receipt,
        T.ACTIVE_CONSUMER_CHANGE: _got_active_change,
        T.CLOSE_PRODUCER: _got_close_producer,
        T.CLOSE_CONSUMER: _got_close_consumer,
        T.TOPIC_MIGRATED: _got_migrated,
        T.PING: _got_ping,
    }


def _is_far(wire: Wire) -> bool:
    """True when the wire leads to the cluster that topics migrate to."""
    broker: BrokerNode = wire.broker  # type: ignore[assignment]
    return broker.cluster.far
