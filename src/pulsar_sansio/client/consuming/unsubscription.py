"""`Unsubscription`: the UNSUBSCRIBE commands of one consumer, until each request has its answer."""

from collections.abc import Callable
from typing import Any

from ...model.errors import PulsarError
from ...wire import encode_command, proto
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..outputs import RequestDone, RequestFailed


class Unsubscription:
    """The requests of one consumer to remove its subscription (rules CONS-45, CONS-46, CONS-47)."""

    __slots__ = ("_open", "_services")

    def __init__(self, services: ConsumerServices) -> None:
        self._services = services
        self._open: set[int] = set()
        """Requests that wait for the answer to an UNSUBSCRIBE."""

    def send(self, connection: Connection, request: int, force: bool, removed: Callable[[], None]) -> None:
        """Send UNSUBSCRIBE. `removed()` and `RequestDone`, or `RequestFailed` follow."""
        services = self._services
        self._open.add(request)

        def done(_reply: Any) -> None:
            wanted = request in self._open
            self._open.discard(request)
            removed()
            if wanted:
                services.emit(RequestDone(request, None))

        services.client.requests.send(
            connection,
            lambda request_id: encode_command(
                proto.BaseCommand.UNSUBSCRIBE,
                proto.CommandUnsubscribe(consumer_id=services.wire_id, request_id=request_id, force=force),
            ),
            done,
            lambda error: self._failed(request, error),
        )

    def forget(self, request: int) -> None:
        """Cancel the answer to a request."""
        self._open.discard(request)

    def end(self, error: PulsarError) -> None:
        """Fail all requests: the consumer has ended."""
        for request in sorted(self._open):
            self._failed(request, error)

    def _failed(self, request: int, error: PulsarError) -> None:
        if request in self._open:
            self._open.discard(request)
            self._services.emit(RequestFailed(request, error))
