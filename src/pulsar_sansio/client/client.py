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

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..core.context import Context
from ..model.config import ClientConfig, TopicDomain
from ..model.errors import ClosedError, ConnectionLost, LocalProtocolError, PulsarError
from ..model.interceptors import ConsumerInterceptor, ProducerInterceptor
from ..model.service_url import ServiceUrl
from ..model.topic_name import TopicName
from .closed_handles import ClosedHandles
from .commands.consumers import ConsumerCommands
from .commands.positions import PositionCommands
from .commands.producers import ProducerCommands
from .commands.table_views import TableCommands
from .connecting.lookup import Lookup, Query
from .connecting.pool import Pool
from .connecting.requests import Requests
from .connecting.retried_lookup import RetriedLookup
from .connecting.services import ClientContext, Services
from .connecting.topic_list import TopicList, named_topics
from .explanation import under
from .multi_topics.open_consumer import AnyConsumer
from .outputs import (
    ConsumerInterceptorFailed,
    InterceptorFailed,
    Output,
    RequestDone,
    RequestFailed,
)
from .producing.partitioned_producer import PartitionedProducer
from .producing.producer import Producer
from .table_view import TableView


class Client(ProducerCommands, ConsumerCommands, PositionCommands, TableCommands):
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
        self._queries: dict[int, RetriedLookup] = {}
        self._close_requests: dict[int, list[int]] = {}
        """Requests that wait for a producer or consumer to be closed."""
        self._ends = ClosedHandles()
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

    # --- for people who watch ---

    def explain(self, now: int, identifier: int) -> str:
        """Say in a few lines why a producer, consumer, reader or table view does not move, if it does not.

        They say how it is connected or why not, when the next attempt is, what is pending or queued, permits,
        and why a broker may deliver nothing. Topics and partitions have a line each, at most ten. Properties,
        keys and payloads are not in it. The text is for people, and its wording may change. Raises
        `LocalProtocolError` for an id that was never given to a producer or consumer.
        """
        machine = self._producers.get(identifier) or self._consumers.get(identifier)
        if machine is None:
            if not self._context.was_given(identifier):
                raise LocalProtocolError(f"no producer or consumer has the id {identifier}")
            return self._ends.explain(identifier)
        self._context.now = now
        view = self._views.get(identifier)
        if view is not None:
            return under(f"table view of {len(view.table)} keys, {machine.described}", machine.explain())
        return under(machine.described, machine.explain())

    def report_requests(self, wanted: bool) -> None:
        """Tell of every request and its answer from now on, or do not: `RequestSent`, `RequestAnswered`."""
        self._services.requests.reported = wanted

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

        query = RetriedLookup(self._context, self._services, request, what, ask, done, failed)
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

    def abandon(self, now: int, identifier: int, owner: int | None = None) -> None:
        """Nobody waits any more for this producer, consumer or request.

        A producer or consumer is closed, without a request that would be done. A request's outcome is not
        said. An id that is closed or done already is of no interest; one never given raises
        `LocalProtocolError`. `owner`: the producer or consumer that the request was given to, where the
        caller knows it; then the others need not be asked.
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
        if self._closing and identifier in self._closing:
            self._closing.remove(identifier)
        for handle in self._handles() if owner is None else (owner,):
            self._forget_request(handle, identifier)

    def _handles(self) -> list[int]:
        """Of everything that may have been given a request."""
        return list({**self._close_requests, **self._producers, **self._consumers, **self._views})

    def _forget_request(self, handle: int, request: int) -> None:
        closing = self._close_requests.get(handle, [])
        if request in closing:
            closing.remove(request)
        if (producer := self._producers.get(handle)) is not None:
            producer.forget_flush(request)
        if (consumer := self._consumers.get(handle)) is not None:
            consumer.forget_request(request)
        if (view := self._views.get(handle)) is not None:
            view.forget_request(request)

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
