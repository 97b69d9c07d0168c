"""`TopicQueries`: the commands of `Client` that ask about topics, without a producer or consumer."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ...model.config import TopicDomain
from ...model.errors import NotSupported, PulsarError, RemoteProtocolError, TopicNotFound
from ...model.schema import Schema, SchemaInfo, SchemaType
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ..connecting.connection import Connection
from ..connecting.services import Services
from ..lookup.questions import Query
from ..lookup.retried_lookup import RetriedLookup
from ..lookup.topic_list import TopicList, named_topics
from ..outputs import RequestDone, RequestFailed
from ..schemas.schema_question import SchemaQuestion, VersionedSchema
from ..schemas.schema_registration import SchemaRegistration
from .open_handles import OpenHandles


class TopicQueries:
    """The queries under way, by their requests. A query is retried until the operation timeout expires."""

    __slots__ = ("_context", "_handles", "_queries", "_services")

    def __init__(self, services: Services, handles: OpenHandles) -> None:
        self._context = services.context
        self._services = services
        self._handles = handles
        self._queries: dict[int, RetriedLookup] = {}

    def partitions(self, now: int, topic: str) -> int:
        """Ask how many partitions a topic has: the `result` of `RequestDone`, 0 for a topic that is not
        partitioned. Raises `InvalidTopicName`, `ClosedError`."""
        self._handles.check_open()
        name = TopicName.parse(topic)
        self._context.now = now
        lookup = self._services.lookup
        return self._query(f"the partitions of {name}", partial(lookup.partitions, name))

    def topics(self, now: int, namespace: str, domain: TopicDomain = TopicDomain.PERSISTENT) -> int:
        """Ask which topics a namespace (`tenant/namespace`) has.

        The `result` of `RequestDone` is a sorted list of full names. Partitioned topics appear under their
        own name, non-persistent topics only while they are in use. Raises `InvalidTopicName`, `ClosedError`.
        """
        self._handles.check_open()
        TopicName.parse(f"persistent://{namespace}/topic")
        self._context.now = now
        listed = TopicList(namespace, domain)
        return self._query(str(listed), partial(self._services.lookup.topics, listed), named_topics)

    def definition(self, now: int, topic: str, version: bytes | None = None) -> int:
        """Ask for a definition of a topic's schema: that of a version, or the latest one.

        The `result` of `RequestDone` is a `SchemaInfo`, None where the topic has no such definition. The
        broker of the topic is asked; the partitions of a topic have its definitions. Raises
        `InvalidTopicName`, `ClosedError`.
        """
        self._handles.check_open()
        name = TopicName.parse(topic)
        self._context.now = now
        return self._query(f"the schema of {name}", partial(self._ask_definition, name, version), _info)

    def schema_version(self, now: int, topic: str) -> int:
        """Ask for the version of the latest definition of a topic's schema.

        The `result` of `RequestDone` is a number from 0, None where the topic has no definition. Raises
        `InvalidTopicName`, `ClosedError`.
        """
        self._handles.check_open()
        name = TopicName.parse(topic)
        self._context.now = now
        return self._query(f"the version of the schema of {name}", partial(self._ask_version, name))

    def register_schema(self, now: int, topic: str, schema: Schema[Any]) -> int:
        """Register a definition for a topic, which is the definition's version from then on.

        The `result` of `RequestDone` is the version in bytes; that of an equal definition where the topic has
        one, and empty where the broker does not have the topic. Where the broker refuses it the error is
        `IncompatibleSchema`. Raises `InvalidTopicName`, `ClosedError`.
        """
        self._handles.check_open()
        name = TopicName.parse(topic)
        self._context.now = now
        return self._query(f"a schema for {name}", partial(self._ask_to_register, name, schema))

    def _ask_definition(
        self,
        topic: TopicName,
        version: bytes | None,
        on_known: Callable[[VersionedSchema | None], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        """A real broker answers with the mark of a deletion as the latest definition: one of type NONE, whose
        version it does not have."""

        def failed(error: PulsarError) -> None:
            if isinstance(error, TopicNotFound):
                on_known(None)
            else:
                on_failed(error)

        def ask(connection: Connection, query: Query) -> None:
            known, not_known = _outcomes(query)

            def answered(found: VersionedSchema) -> None:
                if version is None and found.version and found.info.type is SchemaType.NONE:
                    SchemaQuestion(self._services, connection, topic, found.version, known, not_known)
                else:
                    known(found)

            SchemaQuestion(self._services, connection, topic, version, answered, not_known)

        return self._ask_broker(topic, ask, Query(on_known, failed))

    def _ask_version(
        self,
        topic: TopicName,
        on_known: Callable[[int | None], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        def known(found: VersionedSchema | None) -> None:
            if found is None:
                on_known(None)
            elif len(found.version) != 8:
                wrong = f"the broker gave {len(found.version)} bytes for a version"
                on_failed(RemoteProtocolError(wrong))
            else:
                on_known(int.from_bytes(found.version, "big"))

        return self._ask_definition(topic, None, known, on_failed)

    def _ask_to_register(
        self,
        topic: TopicName,
        schema: Schema[Any],
        on_known: Callable[[bytes], None],
        on_failed: Callable[[PulsarError], None],
    ) -> Query:
        def ask(connection: Connection, query: Query) -> None:
            try:
                SchemaRegistration(self._services, connection, topic, schema, *_outcomes(query))
            except NotSupported as error:
                on_failed(error)

        return self._ask_broker(topic, ask, Query(on_known, on_failed))

    def _ask_broker(self, topic: TopicName, ask: Callable[[Connection, Query], None], query: Query) -> Query:
        """Ask the broker of a topic, unless the query is cancelled meanwhile."""
        _, failed = _outcomes(query)

        def found(logical: Address, physical: Address) -> None:
            if not query.cancelled:
                self._services.pool.get(logical, physical, connected, failed)

        def connected(connection: Connection) -> None:
            if not query.cancelled:
                ask(connection, query)

        self._services.lookup.find(topic, found, failed)
        return query

    def cancel(self, request: int) -> None:
        """End a query without an outcome; any other request is ignored."""
        query = self._queries.pop(request, None)
        if query is not None:
            query.cancel()

    def fail_all(self, error: PulsarError) -> None:
        """End all queries: the client is closing."""
        for query in list(self._queries.values()):
            query.fail(error)

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

        query = RetriedLookup(self._services, request, what, ask, done, failed)
        self._queries[request] = query
        query.ask()
        return request


def _info(found: VersionedSchema | None) -> SchemaInfo | None:
    return None if found is None else found.info


def _outcomes(query: Query) -> tuple[Callable[[Any], None], Callable[[PulsarError], None]]:
    """Return the callbacks of a query, which do nothing once it is cancelled."""

    def known(answer: Any) -> None:
        if not query.cancelled:
            query.on_done(answer)

    def failed(error: PulsarError) -> None:
        if not query.cancelled:
            query.on_failed(error)

    return known, failed
