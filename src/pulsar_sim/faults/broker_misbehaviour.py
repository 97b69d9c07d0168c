"""Misbehaving brokers: frames dropped, answered or added without the broker machine's knowledge.

Sits on the wires between the two machines. It refuses requests in the broker's name, delays replies until the
client has given up on them, repeats receipts, and sends unsolicited frames. All of it is legal for a broker
in trouble, or harmless by a rule that says "ignore"; the reference model never learns of it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pulsar_sansio.model.errors import ServerError
from pulsar_sansio.wire import Ack, MessageCommand, Send, SendReceipt, encode_command, encode_ping, proto

from ..engine.clock import MILLISECOND, SECOND
from ..engine.network import GARBAGE, Wire
from ..engine.randomness import Stream
from ..engine.security.key_holder import KeyHolder
from .ciphertext import PARTS, changed, is_encrypted

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings

T = proto.BaseCommand

RETRYABLE = (
    ServerError.ServiceNotReady,
    ServerError.MetadataError,
    ServerError.PersistenceError,
    ServerError.TooManyRequests,
    ServerError.UnknownError,
)

REFUSALS = (ServerError.PersistenceError, ServerError.PersistenceError, ServerError.ChecksumError)
"""Error codes of a refused SEND after which the client may send again."""

NO_DEFINITION = (*RETRYABLE, ServerError.TopicNotFound, ServerError.AuthorizationError)
"""Error codes of a refused question for a definition."""

NOT_REGISTERED = (*RETRYABLE, ServerError.IncompatibleSchema, ServerError.AuthorizationError)
"""Error codes of a refused registration of a schema."""

UNKNOWN_ID = 2**40
"""An id of a request, producer or consumer that no client has."""

UNANSWERED = (T.LOOKUP, T.PRODUCER, T.SUBSCRIBE, T.SUCCESS)
"""The frames that may be lost when a request is not answered: the request or its answer."""


UNKNOWN_TYPE = 120


class BrokerMisbehaviour:
    """Armed kinds wait for a frame that they apply to."""

    def __init__(self, world: "Surroundings", stream: Stream) -> None:
        self._world = world
        self._stream = stream
        self._armed: dict[str, int] = {}
        self._muted: dict[tuple[int, int], None] = {}
        """Producers, as (wire, producer id), whose SENDs are dropped since one was refused. A PRODUCER for
        the id ends that: on one wire the client may open the producer again, when the broker's CLOSE_PRODUCER
        crossed the refusal."""
        self._not_allowed: set[bytes] = set()
        """Payloads that were refused as not allowed, and are refused each time they arrive. The client may
        have missed the refusal; a broker that has stored later messages would take the payload for a
        duplicate."""
        self._messages_not_allowed: set[tuple[int, int, int]] = set()
        """Messages with a refused chunk, by wire, producer and sequence id."""
        self.late: set[tuple[int, int]] = set()
        """Answers that are under way late, as (wire, request id)."""
        self._unanswered: int = T.LOOKUP
        """The type of frame that is lost when a request is not answered."""
        self.active = False

    def arm(self, name: str, times: int) -> None:
        self._armed[name] = times
        if name == "request_unanswered":
            self._unanswered = self._stream.choice(UNANSWERED)
        self.active = True

    def heal(self) -> None:
        """Arm nothing new; effects that have begun last until their wires are gone."""
        self._armed.clear()

    def _use(self, name: str) -> bool:
        times = self._armed.get(name, 0)
        if not times:
            return False
        if times == 1:
            del self._armed[name]
        else:
            self._armed[name] = times - 1
        self._world.count_fault(name)
        self._world.trace.add(self._world.clock.now, "fault", name)
        return True

    # --- frames of clients ---

    def to_broker(self, wire: Wire, kind: int, command: Any) -> bytes | None:
        """Return b"" when the broker must not see the frame."""
        if kind == T.SEND:
            return self._send(wire, command)
        if kind == T.PRODUCER:
            self._muted.pop((wire.number, command.producer_id), None)
        return self._misbehave(TO_BROKER, wire, kind, command)

    def _misbehave(
        self, table: "Mapping[int, Sequence[Misdeed]]", wire: Wire, kind: int, command: Any
    ) -> bytes | None:
        """Do the armed misdeeds of a table to a frame, until one decides what becomes of the frame."""
        armed = self._armed
        if not armed:
            return None
        for fault, applies, act in table.get(kind, ()):
            if fault in armed and applies(self, wire, kind, command) and self._use(fault):
                instead = act(self, wire, kind, command)
                if instead is not None:
                    return instead
        return None

    def _send(self, wire: Wire, command: Send) -> bytes | None:
        key = (wire.number, command.producer_id)
        if key in self._muted:
            return b""
        if self._not_allowed and (
            command.payload in self._not_allowed or self._message(wire, command) in self._messages_not_allowed
        ):
            return self._refuse_for_good(wire, command)
        return self._misbehave(TO_BROKER, wire, T.SEND, command)

    def _has_useless_chunks(self, wire: Wire, command: Ack) -> bool:
        """True when useless chunks are among the acknowledged entries. If that were refused they would be
        redelivered, and chunks left by several deliveries would complete the message once more."""
        record = self._world.client_watch.ends[wire.number].consumers[command.consumer_id].record
        return any(each[:2] in record.subscription.useless_chunks for each in command.message_ids)

    # --- conditions of misdeeds ---

    def _always(self, wire: Wire, kind: int, command: Any) -> bool:
        return True

    def _is_unanswered(self, wire: Wire, kind: int, command: Any) -> bool:
        return kind == self._unanswered

    def _may_be_refused(self, wire: Wire, kind: int, command: Ack) -> bool:
        return command.request_id is not None and not self._has_useless_chunks(wire, command)

    def _may_be_fenced(self, wire: Wire, kind: int, command: Send) -> bool:
        """True when the producer has a persistent topic without partitions."""
        record = self._world.client_watch.ends[wire.number].producers[command.producer_id].record
        return record.topic.name in self._world.model.topics

    def _is_chunk(self, wire: Wire, kind: int, command: Send) -> bool:
        return bool(command.is_chunk)

    def _is_polled(self, wire: Wire, kind: int, command: Any) -> bool:
        return self._world.profile.polls_all_patterns

    def _has_partitions(self, wire: Wire, kind: int, command: Any) -> bool:
        return bool(command.partitions > 1)

    def _may_be_changed(self, wire: Wire, kind: int, command: MessageCommand) -> bool:
        """True when the entry is encrypted, and its application may lose it."""
        end = self._world.client_watch.ends[wire.number].consumers.get(command.consumer_id)
        reader = None if end is None else end.record.spec.crypto_key_reader
        return isinstance(reader, KeyHolder) and not reader.dependable and is_encrypted(command.payload)

    # --- misdeeds ---

    def _drop(self, wire: Wire, kind: int, command: Any) -> bytes:
        return b""

    def _close_while_unsubscribing(self, wire: Wire, kind: int, command: Any) -> None:
        """Close the consumer; the broker answers the UNSUBSCRIBE too."""
        gone = proto.CommandCloseConsumer(consumer_id=command.consumer_id, request_id=2**64 - 1)
        self._write(wire, T.CLOSE_CONSUMER, gone)

    def _refuse_acknowledgement(self, wire: Wire, kind: int, command: Ack) -> bytes:
        answer = proto.CommandAckResponse(
            consumer_id=command.consumer_id,
            request_id=command.request_id,
            error=proto.UnknownError,
            message="not now",
        )
        self._write(wire, T.ACK_RESPONSE, answer)
        return b""

    def _disallow(self, wire: Wire, kind: int, command: Send) -> bytes:
        self._world.model.refuses_sends = True
        return self._refuse_for_good(wire, command)

    def _fence_out(self, wire: Wire, kind: int, command: Send) -> bytes:
        """Refuse the SEND as of a fenced producer, and reset the connection soon."""
        record = self._world.client_watch.ends[wire.number].producers[command.producer_id].record
        record.contested = True
        self._muted[wire.number, command.producer_id] = None
        self._refuse_send(wire, command, ServerError.ProducerFenced)
        self._world.clock.after(self._stream.spread(100 * MILLISECOND, SECOND), wire.reset)
        return b""

    def _cut_after_chunk(self, wire: Wire, kind: int, command: Send) -> None:
        """Drop the chunks that follow, and reset the connection soon."""
        self._muted[wire.number, command.producer_id] = None
        self._world.clock.after(self._stream.spread(MILLISECOND, SECOND), wire.reset)

    def _fail_to_store(self, wire: Wire, kind: int, command: Send) -> bytes:
        self._muted[wire.number, command.producer_id] = None
        answer = proto.CommandSendError(
            producer_id=command.producer_id,
            sequence_id=command.sequence_id,
            error=int(self._stream.choice(REFUSALS)),  # type: ignore[arg-type]
            message="cannot store it",
        )
        self._write(wire, T.SEND_ERROR, answer)
        return b""

    @staticmethod
    def _message(wire: Wire, command: Send) -> tuple[int, int, int]:
        """Return what all chunks of the message have in common."""
        return wire.number, command.producer_id, command.sequence_id

    def _refuse_for_good(self, wire: Wire, command: Send) -> bytes:
        """Refuse the payload now and whenever it is sent again. With deduplication also refuse the later
        chunks of its message: a broker that has stored the last chunk takes the message for a duplicate."""
        self._not_allowed.add(command.payload)
        if command.is_chunk and self._world.profile.deduplication:
            self._messages_not_allowed.add(self._message(wire, command))
        self._refuse_send(wire, command, ServerError.NotAllowedError)
        return b""

    def _refuse_send(self, wire: Wire, command: Send, code: ServerError) -> None:
        highest = command.highest_sequence_id
        answer = proto.CommandSendError(
            producer_id=command.producer_id,
            sequence_id=command.sequence_id if highest is None else highest,
            error=int(code),  # type: ignore[arg-type]
            message="refused",
        )
        self._write(wire, T.SEND_ERROR, answer)

    def _refuse_partitions(self, wire: Wire, kind: int, command: Any) -> bytes:
        code = self._stream.choice(RETRYABLE)
        answer = proto.CommandPartitionedTopicMetadataResponse(
            request_id=command.request_id,
            response=proto.CommandPartitionedTopicMetadataResponse.Failed,
            error=int(code),  # type: ignore[arg-type]
            message="try again",
        )
        self._write(wire, T.PARTITIONED_METADATA_RESPONSE, answer)
        return b""

    def _fewer_partitions(self, wire: Wire, kind: int, command: Any) -> bytes:
        """Answer with a number of partitions that is out of date, or was never true."""
        count = self._stream.between(1, command.partitions - 1)
        for topic in self._world.model.partitioned.values():
            topic.wrong_counts.append(count)
        if self._world.transactions is not None:
            self._world.transactions.wrong_counts.append(count)
        answer = proto.CommandPartitionedTopicMetadataResponse(
            request_id=command.request_id,
            response=proto.CommandPartitionedTopicMetadataResponse.Success,
            partitions=count,
        )
        self._write(wire, T.PARTITIONED_METADATA_RESPONSE, answer)
        return b""

    def _refuse(self, wire: Wire, kind: int, command: Any) -> bytes:
        code = self._stream.choice(RETRYABLE)
        answer = proto.CommandError(request_id=command.request_id, error=int(code), message="try again")  # type: ignore[arg-type]
        self._write(wire, T.ERROR, answer)
        return b""

    def _refuse_schema(self, wire: Wire, kind: int, command: Any) -> bytes:
        answer = proto.CommandGetSchemaResponse(
            request_id=command.request_id,
            error_code=int(self._stream.choice(NO_DEFINITION)),  # type: ignore[arg-type]
            error_message="not now",
        )
        self._write(wire, T.GET_SCHEMA_RESPONSE, answer)
        return b""

    def _refuse_registration(self, wire: Wire, kind: int, command: Any) -> bytes:
        answer = proto.CommandGetOrCreateSchemaResponse(
            request_id=command.request_id,
            error_code=int(self._stream.choice(NOT_REGISTERED)),  # type: ignore[arg-type]
            error_message="not now",
        )
        self._write(wire, T.GET_OR_CREATE_SCHEMA_RESPONSE, answer)
        return b""

    def _moved_coordinator(self, wire: Wire, kind: int, command: Any) -> bytes:
        """Answer as a broker that is not the coordinator's any more."""
        number, kind_of_answer = COORDINATOR_ANSWERS[kind]
        answer = kind_of_answer(
            request_id=command.request_id,
            error=int(ServerError.TransactionCoordinatorNotFound),
            message="moved",
        )
        if kind == T.NEW_TXN:
            answer.txnid_most_bits = command.tc_id
        elif kind != T.TC_CLIENT_CONNECT_REQUEST:
            answer.txnid_most_bits = command.txnid_most_bits
            answer.txnid_least_bits = command.txnid_least_bits
        self._write(wire, number, answer)
        return b""

    def _lose_and_cut(self, wire: Wire, kind: int, command: Any) -> bytes:
        """Drop the frame, and reset the connection soon."""
        self._cut_soon(wire, kind, command)
        return b""

    def _refuse_lookup(self, wire: Wire, kind: int, command: Any) -> bytes:
        code = self._stream.choice(RETRYABLE)
        answer = proto.CommandLookupTopicResponse(
            request_id=command.request_id,
            response=proto.CommandLookupTopicResponse.Failed,
            error=int(code),  # type: ignore[arg-type]
            message="try again",
        )
        self._write(wire, T.LOOKUP_RESPONSE, answer)
        return b""

    def _redirect(self, wire: Wire, kind: int, command: Any) -> bytes:
        answer = proto.CommandLookupTopicResponse(
            request_id=command.request_id,
            response=proto.CommandLookupTopicResponse.Redirect,
            brokerServiceUrl=f"pulsar://{wire.broker.name}:6650",
            brokerServiceUrlTls=self._world.cluster.tls_address(wire.broker.name),
            authoritative=self._stream.chance(500),
        )
        self._write(wire, T.LOOKUP_RESPONSE, answer)
        return b""

    def _name_a_stranger(self, wire: Wire, kind: int, command: Any) -> bytes:
        """Name a host that the client's configuration does not allow."""
        return self._mislead(wire, command, "pulsar://stranger:6650", "pulsar+ssl://stranger:6651")

    def _downgrade(self, wire: Wire, kind: int, command: Any) -> bytes:
        """Name the broker with the scheme that the client does not use."""
        name = wire.broker.name
        return self._mislead(wire, command, f"pulsar+ssl://{name}:6651", f"pulsar://{name}:6650")

    def _mislead(self, wire: Wire, command: Any, url: str, tls_url: str) -> bytes:
        kinds = proto.CommandLookupTopicResponse
        answer = proto.CommandLookupTopicResponse(
            request_id=command.request_id,
            response=self._stream.choice((kinds.Connect, kinds.Redirect)),
            brokerServiceUrl=url,
            brokerServiceUrlTls=tls_url,
            authoritative=True,
        )
        self._write(wire, T.LOOKUP_RESPONSE, answer)
        return b""

    def _write(self, wire: Wire, kind: int, command: Any) -> None:
        wire.to_client.inject(encode_command(kind, command), kind, command)

    # --- frames of brokers ---

    def to_client(self, wire: Wire, kind: int, command: Any) -> bytes | None:
        """Return b"" when the client must not see the frame."""
        return self._misbehave(TO_CLIENT, wire, kind, command)

    def _cut_soon(self, wire: Wire, kind: int, command: Any) -> None:
        self._world.clock.after(self._stream.below(2 * MILLISECOND), wire.reset)

    def _answer_too_late(self, wire: Wire, kind: int, command: Any) -> bytes:
        limit = round(self._world.profile.operation_timeout * SECOND)
        self._world.clock.after(limit + self._stream.below(SECOND), self._write_late, wire, kind, command)
        return b""

    def _answer_late(self, wire: Wire, kind: int, command: Any) -> bytes:
        delay = self._stream.spread(100 * MILLISECOND, 15 * SECOND)
        self.late.add((wire.number, command.request_id))
        self._world.clock.after(delay, self._write_late, wire, kind, command)
        return b""

    def _repeat_later(self, wire: Wire, kind: int, command: SendReceipt) -> None:
        self._world.clock.after(self._stream.spread(1000, SECOND), self._repeat, wire, command)

    def _lose_receipt(self, wire: Wire, kind: int, command: SendReceipt) -> bytes:
        """Drop the receipt. A broker in such a state does not live long: the next receipt is out of order,
        which may end the connection even earlier."""
        self._world.client_watch.ends[wire.number].refused = True
        self._world.model.receipts_lost = True
        self._world.clock.after(self._stream.spread(100 * MILLISECOND, 5 * SECOND), wire.reset)
        return b""

    def _write_late(self, wire: Wire, kind: int, command: Any) -> None:
        self.late.discard((wire.number, command.request_id))
        if wire.broker_open:
            self._write(wire, kind, command)

    def _repeat(self, wire: Wire, receipt: SendReceipt) -> None:
        if wire.broker_open:
            wire.to_client.inject(receipt.encode(), T.SEND_RECEIPT, receipt)

    def _change_ciphertext(self, wire: Wire, kind: int, command: MessageCommand) -> bytes:
        other = changed(command.payload, self._stream.choice(PARTS), self._stream)
        frame = command._replace(payload=other)
        wire.to_client.inject(frame.encode(), kind, frame)
        return b""

    # --- unsolicited frames ---

    def stray_reply(self, wire: Wire | None) -> bool:
        """Send an answer to a request that does not exist."""
        if wire is None or not self._ready(wire):
            return False
        request_id = UNKNOWN_ID + self._stream.below(1000)
        choice = self._stream.below(3)
        if choice == 0:
            self._write(wire, T.SUCCESS, proto.CommandSuccess(request_id=request_id))
        elif choice == 1:
            error = proto.CommandError(request_id=request_id, error=proto.UnknownError, message="")
            self._write(wire, T.ERROR, error)
        else:
            success = proto.CommandProducerSuccess(
                request_id=request_id, producer_name="no-producer", last_sequence_id=7, schema_version=b""
            )
            self._write(wire, T.PRODUCER_SUCCESS, success)
        return True

    def stray_push(self, wire: Wire | None) -> bool:
        """Send a push for a producer or consumer that does not exist."""
        if wire is None or not self._ready(wire):
            return False
        choice = self._stream.below(4)
        if choice == 0:
            close = proto.CommandCloseProducer(producer_id=UNKNOWN_ID, request_id=2**64 - 1)
            self._write(wire, T.CLOSE_PRODUCER, close)
        elif choice == 1:
            gone = proto.CommandCloseConsumer(consumer_id=UNKNOWN_ID, request_id=2**64 - 1)
            self._write(wire, T.CLOSE_CONSUMER, gone)
        elif choice == 2:
            change = proto.CommandActiveConsumerChange(consumer_id=UNKNOWN_ID, is_active=True)
            self._write(wire, T.ACTIVE_CONSUMER_CHANGE, change)
        else:
            receipt = SendReceipt(UNKNOWN_ID, 3, 1, 1)
            wire.to_client.inject(receipt.encode(), T.SEND_RECEIPT, receipt)
        return True

    def unknown_command(self, wire: Wire | None) -> bool:
        """Send a command of a later version of the protocol."""
        if wire is None or not self._ready(wire):
            return False
        body = b"\x08" + bytes([UNKNOWN_TYPE])
        frame = (4 + len(body)).to_bytes(4, "big") + len(body).to_bytes(4, "big") + body
        wire.to_client.inject(frame, UNKNOWN_TYPE, None)
        return True

    def ping(self, wire: Wire | None) -> bool:
        if wire is None or not self._ready(wire):
            return False
        frame = encode_ping()
        for _ in range(self._stream.between(1, 3)):  # several in a row, each to be answered
            wire.to_client.inject(frame, T.PING, proto.CommandPing())
        return True

    def malformed(self, wire: Wire | None, to_broker: bool) -> bool:
        """Send a frame that claims to be two gigabytes long."""
        if wire is None:
            return False
        pipe = wire.to_broker if to_broker else wire.to_client
        pipe.inject(b"\x7f\xff\xff\xff\x00\x00\x00\x04", GARBAGE, None)
        return True

    def _ready(self, wire: Wire) -> bool:
        """True when the wire is past its handshake."""
        return self._world.client_watch.ends[wire.number].connected


