"""`Consumer`: one consumer of one topic; connects receiver queue, permits, acknowledgement and redelivery
with an attachment.

The consumer sends SUBSCRIBE and grants permits once subscribed. When a connection is lost, queued messages
are dropped once the next connection is open, because the broker redelivers them. Waiting acknowledgements go
first on that connection. Delivered messages can be acknowledged at any later time (rules CONS-09 to CONS-17,
CONS-44). The attachment finds the broker, again after each loss; the consumer's states are the attachment's.

Other modules handle each message: `arrival` (frame to queue), `receiver_queue` (queue to application),
`permits`, `ack_commands` (commands of the application), `ack_tracker` and `ack_grouping` (acknowledged
messages, and when ACKs are sent). `redelivery` and `ack_timeout` request messages again, and `letter_topics`
copies them to other topics. `consumer_requests` has the application's requests.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Literal, Protocol

from ...model.config import ConsumerSpec, ReadingSpec
from ...model.errors import ClosedError, PulsarError, RemoteProtocolError
from ...model.message import Message, Source
from ...model.message_id import EntryPosition, MessageId
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ...wire import MessageCommand, UniformMessages, encode_command, encode_flow, proto
from ..acknowledging.ack_commands import AckCommands, Acknowledgeable
from ..acknowledging.ack_grouping import AckGrouping
from ..acknowledging.ack_timeout import AcknowledgementTimeout
from ..acknowledging.ack_tracker import AckTracker
from ..acknowledging.redelivery import Redelivery
from ..connecting.attachment import Attachment
from ..connecting.connection import Connection
from ..connecting.refusal_policy import Decision
from ..connecting.services import ClientContext, Services
from ..counters import ArrivalCounters
from ..delivery.batch_receive import BatchReceive
from ..delivery.received_entries import Messages
from ..delivery.receiver_queue import ReceiverQueue
from ..letter_topics.letter_topics import DeadLetterSorter, LetterTopics
from ..outputs import (
    ActiveChanged,
    Attached,
    Closed,
    ConsumerFailed,
    ConsumerReady,
    Deliverable,
    Detached,
    EndOfTopic,
    Output,
    Undecryptable,
)
from ..statistics import ConsumerStatistics
from .arrival import Arrival
from .blocked_watch import BlockedWatch
from .chunk_assembly import ChunkAssembly
from .consumer_requests import ConsumerRequests
from .interceptors import InterceptedAckCommands, Interception
from .positions import Positions
from .queue_factory import receiving
from .subscribe_command import subscribe_command

_Command = proto.BaseCommand

NAME_LENGTH = 5
"""Letters of a generated consumer name, as many as the Java client has (CONS-03)."""


def called(spec: ConsumerSpec, topics: str) -> str:
    """Describe a consumer with that spec, for texts."""
    return f"reader of {topics}" if isinstance(spec, ReadingSpec) else f"consumer on {topics}"


class Listener(Protocol):
    """An object that receives a consumer's outputs in place of the application."""

    def on_output(self, output: Output) -> None: ...

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """The consumer has ended for good; `on_output` has received its last output."""
        ...


