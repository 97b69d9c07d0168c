"""Misbehaving brokers: frames dropped, answered or added without the broker machine's knowledge.

Sits on the wires between the two machines. It refuses requests in the broker's name, delays replies until the
client has given up on them, repeats receipts, and sends unsolicited frames. All of it is legal for a broker
in trouble, or harmless by a rule that says "ignore"; the reference model never learns of it.
"""

from typing import TYPE_CHECKING, Any

from pulsar_sansio.model.errors import ServerError
from pulsar_sansio.wire import Ack, Send, SendReceipt, encode_command, encode_ping, proto

from ..engine.clock import MILLISECOND, SECOND
from ..engine.network import GARBAGE, Wire
from ..engine.randomness import Stream

if TYPE_CHECKING:
    from ..world.world import World

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

NOBODY = 2**40
"""An id of a request, producer or consumer that no client has."""

UNANSWERED = (T.LOOKUP, T.PRODUCER, T.SUBSCRIBE, T.SUCCESS)
"""The frames that may be lost when a request is not answered: the request or its answer."""

LATE_REPLIES = frozenset((T.SUCCESS, T.PRODUCER_SUCCESS, T.LOOKUP_RESPONSE))

OPENED = frozenset((T.SUCCESS, T.PRODUCER_SUCCESS))

UNKNOWN_TYPE = 120


