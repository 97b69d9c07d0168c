"""`Lookup`: finds the broker that serves a topic, and the number of the topic's partitions.

It owns the service URL with its hosts, the redirects of a lookup within one timeout (GAP-25), and the sharing
of equal lookups in flight. It never retries; the caller does (rule LOOKUP-08).
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ...core.deadlines import Slot
from ...model.errors import (
    PulsarError,
    RemoteProtocolError,
    ServiceNotReady,
    TimedOut,
    TooManyPartitions,
    TooManyRedirects,
    TooManyRequests,
    broker_error,
)
from ...model.service_url import Address, ServiceUrl
from ...model.topic_name import TopicName
from ...wire import encode_command, proto
from .address_policy import check_destination, named_broker
from .connection import Connection
from .services import Services
from .topic_list import TopicList, TopicListing, listing

Command = proto.BaseCommand
LookupResponse = proto.CommandLookupTopicResponse
MetadataResponse = proto.CommandPartitionedTopicMetadataResponse

MAX_WAITING_LOOKUPS = 50_000
"""The number of lookups that may wait for their turn on one connection (rule CONN-14)."""


class LookupQueue:
    """Lookups on one connection: a limited number in flight, the others waiting (rule CONN-14)."""

    __slots__ = ("_in_flight", "_limit", "_waiting")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_flight = 0
        self._waiting: deque[tuple[Callable[[], bool], Callable[[PulsarError], None]]] = deque()

    def submit(self, start: Callable[[], bool], on_failed: Callable[[PulsarError], None]) -> None:
        """Call `start` when the lookup may be sent; call `on_failed` if that never happens.

        `start` returns True when it sent the lookup, and False for a lookup that ended while waiting.
        """
        if self._in_flight < self._limit:
            if start():
                self._in_flight += 1
        elif len(self._waiting) < MAX_WAITING_LOOKUPS:
            self._waiting.append((start, on_failed))
        else:
            on_failed(TooManyRequests(f"{MAX_WAITING_LOOKUPS} lookups wait already on one connection"))

    def answered(self) -> None:
        """A lookup in flight ended with any result: start the next one."""
        while self._waiting:
            start, _ = self._waiting.popleft()
            if start():
                return
        self._in_flight -= 1

    def fail(self, error: PulsarError) -> None:
        """The connection died: fail the waiting lookups. Lookups in flight fail as requests."""
        waiting, self._waiting = self._waiting, deque()
        for _, on_failed in waiting:
            on_failed(error)


class Query:
    """A caller's request for the result of a lookup."""

    __slots__ = ("cancelled", "on_done", "on_failed")

    def __init__(self, on_done: Callable[..., None], on_failed: Callable[[PulsarError], None]) -> None:
        self.on_done = on_done
        self.on_failed = on_failed
        self.cancelled = False

    def cancel(self) -> None:
        """Prevent both callbacks."""
        self.cancelled = True


class _Question:
    """One lookup in flight, with the queries that share it.

    A query that joins late shares the lookup's deadline, so its timeout may come early. Its caller retries,
    as after any failure (LOOKUP-08).
    """

    __slots__ = ("among", "asked", "at", "authoritative", "deadline", "over", "queries", "redirects", "topic")

    deadline: Slot
    """The timeout of the lookup, with all its connections, waits, requests and redirects."""

    def __init__(self, among: "_Questions", topic: TopicName | TopicList, at: Address | None) -> None:
        self.among = among
        """The registry in which equal queries find this lookup until it is over."""
        self.topic = topic
        self.at = at
        """The cluster to which the topic has migrated; None to ask the service URL."""
        self.queries: list[Query] = []
        self.redirects = 0
        self.authoritative = False
        self.asked: tuple[Connection, int] | None = None
        """The connection and the id of the pending request."""
        self.over = False
        """True once answered or failed; later callbacks then do nothing."""

    def answer(self, *result: Any) -> None:
        for query in self.queries:
            if not query.cancelled:
                query.on_done(*result)

    def fail(self, error: PulsarError) -> None:
        for query in self.queries:
            if not query.cancelled:
                query.on_failed(error)


_Questions: TypeAlias = dict[tuple[TopicName | TopicList, Address | None], _Question]


