"""`PositionRequests`: an application's questions that the last message of the topic answers."""

from collections.abc import Callable
from typing import Any

from ...model.errors import PulsarError
from ..connecting.connection import Connection
from ..delivery.consumer_services import ConsumerServices
from ..outputs import RequestDone, RequestFailed
from .last_message import LastMessage, LastPosition


class PositionRequests:
    """The open questions of one consumer. They are asked after its earlier seeks."""

    __slots__ = ("_emit", "_last", "_open")

    def __init__(self, services: ConsumerServices) -> None:
        self._emit = services.emit
        self._last = LastMessage(services.client, services.wire_id, services.source.partition)
        self._open: set[int] = set()
        """Requests without an answer yet."""

    def ask(self, request: int, result: Callable[[LastPosition], Any], deadline: int | None = None) -> None:
        """Emit `RequestDone(request, result(answer of the broker))`, or `RequestFailed`. `deadline`: see
        `LastMessage.ask`."""
        self._open.add(request)
        self._last.ask(
            lambda answer: self._settle(RequestDone(request, result(answer))),
            lambda error: self._settle(RequestFailed(request, error)),
            deadline,
        )

    def forget(self, request: int) -> None:
        """Cancel the answer to a request."""
        self._open.discard(request)

    def attach(self, connection: Connection) -> None:
        self._last.attach(connection)

    def detach(self) -> None:
        self._last.detach()

    def end(self, error: PulsarError) -> None:
        """Fail all questions: the consumer has ended."""
        self._last.end(error)

    def _settle(self, outcome: RequestDone | RequestFailed) -> None:
        if outcome.request in self._open:
            self._open.discard(outcome.request)
            self._emit(outcome)
