"""`CoordinatorQuestion`: one attempt to ask a transaction coordinator (GAP-40).

A coordinator is found by the lookup of its partition of one system topic. A broker of protocol version 19 or
later wants TC_CLIENT_CONNECT_REQUEST once on each connection before it answers for the coordinator.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...model.errors import PulsarError, broker_error
from ...model.service_url import Address
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..lookup.questions import Query

if TYPE_CHECKING:
    from .transaction_coordinators import Coordinator

_Command = proto.BaseCommand

INTRODUCTION_VERSION = 19
"""The protocol version from which a client introduces itself to a coordinator."""


class CoordinatorQuestion:
    """One attempt. One of the callbacks is called, once, unless the question is cancelled.

    `encode(request_id)` returns the frame to send, and `reply` is the command that answers it.
    """

    __slots__ = ("_cancelled", "_coordinator", "_encode", "_failed", "_known", "_query", "_reply", "_request")

    def __init__(
        self,
        coordinator: "Coordinator",
        encode: Callable[[int], bytes],
        reply: int,
        known: Callable[[Any], None],
        failed: Callable[[PulsarError], None],
    ) -> None:
        self._coordinator = coordinator
        self._encode = encode
        self._reply = reply
        self._known = known
        self._failed = failed
        self._cancelled = False
        self._query: Query | None = None
        self._request: tuple[Connection, int] | None = None
        connection = coordinator.connection
        if connection is not None and connection.ready:
            self._ask(connection)
        else:
            lookup = coordinator.services.lookup
            self._query = lookup.find(coordinator.topic, self._found, self._not_answered)

    def cancel(self) -> None:
        """Prevent both callbacks."""
        self._cancelled = True
        if self._query is not None:
            self._query.cancel()
        if self._request is not None:
            self._coordinator.services.requests.cancel(*self._request)

    def _found(self, logical: Address, physical: Address) -> None:
        self._coordinator.services.pool.get(logical, physical, self._connected, self._not_answered)

    def _connected(self, connection: Connection) -> None:
        if self._cancelled:
            return
        if connection.protocol_version < INTRODUCTION_VERSION:
            self._introduced(connection, None)
            return
        number = self._coordinator.number
        requests = self._coordinator.services.requests
        request = requests.send(
            connection,
            lambda request_id: encode_command(
                _Command.TC_CLIENT_CONNECT_REQUEST,
                proto.CommandTcClientConnectRequest(request_id=request_id, tc_id=number),
            ),
            partial(self._introduced, connection),
            self._not_answered,
            reply=_Command.TC_CLIENT_CONNECT_RESPONSE,
        )
        self._request = connection, request

    def _introduced(self, connection: Connection, answer: Any) -> None:
        if answer is not None and answer.HasField("error"):
            self._not_answered(broker_error(answer.error, answer.message))
            return
        self._coordinator.connection = connection
        self._ask(connection)

    def _ask(self, connection: Connection) -> None:
        requests = self._coordinator.services.requests
        request = requests.send(
            connection, self._encode, self._answered, self._not_answered, reply=self._reply
        )
        self._request = connection, request

    def _answered(self, answer: Any) -> None:
        if answer.HasField("error"):
            self._not_answered(broker_error(answer.error, answer.message))
        else:
            self._known(answer)

    def _not_answered(self, error: PulsarError) -> None:
        if self._cancelled:
            return
        if error.retryable:  # The coordinator may be elsewhere: the next attempt looks it up.
            self._coordinator.connection = None
        self._failed(error)
