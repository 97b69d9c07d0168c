"""`CopyProducer`: a producer that a consumer owns for copies of its messages.

The producer is opened for the first copy, also on a topic with partitions. After it has failed or ended, the
next copy opens a new one. Copies that find no room in its send window wait here, and are written only when
there is room. The application gets no output of this producer; `settled` reports the outcome of each copy
once.

`letter_topics` decides the content of a copy, and the consequence of its outcome.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from ...core.context import InnerContext
from ...model.config import OutgoingMessage, ProducerSpec
from ...model.errors import ClosedError, ProducerQueueIsFull, PulsarError
from ..connecting.services import Services
from ..outputs import (
    Closed,
    EncryptionKeysFailed,
    Output,
    ProducerFailed,
    Receipts,
    Retrying,
    SendFailed,
    Writable,
)
from ..partitions.partitioned_producer import PartitionedProducer
from ..producing.producer import Producer

Settled: TypeAlias = Callable[[PulsarError | None], None]
"""Called once: with None when the copy is stored, or with the error that prevented it."""

Copy: TypeAlias = tuple[Callable[[], OutgoingMessage], int, Settled]
"""The function that writes the copy, its publish time, and the function that takes the outcome."""

MAX_IN_FLIGHT = 100
"""Copies in the send window of their producer: enough to keep it busy, and a small part of a large batch."""


class CopyProducer:
    """The producer of one topic. `spec` is called for each producer that is opened."""

    __slots__ = ("_context", "_in_flight", "_producer", "_services", "_spec", "_emit", "_waiting")

    def __init__(
        self,
        services: Services,
        spec: Callable[[], ProducerSpec],
    ) -> None:
        self._emit = services.context.emit
        self._context: InnerContext[Output] = InnerContext(services.context, self._on_output)
        self._services = services.within(self._context, self._ended)
        self._spec = spec
        self._producer: Producer | PartitionedProducer | None = None
        self._in_flight: dict[tuple[int, int], Settled] = {}
        """Outcome callbacks by the producer's handle and the ticket."""
        self._waiting: deque[Copy] = deque()
        """Copies that found no room in the producer."""

    def post(self, write: Callable[[], OutgoingMessage], publish_time: int, settled: Settled) -> None:
        """Send the copy that `write` returns. `settled` may be called before this returns, for a copy that
        cannot be sent."""
        copy = write, publish_time, settled
        if self._waiting or not self._send(copy):
            self._waiting.append(copy)

    @property
    def is_idle(self) -> bool:
        """True while no copy is under way."""
        return not self._in_flight and not self._waiting

    def _send(self, copy: Copy) -> bool:
        """Send the copy; return False when the producer has no room."""
        write, publish_time, settled = copy
        producer = self._producer or self._open()
        try:
            ticket = producer.send(write(), publish_time)
        except ProducerQueueIsFull:
            return False
        except PulsarError as error:
            settled(error)
        else:
            self._in_flight[producer.handle, ticket] = settled
        return True

    def _send_waiting(self) -> None:
        while self._waiting and self._send(self._waiting[0]):
            self._waiting.popleft()

    def _fail_waiting(self, error: PulsarError) -> None:
        """Fail the copies that waited for room in a producer that has ended."""
        waiting, self._waiting = self._waiting, deque()
        for _, _, settled in waiting:
            settled(error)

    def close(self) -> None:
        """Close the producer; the outcome of copies under way is not reported."""
        self._context.close()
        self._in_flight.clear()
        self._waiting.clear()
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _open(self) -> Producer:
        services = self._services
        handle = services.context.new_id()
        producer = Producer(services, handle, services.next_producer_id(), self._spec())
        producer.attachment.on_partitioned = partial(self._partitioned, producer)
        self._producer = producer
        producer.start(producer.attachment.start)
        return producer

    def _partitioned(self, producer: Producer, partitions: int) -> None:
        taken = producer.hand_over()
        self._producer = PartitionedProducer(
            self._services, producer.handle, producer.spec, partitions, taken
        )

    def _on_output(self, output: Output) -> None:
        match output:
            case Receipts(handle, first, message_ids):
                for ticket in range(first, first + len(message_ids)):
                    self._settle(handle, ticket, None)
            case SendFailed(handle, first, count, error):
                for ticket in range(first, first + count):
                    self._settle(handle, ticket, error)
            case Writable():
                self._send_waiting()
            case Retrying() | EncryptionKeysFailed():
                self._emit(output)
            case ProducerFailed(handle, error) | Closed(handle, error):
                if self._producer is not None and self._producer.handle == handle:
                    self._producer = None
                    self._fail_waiting(error or ClosedError("the producer of copies was closed"))

    def _settle(self, handle: int, ticket: int, error: PulsarError | None) -> None:
        settled = self._in_flight.pop((handle, ticket), None)
        if settled is not None:
            settled(error)

    def _ended(self, handle: int, error: PulsarError | None) -> None:
        """Do nothing: outputs report the end of the producer."""
