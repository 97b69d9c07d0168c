"""`Consumer`: one consumer of one topic, the machine that ties delivery, permits, acknowledgement and
redelivery to an attachment.

It says SUBSCRIBE, grants permits when subscribed, and brings everything in order when the connection is lost:
what was queued is dropped when the next one is open, because it comes again; acknowledgements wait and go
first; what was handed out can be acknowledged for ever (rules CONS-09 to CONS-17, CONS-44).
How the broker is found and found again is the attachment's; states are its states.

What happens to each message has rooms of its own: `arrival` (frame to queue), `delivery` (queue to
application), `permits`, `verdicts` (what the application says of it), `acks` and `acknowledger` (what is
acknowledged, when it is sent), `redelivery`, `unacknowledged` (what is asked for because nothing is said),
`letters` (what goes to another topic instead). What is asked of it by request is in `consumer_requests`.
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
"""Letters of a name made up for a consumer without one, as many as the Java client gives (CONS-03)."""


def called(spec: ConsumerSpec, topics: str) -> str:
    """A consumer with that spec, as the application knows it: the words for texts."""
    return f"reader of {topics}" if isinstance(spec, ReadingSpec) else f"consumer on {topics}"


class Listener(Protocol):
    """Who hears what a consumer says, in place of the application."""

    def on_output(self, output: Output) -> None: ...

    def ended(self, handle: int, error: PulsarError | None) -> None:
        """The consumer is gone for good; `on_output` was told of it before."""
        ...


class Consumer(ConsumerRequests):
    """One consumer. `receive()` gives the next message or None, `take(limit)` a list of the next ones;
    `acknowledge`, `acknowledge_cumulative` and `negative_acknowledge` are those of its `AckCommands`.

    `listener`: who is told everything in place of the application. `counters`: what it counts in, together
    with others. `create_topic`: whether a topic that does not exist may come into being by this (BROKER-07).
    `source`: what its messages say of where they come from; its topic and partition alone, if None.
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
        # A topic without memory never delivers anything again.
        has_memory = self.topic.persistent
        timeout = (
            AcknowledgementTimeout(context, spec) if spec.acknowledgement_timeout and has_memory else None
        )
        policy = spec.batch_receive
        self._collecting = None if policy is None else BatchReceive(context, policy, emit)
        interception = (
            Interception(handle, self.topic, self._source, spec.interceptors, emit)
            if spec.interceptors
            else None
        )
        self.permits, self._queue = receiving(
            spec, services.received_memory, timeout, self._collecting, interception
        )
        self._acknowledger = AckGrouping(
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
            self._acknowledger,
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
            self.attachment.misplaced,
        )
        self._redelivery = Redelivery(
            context,
            wire_id,
            spec,
            self._queue,
            self._acknowledger,
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
            spec.subscription_type, self._source, tracker, self._acknowledger, self._redelivery
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
                self._acknowledger,
            )
            if has_memory and not spec.subscription_type.cumulative
            else None
        )
        self._connection: Connection | None = None
        """The connection that messages are taken from: while attached, until the close begins."""
        self._ready = False
        """Whether it was ever subscribed."""
        self._unsubscribing: set[int] = set()
        """Requests that wait for the answer to an UNSUBSCRIBE."""
        self._active: bool | None = None
        self._active_early: bool | None = None
        """What was said of that between SUBSCRIBE and its answer."""
        self._end_of_topic = False
        self._in_place = False
        """Attached, and where it is to be."""
        self._was_on: Connection | None = None
        """The connection that it was attached to last."""
        self._cluster: Address | None = None
        """Of the connection before: what is acknowledged there means nothing in another one."""
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
        """A MESSAGE frame. Raises `RemoteProtocolError` where the link has to die for it."""
        if connection is not self._connection:
            self._on_early_message(connection)
            return
        queue = self._queue
        self._arrival.receive(command, self._redelivery.epoch, connection.max_message_size)
        if not queue.announced and queue.available:
            queue.announced = True
            self._emit(Deliverable(self.handle))

    def on_uniform_messages(self, connection: Connection, entries: UniformMessages) -> bool:
        """Plain entries of several MESSAGE frames; False, having changed nothing, where each has to be looked
        at by itself (`on_message`)."""
        if connection is not self._connection or not self._arrival.receive_alike(
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
        """What has arrived and was not handed out."""
        return self._queue

    def available(self) -> int:
        """Messages that `take` would give now."""
        return self._queue.available

    @property
    def subscribed(self) -> list[str]:
        """Its topic, once it is subscribed."""
        return [self._source.topic] if self._ready else []

    def close(self, once_answered: bool = False) -> None:
        """Send what acknowledgements wait, then leave (rules CONS-50 to CONS-52). `Closed` follows.
        `once_answered`: see `Attachment.close`."""
        if self._ack_commands.closed:
            return
        self._acknowledger.flush()
        self._stop(self._closed())
        self.attachment.close(once_answered)

    @property
    def is_closing(self) -> bool:
        """Nothing is handed out any more; it has ended, or will."""
        return self._ack_commands.closed

    def check_open(self) -> None:
        """Raise `ClosedError` once it is closing."""
        self._ack_commands.check_open()

    def statistics(self) -> ConsumerStatistics:
        """What has been counted so far."""
        return ConsumerStatistics(
            self._queue.handed_out,
            self._arrival.bytes_arrived,
            self._acknowledger.ids_sent,
            self._acknowledger.ids_refused,
            self._queue.available,
            self._tracker.forgotten + (0 if self._letters is None else self._letters.tries.forgotten),
        )

    @property
    def counters(self) -> ArrivalCounters:
        """What arrived and was not delivered, by reason."""
        return self._arrival.counters

    # --- what the attachment asks and tells ------------------------------------------------------

    def open_command(self, request_id: int, connection: Connection) -> bytes:
        """SUBSCRIBE. What is queued comes again, so it goes (CONS-09); a subscription that is not durable
        goes on behind what was handed out (CONS-16)."""
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
        if self.attachment.directions.cluster != self._cluster:
            self._positions.leave_cluster()
        self._positions.prepare(command)
        self._queue.clear()
        return encode_command(_Command.SUBSCRIBE, command)

    @property
    def in_place(self) -> bool:
        return not self._positions.has_to_move

    def has_to_wait(self, reply: Any) -> bool:
        return False

    def on_opened(self, connection: Connection, _reply: Any) -> None:
        """Subscribed: first the acknowledgements that wait, then permits for a full queue (FLOW-02)."""
        self._connection = self._was_on = connection
        if self.attachment.directions.cluster != self._cluster:
            self._cluster = self.attachment.directions.cluster
            self._leave_cluster()
        self._tracker.new_connection()
        self._ack_commands.renew()
        self._redelivery.attach(connection)
        self._acknowledger.attach(connection)
        self._positions.attach(connection)
        if self._active_early is not None:
            self.on_active_changed(self._active_early)

    def on_open_refused(self, error: PulsarError) -> Decision:
        return Decision.DEFAULT

    def on_detached(self, cause: PulsarError) -> None:
        """The queue stays for now: until the next connection is open, the application may go on with it."""
        self._connection = None
        self._more_may_come()  # where the topic has ended, the broker says so again
        if self.spec.durable:  # else what lies before the place to go on at does not come again
            self._chunks.clear()
        self._active = None
        self._redelivery.detach()
        self._acknowledger.detach(cause)
        self._positions.detach()
        self.permits.detach()
        if self._blocked is not None:
            self._blocked.detach()
        if self._letters is not None:
            self._letters.detach()
        if self._in_place:
            self._in_place = False
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
        else:  # somebody may wait for it to be ready
            self._emit(ConsumerFailed(self.handle, closed))

    # --- what the broker tells -------------------------------------------------------------------

    def on_active_changed(self, active: bool) -> None:
        """ACTIVE_CONSUMER_CHANGE; Failover only (SUBT-05). It may come before the answer to SUBSCRIBE."""
        if self._connection is None:
            self._active_early = active
            return
        self._redelivery.active_changed(active)
        if active is not self._active:
            self._active = active
            self._emit(ActiveChanged(self.handle, active))

    def on_end_of_topic(self) -> None:
        """REACHED_END_OF_TOPIC; the broker may repeat it (CONS-42)."""
        if not self._end_of_topic:
            self._end_of_topic = True
            self._emit(EndOfTopic(self.handle))
            if self._collecting is not None:
                self._collecting.end_of_topic()

    def _more_may_come(self) -> None:
        """It is not known to be at the end of the topic any more."""
        self._end_of_topic = False
        if self._collecting is not None:
            self._collecting.over = False

    # --- positions ---------------------------------------------------------------------------------

    def _grant(self) -> None:
        """Attached where it is to be: messages may come, and the application may know."""
        connection = self._connection
        assert connection is not None
        self.attachment.arrived()
        blocked = self._blocked
        if blocked is not None:
            blocked.attach(connection)

        def grant(permits: int) -> None:
            connection.write(encode_flow(self.wire_id, permits))
            if blocked is not None:
                blocked.granted(permits)

        self.permits.attach(grant)
        self._in_place = True
        if self._ready:
            self._emit(Attached(self.handle))
        else:
            self._ready = True
            self._emit(ConsumerReady(self.handle, self._source.topic))

    def _forget(self) -> None:
        """The subscription was moved by a seek: nothing of what is known here counts any more (SEEK-06)."""
        self._acknowledger.drop()
        self._ack_commands.renew()
        self._redelivery.drop()
        self._chunks.clear()
        if self._letters is not None:
            self._letters.drop()
        self._more_may_come()

    # --- inside ------------------------------------------------------------------------------------

    def _perhaps_moved(self, error: PulsarError) -> None:
        """A seek has failed; the broker may have done it all the same, and everything may be new."""
        self._acknowledger.drop(error)
        self._ack_commands.renew()

    def _leave_cluster(self) -> None:
        """What was delivered before is of another cluster, and has other places in this one."""
        self._acknowledger.leave_cluster()
        self._ack_commands.renew()
        if self._letters is not None:
            self._letters.drop()

    def _cannot_decrypt(self, message_id: MessageId, keys: Sequence[str]) -> None:
        self._emit(Undecryptable(self.handle, message_id, keys))

    def _on_early_message(self, connection: Connection) -> None:
        """A message while not subscribed. While closing, nobody wants it. On the connection that it was
        subscribed on before, it may have been under way when the broker closed the consumer (a real one does
        so, under load); it comes again. Otherwise the broker had no permit to send it, and it would be lost
        for this subscription: only a new connection brings it again."""
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
            lambda places: self._redelivery.not_copied(places),
            lambda wanted: self._ack_commands.watch(wanted),
        )

    def _done_with(self, places: Iterable[EntryPosition]) -> None:
        """Chunks that will not be part of a message: nobody else can use them either."""
        waits = False
        for place in places:
            waits |= self._tracker.entry(place)
        if waits:
            self._acknowledger.something_waits()

    def _unsubscribed(self, attached: object) -> None:
        if self.attachment.state is attached:
            self.attachment.end()
        else:  # the user closed it meanwhile, or the broker did, and has perhaps taken it in again
            self.close()

    def _end(self, error: PulsarError) -> None:
        """Who still waits for something is told."""
        self._acknowledger.end(error)
        self._positions.end(error)
        if self._collecting is not None:
            self._collecting.end(error)
        for request in sorted(self._unsubscribing):
            self._not_unsubscribed(request, error)

    def _closed(self) -> ClosedError:
        return ClosedError(f"the {called(self.spec, self._source.topic)} was closed")

    def _stop(self, error: PulsarError) -> None:
        """No message is taken or handed out any more, and nothing more is sought."""
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