class BrokerMisbehaviour:
    """Armed kinds wait for a frame that they apply to."""

    def __init__(self, world: "World", stream: Stream) -> None:
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

    def _take(self, name: str) -> bool:
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
        armed = self._armed
        if not armed:
            return None
        if kind == T.PARTITIONED_METADATA:
            if "partitions_refused" in armed and self._take("partitions_refused"):
                self._refuse_partitions(wire, command)
                return b""
        elif kind == T.LOOKUP:
            if "lookup_refused" in armed and self._take("lookup_refused"):
                self._refuse_lookup(wire, command)
                return b""
            if "lookup_redirected" in armed and self._take("lookup_redirected"):
                self._redirect(wire, command)
                return b""
            if "lookup_redirected_for_ever" in armed and self._take("lookup_redirected_for_ever"):
                self._redirect(wire, command)
                return b""
        elif kind == T.PRODUCER:
            if "producer_refused" in armed and self._take("producer_refused"):
                self._refuse(wire, command.request_id)
                return b""
        elif kind == T.UNSUBSCRIBE:
            if "closed_while_unsubscribing" in armed and self._take("closed_while_unsubscribing"):
                gone = proto.CommandCloseConsumer(consumer_id=command.consumer_id, request_id=2**64 - 1)
                self._say(wire, T.CLOSE_CONSUMER, gone)  # the broker answers too
        elif kind == T.SUBSCRIBE:
            if "subscribe_refused" in armed and self._take("subscribe_refused"):
                self._refuse(wire, command.request_id)
                return b""
        elif kind == T.SEEK:
            if "seek_refused" in armed and self._take("seek_refused"):
                self._refuse(wire, command.request_id)
                return b""
        elif kind == T.GET_TOPICS_OF_NAMESPACE:
            if "topics_refused" in armed and self._take("topics_refused"):
                self._refuse(wire, command.request_id)
                return b""
        elif kind == T.WATCH_TOPIC_LIST:
            if "watch_refused" in armed and self._take("watch_refused"):
                self._refuse(wire, command.request_id)
                return b""
        elif kind == T.GET_LAST_MESSAGE_ID:
            if "last_message_refused" in armed and self._take("last_message_refused"):
                self._refuse(wire, command.request_id)
                return b""
        elif (
            kind == T.ACK
            and command.request_id is not None
            and "acknowledgement_refused" in armed
            and not self._lets_go(wire, command)
            and self._take("acknowledgement_refused")
        ):
            answer = proto.CommandAckResponse(
                consumer_id=command.consumer_id,
                request_id=command.request_id,
                error=proto.UnknownError,
                message="not now",
            )
            self._say(wire, T.ACK_RESPONSE, answer)
            return b""
        if kind == self._unanswered and "request_unanswered" in armed and self._take("request_unanswered"):
            return b""
        return None

    def _send(self, wire: Wire, command: Send) -> bytes | None:
        key = (wire.number, command.producer_id)
        if key in self._muted:
            return b""
        if self._not_allowed and (
            command.payload in self._not_allowed or self._message(wire, command) in self._messages_not_allowed
        ):
            return self._does_not_allow(wire, command)
        if self._armed:
            verdict = self._on_armed_send(wire, command, key)
            if verdict is not None:
                return verdict
        if "send_refused" in self._armed and self._take("send_refused"):
            self._muted[key] = None
            answer = proto.CommandSendError(
                producer_id=command.producer_id,
                sequence_id=command.sequence_id,
                error=int(self._stream.choice(REFUSALS)),  # type: ignore[arg-type]
                message="cannot store it",
            )
            self._say(wire, T.SEND_ERROR, answer)
            return b""
        return None

    def _lets_go(self, wire: Wire, command: Ack) -> bool:
        """True when useless chunks are among the acknowledged entries. If that were refused they would be
        redelivered, and chunks left by several deliveries would complete the message once more."""
        record = self._world.client_watch.ends[wire.number].consumers[command.consumer_id].record
        return any(each[:2] in record.subscription.let_go for each in command.message_ids)

    def _on_armed_send(self, wire: Wire, command: Send, key: tuple[int, int]) -> bytes | None:
        """Refuse a message or fence its producer for good, or cut the connection between two chunks."""
        armed = self._armed
        if "message_not_allowed" in armed and self._take("message_not_allowed"):
            self._world.model.refuses_sends = True
            return self._does_not_allow(wire, command)
        if "fenced_out" in armed:
            record = self._world.client_watch.ends[wire.number].producers[command.producer_id].record
            if record.topic.name in self._world.model.topics and self._take("fenced_out"):
                record.contested = True
                self._muted[key] = None
                self._refuse_send(wire, command, ServerError.ProducerFenced)
                self._world.clock.after(self._stream.spread(100 * MILLISECOND, SECOND), wire.reset)
                return b""
        if command.is_chunk and "cut_between_chunks" in armed and self._take("cut_between_chunks"):
            self._muted[key] = None  # the chunks that follow
            self._world.clock.after(self._stream.spread(MILLISECOND, SECOND), wire.reset)
        return None

    @staticmethod
    def _message(wire: Wire, command: Send) -> tuple[int, int, int]:
        """Return what all chunks of the message have in common."""
        return wire.number, command.producer_id, command.sequence_id

    def _does_not_allow(self, wire: Wire, command: Send) -> bytes:
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
        self._say(wire, T.SEND_ERROR, answer)

    def _refuse_partitions(self, wire: Wire, command: Any) -> None:
        code = self._stream.choice(RETRYABLE)
        answer = proto.CommandPartitionedTopicMetadataResponse(
            request_id=command.request_id,
            response=proto.CommandPartitionedTopicMetadataResponse.Failed,
            error=int(code),  # type: ignore[arg-type]
            message="try again",
        )
        self._say(wire, T.PARTITIONED_METADATA_RESPONSE, answer)

    def _fewer_partitions(self, wire: Wire, command: Any) -> None:
        """Answer with a number of partitions that is out of date, or was never true."""
        count = self._stream.between(1, command.partitions - 1)
        for topic in self._world.model.partitioned.values():
            topic.rumours.append(count)
        answer = proto.CommandPartitionedTopicMetadataResponse(
            request_id=command.request_id,
            response=proto.CommandPartitionedTopicMetadataResponse.Success,
            partitions=count,
        )
        self._say(wire, T.PARTITIONED_METADATA_RESPONSE, answer)

    def _refuse(self, wire: Wire, request_id: int) -> None:
        code = self._stream.choice(RETRYABLE)
        answer = proto.CommandError(request_id=request_id, error=int(code), message="try again")  # type: ignore[arg-type]
        self._say(wire, T.ERROR, answer)

    def _refuse_lookup(self, wire: Wire, command: Any) -> None:
        code = self._stream.choice(RETRYABLE)
        answer = proto.CommandLookupTopicResponse(
            request_id=command.request_id,
            response=proto.CommandLookupTopicResponse.Failed,
            error=int(code),  # type: ignore[arg-type]
            message="try again",
        )
        self._say(wire, T.LOOKUP_RESPONSE, answer)

    def _redirect(self, wire: Wire, command: Any) -> None:
        answer = proto.CommandLookupTopicResponse(
            request_id=command.request_id,
            response=proto.CommandLookupTopicResponse.Redirect,
            brokerServiceUrl=f"pulsar://{wire.broker.name}:6650",
            authoritative=self._stream.chance(500),
        )
        self._say(wire, T.LOOKUP_RESPONSE, answer)

    def _say(self, wire: Wire, kind: int, command: Any) -> None:
        wire.to_client.inject(encode_command(kind, command), kind, command)

    # --- frames of brokers ---

    def to_client(self, wire: Wire, kind: int, command: Any) -> bytes | None:
        armed = self._armed
        if not armed:
            return None
        if kind == T.TOPIC_MIGRATED:
            if "cut_at_migration" in armed and self._take("cut_at_migration"):
                self._world.clock.after(self._stream.below(2 * MILLISECOND), wire.reset)
            return None
        if kind == T.WATCH_TOPIC_UPDATE:
            lost = "watch_update_lost" in armed and self._world.profile.polls_all_patterns
            return b"" if lost and self._take("watch_update_lost") else None
        if kind == T.PONG:
            return b"" if "pong_lost" in armed and self._take("pong_lost") else None
        if (
            kind == T.PARTITIONED_METADATA_RESPONSE
            and command.partitions > 1
            and "partitions_out_of_date" in armed
            and self._take("partitions_out_of_date")
        ):
            self._fewer_partitions(wire, command)
            return b""
        if kind in OPENED and "opened_too_late" in armed and self._take("opened_too_late"):
            limit = round(self._world.profile.operation_timeout * SECOND)
            self._world.clock.after(limit + self._stream.below(SECOND), self._say_late, wire, kind, command)
            return b""
        if (
            kind == T.SUCCESS == self._unanswered
            and "request_unanswered" in armed
            and self._take("request_unanswered")
        ):
            return b""
        if kind in LATE_REPLIES:
            if "reply_late" in armed and self._take("reply_late"):
                delay = self._stream.spread(100 * MILLISECOND, 15 * SECOND)
                self._world.clock.after(delay, self._say_late, wire, kind, command)
                return b""
        elif kind == T.SEND_RECEIPT and "receipt_lost" in armed and self._take("receipt_lost"):
            return self._lose_receipt(wire)
        elif kind == T.SEND_RECEIPT and "receipt_repeated" in armed and self._take("receipt_repeated"):
            self._world.clock.after(self._stream.spread(1000, SECOND), self._repeat, wire, command)
        return None

    def _lose_receipt(self, wire: Wire) -> bytes:
        """Drop the receipt. A broker in such a state does not live long: the next receipt is out of order,
        which may end the connection even earlier."""
        self._world.client_watch.ends[wire.number].refused = True
        self._world.model.receipts_lost = True
        self._world.clock.after(self._stream.spread(100 * MILLISECOND, 5 * SECOND), wire.reset)
        return b""

    def _say_late(self, wire: Wire, kind: int, command: Any) -> None:
        if wire.broker_open:
            self._say(wire, kind, command)

    def _repeat(self, wire: Wire, receipt: SendReceipt) -> None:
        if wire.broker_open:
            wire.to_client.inject(receipt.encode(), T.SEND_RECEIPT, receipt)

    # --- unsolicited frames ---

    def stray_reply(self, wire: Wire | None) -> bool:
        """Send an answer to a request that does not exist."""
        if wire is None or not self._ready(wire):
            return False
        request_id = NOBODY + self._stream.below(1000)
        choice = self._stream.below(3)
        if choice == 0:
            self._say(wire, T.SUCCESS, proto.CommandSuccess(request_id=request_id))
        elif choice == 1:
            error = proto.CommandError(request_id=request_id, error=proto.UnknownError, message="")
            self._say(wire, T.ERROR, error)
        else:
            success = proto.CommandProducerSuccess(
                request_id=request_id, producer_name="nobody", last_sequence_id=7, schema_version=b""
            )
            self._say(wire, T.PRODUCER_SUCCESS, success)
        return True

    def stray_push(self, wire: Wire | None) -> bool:
        """Send a push for a producer or consumer that does not exist."""
        if wire is None or not self._ready(wire):
            return False
        choice = self._stream.below(4)
        if choice == 0:
            close = proto.CommandCloseProducer(producer_id=NOBODY, request_id=2**64 - 1)
            self._say(wire, T.CLOSE_PRODUCER, close)
        elif choice == 1:
            gone = proto.CommandCloseConsumer(consumer_id=NOBODY, request_id=2**64 - 1)
            self._say(wire, T.CLOSE_CONSUMER, gone)
        elif choice == 2:
            change = proto.CommandActiveConsumerChange(consumer_id=NOBODY, is_active=True)
            self._say(wire, T.ACTIVE_CONSUMER_CHANGE, change)
        else:
            receipt = SendReceipt(NOBODY, 3, 1, 1)
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
