"""`ProducerCommands`: the commands of `Client` to producers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from ...model.config import OutgoingMessage, ProducerSpec
from ...model.errors import InvalidConfiguration, LocalProtocolError
from ...model.transaction_id import TransactionId
from ...schemas.encoding import Encoder, encoder_of
from ..connecting.services import Services
from ..partitions.partition_producer import PartitionStatistics
from ..partitions.partitioned_producer import PartitionedProducer
from ..producing.producer import Producer
from ..statistics import ProducerStatistics
from .open_handles import OpenHandles


class Appender(Protocol):
    """`ProducerCommands.appender` returns one."""

    def __call__(
        self, message: bytes | OutgoingMessage, transaction: TransactionId | None = None, /
    ) -> int: ...


class ProducerCommands:
    """Opens producers, and passes commands to them. A command to a producer that has ended raises
    `ClosedError`."""

    __slots__ = ("_context", "_handles", "_producers", "_services")

    def __init__(self, services: Services, handles: OpenHandles) -> None:
        self._context = services.context
        self._services = services
        self._handles = handles
        self._producers = handles.producers

    def open_producer(self, now: int, spec: ProducerSpec) -> int:
        """Return the handle of a new producer; `ProducerReady` or `ProducerFailed` follows.

        Messages may be sent at once. Raises `ClosedError` when the client is closed, and
        `InvalidConfiguration` for a producer that encrypts, if the client was given no `entropy`.
        """
        self._handles.check_open()
        if not isinstance(spec, ProducerSpec):
            raise InvalidConfiguration(f"open_producer takes a ProducerSpec, not {type(spec).__name__}")
        services = self._services
        services.keys.check_entropy(spec.encryption_keys)
        self._context.now = now
        handle = self._context.new_id()
        producer = Producer(services, handle, services.next_producer_id(), spec)
        self._producers[handle] = producer
        producer.attachment.on_partitioned = partial(self._partitioned, handle, producer)
        producer.start(producer.attachment.start)
        return handle

    def _partitioned(self, handle: int, producer: Producer, partitions: int) -> None:
        """Replace a producer whose topic has turned out to have partitions."""
        self._producers[handle] = PartitionedProducer(
            self._services, handle, producer.spec, partitions, producer.hand_over()
        )

    def send(self, now: int, producer: int, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Take one message, and return its ticket, which `Receipts` or `SendFailed` will settle.

        `publish_time`: milliseconds since 1970; a batch carries that of its first message. Raises, having
        changed nothing: `ClosedError`, `ProducerQueueIsFull` and its subclass `MemoryBufferIsFull` (wait for
        `Writable`), `MessageTooLarge`, `InvalidMessage`.
        """
        machine = self._producers.get(producer)
        if machine is None:
            raise self._handles.unknown("producer", producer)
        self._context.now = now
        return machine.send(message, publish_time)

    def appender(self, producer: int) -> "Appender":
        """Return the fast path of `send`: a callable that takes a payload into the producer's open batch.

        The callable returns the ticket. Its second argument is the payload's transaction; None for none. It
        returns -1, having changed nothing, for every message that does not join the open batch: call `send`
        then. It needs no time and leaves no outputs and no new deadline.
        The callable of a closed producer returns -1. So does one that was asked for before `ProducerReady`
        if the topic turns out to have partitions.
        """
        return self._handles.producer(producer).append

    def send_many(
        self,
        now: int,
        producer: int,
        messages: Sequence[bytes | OutgoingMessage],
        publish_time: int,
        transaction: TransactionId | None = None,
    ) -> range:
        """Take messages in order, and return their tickets.

        `transaction`: that of the payloads; an `OutgoingMessage` names its own. There are fewer tickets than
        messages when the send window or the client's memory is full; `Writable` follows then. Raises as
        `send` for messages that cannot be sent, having taken none. A message whose size only shows when it is
        compressed fails by `SendFailed`.
        """
        machine = self._producers.get(producer)
        if machine is None:
            raise self._handles.unknown("producer", producer)
        self._context.now = now
        return machine.send_many(messages, publish_time, transaction)

    def encoder(self, producer: int) -> Encoder:
        """Return the function that makes payload and key of a value, for a producer with a schema.

        Ask for it after `ProducerReady` where the schema is an `AutoPublish`: before, the topic's definition
        is not known, and no payload is checked. Raises `LocalProtocolError` for a producer of bytes.
        """
        schema = self._handles.producer(producer).schema
        if schema is None:
            raise LocalProtocolError(f"producer {producer} has no schema: its messages are bytes")
        return encoder_of(schema)

    def push(self, now: int, producer: int) -> None:
        """Send the open batch now, because the application waits for a receipt (rule PROD-28)."""
        machine = self._producers.get(producer)
        if machine is None:
            raise self._handles.unknown("producer", producer)
        self._context.now = now
        machine.push()

    def flush(self, now: int, producer: int) -> int:
        """Send the open batch now. `RequestDone` follows when everything taken so far is settled;
        `RequestFailed` follows with the first error when some of it failed."""
        machine = self._handles.producer(producer)
        self._context.now = now
        request = self._context.new_id()
        machine.flush(request)
        return request

    def last_sequence_id(self, producer: int) -> Callable[[], int]:
        """Return a callable that gives the producer's highest sequence id; -1 for none.

        The id is one that the broker has confirmed, or had stored for this producer name before. A
        partitioned producer gives the highest of all partitions. Ask for the callable again after
        `ProducerReady`; it still answers after the producer's end.
        """
        return self._handles.producer(producer).last_sequence_id

    def producer_statistics(self, producer: int) -> ProducerStatistics:
        """Return the counts of a producer so far, over all partitions. The client keeps the final counts of
        the last 1000 producers and consumers that have ended."""
        machine = self._producers.get(producer)
        if machine is not None:
            return machine.statistics()
        statistics = self._handles.closed.statistics(producer)
        if not isinstance(statistics, ProducerStatistics):
            raise self._handles.unknown("producer", producer)
        return statistics

    def partition_statistics(self, producer: int) -> list[PartitionStatistics]:
        """Return the counts of a producer for each partition that routing knows, in order of the partitions.
        The list is empty for a topic without partitions, and until the client knows the partitions."""
        machine = self._handles.producer(producer)
        return machine.partition_statistics() if isinstance(machine, PartitionedProducer) else []
