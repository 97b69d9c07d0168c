"""One connection of a client: handshake, framing, and the bytes that wait to be written.

The connection owns the registries of its producers and consumers, and the outbox with its high-water mark.
`KeepAlive` finds out that the client is gone. `lookups`, `publishing` and `subscribing` define the meaning of
commands.

A connection is in Start (only CONNECT is legal), Connecting (only AUTH_RESPONSE is), Connected, or Dead
(CONN-03, CONN-04, CONN-05). No bytes of a peer end any connection but its own.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from ...core.buffers import ReceiveBuffer
from ...model.errors import (
    BrokerError,
    NotAllowed,
    ProducerBusy,
    ProducerFenced,
    RemoteProtocolError,
    ServerError,
    ServiceNotReady,
)
from ...wire import (
    FrameDecoder,
    MetadataDecoder,
    encode_command,
    encode_pong,
    encode_send_receipt,
    max_frame_size,
    proto,
)
from ..dispatching.consumer import Consumer
from ..outputs import Disconnect, ResumeReading, Transmit
from ..security.authentication import ConnectionAuthentication
from ..topics.producing.producer import Producer
from ..topics.subscription import NO_REQUEST
from .keep_alive import KeepAlive
from .lookups import server_error

if TYPE_CHECKING:
    from ..owner import OtherBroker
    from ..records import MigratedTo
    from ..throttling.rate_limiter import RateLimiter
    from .host import Host
    from .interposer import Interposer

BROKER_ENTRY_METADATA_VERSION = 18
"""The first protocol version whose clients can read broker entry metadata."""

MIGRATION_VERSION = 20
"""The first protocol version whose clients know TOPIC_MIGRATED."""

UNSENT_LIMIT_FACTOR = 16
"""The broker disconnects a peer whose unsent bytes exceed the high-water mark this many times."""

Handler = Callable[["Connection", Any], None]

Refusal = Callable[["Connection", Any, BrokerError], None]
"""Answers a command with an error."""

Type = proto.BaseCommand.Type


def _assign(
    close: proto.CommandCloseProducer | proto.CommandCloseConsumer, moved_to: "OtherBroker | None"
) -> None:
    """Name the broker that serves the topic now, where it is known."""
    if moved_to is not None:
        close.assignedBrokerServiceUrl = moved_to.service_url
        if moved_to.service_url_tls is not None:
            close.assignedBrokerServiceUrlTls = moved_to.service_url_tls


def _handshake(number: int) -> Handler:
    """Return the handler of a command before CONNECTED."""
    return lambda connection, command: connection._before_connected(number, command)


HANDSHAKE_LIMIT = 256 * 1024
"""Bytes of the largest frame before CONNECTED: credentials of 64 KiB, and those that a proxy passes on. A
client that is not known yet cannot make the broker hold a frame of `max_message_size`."""


class ConnectionState(Enum):
    START = "start"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DEAD = "dead"


class Reserved:
    """Stands in a registry for a producer or consumer that is still being created (rule BROKER-04)."""


class Connection:
    """`handlers`: command of a connected client -> its handler.

    `certificate`: the common name of the certificate that the client has shown.
    """

    def __init__(
        self,
        broker: "Host",
        link: int,
        peer: str,
        handlers: dict[int, Handler],
        certificate: str | None = None,
    ) -> None:
        self.broker = broker
        self.services = services = broker.services
        self.context = services.context
        self.link = link
        self.peer = peer
        self.address = peer.rpartition(":")[0]
        """The peer's IP address; `peer` has the port, too."""
        self.state: ConnectionState = ConnectionState.START
        self.protocol_version = 0
        self.client_version = ""
        self.takes_broker_entry_metadata = False
        """Entries for this client carry broker entry metadata in front (rule CHECK-12)."""
        self.producers: dict[int, Producer | Reserved] = {}
        self.consumers: dict[int, Consumer | Reserved] = {}
        self.pending_publishes = 0
        self._closed_producers: dict[int, int] = {}
        """Id of a producer that this broker closed -> the moment (ns) until which late SENDs are ignored, in
        order."""
        self._own_handlers = self._handlers = handlers
        self.interposed: Interposer | None = None
        """This attribute is None where the broker has no rules of faults."""
        self._limit = max_frame_size(services.config.max_message_size)
        self._buffer = ReceiveBuffer()
        self._frame_decoder = FrameDecoder()
        self.metadata_decoder = MetadataDecoder()
        """Decodes the metadata of entries that producers of this connection send."""
        self.unread = 0
        """The number of bytes received after the frame that ended the connection; they are never parsed."""
        self._outbox: list[bytes] = []
        self._transmit = Transmit(link)
        self._unsent = 0
        self._high_water = services.config.max_unsent_bytes
        self.writable = True
        """The unsent bytes are below the high-water mark, so messages may be dispatched."""
        self.reading = True
        """False from the moment a limit forbids reading until `ResumeReading`."""
        self._throttles: dict[RateLimiter, None] = {}
        """Limiters of topics to which this connection's producers sent too much."""
        self._keep_alive = KeepAlive(self)
        self.authentication: ConnectionAuthentication | None = None
        """This attribute is None where the broker does not authenticate."""
        if broker.authenticator is not None:
            self.authentication = ConnectionAuthentication(
                self.context,
                broker.authenticator,
                lambda: services.wall_time,
                self,
                certificate,
                self._connected,
            )

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the client; all of them need a permission."""
        return () if self.authentication is None else self.authentication.roles

    @property
    def dead(self) -> bool:
        return self.state is ConnectionState.DEAD

    # --- bytes in -------------------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> None:
        if self.state is ConnectionState.DEAD:
            return
        whole = self._buffer.feed(data)
        if whole is None:
            return
        position = 0
        limit = self._frame_limit()
        decode = self._frame_decoder.decode
        handlers = self._handlers
        keep_alive = self._keep_alive
        try:
            while (frame := decode(whole, position, limit)) is not None:
                number, command, position = frame
                if keep_alive.awaited:
                    keep_alive.on_frame()
                if self.state is not ConnectionState.CONNECTED:
                    if self.interposed is None:
                        self._before_connected(number, command)
                    else:
                        self.interposed.receive(number, _handshake(number), self, command)
                    limit = self._frame_limit()
                elif (handler := handlers.get(number)) is not None:
                    handler(self, command)
                if self.dead:
                    self.unread = len(whole) - position
                    return
            self._buffer.hold(whole, position)
        except RemoteProtocolError as error:
            self.unread = len(whole) - position
            self.terminate(str(error))

    def _frame_limit(self) -> int:
        """Return the bytes of the largest frame that the client may send now."""
        if self.state is ConnectionState.CONNECTED:
            return self._limit
        return min(self._limit, HANDSHAKE_LIMIT)

    def _before_connected(self, number: int, command: Any) -> None:
        if number == Type.PING:
            self.write(encode_pong())
        elif number == Type.PONG:
            return
        elif self.state is ConnectionState.CONNECTING:
            if number != Type.AUTH_RESPONSE or self.authentication is None:
                raise RemoteProtocolError(f"command {number} in place of AUTH_RESPONSE")
            self.authentication.respond(command)
        elif number == Type.CONNECT:
            self._connect(command)
        else:
            raise RemoteProtocolError(f"command {number} before CONNECT")

    def _connect(self, command: proto.CommandConnect) -> None:
        """Answer CONNECT. A broker without authentication ignores all credentials (WIRE-01)."""
        config = self.services.config
        if len(self.broker.links) > config.max_connections:
            self.reject(NotAllowed("Reached the maximum number of connections"), "too many connections")
            return
        limit = config.max_connections_per_address
        if limit and self.broker.links_from[self.address] > limit:
            refusal = NotAllowed(f"Reached the maximum number of connections on address {self.address}")
            self.reject(refusal, "too many connections of one address")
            return
        self.protocol_version = max(0, min(command.protocol_version, config.protocol_version))
        self.client_version = command.client_version[:256]
        self.takes_broker_entry_metadata = (
            config.broker_entry_metadata
            and self.protocol_version >= BROKER_ENTRY_METADATA_VERSION
            and command.feature_flags.supports_broker_entry_metadata
        )
        if self.authentication is None:
            self._connected()
        else:
            self.state = ConnectionState.CONNECTING
            self.authentication.connect(command)

    def _connected(self) -> None:
        """The client may use the broker: send CONNECTED."""
        config = self.services.config
        self.state = ConnectionState.CONNECTED
        connected = proto.CommandConnected(
            server_version=config.server_version,
            protocol_version=self.protocol_version,
            max_message_size=config.max_message_size,
        )
        if config.feature_flags:
            if config.topic_list_watcher:
                connected.feature_flags.supports_topic_watchers = True
            connected.feature_flags.supports_get_partitioned_metadata_without_auto_creation = True
        self.send(Type.CONNECTED, connected)
        self._keep_alive.connected()

    @property
    def missing_in_handshake(self) -> str | None:
        """The command that the client owes before it is connected; None afterwards."""
        if self.state is ConnectionState.START:
            return "CONNECT"
        return "AUTH_RESPONSE" if self.state is ConnectionState.CONNECTING else None

    @property
    def takes_end_of_topic(self) -> bool:
        """True when REACHED_END_OF_TOPIC may be sent: the C++ client drops its connection on it.

        The C++ client announces protocol 20 or less, the Java client and this project's client announce 21.
        The client's version text is not trusted.
        """
        return self.services.config.reached_end_of_topic != "never" and self.protocol_version >= 21

    @property
    def takes_migration(self) -> bool:
        """True when the client knows TOPIC_MIGRATED."""
        return self.protocol_version >= MIGRATION_VERSION

    # --- bytes out ------------------------------------------------------------------------------------

    def write(self, frame: bytes) -> None:
        if self.state is ConnectionState.DEAD:
            return
        if not self._outbox:
            self.context.emit(self._transmit)
        self._outbox.append(frame)
        self._count(len(frame))

    def write_message(self, chunks: Sequence[bytes], size: int) -> None:
        """Write a MESSAGE of `size` stored bytes."""
        if self.state is ConnectionState.DEAD:
            return
        if not self._outbox:
            self.context.emit(self._transmit)
        self._outbox.extend(chunks)
        self._count(size + 48)

    def _count(self, size: int) -> None:
        self._unsent += size
        if self._unsent >= self._high_water:
            self.writable = False
            self.reading = False
            if self._unsent >= self._high_water * UNSENT_LIMIT_FACTOR + self._limit:
                self.terminate("the peer asks without reading the answers")

    def send(self, number: int, command: Message) -> None:
        self.write(encode_command(number, command))

    def error(self, request_id: int, code: ServerError, text: str) -> None:
        self.send(
            Type.ERROR,
            proto.CommandError(request_id=request_id, error=server_error(code), message=text),
        )

    def refuse(self, request_id: int, error: BrokerError) -> None:
        """Answer a request with ERROR."""
        self.error(request_id, error.code, error.text)

    def reject(self, error: BrokerError, reason: str) -> None:
        """Send ERROR for the whole connection and end it. `reason` is for people."""
        self.refuse(NO_REQUEST, error)
        self.terminate(reason)

    def success(self, request_id: int) -> None:
        self.send(Type.SUCCESS, proto.CommandSuccess(request_id=request_id))

    def announce(self) -> None:
        """Tell the adapter that there are bytes to write, though the outbox is empty."""
        if not self._outbox and self.state is not ConnectionState.DEAD:
            self.context.emit(self._transmit)

    def take_outbox(self) -> list[bytes]:
        """Return the bytes to write. Dispatch resumes where it had stopped for this peer."""
        chunks, self._outbox = self._outbox, []
        self._unsent = 0
        if self.interposed is not None:
            chunks = self.interposed.transmit(chunks)
            self._unsent = self.interposed.held_bytes
        if not self.writable and self._unsent < self._high_water:
            self.writable = True
            self.check_reading()
            dispatchers: dict[Any, None] = {}
            for consumer in self.consumers.values():
                if isinstance(consumer, Consumer) and consumer.ready:
                    dispatcher = consumer.subscription.dispatcher
                    if dispatcher is not None:
                        dispatcher.wake(consumer)
                        dispatchers[dispatcher] = None
            for dispatcher in dispatchers:
                dispatcher.dispatch()
        return chunks

    # --- back-pressure --------------------------------------------------------------------------------

    @property
    def wants_read(self) -> bool:
        """False while too many bytes are unsent or publishes not durable, or a publish rate is exceeded."""
        if self.reading and self.pending_publishes >= self.services.config.max_pending_publishes:
            self.reading = False
        return self.reading

    def check_reading(self) -> None:
        """Emit `ResumeReading` when the limits allow reading again."""
        if (
            not self.reading
            and self.writable
            and self.pending_publishes <= self.services.config.max_pending_publishes // 2
            and not self._throttles
        ):
            self.reading = True
            if self.state is not ConnectionState.DEAD:
                self.context.emit(ResumeReading(self.link))

    def throttle(self, limiter: "RateLimiter") -> None:
        """A producer sent more than the rate of its topic: do not read until the limiter has tokens."""
        self.reading = False
        self._throttles[limiter] = None

        def go_on() -> None:
            del self._throttles[limiter]
            self.check_reading()

        limiter.wait(self, go_on)

    # --- its end --------------------------------------------------------------------------------------

    def check_liveness(self, then: Callable[[bool], None]) -> None:
        """Send a PING; call `then(True)` at the next frame, or `then(False)` once the connection is dead."""
        if self.state is ConnectionState.CONNECTED:
            self._keep_alive.probe(then)
        else:
            then(False)

    def terminate(self, reason: str) -> None:
        """End the connection and detach its producers, consumers and watchers; written bytes are still
        sent."""
        if self.state is not ConnectionState.DEAD:
            self._close()
            final = self._outbox if self.interposed is None else self.interposed.transmit(self._outbox)
            self.broker.connection_closed(self, final)
            self.context.emit(Disconnect(self.link, reason))

    def disconnected(self) -> None:
        """The adapter reports that the connection is closed."""
        if self.state is not ConnectionState.DEAD:
            self._close()
            self.broker.connection_closed(self, [])

    def _close(self) -> None:
        self.state = ConnectionState.DEAD
        self.writable = False
        self._keep_alive.stop()
        if self.interposed is not None:
            self.interposed.stop()
        if self.authentication is not None:
            self.authentication.close()
        self._buffer.clear()
        for limiter in self._throttles:
            limiter.leave(self)
        self._throttles.clear()
        producers = [each for each in self.producers.values() if isinstance(each, Producer)]
        consumers = [each for each in self.consumers.values() if isinstance(each, Consumer)]
        self.producers.clear()
        self.consumers.clear()
        self.broker.watchers.detach(self)
        for consumer in consumers:
            consumer.subscription.remove(consumer)
        for producer in producers:
            producer.topic.detach_producer(producer)
        self._keep_alive.report_dead()

    # --- faults ---------------------------------------------------------------------------------------

    def interpose(self, interposer: "Interposer") -> None:
        """Give every command to `interposer` from now on."""
        self.interposed = interposer
        self._handlers = {
            number: partial(interposer.receive, number, handler)
            for number, handler in self._own_handlers.items()
        }

    def withdraw(self) -> None:
        """Give commands to their handlers again, after those that the interposer holds back."""
        assert self.interposed is not None
        released = self.interposed.release()
        self.interposed = None
        self._handlers = self._own_handlers
        if released:
            self.announce()
            self._outbox[:0] = released

    # --- producers and consumers are detached ---------------------------------------------------------

    def detach_producer(self, producer: Producer) -> None:
        """Remove a producer from the registries without a frame to the client."""
        if self.producers.get(producer.id) is producer:
            del self.producers[producer.id]
        producer.topic.detach_producer(producer)

    def fence_producer(self, producer: Producer) -> None:
        """Remove a producer fenced by ExclusiveWithFencing: without a frame, once its receipts have left.

        Its next SEND finds no producer and ends the connection. A producer that is not ready never sends, so
        its client would not notice: its request is refused with an error instead.
        """
        producer.fenced = True
        if not producer.ready:
            self.detach_producer(producer)
            refusal = ProducerBusy if producer.mode == proto.Shared else ProducerFenced
            self.refuse(producer.request_id, refusal("Fenced out by another producer"))
            return

        def drained() -> None:
            if self.producers.get(producer.id) is producer:
                self.detach_producer(producer)

        producer.close_when_drained(drained)

    def close_producer(self, producer: Producer, moved_to: "OtherBroker | None" = None) -> None:
        """Send CLOSE_PRODUCER after the receipts; `moved_to`: the broker that serves the topic now.

        SENDs in flight are ignored for one keep-alive interval (GAP-37).
        """
        if not producer.closing:
            producer.close_when_drained(lambda: self.close_producer_now(producer, moved_to))

    def close_producer_now(self, producer: Producer, moved_to: "OtherBroker | None" = None) -> None:
        """Send CLOSE_PRODUCER without waiting for receipts."""
        if self.producers.get(producer.id) is not producer:
            return
        self.detach_producer(producer)
        now = self.context.now
        closed = self._closed_producers
        for each in list(takewhile(lambda each: closed[each] <= now, closed)):
            del closed[each]
        closed.pop(producer.id, None)  # so that the latest comes last
        closed[producer.id] = now + self.services.keepalive_interval
        if producer.topic.migrated_to is not None:
            self.send_migrated(proto.CommandTopicMigrated.Producer, producer.id, producer.topic.migrated_to)
        self.send_close_producer(producer.id, moved_to)

    def send_close_producer(self, producer_id: int, moved_to: "OtherBroker | None" = None) -> None:
        """Send CLOSE_PRODUCER as a notice that needs no answer."""
        if self.protocol_version < 5:
            self.terminate("the client is too old for CLOSE_PRODUCER")
        else:
            close = proto.CommandCloseProducer(producer_id=producer_id, request_id=NO_REQUEST)
            _assign(close, moved_to)
            self.send(Type.CLOSE_PRODUCER, close)

    def send_migrated(
        self, kind: proto.CommandTopicMigrated.ResourceType, resource_id: int, target: "MigratedTo"
    ) -> None:
        """Send TOPIC_MIGRATED for one producer or consumer, if the client knows it; the CLOSE follows."""
        if self.takes_migration:
            moved = proto.CommandTopicMigrated(
                resource_id=resource_id,
                resource_type=kind,
                brokerServiceUrl=target.service_url,
                brokerServiceUrlTls=target.service_url_tls,
            )
            self.send(Type.TOPIC_MIGRATED, moved)

    def closed_recently(self, producer_id: int) -> bool:
        """True when the broker itself closed this producer within the last keep-alive interval."""
        return self._closed_producers.get(producer_id, -1) > self.context.now

    def reopens(self, producer_id: int) -> None:
        """The client asks for this producer, so it has received the CLOSE: no later SEND is ignored."""
        self._closed_producers.pop(producer_id, None)

    def detach_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer from the registries without a frame to the client."""
        if self.consumers.get(consumer.id) is consumer:
            del self.consumers[consumer.id]
        consumer.subscription.remove(consumer)

    def close_consumer(self, consumer: Consumer, moved_to: "OtherBroker | None" = None) -> None:
        """Send CLOSE_CONSUMER: the client subscribes again, at `moved_to` if given."""
        self.detach_consumer(consumer)
        target = consumer.subscription.moves_to
        if target is not None:
            self.send_migrated(proto.CommandTopicMigrated.Consumer, consumer.id, target)
        if self.protocol_version < 5:
            self.terminate("the client is too old for CLOSE_CONSUMER")
        else:
            close = proto.CommandCloseConsumer(consumer_id=consumer.id, request_id=NO_REQUEST)
            _assign(close, moved_to)
            self.send(Type.CLOSE_CONSUMER, close)

    def confirm_send(
        self, producer: Producer, sequence_id: int, highest: int | None, ledger_id: int, entry_id: int
    ) -> None:
        """A message is durable: send SEND_RECEIPT if its producer is still attached."""
        if self.producers.get(producer.id) is producer:
            self.write(encode_send_receipt(producer.id, sequence_id, ledger_id, entry_id, highest))
        self.publish_done(producer)

    def publish_done(self, producer: Producer) -> None:
        """A message that was accepted is not pending any more."""
        self.pending_publishes -= 1
        if not self.reading:
            self.check_reading()
        producer.message_durable()

    # --- waiting producers (BROKER-36) --------------------------------------------------------------

    def refuse_waiting_producer(self, producer: Producer, error: BrokerError) -> None:
        if self.producers.get(producer.id) is producer:
            del self.producers[producer.id]
        self.refuse(producer.request_id, error)

    def grant_waiting_producer(self, producer: Producer) -> None:
        """Send the second PRODUCER_SUCCESS, with the request id of the first."""
        self.services.journal.confirm(lambda: self.producer_success(producer, True))

    def producer_success(self, producer: Producer, ready: bool) -> None:
        """Send PRODUCER_SUCCESS, unless the producer was detached meanwhile."""
        if self.producers.get(producer.id) is not producer:
            return
        producer.ready = ready
        answer = proto.CommandProducerSuccess(
            request_id=producer.request_id,
            producer_name=producer.name,
            last_sequence_id=producer.topic.last_sequence_id(producer.name),
            schema_version=producer.schema_version,
            producer_ready=ready,
        )
        if ready and producer.topic_epoch is not None:
            answer.topic_epoch = producer.topic_epoch
        self.send(Type.PRODUCER_SUCCESS, answer)

    # --- reservations ---------------------------------------------------------------------------------

    @staticmethod
    def still_present(what: str) -> ServiceNotReady:
        """The error of a request repeated because the client's timeout is shorter than the broker's work
        (rule BROKER-05)."""
        return ServiceNotReady(f"{what} is already present on the connection")
