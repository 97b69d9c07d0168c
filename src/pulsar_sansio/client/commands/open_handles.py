"""`OpenHandles`: the producers, consumers and table views of a client, by the handles the application knows.

The command groups and the root share it. It decides which error a handle that is not open raises.
"""

from ...model.errors import ClosedError, LocalProtocolError
from ..closed_handles import ClosedHandles
from ..connecting.services import ClientContext
from ..multi_topics.open_consumer import AnyConsumer
from ..partitions.partitioned_producer import PartitionedProducer
from ..producing.producer import Producer
from ..table_view import TableView

AnyProducer = Producer | PartitionedProducer


class OpenHandles:
    """A table view stands in `consumers` too, as the consumer that it reads with, under one handle."""

    __slots__ = ("_context", "closed", "closed_client", "closing", "consumers", "producers", "views")

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self.producers: dict[int, AnyProducer] = {}
        self.consumers: dict[int, AnyConsumer] = {}
        self.views: dict[int, TableView] = {}
        self.closed = ClosedHandles()
        self.closing = False
        """The application has closed the client."""
        self.closed_client = False
        """Everything on the client has ended, and its connections are closed."""

    def check_open(self) -> None:
        """Raise `ClosedError` when the application has closed the client."""
        if self.closing:
            raise ClosedError("the client is closed")

    def machine(self, handle: int) -> AnyProducer | AnyConsumer | None:
        """Return the producer or consumer; None when it has ended. Raises `LocalProtocolError` for a number
        that the client never gave out."""
        machine = self.producers.get(handle) or self.consumers.get(handle)
        if machine is None and not self._context.was_given(handle):
            raise LocalProtocolError(f"no producer or consumer has the id {handle}")
        return machine

    def producer(self, handle: int) -> AnyProducer:
        """Return an open producer. Raises as `unknown`."""
        machine = self.producers.get(handle)
        if machine is None:
            raise self.unknown("producer", handle)
        return machine

    def consumer(self, handle: int) -> AnyConsumer:
        """Return an open consumer. Raises as `unknown`."""
        machine = self.consumers.get(handle)
        if machine is None:
            raise self.unknown("consumer", handle)
        return machine

    def view(self, handle: int) -> TableView:
        """Return an open table view. Raises as `unknown`."""
        view = self.views.get(handle)
        if view is None:
            raise self.unknown("table view", handle)
        return view

    def unknown(self, kind: str, handle: int) -> LocalProtocolError:
        """Make the error for a handle that is not open: `ClosedError` with the cause when it has ended."""
        if self.closed_client or self._context.was_given(handle):
            return self.closed.error(kind, handle)
        return LocalProtocolError(f"no {kind} has the id {handle}")
