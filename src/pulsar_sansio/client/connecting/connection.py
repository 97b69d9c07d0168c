"""`Connection`: one link to a broker or proxy, from the request to connect until its end.

A connection owns the handshake (CONNECT, CONNECTED), PING and PONG, and the dispatch of each command to its
producer, consumer, watcher or request. A mistake of the peer ends this one link, with the cause declared, and
nothing else. A `FrameReader` turns the bytes into frames. Producers, consumers and lookups decide what their
commands mean.
"""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ...core.buffers import ReceiveBuffer
from ...model.errors import (
    AuthenticationError,
    ConnectionLost,
    FrameError,
    LocalProtocolError,
    PulsarError,
    RemoteProtocolError,
    SecurityError,
    TimedOut,
    broker_error,
)
from ...model.secret import Secret
from ...model.service_url import Address
from ...wire import (
    FrameReader,
    encode_command,
    encode_ping,
    encode_pong,
    max_frame_size,
    proto,
)
from ..outputs import Disconnect, Transmit
from ..security.credential_exchange import CredentialExchange
from . import connection_states as states
from .connection_states import TRANSITIONS, ConnectionInput, ConnectionState
from .lookup_queue import LookupQueue
from .services import Services

if TYPE_CHECKING:
    from ..attaching.attachment_owner import AttachmentOwner
    from ..attaching.connection_users import ConnectedConsumer, ConnectedProducer, ConnectionWatcher
    from .requests import Pending

PROTOCOL_VERSION = 21
"""The highest protocol version of this client."""

CLIENT_VERSION = "pulsar-trio-v0.1.0"

CONNECTION_REQUEST_ID = 2**64 - 1
"""The request id of an ERROR that concerns the whole connection."""

REJECTION_PERIOD = 60_000_000_000
"""The period in which rejections are counted, in nanoseconds from the first one (rule CONN-15)."""

MAX_UNREAD_ANSWERS = 16 * 1024 * 1024
"""The limit for unread bytes that the client wrote in response to unrequested commands.

An honest broker runs out of permits, and stops sending, long before.
"""

MAX_IDLE = 60_000_000_000
"""Nanoseconds after which an unused connection is closed (rule POOL-13; Java's default)."""

Command = proto.BaseCommand

COMMANDS: dict[tuple[type, int], str] = {
    # The handler of each command that is legal in a state. Every other command ends the link.
    (states.Handshaking, Command.CONNECTED): "_on_connected",
    (states.Handshaking, Command.ERROR): "_on_handshake_refused",
    (states.Handshaking, Command.AUTH_CHALLENGE): "_on_auth_challenge",
    (states.Handshaking, Command.PING): "_on_ping",
    (states.Handshaking, Command.PONG): "_on_pong",
    (states.Ready, Command.PING): "_on_ping",
    (states.Ready, Command.PONG): "_on_pong",
    (states.Ready, Command.SEND_RECEIPT): "_on_send_receipt",
    (states.Ready, Command.SEND_ERROR): "_on_send_error",
    (states.Ready, Command.MESSAGE): "_on_message",
    (states.Ready, Command.CLOSE_PRODUCER): "_on_close_producer",
    (states.Ready, Command.CLOSE_CONSUMER): "_on_close_consumer",
    (states.Ready, Command.ACTIVE_CONSUMER_CHANGE): "_on_active_consumer_change",
    (states.Ready, Command.REACHED_END_OF_TOPIC): "_on_reached_end_of_topic",
    (states.Ready, Command.TOPIC_MIGRATED): "_on_topic_migrated",
    (states.Ready, Command.AUTH_CHALLENGE): "_on_auth_challenge",
    (states.Ready, Command.ERROR): "_on_error",
    (states.Ready, Command.SUCCESS): "_on_reply",
    (states.Ready, Command.PRODUCER_SUCCESS): "_on_reply",
    (states.Ready, Command.LOOKUP_RESPONSE): "_on_reply",
    (states.Ready, Command.PARTITIONED_METADATA_RESPONSE): "_on_reply",
    (states.Ready, Command.ACK_RESPONSE): "_on_reply",
    (states.Ready, Command.GET_LAST_MESSAGE_ID_RESPONSE): "_on_reply",
    (states.Ready, Command.CONSUMER_STATS_RESPONSE): "_on_reply",
    (states.Ready, Command.GET_TOPICS_OF_NAMESPACE_RESPONSE): "_on_reply",
    (states.Ready, Command.WATCH_TOPIC_LIST_SUCCESS): "_on_reply",
    (states.Ready, Command.WATCH_TOPIC_UPDATE): "_on_watch_topic_update",
    (states.Ready, Command.GET_SCHEMA_RESPONSE): "_on_reply",
    (states.Ready, Command.GET_OR_CREATE_SCHEMA_RESPONSE): "_on_reply",
    (states.Ready, Command.TC_CLIENT_CONNECT_RESPONSE): "_on_reply",
    (states.Ready, Command.NEW_TXN_RESPONSE): "_on_reply",
    (states.Ready, Command.ADD_PARTITION_TO_TXN_RESPONSE): "_on_reply",
    (states.Ready, Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE): "_on_reply",
    (states.Ready, Command.END_TXN_RESPONSE): "_on_reply",
}


