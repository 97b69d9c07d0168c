"""`Client`: the root of the client machines.

Facts about the world and commands of the application go in; outputs, bytes to write and the next deadline
come out. It owns the registries of producers and consumers, the ids the application knows, and the end of
everything; each fact and command is handed to the machine it concerns.

The contract, for whoever drives it:

* after any input, take `next_output()` until it is None, then wait for bytes, a command or `next_deadline()`;
* several inputs before taking outputs are allowed and lose nothing;
* `now` is integer nanoseconds on a monotonic clock and never goes back;
* facts about a link that is gone are ignored; commands in a terminal state raise `ClosedError`;
* commands raise only for the caller's own mistake (`LocalProtocolError` and its subclasses), having changed
  nothing; whatever a peer does comes out as outputs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import setitem
from typing import TYPE_CHECKING, Any

from ..core.context import Context
from ..model.config import ClientConfig, ConsumerSpec, OutgoingMessage, ProducerSpec, TopicDomain
from ..model.errors import (
    ClosedError,
    ConnectionLost,
    InvalidConfiguration,
    LocalProtocolError,
    PulsarError,
)
from ..model.interceptors import ConsumerInterceptor, ProducerInterceptor
from ..model.service_url import ServiceUrl
from ..model.topic_name import TopicName
from .counters import ArrivalCounters
from .ends import Ends
from .letters import with_retry_topic
from .lookup import Lookup, Query
from .outputs import ConsumerInterceptorFailed, InterceptorFailed, Output, RequestDone, RequestFailed
from .partition import PartitionStatistics
from .partitions import PartitionedProducer
from .pool import Pool
from .position_commands import PositionCommands
from .producer import Producer
from .repeated_query import RepeatedQuery
from .requests import Requests
from .services import ClientContext, Services
from .statistics import ConsumerStatistics, ProducerStatistics
from .table_commands import TableCommands
from .table_view import TableView
from .topic_list import TopicList, named_topics
from .topics_opening import AnyConsumer, open_consumer

if TYPE_CHECKING:
    from ..model.message import Message
    from ..model.message_id import MessageId, TopicMessageId
    from ..model.processing import Judge
    from .delivery import DeliveryQueue
    from .items import Messages
    from .merging import MergedQueue

    Acknowledgeable = Message | MessageId | TopicMessageId


class Client(PositionCommands, TableCommands):
    """One client. `now`: nanoseconds; `seed`: any whole number; the same seed and inputs give the same
    outputs. `wall_time`: milliseconds since 1970 at that moment, for the copies that consumers with dead
    letters send by themselves; nothing else needs it."""

    def __init__(self, now: int, config: ClientConfig, *, seed: int, wall_time: int | None = None) -> None:
        context: ClientContext = Context(now, seed)
        self._context = context
        self.outputs = context.outputs
        """What `next_output` takes from: empty or not tells without a call, which a per-message path can
        afford."""
        self._services = services = Services(context, config, self._ended)
        services.requests = Requests(services)
        services.lookup = Lookup(services, ServiceUrl.parse(config.service_url))
        services.pool = Pool(services)
        if wall_time is not None:
            services.note_wall_time(wall_time)
        self._producers: dict[int, Producer | PartitionedProducer] = {}
        self._consumers: dict[int, AnyConsumer] = {}
        self._views: dict[int, TableView] = {}
        """By the handles of the consumers that they read with."""
        self._queries: dict[int, RepeatedQuery] = {}
        self._close_requests: dict[int, list[int]] = {}
        """Requests that wait for a producer or consumer to be closed."""
        self._ends = Ends()
        self._closing: list[int] | None = None
        """Requests that wait for the whole client to be closed; None while it is open."""
        self._closed = False

    # --- facts about the world ---

    def connected(self, now: int, link: int) -> None:
        """The link asked for by `Connect(link, …)` is open."""
        self._context.now = now
        connection = self._services.pool.links.get(link)
        if connection is not None:
            connection.opened()

    def receive_data(self, now: int, link: int, data: bytes | bytearray | memoryview) -> None:
        """Bytes came over the link."""
        self._context.now = now
        connection = self._services.pool.links.get(link)
        if connection is not None:
            connection.receive(data if type(data) is bytes else bytes(data))

    def receive_eof(self, now: int, link: int) -> None:
        """The peer will send nothing more; the link is of no use any more."""
        self._lost(now, link, "the peer closed the connection", told=False)

    def disconnected(self, now: int, link: int, reason: str) -> None:
        """The link is gone for good, or could not be opened."""
        self._lost(now, link, reason, told=True)

    def _lost(self, now: int, link: int, reason: str, *, told: bool) -> None:
        self._context.now = now
        connection = self._services.pool.links.get(link)
        if connection is not None:
            connection.close(ConnectionLost(f"{connection.physical}: {reason}"), told=told)
        elif told:
            self._services.pool.left.pop(link, None)

    def handle_deadline(self, now: int) -> None:
        """Time has passed. Harmless when nothing is due."""
        self._context.now = now
        self._context.deadlines.run(now)

    # --- what comes out ---

    @property
    def has_output(self) -> bool:
        """Whether `next_output` has something to give."""
        return bool(self.outputs)

    def next_output(self) -> Output | None:
        """The next output, in causal order; None when there is none."""
        return self.outputs.popleft() if self.outputs else None

    def data_to_send(self, link: int) -> list[bytes]:
        """Chunks to write to the link, in order, each once; empty for a link that is gone."""
        pool = self._services.pool
        connection = pool.links.get(link)
        if connection is not None:
            return connection.data_to_send()
        return pool.left.pop(link, [])

    def next_deadline(self) -> int | None:
        """When to call `handle_deadline`, at the latest; None is never."""
        return self._context.deadlines.next()

    @property
    def links(self) -> Sequence[int]:
        """The links that are open or being opened."""
        return tuple(self._services.pool.links)

    @property
    def memory_held(self) -> int:
        """Bytes of payload in messages that are taken and not settled, of all producers: what `memory_limit`
        limits."""
        return self._services.memory.held

    # --- producers ---

    def open_producer(self, now: int, spec: ProducerSpec) -> int:
        """Returns the producer's handle; `ProducerReady` or `ProducerFailed` follows.

        Messages may be sent at once. Raises `ClosedError` when the client is closed.
        """
        self._check_open()
        if not isinstance(spec, ProducerSpec):
            raise InvalidConfiguration(f"open_producer takes a ProducerSpec, not {type(spec).__name__}")
        self._context.now = now
        services = self._services
        handle = self._context.new_id()
        producer = Producer(self._context, services, handle, services.next_producer_id(), spec)
        self._producers[handle] = producer
        producer.attachment.on_partitioned = partial(self._partitioned, handle, producer)
        producer.attachment.start()
        return handle

    def _partitioned(self, handle: int, producer: Producer, partitions: int) -> None:
        """A producer's topic has turned out to have partitions: another machine takes its place."""
        self._producers[handle] = PartitionedProducer(
            self._context, self._services, handle, producer.spec, partitions, producer.hand_over()
        )

    def send(self, now: int, producer: int, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Take one message; returns its ticket, which `Receipts` or `SendFailed` will settle.

        `publish_time`: milliseconds since 1970; of a batch the first message's counts. Raises, having changed
        nothing: `ClosedError`, `ProducerQueueIsFull` and its subclass `MemoryBufferIsFull` (wait for
        `Writable`), `MessageTooLarge`, `InvalidMessage`.
        """
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        return machine.send(message, publish_time)

    def appender(self, producer: int) -> Callable[[bytes | OutgoingMessage], int]:
        """The shortest way for one message: a callable, to be kept, that does what `send` does for a payload
        that joins the producer's open batch, and gives its ticket. For every other message it changes nothing
        and gives -1: call `send` then.

        It takes no time, because nothing begins with such a message, and it leaves nothing to do: no outputs
        and no new deadline. Of a closed producer it gives -1, and so does one that was asked for before
        `ProducerReady` if the topic turns out to have partitions.
        """
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        return machine.append

    def send_many(
        self, now: int, producer: int, messages: Sequence[bytes | OutgoingMessage], publish_time: int
    ) -> range:
        """Take messages in order; returns their tickets, fewer than asked where the window or the
        client's memory is full (`Writable` follows then). Raises as `send` for messages that cannot be sent,
        having taken none; a message whose size only shows when it is compressed fails by `SendFailed`."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        return machine.send_many(messages, publish_time)

    def push(self, now: int, producer: int) -> None:
        """Send the open batch now: for a send whose receipt somebody waits for (rule PROD-28)."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        machine.push()

    def flush(self, now: int, producer: int) -> int:
        """Send the open batch now. `RequestDone` follows when everything taken so far is settled,
        `RequestFailed` with the first error if some of it failed."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        request = self._context.new_id()
        machine.flush(request)
        return request

    def producer_statistics(self, producer: int) -> ProducerStatistics:
        """What a producer has counted so far, over all partitions; what it had counted at its end, of the
        last 1000 that have ended."""
        machine = self._producers.get(producer)
        if machine is not None:
            return machine.statistics()
        statistics = self._ends.statistics(producer)
        if not isinstance(statistics, ProducerStatistics):
            raise self._unknown("producer", producer)
        return statistics

    def partition_statistics(self, producer: int) -> list[PartitionStatistics]:
        """What became of the messages of a producer by partition, in their order; empty where the topic has
        none, or where that is not known yet. Routing knows as many partitions as are in it."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        return machine.partition_statistics() if isinstance(machine, PartitionedProducer) else []

    # --- consumers ---

    def subscribe(self, now: int, spec: ConsumerSpec) -> int:
        """Returns the consumer's handle; `ConsumerReady` or `ConsumerFailed` follows. Raises `ClosedError`
        when the client is closed."""
        self._check_open()
        if not isinstance(spec, ConsumerSpec):
            raise InvalidConfiguration(f"subscribe takes a ConsumerSpec, not {type(spec).__name__}")
        self._context.now = now
        services = self._services
        if spec.letters is not None and services.wall_offset is None:
            raise InvalidConfiguration("dead_letter and retry: only with Client(wall_time=…)")
        spec = with_retry_topic(spec)
        handle = self._context.new_id()
        open_consumer(self._context, self._services, handle, spec, partial(setitem, self._consumers, handle))
        return handle

    def receive(self, now: int, consumer: int) -> "Message | None":
        """The next message, or None where none is there (wait for `Deliverable`). A consumer with a receiver
        queue of size 0 asks for one then."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        self._context.now = now
        return machine.receive()

    def receiver(self, consumer: int) -> "DeliveryQueue | MergedQueue":
        """That consumer's queue, for who takes one message after the other.

        Its `receive()` is `receive` of that consumer at the moment told last, by `note_time` or any input,
        and raises `ClosedError` like it. Most messages need not even that: they come out of its iterator
        `ready`, and `receive()` has only to be called when that ends. It then stands for another iterator.
        Ask for it after `ConsumerReady`: where the topic has partitions it is another one before.
        """
        return self._consumer(self._context.now, consumer).queue

    def acknowledger(
        self, consumer: int
    ) -> "Callable[[Acknowledgeable | Collection[Acknowledgeable]], bool]":
        """`acknowledge` of that consumer, likewise; says whether there may be outputs or an earlier
        deadline."""
        return self._consumer(self._context.now, consumer).acknowledge

    def let_judge(self, consumer: int, judge: "Judge") -> None:
        """`Message.processing()` of that consumer's messages gives its verdicts to `judge`, which is whoever
        drives this client: an object with `acknowledge(message)` and `negative_acknowledge(message)`."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        machine.let_judge(judge)

    def note_time(self, now: int, wall_time: int | None = None) -> None:
        """It is `now`. For who uses `receiver` and `acknowledger` for long without any other input; with
        `wall_time`, and so many milliseconds since 1970, where clocks are set or stand still for a while."""
        self._context.now = now
        if wall_time is not None:
            self._services.note_wall_time(wall_time)

    def take(self, now: int, consumer: int, limit: int) -> "Messages":
        """Up to `limit` messages that are there; each is made when it is looked at."""
        machine = self._consumer(now, consumer)
        return machine.take(limit)

    def collect(self, now: int, consumer: int) -> int:
        """Ask for as many messages together as the consumer's `batch_receive` policy calls enough:
        `RequestDone` follows when it is time to `take` them, `RequestFailed` at its end. Nobody has them
        before that: who gives up calls `abandon` with the request. Raises `LocalProtocolError` for a consumer
        without a policy."""
        machine = self._consumer(now, consumer)
        machine.check_collecting()
        request = self._context.new_id()
        machine.collect(request)
        return request

    def available(self, consumer: int) -> int:
        """How many messages `take` would give."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        return machine.available()

    def consumer_statistics(self, consumer: int) -> ConsumerStatistics:
        """What a consumer has counted so far; what it had counted at its end, of the last 1000 that have
        ended."""
        machine = self._consumers.get(consumer)
        if machine is not None:
            return machine.statistics()
        statistics = self._ends.statistics(consumer)
        if not isinstance(statistics, ConsumerStatistics):
            raise self._unknown("consumer", consumer)
        return statistics

    def subscribed_topics(self, consumer: int) -> list[str]:
        """Full names of the topics and partitions a consumer is subscribed to."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        return machine.subscribed

    def arrivals(self, consumer: int) -> ArrivalCounters:
        """What arrived for a consumer and was not delivered, by reason. It goes on counting."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        return machine.counters

    def acknowledge(
        self, now: int, consumer: int, messages: "Acknowledgeable | Collection[Acknowledgeable]"
    ) -> None:
        """One message or several are done with, by themselves or by their ids."""
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        self._context.now = now
        machine.acknowledge(messages)

    def acknowledge_cumulative(self, now: int, consumer: int, message: "Acknowledgeable") -> None:
        """This message and all before it are done with. Raises `LocalProtocolError` for a subscription that
        is shared (rule ACK-02)."""
        self._consumer(now, consumer).acknowledge_cumulative(message)

    def negative_acknowledge(
        self, now: int, consumer: int, messages: "Acknowledgeable | Collection[Acknowledgeable]"
    ) -> None:
        """Deliver these again, after the negative acknowledgement delay."""
        self._consumer(now, consumer).negative_acknowledge(messages)

    def pause(self, now: int, consumer: int) -> None:
        """Ask the broker for no more messages until `resume`; those that it was asked for may still come. It
        outlasts reconnects."""
        self._consumer(now, consumer).pause()

    def resume(self, now: int, consumer: int) -> None:
        """Ask for messages again."""
        self._consumer(now, consumer).resume()

    def reconsume_later(
        self,
        now: int,
        consumer: int,
        message: "Message",
        delay: float,
        publish_time: int,
        properties: Mapping[str, str] | None = None,
    ) -> int:
        """Have this message delivered again after `delay` seconds: a copy of it goes to the consumer's retry
        topic, or to the dead letters once that has happened `max_redeliver_count` times.

        `publish_time`: milliseconds since 1970, of the copy. `properties`: more of them for the copy.
        `RequestDone` follows when the copy is safe and the message acknowledged; `RequestFailed` where it
        could not be copied: it is redelivered then, as after a negative acknowledgement. Raises
        `LocalProtocolError` for a consumer without `retry`, for what is no message of it, and for a delay
        below 0.
        """
        machine = self._consumer(now, consumer)
        self._services.note_wall_time(publish_time)
        request = self._context.new_id()
        machine.reconsume_later(request, message, delay, publish_time, properties or {})
        return request

    def redeliver_unacknowledged(self, now: int, consumer: int) -> None:
        """Deliver again, at once, everything that was delivered and not acknowledged."""
        self._consumer(now, consumer).redeliver_unacknowledged()

    def flush_acknowledgements(self, now: int, consumer: int) -> int:
        """Send the grouped acknowledgements now. `RequestDone` follows when the broker has confirmed
        everything acknowledged so far, on the next connection if this one is lost; `RequestFailed` where it
        refuses.

        Without receipts, acknowledgements sent over an earlier connection are not covered: what of them was
        lost is delivered again.
        """
        machine = self._consumer(now, consumer)
        request = self._context.new_id()
        machine.flush_acknowledgements(request)
        return request

    def unsubscribe(self, now: int, consumer: int, force: bool = False) -> int:
        """End the subscription itself. `RequestDone` and `Closed`, or `RequestFailed` follow."""
        machine = self._consumer(now, consumer)
        request = self._context.new_id()
        machine.unsubscribe(request, force)
        return request

    def _consumer(self, now: int, consumer: int) -> AnyConsumer:
        machine = self._consumers.get(consumer)
        if machine is None:
            raise self._unknown("consumer", consumer)
        self._context.now = now
        return machine

    # --- the client itself ---

    def partitions(self, now: int, topic: str) -> int:
        """How many partitions a topic has: the `result` of `RequestDone`, 0 where it is not partitioned.

        Raises `InvalidTopicName`, `ClosedError`.
        """
        self._check_open()
        name = TopicName.parse(topic)
        self._context.now = now
        lookup = self._services.lookup
        return self._query(f"the partitions of {name}", partial(lookup.partitions, name))

    def topics(self, now: int, namespace: str, domain: TopicDomain = TopicDomain.PERSISTENT) -> int:
        """Which topics a namespace (`tenant/namespace`) has: the `result` of `RequestDone` is a list of full
        names, sorted; partitioned topics by their own name, non-persistent ones only while somebody uses
        them. Raises `InvalidTopicName`, `ClosedError`."""
        self._check_open()
        TopicName.parse(f"persistent://{namespace}/topic")
        self._context.now = now
        listed = TopicList(namespace, domain)
        return self._query(str(listed), partial(self._services.lookup.topics, listed), named_topics)

    def _query(
        self,
        what: str,
        ask: Callable[[Callable[..., None], Callable[[PulsarError], None]], Query],
        result: Callable[[Any], Any] = lambda result: result,
    ) -> int:
        request = self._context.new_id()

        def done(answer: Any) -> None:
            del self._queries[request]
            self._context.emit(RequestDone(request, result(answer)))

        def failed(error: PulsarError) -> None:
            del self._queries[request]
            self._context.emit(RequestFailed(request, error))

        query = RepeatedQuery(self._context, self._services, what, ask, done, failed)
        self._queries[request] = query
        query.ask()
        return request

    def update_service_url(self, now: int, url: str) -> None:
        """From now on find brokers by this URL: every connection is ended, and producers and consumers come
        back by the new way (rule CLIENT-21). Raises `InvalidServiceUrl`, `ClosedError`."""
        self._check_open()
        service_url = ServiceUrl.parse(url)
        self._context.now = now
        self._services.lookup.set_service_url(service_url)
        self._services.pool.close_all(ConnectionLost("the service URL was changed"))

    def close(self, now: int, identifier: int | None = None) -> int:
        """Close a producer or a consumer, or the whole client (None); `RequestDone` follows.

        What is closed already is closed at once. Raises `LocalProtocolError` for an id that was never given.
        """
        self._context.now = now
        if identifier is None:
            return self._close_client()
        machine = self._producers.get(identifier) or self._consumers.get(identifier)
        if machine is None and not self._context.was_given(identifier):
            raise LocalProtocolError(f"no producer or consumer has the id {identifier}")
        request = self._context.new_id()
        if machine is None:
            self._context.emit(RequestDone(request, None))
        else:
            self._close_requests.setdefault(identifier, []).append(request)
            machine.close()
        return request

    def abandon(self, now: int, identifier: int) -> None:
        """Nobody waits any more for this producer, consumer or request.

        A producer or consumer is closed, without a request that would be done. A request's outcome is not
        said. An id that is closed or done already is of no interest; one never given raises
        `LocalProtocolError`.
        """
        self._context.now = now
        if not self._context.was_given(identifier):
            raise LocalProtocolError(f"nothing has the id {identifier}")
        machine = self._producers.get(identifier) or self._consumers.get(identifier)
        if machine is not None:
            machine.close()
            return
        query = self._queries.pop(identifier, None)
        if query is not None:
            query.cancel()
        for requests in [*self._close_requests.values(), self._closing or []]:
            if identifier in requests:
                requests.remove(identifier)
        for producer in self._producers.values():
            producer.forget_flush(identifier)
        for consumer in self._consumers.values():
            consumer.forget_request(identifier)
        for view in self._views.values():
            view.forget_request(identifier)

    def _close_client(self) -> int:
        """Everything on it first, then the connections (rules CLIENT-22 to CLIENT-25)."""
        request = self._context.new_id()
        if self._closed:
            self._context.emit(RequestDone(request, None))
            return request
        if self._closing is not None:
            self._closing.append(request)
            return request
        self._closing = [request]
        error = ClosedError("the client is closed")
        for query in list(self._queries.values()):
            query.fail(error)
        for machine in [*self._producers.values(), *self._consumers.values()]:
            machine.close()
        self._close_if_empty()
        return request

    def _close_if_empty(self) -> None:
        if self._closing is None or self._closed or self._producers or self._consumers:
            return
        self._closed = True
        self._services.pool.close_all(ConnectionLost("the client is closed"))
        for request in self._closing:
            self._context.emit(RequestDone(request, None))
        self._closing = []

    # --- ends ---

    def _ended(self, handle: int, error: PulsarError | None) -> None:
        """A producer or consumer is gone for good; the attachment says so, after its owner has."""
        producer = self._producers.pop(handle, None)
        consumer = self._consumers.pop(handle, None)
        self._views.pop(handle, None)
        self._ends.note(handle, error)
        if consumer is not None:
            self._ends.note_statistics(handle, consumer.statistics())
            for each in consumer.spec.interceptors:
                self._close_interceptor(each, partial(ConsumerInterceptorFailed, handle, each))
        if producer is not None:
            self._ends.note_statistics(handle, producer.statistics())
            for interceptor in producer.spec.interceptors:
                self._close_interceptor(interceptor, partial(InterceptorFailed, handle, interceptor))
        for request in self._close_requests.pop(handle, []):
            self._context.emit(RequestDone(request, None))
        self._close_if_empty()

    def _close_interceptor(
        self,
        interceptor: ProducerInterceptor | ConsumerInterceptor,
        failed: Callable[[Exception], Output],
    ) -> None:
        try:
            interceptor.close()
        except Exception as error:
            self._context.emit(failed(error))

    def _check_open(self) -> None:
        if self._closing is not None:
            raise ClosedError("the client is closed")

    def _unknown(self, kind: str, handle: int) -> LocalProtocolError:
        """What to raise for a handle that names nothing that is open."""
        if self._closed or self._context.was_given(handle):
            return self._ends.closed(kind, handle)
        return LocalProtocolError(f"no {kind} has the id {handle}")