class Misdeed(NamedTuple):
    """A fault that can be done to frames of one type."""

    fault: str
    applies: Callable[[BrokerMisbehaviour, Wire, int, Any], bool]
    act: Callable[[BrokerMisbehaviour, Wire, int, Any], bytes | None]
    """Does it, and returns the bytes in place of the frame; None lets the frame pass."""


B = BrokerMisbehaviour

COORDINATOR_ANSWERS: dict[int, tuple[T.Type, Callable[..., Any]]] = {
    T.TC_CLIENT_CONNECT_REQUEST: (T.TC_CLIENT_CONNECT_RESPONSE, proto.CommandTcClientConnectResponse),
    T.NEW_TXN: (T.NEW_TXN_RESPONSE, proto.CommandNewTxnResponse),
    T.ADD_PARTITION_TO_TXN: (T.ADD_PARTITION_TO_TXN_RESPONSE, proto.CommandAddPartitionToTxnResponse),
    T.ADD_SUBSCRIPTION_TO_TXN: (
        T.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
        proto.CommandAddSubscriptionToTxnResponse,
    ),
    T.END_TXN: (T.END_TXN_RESPONSE, proto.CommandEndTxnResponse),
}
"""Questions to a transaction coordinator, each with the type of its answer and its class."""

_TO_COORDINATOR = (
    Misdeed("coordinator_moved", B._always, B._moved_coordinator),
    Misdeed("coordinator_unanswered", B._always, B._drop),
    Misdeed("coordinator_question_cut", B._always, B._lose_and_cut),
)