@cache
def _legal_in(state: type) -> tuple[tuple[int, str], ...]:
    """Return the commands that are legal in a state, with their handlers' names."""
    return tuple((kind, name) for (legal, kind), name in COMMANDS.items() if legal is state)


class ConnectionMaker(Protocol):
    """The maker of a connection, which learns when the connection becomes ready or ends."""

    def became_ready(self, connection: "Connection") -> None:
        """The handshake is complete."""

    def ended(self, connection: "Connection", cause: PulsarError, *, already_gone: bool) -> None:
        """The connection has ended. `already_gone`: see `Connection.close`."""


class Connection:
    """One link to a broker. `maker`: the pool, or a probe of a service URL."""

    def __init__(
        self, services: Services, link: int, logical: Address, physical: Address, maker: ConnectionMaker
    ) -> None:
        context = services.context
        self.link = link
        self.logical = logical
        """The broker at the end of the connection."""
        self.physical = physical
        """The address to connect to; only a proxy makes it differ from the logical one (rule POOL-04)."""
        self.credentials = CredentialExchange(context, link, logical, services.config.authentication_method)
        self.state: ConnectionState = states.Opening()
        self.ready = False
        self.was_ready = False
        self.protocol_version = 0
        self.max_message_size = services.config.max_message_size
        self.producers: dict[int, ConnectedProducer] = {}
        self.consumers: dict[int, ConnectedConsumer] = {}
        self.watchers: dict[int, ConnectionWatcher] = {}
        self.supports_topic_watchers = False
        self.asks_without_creation = False
        """True when the broker can report a topic's partitions without creating the topic (CHECK-11)."""
        self.pending: dict[int, Pending] = {}
        self.lookups = LookupQueue(services.config.max_pending_lookups)
        self.unwritten: list[bytes] = []
        """Chunks for the driver to write, in order."""
        self._services = services
        self._maker = maker
        self._context = context
        self._received = ReceiveBuffer()
        self._reader = FrameReader(max_frame_size(services.config.max_message_size))
        self.metadata_decoder = self._reader.metadata_decoder
        self._ended = False
        self.unread = 0
        """Bytes received after the frame that ended the link; they are never parsed."""
        self._transmit = Transmit(link)
        self._transmit_pending = False
        self._unread_answers = 0
        """Bytes of `unwritten` that respond to unrequested commands of the peer."""
        self._has_received = False
        self.used = True
        """True when the connection was requested or unregistered from since the last keepalive."""
        self._idle_since: int | None = None
        self._rejections = 0
        self._first_rejection = 0
        self._handlers = self._handlers_of(states.Handshaking)
        self._timer = context.deadlines.slot(self._handshake_timed_out)
        self._timer.set(context.now + services.durations.connect_timeout)

    # --- for producers, consumers and requests ---

    def write(self, chunks: bytes | Iterable[bytes]) -> None:
        """Queue whole frames, and emit `Transmit` unless one is pending."""
        if self._ended:
            return
        if isinstance(chunks, bytes):
            self.unwritten.append(chunks)
        else:
            self.unwritten.extend(chunks)
        if not self._transmit_pending:
            self._transmit_pending = True
            self._context.emit(self._transmit)

    def register(self, owner: "AttachmentOwner") -> None:
        """Dispatch commands that name the owner's wire id to the owner."""
        self._registry(owner)[owner.wire_id] = owner

    def unregister(self, owner: "AttachmentOwner") -> None:
        self._registry(owner).pop(owner.wire_id, None)
        self.used = True

    def _registry(self, owner: "AttachmentOwner") -> dict[int, Any]:
        return self.producers if owner.kind == "producer" else self.consumers

    def count_rejection(self) -> None:
        """Count a lookup that was rejected or not answered; too many close the connection (rule CONN-15)."""
        now = self._context.now
        if self._rejections == 0 or now - self._first_rejection > REJECTION_PERIOD:
            self._rejections = 0
            self._first_rejection = now
        self._rejections += 1
        limit = self._services.config.max_rejected_requests
        if self._rejections > limit:
            self.close(ConnectionLost(f"more than {limit} requests were rejected within 60 s"))

    def close(self, cause: PulsarError, *, already_gone: bool = False) -> None:
        """End the link and detach every owner; a second call does nothing.

        `already_gone`: the driver reported the end, so no `Disconnect` is emitted.
        """
        if isinstance(self.state, states.Closed):
            return
        TRANSITIONS.check(self.state, ConnectionInput.CLOSE, closed := states.Closed(cause))
        self.state = closed
        self.ready = False
        self._ended = True
        self._timer.clear()
        self._received.clear()
        self.credentials.cleared()
        if not already_gone:
            refused = isinstance(cause, AuthenticationError)
            self._context.emit(Disconnect(self.link, str(cause), refused))
        services = self._services
        lost = cause
        if not isinstance(cause, ConnectionLost):
            lost = ConnectionLost(f"the connection to {self.logical} ended: {cause}")
            lost.__cause__ = cause
        hidden = isinstance(cause, RemoteProtocolError) and not isinstance(cause, SecurityError)
        reported = lost if hidden else cause
        self._maker.ended(self, reported, already_gone=already_gone)
        self.lookups.fail(lost)
        services.requests.fail_all(self, lost)
        for owner in [*self.producers.values(), *self.consumers.values()]:
            owner.attachment.lost(self, lost)
        for watcher in list(self.watchers.values()):
            watcher.lost()

    @property
    def unanswered(self) -> bool:
        """True while no frame has answered a CONNECT over a connection without TLS."""
        plain = not self._services.addresses.service_url.tls
        return plain and isinstance(self.state, states.Handshaking) and not self._has_received

    # --- facts from the driver ---

    def receive_eof(self) -> None:
        """The peer will send nothing more, so the client gives the link up."""
        hint = " without an answer to CONNECT (a port for pulsar+ssl:// does that)" if self.unanswered else ""
        self.close(ConnectionLost(f"{self.physical}: the peer closed the connection{hint}"))

    def opened(self) -> None:
        """The link is open, and verified where it is encrypted: send CONNECT (CONN-01).

        With an authentication method CONNECT waits for the credentials.
        """
        if not isinstance(self.state, states.Opening):
            raise LocalProtocolError(f"link {self.link} was reported connected twice")
        if self.credentials.method is None:
            self._connect(Secret(b""))
        else:
            TRANSITIONS.check(
                self.state, ConnectionInput.CREDENTIALS_WANTED, following := states.Authenticating()
            )
            self.state = following
            self.credentials.begin(self._connect)

    def _connect(self, credentials: Secret) -> None:
        TRANSITIONS.check(self.state, ConnectionInput.OPENED, following := states.Handshaking())
        self.state = following
        connect = proto.CommandConnect(
            client_version=CLIENT_VERSION,
            auth_data=credentials.reveal(),
            protocol_version=PROTOCOL_VERSION,
            auth_method_name=self.credentials.method or "none",
            feature_flags=proto.FeatureFlags(
                supports_auth_refresh=True,
                supports_broker_entry_metadata=True,
                supports_partial_producer=True,
                supports_get_partitioned_metadata_without_auto_creation=True,
                supports_repl_dedup_by_lid_and_eid=True,
            ),
        )
        if self.logical != self.physical and self._services.config.sni_proxy is None:
            connect.proxy_to_broker_url = str(self.logical)
        self.write(encode_command(Command.CONNECT, connect))

    def _respond(self, credentials: Secret) -> None:
        """Answer an AUTH_CHALLENGE. Producers and consumers go on meanwhile."""
        response = proto.CommandAuthResponse(
            client_version=CLIENT_VERSION,
            protocol_version=PROTOCOL_VERSION,
            response=proto.AuthData(auth_method_name=self.credentials.method, auth_data=credentials.reveal()),
        )
        self.write(encode_command(Command.AUTH_RESPONSE, response))

    def receive(self, data: bytes) -> None:
        """Dispatch received bytes. Wrong bytes end the link and never raise.

        Raises `LocalProtocolError` when the driver has not reported the link as connected.
        """
        state = self.state
        if isinstance(state, states.Authenticating):
            self.close(RemoteProtocolError("the broker sent bytes before CONNECT"))
            return
        if isinstance(state, states.Opening):
            raise LocalProtocolError(f"link {self.link} received data before it was reported connected")
        whole = self._received.feed(data)
        if whole is None:
            return
        position = 0
        written = len(self.unwritten)
        handlers = self._handlers
        try:
            for kind, command, end in self._reader.frames(whole):
                self._has_received = True
                if kind is None:
                    consumer = self.consumers.get(command.facts.consumer_id)
                    if consumer is None or consumer.on_uniform_messages(self, command):  # rule CONN-11
                        position = end
                    else:
                        self._reader.declined = True
                    continue
                position = end
                if command is None:
                    continue  # a command of a later protocol version is ignored
                handler = handlers.get(kind)
                if handler is None:
                    raise RemoteProtocolError(_unexpected(kind, state))
                handler(command)
                if self.state is not state:
                    if self._ended:
                        self.unread = len(whole) - position
                        return
                    state = self.state
                    handlers = self._handlers
        except (FrameError, RemoteProtocolError) as error:
            self.unread = len(whole) - position
            self.close(error)
            return
        self._received.hold(whole, position)
        if len(self.unwritten) > written:
            self._unread_answers += sum(map(len, self.unwritten[written:]))
            if self._unread_answers > MAX_UNREAD_ANSWERS:
                self.close(RemoteProtocolError("the broker goes on sending and does not read the answers"))

    def data_to_send(self) -> list[bytes]:
        self._transmit_pending = False
        self._unread_answers = 0
        chunks = self.unwritten
        self.unwritten = []
        return chunks

    # --- handshake ---

    def _handlers_of(self, state: type) -> dict[int, Any]:
        return {kind: getattr(self, name) for kind, name in _legal_in(state)}

    def _on_connected(self, command: Any) -> None:
        TRANSITIONS.check(self.state, ConnectionInput.CONNECTED, following := states.Ready())
        self.state = following
        self.ready = self.was_ready = True
        self.credentials.connected()
        self.protocol_version = min(command.protocol_version, PROTOCOL_VERSION)
        if command.max_message_size > 0:
            # The client may later allocate, and decompress to, the announced size; the config limits that
            # size.
            accepted = self._services.config.max_announced_message_size
            self.max_message_size = min(command.max_message_size, accepted)
            self._reader.limit = max_frame_size(self.max_message_size)
        self._reader.reads_uniform_messages = True
        flags = command.feature_flags
        self.supports_topic_watchers = flags.supports_topic_watchers
        self.asks_without_creation = flags.supports_get_partitioned_metadata_without_auto_creation
        self._handlers = self._handlers_of(states.Ready)
        self._timer.clear()
        self._timer = self._context.deadlines.slot(self._keepalive)
        self._timer.set(self._context.now + self._services.durations.keepalive_interval)
        self._maker.became_ready(self)

    def _on_handshake_refused(self, command: Any) -> None:
        self.close(broker_error(command.error, command.message))

    def _on_auth_challenge(self, command: Any) -> None:
        try:
            self.credentials.challenged(command.challenge, self._respond)
        except AuthenticationError as error:
            self.close(error)

    def _handshake_timed_out(self) -> None:
        seconds = self._services.config.connect_timeout
        if self.credentials.waiting:
            self.close(self.credentials.not_in_time(self.physical, seconds))
            return
        what = "no connection" if isinstance(self.state, states.Opening) else "no answer to CONNECT"
        self.close(TimedOut(f"{what} to {self.physical} within {seconds:g} s"))

    # --- keepalive (CONN-01) ---

    def _keepalive(self) -> None:
        interval = self._services.durations.keepalive_interval
        if not self._has_received:
            seconds = self._services.config.keepalive_interval
            self.close(ConnectionLost(f"{self.logical} did not answer a PING within {seconds:g} s"))
            return
        if self._is_idle_for_too_long():
            self.close(ConnectionLost(f"the connection to {self.logical} was not used for a minute"))
            return
        self._has_received = False
        self.write(encode_ping())
        self._timer.set(self._context.now + interval)

    def _is_idle_for_too_long(self) -> bool:
        """Tell whether the connection was unused for `MAX_IDLE`.

        The check runs once per keepalive interval, so the end may come one interval late.
        """
        now = self._context.now
        if self.used or self.producers or self.consumers or self.watchers or self.pending:
            self.used = False
            self._idle_since = now
            return False
        return self._idle_since is not None and now - self._idle_since >= MAX_IDLE

    def _on_ping(self, _command: Any) -> None:
        self.write(encode_pong())

    def _on_pong(self, _command: Any) -> None:
        """Do nothing: every frame shows that the peer lives."""

    # --- dispatch ---

    def _on_send_receipt(self, command: Any) -> None:
        producer = self.producers.get(command.producer_id)
        if producer is not None:  # a receipt for an unknown producer is ignored (rule CONN-10)
            producer.on_receipt(self, command)

    def _on_send_error(self, command: Any) -> None:
        producer = self.producers.get(command.producer_id)
        if producer is not None:
            producer.on_send_error(self, command)

    def _on_message(self, command: Any) -> None:
        consumer = self.consumers.get(command.consumer_id)
        if consumer is not None:  # rule CONN-11
            consumer.on_message(self, command)

    def _on_close_producer(self, command: Any) -> None:
        self._closed_by_broker(self.producers.get(command.producer_id), command)

    def _on_close_consumer(self, command: Any) -> None:
        self._closed_by_broker(self.consumers.get(command.consumer_id), command)

    def _closed_by_broker(self, owner: Any, command: Any) -> None:
        if owner is None:
            return
        assigned = (
            command.assignedBrokerServiceUrlTls
            if self._services.addresses.service_url.tls
            else command.assignedBrokerServiceUrl
        )
        cause = ConnectionLost(f"the broker closed the {owner.kind}")
        owner.attachment.closed_by_broker(self, assigned or None, cause)

    def _on_active_consumer_change(self, command: Any) -> None:
        consumer = self.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.on_active_changed(command.is_active)

    def _on_reached_end_of_topic(self, command: Any) -> None:
        consumer = self.consumers.get(command.consumer_id)
        if consumer is not None:
            consumer.on_end_of_topic()

    def _on_watch_topic_update(self, command: Any) -> None:
        watcher = self.watchers.get(command.watcher_id)
        if watcher is not None:  # else the watcher was closed meanwhile
            watcher.on_update(command)

    def _on_topic_migrated(self, command: Any) -> None:
        """Tell the owner of the new cluster; the CLOSE that follows makes the owner reconnect there."""
        producers = command.resource_type == proto.CommandTopicMigrated.Producer
        owner = (self.producers if producers else self.consumers).get(command.resource_id)
        if owner is None:
            return
        tls = self._services.addresses.service_url.tls
        owner.attachment.migrated(command.brokerServiceUrlTls if tls else command.brokerServiceUrl)

    def _on_reply(self, command: Any) -> None:
        written = len(self.unwritten)
        self._services.requests.reply(self, command)
        if len(self.unwritten) > written:
            # Bytes that an answered request leads to are requested: a producer may resend its whole window.
            self._unread_answers -= sum(map(len, self.unwritten[written:]))

    def _on_error(self, command: Any) -> None:
        if command.request_id == CONNECTION_REQUEST_ID:
            return  # the error concerns the connection, which the broker closes if it wants to
        error = broker_error(command.error, command.message)
        self._services.requests.refuse(self, command.request_id, error)


def _unexpected(kind: int, state: ConnectionState) -> str:
    name = Command.Type.Name(Command.Type.ValueType(kind))
    return f"the broker sent {name} while the connection was {type(state).__name__}"
