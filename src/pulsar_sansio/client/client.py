"""`Client`: the root of the client machines.

Facts about the world and commands of the application go in; outputs, bytes to write and the next deadline
come out. The root passes each fact to the machine it concerns, and owns the end of everything. The commands
belong to the groups in `commands`, which find the machines in `OpenHandles`.

The contract for the driver:

* after any input, take `next_output()` until it is None, then wait for bytes, a command or `next_deadline()`;
* several inputs before taking outputs are allowed and lose nothing;
* `now` is integer nanoseconds on a monotonic clock and never goes back;
* facts about a link that is gone are ignored; commands in a terminal state raise `ClosedError`;
* commands raise only for the caller's own mistake (`LocalProtocolError` and its subclasses), having changed
  nothing; whatever a peer does comes out as outputs.
"""

from collections.abc import Callable, Sequence
from functools import partial

from ..core.context import Context
from ..model.config import ClientConfig
from ..model.encryption import EncryptionKeyInfo
from ..model.errors import (
    ClosedError,
    ConnectionLost,
    CredentialsFailed,
    CryptoError,
    InvalidServiceUrl,
    LocalProtocolError,
    PulsarError,
    TlsError,
)
from ..model.interceptors import ConsumerInterceptor, ProducerInterceptor
from ..model.secret import Secret
from ..model.service_url import ServiceUrl
from .commands.consumers import ConsumerCommands
from .commands.open_handles import OpenHandles
from .commands.positions import PositionCommands
from .commands.producers import ProducerCommands
from .commands.table_views import TableCommands
from .commands.topic_queries import TopicQueries
from .commands.transactions import TransactionCommands
from .connecting.broker_addresses import BrokerAddresses
from .connecting.links import Links
from .connecting.pool import Pool
from .connecting.requests import Requests
from .connecting.services import ClientContext, Services
from .encryption.key_requests import KeyRequests
from .explanation import under
from .failover import failover_of
from .lookup.lookup import Lookup
from .outputs import (
    ConsumerInterceptorFailed,
    InterceptorFailed,
    Output,
    RequestDone,
    ServiceUrlSwitched,
)
from .schemas.schema_versions import SchemaVersions
from .transactions.transactions import Transactions