class Lookup:
    """The lookups of one client."""

    def __init__(self, services: Services, service_url: ServiceUrl) -> None:
        self._services = services
        self._finding: _Questions = {}
        self._counting: _Questions = {}
        self._listing: _Questions = {}
        proxy = services.config.sni_proxy
        self._sni_proxy = None if proxy is None else ServiceUrl.parse(proxy).addresses[0]
        self._broker_hosts = services.config.broker_hosts
        if services.config.authentication_method is not None and self._broker_hosts is None:
            self._broker_hosts = ()
        self.set_service_url(service_url)

    # --- service URL ---

    def set_service_url(self, service_url: ServiceUrl) -> None:
        """Ask the hosts of this URL from now on (rule CLIENT-21). The first of several is drawn at random."""
        self.service_url = service_url
        hosts = len(service_url.addresses)
        self._host = self._services.context.rng.below(hosts) if hosts > 1 else 0

    @property
    def service_address(self) -> Address:
        """The host to ask next."""
        return self.service_url.addresses[self._host]

    def could_not_connect(self, logical: Address, physical: Address) -> None:
        """A connection failed: if it was to the current host, ask the next host from now on.

        Behind an SNI proxy the logical address tells which host that was.
        """
        if self.service_address == (physical if self._sni_proxy is None else logical):
            self._host = (self._host + 1) % len(self.service_url.addresses)

    def tls_name(self, logical: Address, physical: Address) -> str | None:
        """Return the name that the certificate at `physical` must be for; None for a plain connection.

        A proxy that routes by server name passes TLS through, so the certificate is the broker's. Any other
        proxy has a certificate of its own.
        """
        if not self.service_url.tls:
            return None
        return (physical if self._sni_proxy is None else logical).host

    def physical_address(self, logical: Address) -> Address:
        """Return the address to connect to for a broker: its own, or that of the SNI proxy."""
        return self._sni_proxy or logical

    def new_queue(self) -> LookupQueue:
        return LookupQueue(self._services.config.max_pending_lookups)

    def cluster_at(self, url: str) -> Address:
        """Return the address to ask in a cluster that a broker has named.

        Raises `RemoteProtocolError` for an unusable URL, `BrokerAddressRefused` for a forbidden address.
        """
        tls, address = named_broker(url)
        check_destination(tls, address, self.service_url, self._broker_hosts)
        return address

    def route_to(self, url: str, connection: Connection, proxied: bool) -> tuple[Address, Address]:
        """Return the logical and physical address of the broker that was named on `connection`.

        `proxied`: the client reaches the named broker through the connection's proxy (rule LOOKUP-07).
        Raises `RemoteProtocolError` for an unusable URL, `BrokerAddressRefused` for a forbidden address.
        """
        tls, address = named_broker(url)
        if proxied:
            return address, connection.physical
        check_destination(tls, address, self.service_url, self._broker_hosts)
        return address, self.physical_address(address)

    # --- queries ---

    def find(
        self,
        topic: TopicName,
        on_found: Callable[[Address, Address], None],
        on_failed: Callable[[PulsarError], None],
        at: Address | None = None,
    ) -> Query:
        """Find the broker of `topic`; `on_found` gets its logical and physical address.

        Equal queries share one LOOKUP. `at`: the address to ask in place of the service URL.
        """
        query = Query(on_found, on_failed)
        question = self._join(self._finding, topic, query, at)
        if question is not None:
            self._step(question, at or self.service_address)
        return query

    def partitions(
        self,
        topic: TopicName,
        on_known: Callable[[int], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        """Find the number of partitions of `topic`, 0 for a topic without partitions.

        Equal queries share one PARTITIONED_METADATA.
        """
        query = Query(on_known, on_failed)
        question = self._join(self._counting, topic, query)
        if question is not None:
            self._count(question)
        return query

    def topics(
        self,
        wanted: TopicList,
        on_known: Callable[[TopicListing], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        """Find the topics of a namespace by asking any broker.

        Equal queries share one GET_TOPICS_OF_NAMESPACE.
        """
        query = Query(on_known, on_failed)
        question = self._join(self._listing, wanted, query)
        if question is not None:
            asked = question

            def known(_connection: Connection, answer: proto.CommandGetTopicsOfNamespaceResponse) -> None:
                self._end(asked)
                asked.answer(listing(answer))

            self._ask(
                asked,
                self.service_address,
                lambda _, request_id: encode_command(
                    Command.GET_TOPICS_OF_NAMESPACE, wanted.command(request_id)
                ),
                known,
                Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
            )
        return query

    def _count(self, question: _Question) -> None:
        create = self._services.config.create_topics

        def encode(connection: Connection, request_id: int) -> bytes:
            command = proto.CommandPartitionedTopicMetadata(
                topic=str(question.topic),
                request_id=request_id,
                metadata_auto_creation_enabled=create or not connection.asks_without_creation,
            )
            return encode_command(Command.PARTITIONED_METADATA, command)

        def known(connection: Connection, response: MetadataResponse) -> None:
            if response.response == MetadataResponse.Success:
                self._end(question)
                self._count_known(question, response.partitions)
            else:
                self._fail(question, self._refusal(connection, response))

        self._ask(question, self.service_address, encode, known, Command.PARTITIONED_METADATA_RESPONSE)

    def _count_known(self, question: _Question, partitions: int) -> None:
        """Answer with the number of partitions, up to `max_partitions`.

        Each partition costs a producer or consumer, so a larger number fails.
        """
        most = self._services.config.max_partitions
        if partitions > most:
            text = f"topic {question.topic} is said to have {partitions} partitions, allowed are {most}"
            question.fail(TooManyPartitions(f"{text} (max_partitions)"))
        else:
            question.answer(partitions)

    def _join(
        self, among: _Questions, topic: TopicName | TopicList, query: Query, at: Address | None = None
    ) -> _Question | None:
        """Add a query to the equal lookup in flight; return a new lookup if there is none."""
        question = among.get((topic, at))
        if question is not None:
            question.queries.append(query)
            return None
        question = among[topic, at] = _Question(among, topic, at)
        question.queries.append(query)
        context = self._services.context
        question.deadline = context.deadlines.slot(partial(self._timed_out, question))
        question.deadline.set(context.now + self._services.durations.operation_timeout)
        return question

    def _timed_out(self, question: _Question) -> None:
        if question.asked is not None:
            connection, request_id = question.asked
            self._services.requests.cancel(connection, request_id)
            connection.lookups.answered()
            connection.count_rejection()
        seconds = self._services.config.operation_timeout
        self._fail(question, TimedOut(f"lookup of {question.topic}: no answer within {seconds:g} s"))

    def _fail(self, question: _Question, error: PulsarError) -> None:
        if not question.over:
            self._end(question)
            question.fail(error)

    def _end(self, question: _Question) -> None:
        question.over = True
        question.deadline.clear()
        del question.among[question.topic, question.at]

    # --- one step of a lookup ---

    def _step(self, question: _Question, address: Address) -> None:
        """Ask the broker at `address` (rule LOOKUP-04)."""

        def encode(_: Connection, request_id: int) -> bytes:
            command = proto.CommandLookupTopic(
                topic=str(question.topic), request_id=request_id, authoritative=question.authoritative
            )
            listener = self._services.config.listener_name
            if listener is not None:
                command.advertised_listener_name = listener
            return encode_command(Command.LOOKUP, command)

        self._ask(question, address, encode, partial(self._answered, question), Command.LOOKUP_RESPONSE)

    def _answered(self, question: _Question, connection: Connection, response: LookupResponse) -> None:
        topic = question.topic
        if not response.HasField("response") or response.response == LookupResponse.Failed:
            self._fail(question, self._refusal(connection, response))
            return
        wanted = "brokerServiceUrlTls" if self.service_url.tls else "brokerServiceUrl"
        url: str = getattr(response, wanted)
        redirect = response.response == LookupResponse.Redirect
        try:
            proxied = response.proxy_through_service_url and not redirect
            logical, physical = self.route_to(url, connection, proxied)
        except RemoteProtocolError as wrong:
            self._fail(question, type(wrong)(f"lookup of {topic}: {wanted} of the answer: {wrong}"))
            return
        if redirect:
            question.redirects += 1
            if question.redirects > self._services.config.max_lookup_redirects:
                error = TooManyRedirects(f"lookup of {topic} was redirected {question.redirects} times")
                self._fail(question, error)
                return
            question.authoritative = response.authoritative
            self._step(question, logical)
            return
        self._end(question)
        question.answer(logical, physical)

    def _ask(
        self,
        question: _Question,
        address: Address,
        encode: Callable[[Connection, int], bytes],
        on_done: Callable[[Connection, Any], None],
        reply: int,
    ) -> None:
        """Send one request to `address`, once a connection is ready and its lookup queue has room."""

        def connected(connection: Connection) -> None:
            def done(response: Any) -> None:
                question.asked = None
                connection.lookups.answered()
                on_done(connection, response)

            def failed(error: PulsarError) -> None:
                question.asked = None
                connection.lookups.answered()
                if isinstance(error, (TimedOut, TooManyRequests, ServiceNotReady)):
                    connection.count_rejection()
                self._fail(question, error)

            def start() -> bool:
                if question.over:
                    return False
                send = self._services.requests.send
                asked = send(connection, partial(encode, connection), done, failed, reply=reply)
                question.asked = (connection, asked)
                return True

            connection.lookups.submit(start, fail)

        fail = partial(self._fail, question)
        self._services.pool.get(address, self.physical_address(address), connected, fail)

    def _refusal(self, connection: Connection, response: Any) -> PulsarError:
        """Return the error of a failed answer; UnknownError for an answer without a code (WIRE-19)."""
        error = broker_error(response.error, response.message)
        if isinstance(error, (TooManyRequests, ServiceNotReady)):
            connection.count_rejection()
        return error