_OF_COORDINATOR = (
    Misdeed("coordinator_answer_lost", B._always, B._drop),
    Misdeed("coordinator_answered_late", B._always, B._answer_too_late),
    Misdeed("coordinator_answer_cut", B._always, B._lose_and_cut),
)

_REQUEST_LOST = Misdeed("request_unanswered", B._is_unanswered, B._drop)

TO_BROKER: dict[int, tuple[Misdeed, ...]] = {
    T.PARTITIONED_METADATA: (Misdeed("partitions_refused", B._always, B._refuse_partitions),),
    T.LOOKUP: (
        Misdeed("lookup_refused", B._always, B._refuse_lookup),
        Misdeed("lookup_to_a_stranger", B._always, B._name_a_stranger),
        Misdeed("lookup_downgraded", B._always, B._downgrade),
        Misdeed("lookup_redirected", B._always, B._redirect),
        Misdeed("lookup_redirected_for_ever", B._always, B._redirect),
        _REQUEST_LOST,
    ),
    T.PRODUCER: (Misdeed("producer_refused", B._always, B._refuse), _REQUEST_LOST),
    T.SUBSCRIBE: (Misdeed("subscribe_refused", B._always, B._refuse), _REQUEST_LOST),
    T.UNSUBSCRIBE: (Misdeed("closed_while_unsubscribing", B._always, B._close_while_unsubscribing),),
    T.GET_SCHEMA: (
        Misdeed("schema_refused", B._always, B._refuse_schema),
        Misdeed("schema_unanswered", B._always, B._drop),
        Misdeed("schema_question_cut", B._always, B._cut_soon),
    ),
    T.GET_OR_CREATE_SCHEMA: (
        Misdeed("registration_refused", B._always, B._refuse_registration),
        Misdeed("registration_unanswered", B._always, B._drop),
        Misdeed("registration_cut", B._always, B._cut_soon),
    ),
    T.SEEK: (Misdeed("seek_refused", B._always, B._refuse),),
    T.GET_TOPICS_OF_NAMESPACE: (Misdeed("topics_refused", B._always, B._refuse),),
    T.WATCH_TOPIC_LIST: (Misdeed("watch_refused", B._always, B._refuse),),
    T.GET_LAST_MESSAGE_ID: (Misdeed("last_message_refused", B._always, B._refuse),),
    T.ACK: (Misdeed("acknowledgement_refused", B._may_be_refused, B._refuse_acknowledgement),),
    T.SEND: (
        Misdeed("message_not_allowed", B._always, B._disallow),
        Misdeed("fenced_out", B._may_be_fenced, B._fence_out),
        Misdeed("cut_between_chunks", B._is_chunk, B._cut_after_chunk),
        Misdeed("send_refused", B._always, B._fail_to_store),
    ),
    **dict.fromkeys(COORDINATOR_ANSWERS, _TO_COORDINATOR),
}
"""Misdeeds to frames of clients, by type of frame, in the order in which they are tried."""

