"""`Coordinator`: one transaction coordinator, and the way to it (GAP-40).

A coordinator is found by the lookup of its partition of one system topic. A broker of protocol version 19 or
later wants TC_CLIENT_CONNECT_REQUEST once on each connection before it answers for the coordinator. Questions
that need the way at the same time share one attempt.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from ...model.errors import PulsarError, broker_error
from ...model.service_url import Address
from ...model.topic_name import TopicName
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..connecting.services import Services
from ..lookup.questions import Query

_Command = proto.BaseCommand

ASSIGN_TOPIC = TopicName.parse("persistent://pulsar/system/transaction_coordinator_assign")
"""The topic whose partitions stand for the coordinators."""

INTRODUCTION_VERSION = 19
"""The protocol version from which a client introduces itself to a coordinator."""


class Coordinator:
    """One coordinator. `connection`: the last connection on which it has answered; None before."""

    __slots__ = ("_is_sought", "_queries", "connection", "number", "services", "topic")

    def __init__(self, services: Services, number: int) -> None:
        self.services = services
        self.number = number
        self.topic = ASSIGN_TOPIC.partition_name(number)
        self.connection: Connection | None = None
        self._is_sought = False
        self._queries: list[Query] = []
        """The questions that wait for the connection."""

    def reach(self, done: Callable[[Connection], None], failed: Callable[[PulsarError], None]) -> Query:
        """Look the coordinator up, and introduce the client to it, unless that is under way."""
        query = Query(done, failed)
        self._queries.append(query)
        if not self._is_sought:
            self._is_sought = True
            self.services.lookup.find(self.topic, self._found, self._not_reached)
        return query

    def _is_wanted(self) -> bool:
        """Tell whether a question still waits; without one, the attempt ends."""
        self._queries = [query for query in self._queries if not query.cancelled]
        self._is_sought = bool(self._queries)
        return self._is_sought

    def _found(self, logical: Address, physical: Address) -> None:
        if self._is_wanted():
            self.services.pool.get(logical, physical, self._connected, self._not_reached)

    def _connected(self, connection: Connection) -> None:
        if not self._is_wanted():
            return
        if connection.protocol_version < INTRODUCTION_VERSION:
            self._introduced(connection, None)
            return
        number = self.number
        self.services.requests.send(
            connection,
            lambda request_id: encode_command(
                _Command.TC_CLIENT_CONNECT_REQUEST,
                proto.CommandTcClientConnectRequest(request_id=request_id, tc_id=number),
            ),
            partial(self._introduced, connection),
            self._not_reached,
            reply=_Command.TC_CLIENT_CONNECT_RESPONSE,
        )

    def _introduced(self, connection: Connection, answer: Any) -> None:
        if answer is not None and answer.HasField("error"):
            self._not_reached(broker_error(answer.error, answer.message))
            return
        self.connection = connection
        for query in self._taken():
            if not query.cancelled:
                query.on_done(connection)

    def _not_reached(self, error: PulsarError) -> None:
        for query in self._taken():
            if not query.cancelled:
                query.on_failed(error)

    def _taken(self) -> list[Query]:
        """Return the questions that have waited: the attempt is over."""
        queries, self._queries = self._queries, []
        self._is_sought = False
        return queries