class Client:
    """One client. `now`: nanoseconds. `wall_time`: milliseconds since 1970 at that moment, needed only for
    the copies that consumers with a dead-letter policy send by themselves.

    `seed`: any whole number. One seed and one series of inputs always give one series of outputs.
    `entropy(size)`: returns random bytes that cannot be guessed, as `os.urandom` does. Producers that encrypt
    need it for data keys, their wraps and nonces; None for a client without such producers.

    The commands to producers, consumers, readers and table views are attributes: each is a method of
    `ProducerCommands`, `ConsumerCommands`, `PositionCommands`, `TableCommands`, `TransactionCommands` or
    `TopicQueries`, and has its documentation there. They are bound once, so that a call of `send` or `take`
    costs one call.
    """

    def __init__(
        self,
        now: int,
        config: ClientConfig,
        *,
        seed: int,
        wall_time: int | None = None,
        entropy: Callable[[int], bytes] | None = None,
    ) -> None:
        context: ClientContext = Context(now, seed)
        self._context = context
        self.outputs = context.outputs
        """The queue that `next_output` takes from. A per-message path can see without a call that it is
        empty."""
        self._services = services = Services(context, config, self._ended)
        services.requests = Requests(services)
        services.keys = self._keys = KeyRequests(context, services.durations, entropy)
        services.addresses = BrokerAddresses(services, ServiceUrl.parse(config.service_url))
        services.links = self._links = Links()
        services.pool = Pool(services)
        services.lookup = Lookup(services)
        services.schemas = SchemaVersions(services)
        services.transactions = Transactions(services)
        self._failover = failover_of(services, self._switch)
        if wall_time is not None:
            services.record_wall_time(wall_time)
        self._handles = handles = OpenHandles(context)
        self._close_requests: dict[int, list[int]] = {}
        """Requests that wait for a producer or consumer to be closed, by its handle."""
        self._client_close_requests: list[int] = []
        """Requests that wait for the whole client to be closed."""

        self._queries = queries = TopicQueries(services, handles)
        self.partitions = queries.partitions
        self.topics = queries.topics
        self.definition = queries.definition
        self.schema_version = queries.schema_version
        self.register_schema = queries.register_schema

        self._bind_producing(ProducerCommands(services, handles))
        consumers = ConsumerCommands(services, handles)
        self._bind_consuming(consumers)
        self._bind_positions(PositionCommands(context, handles, consumers.subscribe))
        self._bind_table_views(TableCommands(services, handles))
        self._bind_transactions(TransactionCommands(services, handles))

    def _bind_producing(self, producers: ProducerCommands) -> None:
        self.open_producer = producers.open_producer
        self.send = producers.send
        self.send_many = producers.send_many
        self.appender = producers.appender
        self.encoder = producers.encoder
        self.push = producers.push
        self.flush = producers.flush
        self.last_sequence_id = producers.last_sequence_id
        self.producer_statistics = producers.producer_statistics
        self.partition_statistics = producers.partition_statistics

    def _bind_consuming(self, consumers: ConsumerCommands) -> None:
        self.subscribe = consumers.subscribe
        self.receive = consumers.receive
        self.receiver = consumers.receiver
        self.take = consumers.take
        self.batch_receive = consumers.batch_receive
        self.available = consumers.available
        self.acknowledge = consumers.acknowledge
        self.acknowledge_cumulative = consumers.acknowledge_cumulative
        self.acknowledger = consumers.acknowledger
        self.set_processing = consumers.set_processing
        self.set_time = consumers.set_time
        self.negative_acknowledge = consumers.negative_acknowledge
        self.redeliver_unacknowledged = consumers.redeliver_unacknowledged
        self.reconsume_later = consumers.reconsume_later
        self.dead_letter = consumers.dead_letter
        self.flush_acknowledgements = consumers.flush_acknowledgements
        self.pause = consumers.pause
        self.resume = consumers.resume
        self.unsubscribe = consumers.unsubscribe
        self.consumer_statistics = consumers.consumer_statistics
        self.subscribed_topics = consumers.subscribed_topics
        self.arrival_counters = consumers.arrival_counters

    def _bind_positions(self, positions: PositionCommands) -> None:
        self.open_reader = positions.open_reader
        self.checkpoint = positions.checkpoint
        self.seek = positions.seek
        self.last_message_id = positions.last_message_id
        self.last_position = positions.last_position
        self.has_message_available = positions.has_message_available

    def _bind_table_views(self, views: TableCommands) -> None:
        self.open_table_view = views.open_table_view
        self.table = views.table
        self.refresh = views.refresh

    def _bind_transactions(self, transactions: TransactionCommands) -> None:
        self.begin_transaction = transactions.begin_transaction
        self.join_transaction = transactions.join_transaction
        self.release_transaction = transactions.release_transaction
        self.end_released_transaction = transactions.end_released_transaction
        self.flush_transaction = transactions.flush_transaction
        self.commit = transactions.commit
        self.abort = transactions.abort

    # --- facts about the world ---

    def connected(self, now: int, link: int) -> None:
        """The link asked for by `Connect(link, …)` is open."""
        self._context.now = now
        owner = self._links.open.get(link)
        if owner is not None:
            owner.opened()

    def receive_data(self, now: int, link: int, data: bytes | bytearray | memoryview) -> None:
        """Bytes came over the link."""
        self._context.now = now
        owner = self._links.open.get(link)
        if owner is not None:
            owner.receive(data if type(data) is bytes else bytes(data))

    def receive_eof(self, now: int, link: int) -> None:
        """The peer will send nothing more, so the client gives the link up."""
        self._context.now = now
        owner = self._links.open.get(link)
        if owner is not None:
            owner.receive_eof()

    def disconnected(self, now: int, link: int, reason: str | TlsError) -> None:
        """The link is gone for good, or could not be opened. `reason`: a `TlsError` when the TLS handshake
        failed, which then is the error of everything that waits for the link."""
        self._context.now = now
        owner = self._links.open.get(link)
        if owner is None:
            self._links.left.pop(link, None)
            return
        cause = reason if isinstance(reason, TlsError) else ConnectionLost(f"{owner.physical}: {reason}")
        owner.close(cause, already_gone=True)

    def provide_credentials(self, now: int, link: int, credentials: Secret) -> None:
        """Answer `CredentialsWanted`: these are the credentials. An answer for a link that is gone is
        ignored."""
        self._context.now = now
        owner = self._links.open.get(link)
        if owner is not None:
            owner.credentials.provided(credentials)

    def refuse_credentials(self, now: int, link: int, error: CredentialsFailed) -> None:
        """Answer `CredentialsWanted`: there are no credentials, because of `error`. The link ends."""
        self._context.now = now
        owner = self._links.open.get(link)
        if owner is not None:
            owner.close(error)

    def provide_encryption_key(self, now: int, request: int, info: EncryptionKeyInfo) -> None:
        """Answer `EncryptionKeyWanted`: this is the key. An answer that comes too late is ignored."""
        self._context.now = now
        self._keys.answered(request, info)

    def refuse_encryption_key(self, now: int, request: int, error: CryptoError) -> None:
        """Answer `EncryptionKeyWanted`: there is no key, because of `error`."""
        self._context.now = now
        self._keys.answered(request, error)

    def handle_deadline(self, now: int) -> None:
        """Run the timers that are due. The call is harmless when none is."""
        self._context.now = now
        self._context.deadlines.run(now)

    # --- what comes out ---

    @property
    def has_output(self) -> bool:
        """True when `next_output` returns an output."""
        return bool(self.outputs)

    def next_output(self) -> Output | None:
        """Return the next output, in causal order; None when there is none."""
        return self.outputs.popleft() if self.outputs else None

    def data_to_send(self, link: int) -> list[bytes]:
        """Return chunks to write to the link, in order, each once; an empty list for a link that is gone."""
        owner = self._links.open.get(link)
        if owner is not None:
            return owner.data_to_send()
        return self._links.left.pop(link, [])

    def next_deadline(self) -> int | None:
        """Return the latest moment for the next `handle_deadline`; None means never."""
        return self._context.deadlines.next()

    @property
    def links(self) -> Sequence[int]:
        """The links that are open or being opened."""
        return tuple(self._links.open)

    @property
    def memory_held(self) -> int:
        """The payload bytes of all messages that are taken and not settled: what `memory_limit` limits."""
        return self._services.memory.held

    # --- explanations and reports ---

    def explain(self, now: int, identifier: int) -> str:
        """Explain in a few lines why a producer, consumer, reader or table view does not move.

        The lines tell how it is connected or why not, the next attempt, pending or queued messages, permits,
        and why the broker may deliver nothing. Topics and partitions have a line each, at most ten. The text
        contains no properties, keys or payloads. It is for people, and its wording may change. Raises
        `LocalProtocolError` for an id that was never given to a producer or consumer.
        """
        handles = self._handles
        machine = handles.machine(identifier)
        if machine is None:
            return handles.closed.explain(identifier)
        self._context.now = now
        view = handles.views.get(identifier)
        if view is not None:
            return under(
                f"table view of {len(view.table)} keys, {machine.described}",
                [*view.explain(), *machine.explain()],
            )
        return under(machine.described, machine.explain())

    def report_requests(self, wanted: bool) -> None:
        """Begin or stop to emit `RequestSent` and `RequestAnswered` for every request."""
        self._services.requests.reported = wanted

    # --- the client itself ---

    @property
    def service_url(self) -> str:
        """The URL by which the client finds brokers now."""
        return str(self._services.addresses.service_url)

    def update_service_url(self, now: int, url: str) -> None:
        """Find brokers by this URL from now on (rule CLIENT-21). Every connection is ended; producers and
        consumers reconnect by the new URL. Raises `InvalidServiceUrl`, `ClosedError`, and
        `LocalProtocolError` for a client with a `failover`, which chooses the URL itself."""
        self._handles.check_open()
        if self._failover is not None:
            raise LocalProtocolError("the failover of this client chooses the service URL")
        service_url = ServiceUrl.parse(url)
        if self._services.config.sni_proxy is not None and service_url.scheme != "pulsar+ssl":
            raise InvalidServiceUrl(
                f"service URL {url!r}: a client with an sni_proxy connects by pulsar+ssl://"
            )
        self._context.now = now
        self._use_service_url(service_url)

    def _switch(self, service_url: ServiceUrl, reason: str) -> None:
        old = self._services.addresses.service_url
        self._context.emit(ServiceUrlSwitched(str(old), str(service_url), reason))
        self._use_service_url(service_url)

    def _use_service_url(self, service_url: ServiceUrl) -> None:
        self._services.addresses.set_service_url(service_url)
        self._end_links(ConnectionLost("the service URL was changed"))

    def _end_links(self, cause: PulsarError) -> None:
        self._services.transactions.leave_cluster(cause)
        self._services.lookup.fail_waiting(cause)
        self._links.close_all(cause)

    def close(self, now: int, identifier: int | None = None) -> int:
        """Close a producer or a consumer, or the whole client (None); `RequestDone` follows.

        The request is done at once for one that is closed already. Raises `LocalProtocolError` for an id that
        was never given.
        """
        self._context.now = now
        if identifier is None:
            return self._close_client()
        machine = self._handles.machine(identifier)
        request = self._context.new_id()
        if machine is None:
            self._context.emit(RequestDone(request, None))
        else:
            self._close_requests.setdefault(identifier, []).append(request)
            machine.close()
        return request

    def abandon(self, now: int, identifier: int, owner: int | None = None) -> None:
        """Discard a producer, consumer or request that the application no longer waits for.

        A producer or consumer is closed, and no request reports that. The outcome of a request is not
        reported. An id that is closed or done already is ignored; one never given raises
        `LocalProtocolError`. `owner`: the producer or consumer that the request was given to, if the caller
        knows it; then the client does not ask the others.
        """
        self._context.now = now
        if not self._context.was_given(identifier):
            raise LocalProtocolError(f"nothing has the id {identifier}")
        machine = self._handles.machine(identifier)
        if machine is not None:
            machine.close()
            return
        self._queries.cancel(identifier)
        self._services.transactions.forget_request(identifier)
        if identifier in self._client_close_requests:
            self._client_close_requests.remove(identifier)
        for handle in self._request_owners() if owner is None else (owner,):
            self._forget_request(handle, identifier)

    def _request_owners(self) -> list[int]:
        """The handles that may have been given a request."""
        handles = self._handles
        return list({**self._close_requests, **handles.producers, **handles.consumers, **handles.views})

    def _forget_request(self, handle: int, request: int) -> None:
        handles = self._handles
        closing = self._close_requests.get(handle, [])
        if request in closing:
            closing.remove(request)
        if (producer := handles.producers.get(handle)) is not None:
            producer.discard_flush(request)
        if (consumer := handles.consumers.get(handle)) is not None:
            consumer.forget_request(request)
        if (view := handles.views.get(handle)) is not None:
            view.forget_request(request)

    def _close_client(self) -> int:
        """Close the producers and consumers first, then the connections (rules CLIENT-22, CLIENT-24,
        CLIENT-25)."""
        handles = self._handles
        request = self._context.new_id()
        if handles.closed_client:
            self._context.emit(RequestDone(request, None))
            return request
        self._client_close_requests.append(request)
        if handles.closing:
            return request
        handles.closing = True
        self._queries.fail_all(ClosedError("the client is closed"))
        for machine in [*handles.producers.values(), *handles.consumers.values()]:
            machine.close()
        self._close_if_empty()
        return request

    def _close_if_empty(self) -> None:
        handles = self._handles
        if not handles.closing or handles.closed_client or handles.producers or handles.consumers:
            return
        handles.closed_client = True
        if self._failover is not None:
            self._failover.close()
        self._end_links(ConnectionLost("the client is closed"))
        for request in self._client_close_requests:
            self._context.emit(RequestDone(request, None))
        self._client_close_requests = []

    # --- ends ---

    def _ended(self, handle: int, error: PulsarError | None) -> None:
        """A producer or consumer has ended for good; its attachment reports that after its owner has."""
        handles = self._handles
        producer = handles.producers.pop(handle, None)
        consumer = handles.consumers.pop(handle, None)
        handles.views.pop(handle, None)
        handles.closed.add(handle, error)
        if consumer is not None:
            handles.closed.add_statistics(handle, consumer.statistics())
            for each in consumer.spec.interceptors:
                self._close_interceptor(each, partial(ConsumerInterceptorFailed, handle, each))
        if producer is not None:
            handles.closed.add_statistics(handle, producer.statistics())
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