class Consumer(ConsumerRequests):
    """One consumer.

    `receive()` returns the next message or None, and `take(limit)` the next messages. `acknowledge`,
    `acknowledge_cumulative` and `negative_acknowledge` are those of its `AckCommands`.

    `listener`: receives all outputs in place of the application. `counters`: counters shared with other
    consumers. `create_topic`: True when subscribing may create a missing topic (BROKER-07). `source`: the
    source of its messages; None for its topic and partition alone.
    """

    kind: Literal["producer", "consumer"] = "consumer"
    open_reply: ClassVar[int] = _Command.SUCCESS

    def __init__(
        self,
        context: ClientContext,
        services: Services,
        handle: int,
        wire_id: int,
        spec: ConsumerSpec,
        listener: Listener | None = None,
        *,
        counters: ArrivalCounters | None = None,
        create_topic: bool = True,
        source: Source | None = None,
    ) -> None:
        self.handle = handle
        self.wire_id = wire_id
        self.spec = spec
        assert isinstance(spec.topic, str)
        self.topic = TopicName.parse(spec.topic)
        self.name = spec.consumer_name or context.rng.letters(NAME_LENGTH)
        self._emit = emit = context.emit if listener is None else listener.on_output
        ended = services.ended if listener is None else listener.ended
        self.attachment = Attachment(context, services, self.topic, self, ended=ended)
        self._context = context
        self._services = services
        self._create_topic = create_topic and services.config.create_topics
        self._source = source or Source(str(self.topic), self.topic.partition)
        tracker = self._tracker = AckTracker(spec.batch_index_acknowledgement)
        # A non-persistent topic never redelivers.
        has_memory = self.topic.persistent
        timeout = (
            AcknowledgementTimeout(context, spec) if spec.acknowledgement_timeout and has_memory else None
        )
        policy = spec.batch_receive
        self._batch_receive = None if policy is None else BatchReceive(context, policy, emit)
        interception = (
            Interception(handle, self.topic, self._source, spec.interceptors, emit)
            if spec.interceptors
            else None
        )
        self.permits, self._queue = receiving(
            spec, services.received_memory, timeout, self._batch_receive, interception
        )
        self._ack_grouping = AckGrouping(
            context, services.requests, wire_id, spec, tracker, emit, wanted=has_memory
        )
        counters = counters or ArrivalCounters()
        self._letters = self._with_letters(counters)
        letters = self._letters
        self._chunks = ChunkAssembly(context, spec, counters, self._done_with)
        self._arrival = Arrival(
            self._source,
            self.permits,
            self._queue if letters is None or not has_memory else DeadLetterSorter(self._queue, letters),
            tracker,
            self._ack_grouping,
            self._cannot_decrypt,
            self._chunks,
            counters,
            durable=spec.durable,
            raw_batches=isinstance(spec, ReadingSpec) and spec.raw_batches,
        )
        self._positions = Positions(
            context,
            services,
            wire_id,
            spec,
            self._source,
            emit,
            self._arrival,
            self._queue,
            self._forget,
            self._perhaps_moved,
            self._grant,
            self.attachment.position_failed,
        )
        self._redelivery = Redelivery(
            context,
            wire_id,
            spec,
            self._queue,
            self._ack_grouping,
            tracker,
            timeout,
            counters,
            wanted=has_memory,
        )
        if letters is not None:
            self._queue.on_taken_back = letters.tries.taken_back
            self._redelivery.on_acknowledged = letters.acknowledged
            self._redelivery.on_acknowledged_through = letters.acknowledged_through
        self._ack_commands = AckCommands(
            spec.subscription_type, self._source, tracker, self._ack_grouping, self._redelivery
        )
        self._ack_commands.described = called(spec, self._source.topic)
        self._blocked = (
            BlockedWatch(
                context,
                services.requests,
                emit,
                self,
                self.permits,
                self._queue,
                tracker,
                self._ack_grouping,
            )
            if has_memory and not spec.subscription_type.cumulative
            else None
        )
        self._connection: Connection | None = None
        """The connection that messages are taken from: set while attached, until closing begins."""
        self._ready = False
        """True once the consumer was subscribed."""
        self._unsubscribing: set[int] = set()
        """Requests that wait for the answer to an UNSUBSCRIBE."""
        self._active: bool | None = None
        self._active_early: bool | None = None
        """The active state that the broker reported between SUBSCRIBE and its answer."""
        self._end_of_topic = False
        self._positioned = False
        """True when attached, and every seek that is under way is done."""
        self._was_on: Connection | None = None
        """The connection of the last attachment."""
        self._cluster: Address | None = None
        """The cluster of the previous connection: its acknowledgements have no effect in another cluster."""
        self.receive: Callable[[], Message | None] = self._queue.receive
        self.take: Callable[[int], Messages] = self._queue.take
        self.acknowledge: Callable[[Acknowledgeable], bool] = self._ack_commands.acknowledge
        self.acknowledge_cumulative = self._ack_commands.acknowledge_cumulative
        self.negative_acknowledge = self._ack_commands.negative_acknowledge
        if interception is not None:
            intercepted = InterceptedAckCommands(self._ack_commands, interception)
            self.acknowledge = intercepted.acknowledge
            self.acknowledge_cumulative = intercepted.acknowledge_cumulative
            self._redelivery.on_negative = interception.negatively_acknowledged
            self._redelivery.on_timeout = interception.timed_out

    # --- deliveries ------------------------------------------------------------------------------

    def on_message(self, connection: Connection, command: MessageCommand) -> None:
        """Take a MESSAGE frame. Raises `RemoteProtocolError` when the frame has to end the link."""
        if connection is not self._connection:
            self._on_early_message(connection)
            return
        queue = self._queue
        self._arrival.receive(command, self._redelivery.epoch, connection.max_message_size)
        if not queue.announced and queue.available:
            queue.announced = True
            self._emit(Deliverable(self.handle))

    def on_uniform_messages(self, connection: Connection, entries: UniformMessages) -> bool:
        """Take plain entries of several MESSAGE frames. Return False, having changed nothing, when each frame
        has to go through `on_message`."""
        if connection is not self._connection or not self._arrival.receive_uniform(
            entries, self._redelivery.epoch
        ):
            return False
        if not self._queue.announced and self._queue.available:
            self._queue.announced = True
            self._emit(Deliverable(self.handle))
        return True

    # --- the application's commands: see also `ConsumerRequests` ----------------------------------

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
        return [self._source.topic] if self._ready else []

    def close(self, once_answered: bool = False) -> None:
        """Send waiting acknowledgements, then close (rules CONS-50 to CONS-52). `Closed` follows.
        `once_answered`: see `Attachment.close`."""
        if self._ack_commands.closed:
            return
        self._ack_grouping.flush()
        self._stop(self._closed())
        self.attachment.close(once_answered)

    @property
    def is_closing(self) -> bool:
        """True once the consumer is closing or has ended; it delivers nothing more."""
        return self._ack_commands.closed

    def check_open(self) -> None:
        """Raise `ClosedError` once the consumer is closing."""
        self._ack_commands.check_open()

    def statistics(self) -> ConsumerStatistics:
        """Return the counts so far."""
        return ConsumerStatistics(
            self._queue.delivered,
            self._arrival.bytes_arrived,
            self._ack_grouping.ids_sent,
            self._ack_grouping.ids_refused,
            self._queue.available,
            self._tracker.forgotten + (0 if self._letters is None else self._letters.tries.forgotten),
        )

    @property
    def counters(self) -> ArrivalCounters:
        """Counters of messages that arrived and were not delivered, by reason."""
        return self._arrival.counters

    # --- what the attachment asks and tells ------------------------------------------------------

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
        self._connection = self._was_on = connection
        if self.attachment.redirection.cluster != self._cluster:
            self._cluster = self.attachment.redirection.cluster
            self._leave_cluster()
        self._tracker.new_connection()
        self._ack_commands.renew()
        self._redelivery.attach(connection)
        self._ack_grouping.attach(connection)
        self._positions.attach(connection)
        if self._active_early is not None:
            self.on_active_changed(self._active_early)

    def on_open_refused(self, error: PulsarError) -> Decision:
        return Decision.DEFAULT

    def on_detached(self, cause: PulsarError) -> None:
        """Keep the queue until the next connection is open, so that the application may continue with it."""
        self._connection = None
        self._more_may_come()  # a broker repeats the end of the topic
        if self.spec.durable:  # a non-durable subscription does not redeliver chunks before its new start
            self._chunks.clear()
        self._active = None
        self._redelivery.detach()
        self._ack_grouping.detach(cause)
        self._positions.detach()
        self.permits.detach()
        if self._blocked is not None:
            self._blocked.detach()
        if self._letters is not None:
            self._letters.detach()
        if self._positioned:
            self._positioned = False
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
        if self._connection is None:
            self._active_early = active
            return
        self._redelivery.active_changed(active)
        if active is not self._active:
            self._active = active
            self._emit(ActiveChanged(self.handle, active))

    def on_end_of_topic(self) -> None:
        """Take REACHED_END_OF_TOPIC; the broker may repeat the frame (CONS-42)."""
        if not self._end_of_topic:
            self._end_of_topic = True
            self._emit(EndOfTopic(self.handle))
            if self._batch_receive is not None:
                self._batch_receive.end_of_topic()

    def _more_may_come(self) -> None:
        """Forget that the topic has ended."""
        self._end_of_topic = False
        if self._batch_receive is not None:
            self._batch_receive.over = False

    # --- positions ---------------------------------------------------------------------------------

    def _grant(self) -> None:
        """Grant permits and tell the application: the consumer is attached and at its position."""
        connection = self._connection
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
        self._positioned = True
        if self._ready:
            self._emit(Attached(self.handle))
        else:
            self._ready = True
            self._emit(ConsumerReady(self.handle, self._source.topic))

    def _forget(self) -> None:
        """Forget everything that precedes a seek: the subscription was moved (SEEK-06)."""
        self._ack_grouping.drop()
        self._ack_commands.renew()
        self._redelivery.drop()
        self._chunks.clear()
        if self._letters is not None:
            self._letters.drop()
        self._more_may_come()

    # --- inside ------------------------------------------------------------------------------------

    def _perhaps_moved(self, error: PulsarError) -> None:
        """Drop acknowledgements after a failed seek: the broker may have moved the subscription all the
        same."""
        self._ack_grouping.drop(error)
        self._ack_commands.renew()

    def _leave_cluster(self) -> None:
        """Forget earlier deliveries: their messages have other positions in the new cluster."""
        self._ack_grouping.leave_cluster()
        self._ack_commands.renew()
        if self._letters is not None:
            self._letters.drop()

    def _cannot_decrypt(self, message_id: MessageId, keys: Sequence[str]) -> None:
        self._emit(Undecryptable(self.handle, message_id, keys))

    def _on_early_message(self, connection: Connection) -> None:
        """Handle a message that arrives while not subscribed. A closing consumer drops it. On the connection
        of the previous subscription the message may have been under way when the broker closed the consumer
        (a real broker does so under load); the broker redelivers it. In all other cases the broker had no
        permit to send it, and the subscription would lose the message: only a new connection makes the broker
        redeliver it."""
        if not self._ack_commands.closed and connection is not self._was_on:
            raise RemoteProtocolError(
                f"the broker sent messages of {self._source.topic} before it was asked to"
            )

    def _with_letters(self, counters: ArrivalCounters) -> LetterTopics | None:
        policy = self.spec.letters
        if policy is None:
            return None
        return LetterTopics(
            self._context,
            self._services,
            self._emit,
            self.handle,
            self.spec,
            policy,
            self.name,
            self.permits,
            counters,
            lambda message: self._ack_commands.copied(message),
            lambda positions: self._redelivery.not_copied(positions),
            lambda wanted: self._ack_commands.watch(wanted),
        )

    def _done_with(self, positions: Iterable[EntryPosition]) -> None:
        """Acknowledge chunks that will never make a message: no other consumer can use them either."""
        waits = False
        for position in positions:
            waits |= self._tracker.entry(position)
        if waits:
            self._ack_grouping.something_waits()

    def _unsubscribed(self, attached: object) -> None:
        if self.attachment.state is attached:
            self.attachment.end()
        else:  # the consumer was closed meanwhile, and the broker may have subscribed it again
            self.close()

    def _end(self, error: PulsarError) -> None:
        """Fail all open requests with the error."""
        self._ack_grouping.end(error)
        self._positions.end(error)
        if self._batch_receive is not None:
            self._batch_receive.end(error)
        for request in sorted(self._unsubscribing):
            self._not_unsubscribed(request, error)

    def _closed(self) -> ClosedError:
        return ClosedError(f"the {called(self.spec, self._source.topic)} was closed")

    def _stop(self, error: PulsarError) -> None:
        """Stop taking and delivering messages, and stop seeking."""
        self._connection = None
        self._ack_commands.close()
        self._positions.leave(error)
        self._redelivery.detach()
        self.permits.detach()
        if self._blocked is not None:
            self._blocked.detach()
        if self._letters is not None:
            self._letters.close()
        self._chunks.clear()
        self._queue.close(f"the {called(self.spec, self._source.topic)} is closed")
