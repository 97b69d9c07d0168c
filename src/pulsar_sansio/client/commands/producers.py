"""`ProducerCommands`: the commands of `Client` to producers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from ...model.config import OutgoingMessage, ProducerSpec
from ...model.errors import InvalidConfiguration, LocalProtocolError
from ..closed_handles import ClosedHandles
from ..connecting.services import ClientContext, Services
from ..producing.partition_producer import PartitionStatistics
from ..producing.partitioned_producer import PartitionedProducer
from ..producing.producer import Producer
from ..statistics import ProducerStatistics


class ProducerCommands(ABC):
    """Open one, and what it is told and asked. What is between here and the machines is `Client`'s."""

    _context: ClientContext
    _services: Services
    _producers: dict[int, Producer | PartitionedProducer]
    _ends: ClosedHandles

    @abstractmethod
    def _check_open(self) -> None: ...

    @abstractmethod
    def _unknown(self, kind: str, handle: int) -> LocalProtocolError: ...

    def open_producer(self, now: int, spec: ProducerSpec) -> int:
        """Returns the producer's handle; `ProducerReady` or `ProducerFailed` follows.

        Messages may be sent at once. Raises `ClosedError` when the client is closed.
        """
        self._check_open()
        if not isinstance(spec, ProducerSpec):
            raise InvalidConfiguration(f"open_producer takes a ProducerSpec, not {type(spec).__name__}")
        self._context.now = now
        services = self._services
        handle = self._context.new_id()
        producer = Producer(self._context, services, handle, services.next_producer_id(), spec)
        self._producers[handle] = producer
        producer.attachment.on_partitioned = partial(self._partitioned, handle, producer)
        producer.attachment.start()
        return handle

    def _partitioned(self, handle: int, producer: Producer, partitions: int) -> None:
        """A producer's topic has turned out to have partitions: another machine takes its place."""
        self._producers[handle] = PartitionedProducer(
            self._context, self._services, handle, producer.spec, partitions, producer.hand_over()
        )

    def send(self, now: int, producer: int, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Take one message; returns its ticket, which `Receipts` or `SendFailed` will settle.

        `publish_time`: milliseconds since 1970; of a batch the first message's counts. Raises, having changed
        nothing: `ClosedError`, `ProducerQueueIsFull` and its subclass `MemoryBufferIsFull` (wait for
        `Writable`), `MessageTooLarge`, `InvalidMessage`.
        """
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        return machine.send(message, publish_time)

    def appender(self, producer: int) -> Callable[[bytes | OutgoingMessage], int]:
        """The shortest way for one message: a callable, to be kept, that does what `send` does for a payload
        that joins the producer's open batch, and gives its ticket. For every other message it changes nothing
        and gives -1: call `send` then.

        It takes no time, because nothing begins with such a message, and it leaves nothing to do: no outputs
        and no new deadline. Of a closed producer it gives -1, and so does one that was asked for before
        `ProducerReady` if the topic turns out to have partitions.
        """
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        return machine.append

    def send_many(
        self, now: int, producer: int, messages: Sequence[bytes | OutgoingMessage], publish_time: int
    ) -> range:
        """Take messages in order; returns their tickets, fewer than asked where the window or the
        client's memory is full (`Writable` follows then). Raises as `send` for messages that cannot be sent,
        having taken none; a message whose size only shows when it is compressed fails by `SendFailed`."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        return machine.send_many(messages, publish_time)

    def push(self, now: int, producer: int) -> None:
        """Send the open batch now: for a send whose receipt somebody waits for (rule PROD-28)."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        machine.push()

    def flush(self, now: int, producer: int) -> int:
        """Send the open batch now. `RequestDone` follows when everything taken so far is settled,
        `RequestFailed` with the first error if some of it failed."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        self._context.now = now
        request = self._context.new_id()
        machine.flush(request)
        return request

    def last_sequence_id(self, producer: int) -> Callable[[], int]:
        """A callable, to be kept, that gives the highest sequence id which the broker has confirmed to this
        producer, or had stored of its name before; -1 for none. Of several partitions it is the highest of
        all. Ask for it again after `ProducerReady`; it answers also after the producer's end.
        """
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        return machine.last_sequence_id

    def producer_statistics(self, producer: int) -> ProducerStatistics:
        """What a producer has counted so far, over all partitions; what it had counted at its end, of the
        last 1000 that have ended."""
        machine = self._producers.get(producer)
        if machine is not None:
            return machine.statistics()
        statistics = self._ends.statistics(producer)
        if not isinstance(statistics, ProducerStatistics):
            raise self._unknown("producer", producer)
        return statistics

    def partition_statistics(self, producer: int) -> list[PartitionStatistics]:
        """What became of the messages of a producer by partition, in their order; empty where the topic has
        none, or where that is not known yet. Routing knows as many partitions as are in it."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._unknown("producer", producer)
        return machine.partition_statistics() if isinstance(machine, PartitionedProducer) else []
