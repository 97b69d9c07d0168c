"""`CoordinatorQuestion`: one attempt to ask a transaction coordinator (GAP-40)."""

from collections.abc import Callable
from typing import Any

from ...model.errors import PulsarError, broker_error
from ..connecting.connection import Connection
from ..lookup.questions import Query
from .coordinator import Coordinator


class CoordinatorQuestion:
    """One attempt. One of the callbacks is called, once, unless the question is cancelled.

    `encode(request_id)` returns the frame to send, and `reply` is the command that answers it.
    """

    __slots__ = ("_cancelled", "_coordinator", "_encode", "_failed", "_known", "_query", "_reply", "_request")

    def __init__(
        self,
        coordinator: Coordinator,
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
            self._query = coordinator.reach(self._ask, self._not_answered)

    def cancel(self) -> None:
        """Prevent both callbacks."""
        self._cancelled = True
        if self._query is not None:
            self._query.cancel()
        if self._request is not None:
            self._coordinator.services.requests.cancel(*self._request)

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
