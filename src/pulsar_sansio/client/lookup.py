"""`Lookup`: which broker serves a topic, and how many partitions it has (rules LOOKUP-01 to LOOKUP-09).

It owns the service URL with its hosts, the walk from redirect to redirect, and the sharing of equal questions
that are under way. It never tries again by itself; whoever asked does that (rule LOOKUP-08).
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from ..model.errors import (
    InvalidServiceUrl,
    PulsarError,
    RemoteProtocolError,
    ServiceNotReady,
    TimedOut,
    TooManyRedirects,
    TooManyRequests,
    broker_error,
)
from ..model.service_url import Address, ServiceUrl
from ..model.topic_name import TopicName
from ..wire import encode_command, proto
from .connection import Connection
from .services import Services

Command = proto.BaseCommand
LookupResponse = proto.CommandLookupTopicResponse
MetadataResponse = proto.CommandPartitionedTopicMetadataResponse

MAX_WAITING_LOOKUPS = 50_000
"""Lookups that wait for their turn on one connection; more are refused (rule CONN-14)."""


def parse_broker_url(text: str) -> Address | None:
    """The address in a broker's URL, host and port as they stand; None where there is none to be read."""
    try:
        return ServiceUrl.parse(text).addresses[0]
    except InvalidServiceUrl:
        return None


class LookupQueue:
    """Lookups on one connection: some in flight, the others waiting their turn (rule CONN-14)."""

    __slots__ = ("_in_flight", "_limit", "_waiting")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_flight = 0
        self._waiting: deque[tuple[Callable[[], None], Callable[[PulsarError], None]]] = deque()

    def submit(self, start: Callable[[], None], on_failed: Callable[[PulsarError], None]) -> None:
        """Call `start` when it is its turn; `on_failed` where that never comes."""
        if self._in_flight < self._limit:
            self._in_flight += 1
            start()
        elif len(self._waiting) < MAX_WAITING_LOOKUPS:
            self._waiting.append((start, on_failed))
        else:
            on_failed(TooManyRequests(f"{MAX_WAITING_LOOKUPS} lookups wait already on one connection"))

    def answered(self) -> None:
        """One in flight is done, with whatever result."""
        if self._waiting:
            self._waiting.popleft()[0]()
        else:
            self._in_flight -= 1

    def fail(self, error: PulsarError) -> None:
        """The connection died: fail those that wait. Those in flight fail as the requests they are."""
        waiting, self._waiting = self._waiting, deque()
        for _, on_failed in waiting:
            on_failed(error)


class Query:
    """Somebody who waits for the answer to a question."""

    __slots__ = ("cancelled", "on_done", "on_failed")

    def __init__(self, on_done: Callable[..., None], on_failed: Callable[[PulsarError], None]) -> None:
        self.on_done = on_done
        self.on_failed = on_failed
        self.cancelled = False

    def cancel(self) -> None:
        """Neither callback will be called."""
        self.cancelled = True


class _Question:
    """One question under way, and everybody who asked it."""

    __slots__ = ("authoritative", "queries", "redirects")

    def __init__(self) -> None:
        self.queries: list[Query] = []
        self.redirects = 0
        self.authoritative = False

    def answer(self, *result: Any) -> None:
        for query in self.queries:
            if not query.cancelled:
                query.on_done(*result)

    def fail(self, error: PulsarError) -> None:
        for query in self.queries:
            if not query.cancelled:
                query.on_failed(error)