TO_CLIENT: dict[int, tuple[Misdeed, ...]] = {
    T.TOPIC_MIGRATED: (Misdeed("cut_at_migration", B._always, B._cut_soon),),
    T.WATCH_TOPIC_UPDATE: (Misdeed("watch_update_lost", B._is_polled, B._drop),),
    T.MESSAGE: (Misdeed("ciphertext_changed", B._may_be_changed, B._change_ciphertext),),
    T.PONG: (Misdeed("pong_lost", B._always, B._drop),),
    T.PARTITIONED_METADATA_RESPONSE: (
        Misdeed("partitions_out_of_date", B._has_partitions, B._fewer_partitions),
    ),
    T.SUCCESS: (
        Misdeed("opened_too_late", B._always, B._answer_too_late),
        _REQUEST_LOST,
        Misdeed("reply_late", B._always, B._answer_late),
    ),
    T.PRODUCER_SUCCESS: (
        Misdeed("opened_too_late", B._always, B._answer_too_late),
        Misdeed("reply_late", B._always, B._answer_late),
    ),
    T.GET_SCHEMA_RESPONSE: (Misdeed("schema_answered_late", B._always, B._answer_too_late),),
    T.GET_OR_CREATE_SCHEMA_RESPONSE: (Misdeed("registration_answered_late", B._always, B._answer_too_late),),
    T.LOOKUP_RESPONSE: (Misdeed("reply_late", B._always, B._answer_late),),
    T.SEND_RECEIPT: (
        Misdeed("receipt_lost", B._always, B._lose_receipt),
        Misdeed("receipt_repeated", B._always, B._repeat_later),
    ),
    **{number: _OF_COORDINATOR for number, _ in COORDINATOR_ANSWERS.values()},
}
"""Misdeeds to frames of brokers, by type of frame, in the order in which they are tried."""
