"""`Consumer`: one consumer of one topic; connects receiver queue, permits, acknowledgement and redelivery
with an attachment.

The consumer sends SUBSCRIBE and grants permits once subscribed. When a connection is lost, queued messages
are dropped once the next connection is open, because the broker redelivers them. Waiting acknowledgements go
first on that connection. Delivered messages can be acknowledged at any later time (rules CONS-09,
CONS-16, CONS-44). The attachment finds the broker, again after each loss; the consumer's states are the
attachment's.

Other modules handle each message: `arrival` (frame to queue), `receiver_queue` (queue to application),
`permits`, `ack_commands` (commands of the application), `ack_tracker` and `ack_grouping` (acknowledged
messages, and when ACKs are sent). `redelivery` and `ack_timeout` request messages again, and `letter_topics`
copies them to other topics. `consumer_requests` has the application's requests.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

from ...model.config import ConsumerSpec
from ...model.errors import ClosedError, PulsarError, RemoteProtocolError
from ...model.message import Message
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ...wire import MessageCommand, UniformMessages, encode_command, encode_flow, proto
from ..acknowledging.ack_commands import Acknowledgeable
from ..acknowledging.ack_timeout import AcknowledgementTimeout
from ..acknowledging.acknowledgements import Acknowledgements
from ..arrival.arrival import Arrival
from ..arrival.chunk_assembly import ChunkAssembly
from ..arrival.encrypted_arrival import EncryptedArrival
from ..attaching.attachment import Attachment
from ..connecting.connection import Connection
from ..connecting.refusal_policy import Decision
from ..connecting.services import Services
from ..counters import ArrivalCounters
from ..delivery import explaining
from ..delivery.batch_receive import BatchReceive
from ..delivery.consumer_services import ConsumerServices
from ..delivery.received_entries import Messages
from ..delivery.receiver_queue import ReceiverQueue
from ..delivery.schema_queue import SchemaQueue
from ..encryption.decryption import Decryption
from ..letter_topics.dead_letter_sorter import DeadLetterSorter
from ..letter_topics.letter_topics import LetterTopics
from ..outputs import (
    ActiveChanged,
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
)
from ..positions.positions import Positions
from ..schemas.decoding_sources import DecodingSources, needs_definitions
from ..schemas.schema_message import schema_message
from ..schemas.schema_question import SchemaQuestion
from ..schemas.value_decoder import WriterDecoder
from ..statistics import ConsumerStatistics
from .blocked_watch import BlockedWatch
from .consumer_requests import ConsumerParts, ConsumerRequests
from .interceptors import ConsumerInterception, InterceptedAckCommands
from .listener import ApplicationListener, ConsumerListener
from .queue_factory import receiving
from .subscribe_command import subscribe_command

_Command = proto.BaseCommand

NAME_LENGTH = 5
"""Letters of a generated consumer name, as many as the Java client has (CONS-03)."""


class Consumer:
    """One consumer.

    `receive()` returns the next message or None, and `take(limit)` the next messages. Methods that other
    objects carry out are bound as attributes: see `AckCommands` and `ConsumerRequests`.

    `client`: the services of the client. `listener`: receives all outputs in place of the application.
    """

    kind: Literal["producer", "consumer"] = "consumer"
    open_reply: ClassVar[int] = _Command.SUCCESS

    def __init__(
        self,
        client: Services,
        handle: int,
        wire_id: int,
        spec: ConsumerSpec,
        listener: ConsumerListener | None = None,
    ) -> None:
        self.handle = handle
        self.wire_id = wire_id
        self.spec = spec
        assert isinstance(spec.topic, str)
        self.topic = topic = TopicName.parse(spec.topic)
        self.name = name = spec.consumer_name or client.context.rng.letters(NAME_LENGTH)
        if listener is None:
            listener = ApplicationListener(client, topic)
        self._create_topic = listener.create_topic and client.config.create_topics
        self.attachment = Attachment(client, topic, self, ended=listener.ended)
        self._emit = emit = listener.on_output
        source = listener.source
        if spec.schema is not None:
            source = source.decoding(WriterDecoder(spec.schema, None))
        self._services = services = ConsumerServices(
            client, handle, wire_id, spec, topic, name, source, listener.counters, emit
        )
        self.connection: Connection | None = None
        """See `RequestedConsumer`, also for the three attributes below."""
        self.is_active: bool | None = None
        self.is_positioned = False
        self.end_of_topic = False
        self._ready = False
        """True once the consumer was subscribed."""
        self._active_early: bool | None = None
        """The active state that the broker reported between SUBSCRIBE and its answer."""
        self._was_on: Connection | None = None
        """The connection of the last attachment."""
        self._cluster: Address | None = None
        """The cluster of the previous connection: its acknowledgements have no effect in another cluster."""
        interception = ConsumerInterception(services) if spec.interceptors else None
        self._make_parts(services, interception)
        self._bind(interception)
        self._bind_requests()

    def _make_parts(self, services: ConsumerServices, interception: ConsumerInterception | None) -> None:
        """Make the parts that messages and acknowledgements pass through."""
        context, spec, topic = services.context, services.spec, services.topic
        # A non-persistent topic never redelivers.
        timeout = (
            AcknowledgementTimeout(context, spec)
            if spec.acknowledgement_timeout and topic.persistent
            else None
        )
        policy = spec.batch_receive
        self._batch_receive = None if policy is None else BatchReceive(context, policy, services.emit)
        schema = spec.schema
        self._sources = (
            DecodingSources(services.client, topic, schema, services.source)
            if schema is not None and needs_definitions(schema, letters=spec.letters is not None)
            else None
        )
        permits, queue = receiving(services, timeout, self._batch_receive, interception, self._sources)
        if isinstance(queue, SchemaQueue) and self._sources is not None:
            self._sources.released = partial(self._release, queue)
        self.permits, self._queue = permits, queue
        self._acknowledgements = acknowledgements = Acknowledgements(services, queue, timeout)
        self._letters = (
            None
            if spec.letters is None
            else LetterTopics(services, spec.letters, permits, acknowledgements, self._sources)
        )
        self._chunks = ChunkAssembly(services, acknowledgements.acknowledge_entries)
        letters = self._letters
        entrance = DeadLetterSorter(queue, letters) if letters is not None and topic.persistent else queue
        self._decryption = decryption = (
            None
            if spec.crypto_key_reader is None
            else Decryption(services.client, spec.crypto_key_reader, self._on_key)
        )
        self._arrival = Arrival(services, permits, entrance, acknowledgements, self._chunks, decryption)
        self._encrypted = None if decryption is None else EncryptedArrival(self._arrival, decryption, permits)
        self._receive = self._arrival.receive if self._encrypted is None else self._encrypted.receive
        self._receive_uniform = (
            self._arrival.receive_uniform if self._encrypted is None else self._encrypted.receive_uniform
        )
        self._positions = Positions(services, self._arrival, queue, self)
        self._blocked = (
            BlockedWatch(services, permits, queue, acknowledgements)
            if topic.persistent and not spec.subscription_type.cumulative
            else None
        )

    def _bind(self, interception: ConsumerInterception | None) -> None:
        """Bind the commands that other objects carry out, and the calls of interceptors and letter topics."""
        self._ack_commands = commands = self._acknowledgements.commands
        self._redelivery = redelivery = self._acknowledgements.redelivery
        self.receive: Callable[[], Message | None] = self._queue.receive
        self.take: Callable[..., Messages] = self._queue.take
        self.acknowledge: Callable[[Acknowledgeable], bool] = commands.acknowledge
        self.acknowledge_cumulative = commands.acknowledge_cumulative
        self.acknowledge_in = commands.acknowledge_in
        self.acknowledge_cumulative_in = commands.acknowledge_cumulative_in
        self.negative_acknowledge = commands.negative_acknowledge
        if interception is not None:
            intercepted = InterceptedAckCommands(commands, interception)
            self.acknowledge = intercepted.acknowledge
            self.acknowledge_cumulative = intercepted.acknowledge_cumulative
            self.acknowledge_in = intercepted.acknowledge_in
            self.acknowledge_cumulative_in = intercepted.acknowledge_cumulative_in
            redelivery.on_negative = interception.negatively_acknowledged
            redelivery.on_timeout = interception.timed_out
        if self._encrypted is not None:
            redelivery.on_all_requested = self._encrypted.drop
        if self._letters is not None:
            self._queue.on_taken_back = self._letters.tries.taken_back
            self._arrival.undelivered.on_withheld = self._letters.tries.withheld
            redelivery.on_acknowledged = self._letters.acknowledged
            redelivery.on_acknowledged_through = self._letters.acknowledged_through

    def _bind_requests(self) -> None:
        """Bind the requests of the application."""
        parts = ConsumerParts(
            self.permits,
            self._queue,
            self._batch_receive,
            self._acknowledgements,
            self._letters,
            self._positions,
            self._blocked,
            self._decryption,
        )
        self._requests = requests = ConsumerRequests(self._services, self, parts)
        self.explain = requests.explain
        self.check_batch_receive = requests.check_batch_receive
        self.batch_receive = requests.batch_receive
        self.count_for = requests.count_for
        self.set_processing = requests.set_processing
        self.pause = requests.pause
        self.resume = requests.resume
        self.redeliver_unacknowledged = requests.redeliver_unacknowledged
        self.flush_acknowledgements = requests.flush_acknowledgements
        self.reconsume_later = requests.reconsume_later
        self.unsubscribe = requests.unsubscribe
        self.check_seek = requests.check_seek
        self.prepare_seek = requests.prepare_seek
        self.seek = requests.seek
        self.check_last_message = requests.check_last_message
        self.last_message_id = requests.last_message_id
        self.last_position = requests.last_position
        self.has_message_available = requests.has_message_available
        self.checkpoint = requests.checkpoint
        self.forget_request = requests.forget_request

    # --- deliveries ------------------------------------------------------------------------------

    def on_message(self, connection: Connection, command: MessageCommand) -> None:
        """Take a MESSAGE frame. Raises `RemoteProtocolError` when the frame has to end the link."""
        if connection is not self.connection:
            self._on_early_message(connection)
            return
        queue = self._queue
        self._receive(
            command, self._redelivery.epoch, connection.max_message_size, connection.metadata_decoder
        )
        if not queue.announced and queue.available:
            queue.announced = True
            self._emit(Deliverable(self.handle))

    def on_uniform_messages(self, connection: Connection, entries: UniformMessages) -> bool:
        """Take plain entries of several MESSAGE frames. Return False, having changed nothing, when each frame
        has to go through `on_message`."""
        if connection is not self.connection or not self._receive_uniform(
            entries, self._redelivery.epoch, connection.metadata_decoder
        ):
            return False
        if not self._queue.announced and self._queue.available:
            self._queue.announced = True
            self._emit(Deliverable(self.handle))
        return True

    def _on_key(self) -> None:
        """Take the entries that waited for a private key, now that it has come or was refused."""
        connection, encrypted = self.connection, self._encrypted
        if connection is None:
            return
        assert encrypted is not None
        try:
            encrypted.release(self._redelivery.epoch)
        except RemoteProtocolError as error:
            connection.close(error)
        if not self._queue.announced and self._queue.available:
            self._queue.announced = True
            self._emit(Deliverable(self.handle))

    def _release(self, queue: SchemaQueue) -> None:
        """A definition is known, or cannot be had: deliver the messages that waited for it."""
        queue.release()
        if not queue.announced and queue.available:
            queue.announced = True
            self._emit(Deliverable(self.handle))

    # --- the application's commands: see also `ConsumerRequests` ----------------------------------

    @property
    def described(self) -> str:
        """A description of the machine, for texts."""
        return self._ack_commands.described + explaining.subscription(self.spec)

    @property
    def queue(self) -> ReceiverQueue:
        """Messages that have arrived and are not delivered yet."""
        return self._queue

    def available(self) -> int:
        """The number of messages that `take` would return now."""
        return self._queue.available

    @property
    def subscribed(self) -> list[str]:
        """The consumer's topic in a list, once subscribed; before that an empty list."""
        return [self._services.source.topic] if self._ready else []

    def close(self, once_answered: bool = False) -> None:
        """Send waiting acknowledgements, then close (rules CONS-50, CONS-51, CONS-52). `Closed` follows.
        `once_answered`: see `Attachment.close`."""
        if self._ack_commands.closed:
            return
        self._acknowledgements.grouping.flush()
        self._stop(self._closed())
        self.attachment.close(once_answered)

    def hand_over(self) -> list[int]:
        """See `ConsumerRequests.hand_over`. The definitions are left to the consumers of the partitions."""
        if self._sources is not None:
            self._sources.end()
        return self._requests.hand_over()

    @property
    def is_closing(self) -> bool:
        """True once the consumer is closing or has ended; it delivers nothing more."""
        return self._ack_commands.closed

    def check_open(self) -> None:
        """Raise `ClosedError` once the consumer is closing."""
        self._ack_commands.check_open()

    def statistics(self) -> ConsumerStatistics:
        """Return the counts so far."""
        grouping = self._acknowledgements.grouping
        return ConsumerStatistics(
            self._queue.delivered,
            self._arrival.bytes_arrived,
            grouping.ids_sent,
            grouping.ids_refused,
            self._queue.available,
            self._acknowledgements.tracker.forgotten
            + (0 if self._letters is None else self._letters.tries.forgotten),
        )

    @property
    def counters(self) -> ArrivalCounters:
        """Counters of messages that arrived and were not delivered, by reason."""
        return self._arrival.counters

    # --- what the attachment asks and tells ------------------------------------------------------

    def ask_first(
        self, connection: Connection, proceed: Callable[[], None], failed: Callable[[PulsarError], None]
    ) -> SchemaQuestion | None:
        """Ask for the topic's latest definition once, for a schema that detects it."""
        if self._sources is None or self._ready:
            return None
        return self._sources.ask_latest(connection, proceed, failed)

    def open_command(self, request_id: int, connection: Connection) -> bytes:
        """Write SUBSCRIBE. Queued messages are dropped because the broker redelivers them (CONS-09). A
        subscription that is not durable continues behind the delivered messages (CONS-16)."""
        self._active_early = None
        command = subscribe_command(
            self.spec,
            self.topic,
            self.name,
            consumer_id=self.wire_id,
            request_id=request_id,
            create_topic=self._create_topic,
            epoch=self._redelivery.epoch,
            schema=schema_message(self.spec.schema, connection.protocol_version),
        )
        if self.attachment.redirection.cluster != self._cluster:
            self._positions.leave_cluster()
        self._positions.prepare(command)
        self._queue.clear()
        return encode_command(_Command.SUBSCRIBE, command)

    @property
    def positioned(self) -> bool:
        return not self._positions.has_to_move

    def has_to_wait(self, reply: Any) -> bool:
        return False

    def on_opened(self, connection: Connection, _reply: Any) -> None:
        """Send waiting acknowledgements first, then grant permits for a full queue (FLOW-02): the consumer is
        subscribed."""
        self.connection = self._was_on = connection
        if self.attachment.redirection.cluster != self._cluster:
            self._cluster = self.attachment.redirection.cluster
            self._leave_cluster()
        if self._sources is not None:
            self._sources.attach(connection)
        self._acknowledgements.attach(connection)
        self._positions.attach(connection)
        if self._active_early is not None:
            self.on_active_changed(self._active_early)

    def on_open_refused(self, error: PulsarError) -> Decision:
        return Decision.DEFAULT

    def on_detached(self, cause: PulsarError) -> None:
        """Keep the queue until the next connection is open, so that the application may continue with it."""
        self.connection = None
        self._more_may_come()  # a broker repeats the end of the topic
        if self.spec.durable:  # a non-durable subscription does not redeliver chunks before its new start
            self._chunks.clear()
        self.is_active = None
        self._acknowledgements.detach(cause)
        self._positions.detach()
        self.permits.detach()
        if self._encrypted is not None:
            self._encrypted.clear()
        if self._sources is not None:
            self._sources.detach()
        if self._blocked is not None:
            self._blocked.detach()
        if self._letters is not None:
            self._letters.detach()
        if self.is_positioned:
            self.is_positioned = False
            self._emit(Detached(self.handle, cause))

    def on_failed(self, error: PulsarError) -> None:
        self._stop(error)
        self._end(error)
        if self._ready:
            self._emit(Closed(self.handle, error))
        else:
            self._emit(ConsumerFailed(self.handle, error))

    def close_command(self, request_id: int) -> bytes:
        return encode_command(
            _Command.CLOSE_CONSUMER,
            proto.CommandCloseConsumer(consumer_id=self.wire_id, request_id=request_id),
        )

    def on_closed(self) -> None:
        closed = self._closed()
        self._stop(closed)
        self._end(closed)
        if self._ready:
            self._emit(Closed(self.handle, None))
        else:  # the application may wait for the consumer to be ready
            self._emit(ConsumerFailed(self.handle, closed))

    # --- what the broker tells -------------------------------------------------------------------

    def on_active_changed(self, active: bool) -> None:
        """Take ACTIVE_CONSUMER_CHANGE; Failover only (SUBT-05). The frame may arrive before the answer to
        SUBSCRIBE."""
        if self.connection is None:
            self._active_early = active
            return
        self._redelivery.active_changed(active)
        if active is not self.is_active:
            self.is_active = active
            self._emit(ActiveChanged(self.handle, active))

    def on_end_of_topic(self) -> None:
        """Take REACHED_END_OF_TOPIC; the broker may repeat the frame (CONS-42)."""
        if not self.end_of_topic:
            self.end_of_topic = True
            self._emit(EndOfTopic(self.handle))
            if self._batch_receive is not None:
                self._batch_receive.end_of_topic()

    def _more_may_come(self) -> None:
        """Forget that the topic has ended."""
        self.end_of_topic = False
        if self._batch_receive is not None:
            self._batch_receive.over = False

    # --- positions ---------------------------------------------------------------------------------

    def on_positioned(self) -> None:
        """Grant permits and tell the application: the consumer is attached and at its position."""
        connection = self.connection
        assert connection is not None
        self.attachment.on_positioned()
        blocked = self._blocked
        if blocked is not None:
            blocked.attach(connection)

        def grant(permits: int) -> None:
            connection.write(encode_flow(self.wire_id, permits))
            if blocked is not None:
                blocked.granted(permits)

        self.permits.attach(grant)
        self.is_positioned = True
        if self._ready:
            self._emit(Attached(self.handle))
        else:
            self._ready = True
            self._emit(ConsumerReady(self.handle, self._services.source.topic))

    def on_moved(self) -> None:
        """Forget everything that precedes a seek: the subscription was moved (SEEK-06)."""
        self._acknowledgements.drop()
        if self._encrypted is not None:
            self._encrypted.drop()
        self._chunks.clear()
        if self._letters is not None:
            self._letters.drop()
        self._more_may_come()

    def on_perhaps_moved(self, error: PulsarError) -> None:
        self._acknowledgements.drop_after(error)

    def on_position_failed(self, error: PulsarError) -> None:
        self.attachment.position_failed(error)

    # --- inside ------------------------------------------------------------------------------------

    def _leave_cluster(self) -> None:
        """Forget earlier deliveries: their messages have other positions in the new cluster."""
        self._acknowledgements.leave_cluster()
        if self._letters is not None:
            self._letters.drop()

    def _on_early_message(self, connection: Connection) -> None:
        """Handle a message that arrives while not subscribed. A closing consumer drops it. On the connection
        of the previous subscription the message may have been under way when the broker closed the consumer
        (a real broker does so under load); the broker redelivers it. In all other cases the broker had no
        permit to send it, and the subscription would lose the message: only a new connection makes the broker
        redeliver it."""
        if not self._ack_commands.closed and connection is not self._was_on:
            raise RemoteProtocolError(f"the broker sent messages of {self.topic} before it was asked to")

    def unsubscribed(self, attached: object) -> None:
        if self.attachment.state is attached:
            self.attachment.end()
        else:  # the consumer was closed meanwhile, and the broker may have subscribed it again
            self.close()

    def _end(self, error: PulsarError) -> None:
        """Fail all open requests with the error."""
        self._acknowledgements.grouping.end(error)
        self._positions.end(error)
        if self._sources is not None:
            self._sources.end()
        if self._batch_receive is not None:
            self._batch_receive.end(error)
        self._requests.end(error)

    def _closed(self) -> ClosedError:
        return ClosedError(f"the {self._services.described} was closed")

    def _stop(self, error: PulsarError) -> None:
        """Stop taking and delivering messages, and stop seeking."""
        self.connection = None
        self._acknowledgements.close()
        self._positions.leave(error)
        self.permits.detach()
        if self._blocked is not None:
            self._blocked.detach()
        if self._letters is not None:
            self._letters.close()
        self._chunks.clear()
        if self._encrypted is not None:
            self._encrypted.clear()
        if self._decryption is not None:
            self._decryption.close()
        self._queue.close(f"the {self._services.described} is closed")