class Lookup:
    """The lookups of one client."""

    def __init__(self, services: Services, service_url: ServiceUrl) -> None:
        self._services = services
        self._finding: dict[TopicName, _Question] = {}
        self.set_service_url(service_url)

    # --- service URL ---

    def set_service_url(self, service_url: ServiceUrl) -> None:
        """From now on ask there (rule CLIENT-21). With several hosts the first one is drawn."""
        self.service_url = service_url
        hosts = len(service_url.addresses)
        self._host = self._services.context.rng.below(hosts) if hosts > 1 else 0

    @property
    def service_address(self) -> Address:
        """The host to ask now."""
        return self.service_url.addresses[self._host]

    def could_not_connect(self, address: Address) -> None:
        """That host is of no use; if it is the one being asked, the next one is asked from now on."""
        if address == self.service_address:
            self._host = (self._host + 1) % len(self.service_url.addresses)

    def new_queue(self) -> LookupQueue:
        return LookupQueue(self._services.config.max_pending_lookups)

    # --- questions ---

    def find(
        self,
        topic: TopicName,
        on_found: Callable[[Address, Address], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        """The broker of `topic` as (logical address, physical address). Equal questions share one LOOKUP."""
        query = Query(on_found, on_failed)
        question = self._finding.get(topic)
        if question is not None:
            question.queries.append(query)
            return query
        question = self._finding[topic] = _Question()
        question.queries.append(query)
        self._step(topic, question, self.service_address)
        return query

    def partitions(
        self,
        topic: TopicName,
        on_known: Callable[[int], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        """The number of partitions of `topic`, 0 where it is not partitioned."""
        query = Query(on_known, on_failed)
        question = _Question()
        question.queries.append(query)

        def encode(request_id: int) -> bytes:
            command = proto.CommandPartitionedTopicMetadata(
                topic=str(topic), request_id=request_id, metadata_auto_creation_enabled=True
            )
            return encode_command(Command.PARTITIONED_METADATA, command)

        def known(connection: Connection, response: MetadataResponse) -> None:
            if response.response == MetadataResponse.Success:
                question.answer(response.partitions)
            else:
                question.fail(self._refusal(connection, response))

        address = self.service_address
        self._services.pool.get(
            address,
            address,
            lambda connection: self._ask(
                connection, encode, known, question.fail, Command.PARTITIONED_METADATA_RESPONSE
            ),
            question.fail,
        )
        return query

    # --- one step of a lookup ---

    def _step(self, topic: TopicName, question: _Question, address: Address) -> None:
        """Ask the broker at `address` (rule LOOKUP-04)."""

        def encode(request_id: int) -> bytes:
            command = proto.CommandLookupTopic(
                topic=str(topic), request_id=request_id, authoritative=question.authoritative
            )
            listener = self._services.config.listener_name
            if listener is not None:
                command.advertised_listener_name = listener
            return encode_command(Command.LOOKUP, command)

        def failed(error: PulsarError) -> None:
            del self._finding[topic]
            question.fail(error)

        def answered(connection: Connection, response: LookupResponse) -> None:
            self._answered(topic, question, connection, response, failed)

        self._services.pool.get(
            address,
            address,
            lambda connection: self._ask(connection, encode, answered, failed, Command.LOOKUP_RESPONSE),
            failed,
        )

    def _answered(
        self,
        topic: TopicName,
        question: _Question,
        connection: Connection,
        response: LookupResponse,
        failed: Callable[[PulsarError], None],
    ) -> None:
        if not response.HasField("response") or response.response == LookupResponse.Failed:
            failed(self._refusal(connection, response))
            return
        url = response.brokerServiceUrlTls if self.service_url.tls else response.brokerServiceUrl
        address = parse_broker_url(url)
        if address is None:
            wanted = "brokerServiceUrlTls" if self.service_url.tls else "brokerServiceUrl"
            failed(
                RemoteProtocolError(f"lookup of {topic}: no usable {wanted} in the answer, but {url[:200]!r}")
            )
            return
        if response.response == LookupResponse.Redirect:
            question.redirects += 1
            if question.redirects > self._services.config.max_lookup_redirects:
                failed(TooManyRedirects(f"lookup of {topic} was redirected {question.redirects} times"))
                return
            question.authoritative = response.authoritative
            self._step(topic, question, address)
            return
        del self._finding[topic]
        question.answer(address, connection.physical if response.proxy_through_service_url else address)

    def _ask(
        self,
        connection: Connection,
        encode: Callable[[int], bytes],
        on_done: Callable[[Connection, Any], None],
        on_failed: Callable[[PulsarError], None],
        reply: int,
    ) -> None:
        """One request, when it is its turn on this connection."""

        def done(response: Any) -> None:
            connection.lookups.answered()
            on_done(connection, response)

        def failed(error: PulsarError) -> None:
            connection.lookups.answered()
            if isinstance(error, (TimedOut, TooManyRequests, ServiceNotReady)):
                connection.count_rejection()
            on_failed(error)

        def start() -> None:
            self._services.requests.send(connection, encode, done, failed, reply=reply)

        connection.lookups.submit(start, on_failed)

    def _refusal(self, connection: Connection, response: Any) -> PulsarError:
        """The error in a failed answer; UnknownError where it has none (WIRE-19)."""
        error = broker_error(response.error, response.message)
        if isinstance(error, (TooManyRequests, ServiceNotReady)):
            connection.count_rejection()
        return error
