"""`PartitionedProducer`: one producer over the partitions of a topic.

It holds a `Producer` for each partition, and to the application it looks like a single `Producer`. It owns
the order of opening, the consequences of a partition's failure, and the growth of the topic. `JointLife`
keeps the state of the whole. The `PartitionSender` chooses the partition of each message.

Opening follows the Java client: one partition opens first, then all others open under the producer name of
the first. With `lazy_start` only partitions that have messages are opened. When one partition cannot be
opened, the others are closed, each once the broker answers or the operation timeout expires. Then the
producer has failed, and the application can reopen it under the released names. Once the producer is ready, a
partition that ends permanently (terminated, fenced) fails only its own messages, and later messages routed
there. When all partitions have ended, the producer has ended.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...model.config import OutgoingMessage, ProducerSpec, nanoseconds_of
from ...model.errors import PulsarError
from ...model.schema import Schema
from ...model.topic_name import TopicName
from ...model.transaction_id import TransactionId
from ..connecting.services import Services
from ..explanation import ExplainedPart, several
from ..joint import joint_states as states
from ..joint.gathered_requests import GatheredRequests
from ..joint.joint_life import JointLife
from ..lookup.questions import Query
from ..outputs import (
    PartitionEnded,
    PartitionsAdded,
    ProducerFailed,
    ProducerReady,
    RequestDone,
    RequestFailed,
    Writable,
)
from ..producing.producer import Handover
from ..statistics import ProducerStatistics, together
from .partition_producer import Partition, PartitionStatistics
from .partition_sender import PartitionSender
from .routing import Router


class PartitionedProducer:
    """Methods are called by the root with `context.now` set. `taken`: what was sent before it was known that
    there are `partitions` partitions."""

    def __init__(
        self,
        services: Services,
        handle: int,
        spec: ProducerSpec,
        partitions: int,
        taken: Handover,
    ) -> None:
        context = services.context
        self.handle = handle
        self.topic = TopicName.parse(spec.topic)
        self._life = JointLife(context, handle, ProducerFailed, services.ended)
        self._give_up_at = taken.give_up_at
        """The time at which opening fails; None once a partition waited for exclusive access."""
        self._context = context
        self._services = services
        self.spec = spec
        window = min(spec.max_pending_messages, spec.max_pending_messages_across_partitions // partitions)
        self._window = max(1, window)
        """The limit of unconfirmed messages in one partition, unchanged by growth (rules PART-02,
        PART-13)."""
        self._router = Router(spec, partitions, context.rng)
        self._sender = PartitionSender(
            services, handle, self._router, partitions, self._window, self._start_later
        )
        self.append = self._sender.append
        self._alive: dict[Partition, None] = {}
        """Partitions that have not ended."""
        self._missing: set[Partition] = set()
        """Partitions that must become ready before the producer is ready, or before growth is complete."""
        self._unnamed: list[Partition] = []
        """Partitions that wait for the producer name before they are opened."""
        self._growth: list[Partition] = []
        """New partitions that are being opened; routing does not use them yet."""
        self._name: str | None = None
        self._last_sequence_id = -1
        self._flushes = GatheredRequests()
        self._former = ProducerStatistics()
        """The statistics of partitions that could not be opened once the producer was ready."""
        interval = spec.partitions_update_interval
        self._interval = 0 if interval is None else nanoseconds_of(interval)
        self._query: Query | None = None
        self._update = context.deadlines.slot(self._ask_for_partitions)
        if self._interval:
            self._update.set(context.now + self._interval)
        self._begin(taken)

    # --- commands of the application ---

    def send(self, message: bytes | OutgoingMessage, publish_time: int) -> int:
        """Accept a message; see `PartitionSender.send`."""
        self._check_open()
        return self._sender.send(message, publish_time)

    def send_many(
        self,
        messages: Sequence[bytes | OutgoingMessage],
        publish_time: int,
        transaction: TransactionId | None = None,
    ) -> range:
        """Accept several messages; see `PartitionSender.send_many`."""
        self._check_open()
        return self._sender.send_many(messages, publish_time, transaction)

    def push(self) -> None:
        """Send the open batches now (rule PROD-28)."""
        self._check_open()
        self._sender.push()

    def flush(self, request: int) -> None:
        """Flush every partition, with one answer (rule PART-14)."""
        self._check_open()
        self._flush(request)

    def discard_flush(self, request: int) -> None:
        """Discard a flush if it is one of this producer's."""
        if self._flushes.discard(request):
            for partition in self._alive:
                partition.producer.discard_flush(request)

    def close(self) -> None:
        """Close all partitions; see `Producer.close`.

        A failing producer stops waiting for the broker's answers to its open requests.
        """
        if self._life.is_failing:
            for partition in list(self._alive):
                partition.producer.attachment.close()
        elif self._life.takes_commands:
            self._life.close()
            self._close_all(None)

    def statistics(self) -> ProducerStatistics:
        """Return the sum over all partitions, including failed ones and messages without a partition."""
        known = [partition.producer for partition in self._sender.partitions if partition is not None]
        refused = ProducerStatistics(failed=self._sender.failed)
        return together(
            [self._former, refused, *(producer.statistics() for producer in known)],
            [latency for producer in known for latency in producer.latencies],
        )

    def explain(self) -> list[str]:
        """Describe what the producer waits for, with a line for each partition up to a limit."""
        parts = []
        for partition in [*self._sender.partitions, *self._growth]:
            if partition is None:
                continue  # a lazy partition without messages has no connection
            lines = partition.producer.explain() if partition.end is None else [f"ended: {partition.end}"]
            name = f"partition {partition.index}"
            parts.append(ExplainedPart(name, partition.statistics.connected, lines))
        return several(parts, "partitions that are in use")

    @property
    def described(self) -> str:
        """The producer and its topic in words, for error texts."""
        return f"producer {self._name!r} on {self.topic}" if self._name else f"producer on {self.topic}"

    @property
    def schema(self) -> Schema[Any] | None:
        """The schema of the payloads; None for bytes. The partitions of a topic share its definition, so any
        producer that has adopted one knows it."""
        given = self.spec.schema
        adopted = [each.producer.schema for each in self._sender.partitions if each is not None]
        return next((schema for schema in adopted if schema is not given), given)

    def last_sequence_id(self) -> int:
        """Return the highest of all partitions; see `Client.last_sequence_id`."""
        known = [each.producer.last_sequence_id() for each in self._sender.partitions if each is not None]
        return max([self._last_sequence_id, *known])

    def partition_statistics(self) -> list[PartitionStatistics]:
        """Return the statistics of each partition that routing may choose."""
        return [
            PartitionStatistics(str(self.topic.partition_name(index)), False, ProducerStatistics())
            if partition is None
            else partition.statistics
            for index, partition in enumerate(self._sender.partitions)
        ]

    def _check_open(self) -> None:
        self._life.check_open(f"producer {self.handle} on {self.topic} is closed")

    # --- opening ---

    def _begin(self, taken: Handover) -> None:
        """Open the first partition, and distribute the messages that were sent before."""
        count = len(self._sender.partitions)
        lazy = self.spec.lazy_start
        first_index = self._router.first(self._context.now, count) if lazy else 0
        first = self._new_partition(first_index, taken.wire_id)
        self._missing = {first, *([] if lazy else map(self._new_partition, range(1, count)))}
        for partition in self._missing:
            self._sender.partitions[partition.index] = partition
        self._take_over(taken)
        self._open(first)

    def _take_over(self, taken: Handover) -> None:
        """Take over messages, flushes and an owed `Writable` from the unpartitioned producer."""
        flushes = list(taken.flushes)
        error: PulsarError | None = None
        if taken.was_full and taken.waits_for_memory:
            self._sender.keep_waiting_for_memory()
        elif taken.was_full:
            self._context.emit(Writable(self.handle))
        for ticket, message, publish_time, _ in taken.unsealed:
            while flushes and flushes[0].end <= ticket:
                self._flush(flushes.pop(0).request, error)
            failed = self._sender.take_unsealed(ticket, message, publish_time)
            if (transaction := taken.transactions.get(ticket)) is not None:
                transaction.over(failed)
            error = error or failed
            if failed is not None and taken.settled is not None and isinstance(message, OutgoingMessage):
                taken.settled(message, None, failed)
            if ticket == taken.push_end - 1:
                self._sender.push()
        self._sender.continue_at(taken.next_ticket)
        for flush in flushes:
            self._flush(flush.request, error)

    def _new_partition(self, index: int, wire_id: int | None = None) -> Partition:
        topic = str(self.topic.partition_name(index))
        spec = replace(self.spec, topic=topic, max_pending_messages=self._window)
        if wire_id is None:
            wire_id = self._services.next_producer_id()
        partition = Partition(self._services, self, index, wire_id, spec)
        self._alive[partition] = None
        if self._name is None:
            self._unnamed.append(partition)
        return partition

    def _start_later(self, index: int) -> Partition:
        """Start a partition for its first message."""
        partition = self._sender.partitions[index] = self._new_partition(index)
        if self._name is not None:
            self._open(partition)
        return partition

    def _open(self, partition: Partition) -> None:
        if self._name is not None:
            partition.producer.take_name(self._name)
            partition.producer.take_schema(self.schema)
        give_up_at = self._give_up_at if self._life.is_opening else None
        producer = partition.producer
        producer.start(partial(producer.attachment.start_as_partition, give_up_at))

    def on_partition_ready(self, partition: Partition, name: str, last_sequence_id: int) -> None:
        """The first ready partition names all others; the last one makes the producer ready (rule
        PART-05)."""
        self._missing.discard(partition)
        self._last_sequence_id = max(self._last_sequence_id, last_sequence_id)
        if self._name is None:
            self._name = name
            if self._life.is_opening:
                self._give_up_at = partition.producer.attachment.gives_up_at
            unnamed, self._unnamed = self._unnamed, []
            for other in unnamed:
                if other is not partition:
                    self._open(other)
        if self._missing:
            return
        if self._life.is_opening:
            self._life.became_ready()
            self._context.emit(ProducerReady(self.handle, name, self._last_sequence_id, str(self.topic)))
            self._life.attachment.on_ready(each.detached for each in self._alive)
        elif self._growth:
            self._sender.partitions += self._growth
            self._growth = []
            self._context.emit(PartitionsAdded(self.handle, len(self._sender.partitions)))

    # --- while it is open ---

    def on_partition_detached(self, partition: Partition, cause: PulsarError) -> None:
        """Report the loss, unless another partition is detached already."""
        partition.detached = cause
        self._life.attachment.on_detached(cause)

    def on_partition_attached(self, partition: Partition) -> None:
        partition.detached = None
        self._life.attachment.on_attached()

    def on_partition_flushed(self, partition: Partition, outcome: RequestDone | RequestFailed) -> None:
        self._flushes.answered(str(partition.topic), outcome)

    def on_partition_writable(self) -> None:
        """Emit the owed `Writable` for the first partition with room; other partitions may still be full."""
        if self._sender.was_full:
            self._sender.was_full = False
            self._context.emit(Writable(self.handle))

    def _flush(self, request: int, error: PulsarError | None = None) -> None:
        """Flush every partition that routing has used.

        `error`: the failure of an earlier message that went to no partition. Partitions of an unfinished
        growth have no messages and may be closing, so they are left out.
        """
        partitions = [each for each in self._sender.partitions if each is not None and each.end is None]
        if not partitions:
            self._context.emit(RequestDone(request, None))
            return

        def ask() -> None:
            for partition in partitions:
                partition.producer.flush(request)

        names = [str(partition.topic) for partition in partitions]
        self._flushes.ask(request, names, ask, self._context.emit, error=error)

    # --- growth ---

    def _ask_for_partitions(self) -> None:
        """Ask for the number of partitions, at each interval until close (rules PART-07, PART-08,
        PART-09)."""
        self._update.set(self._context.now + self._interval)
        if self._life.is_ready and not self._growth and self._query is None:
            self._query = self._services.lookup.partitions(
                self.topic, self._partitions_known, self._not_known
            )

    def _not_known(self, error: PulsarError) -> None:
        """Keep the number of partitions until the next interval."""
        self._query = None

    def _partitions_known(self, partitions: int) -> None:
        """Open new partitions; ignore a smaller number (rules PART-10, PART-12)."""
        self._query = None
        count = len(self._sender.partitions)
        if partitions <= count:
            return
        if self.spec.lazy_start:
            self._sender.partitions += [None] * (partitions - count)
            self._context.emit(PartitionsAdded(self.handle, partitions))
            return
        self._growth = [self._new_partition(index) for index in range(count, partitions)]
        self._missing = set(self._growth)
        for partition in self._growth:
            self._open(partition)

    def _growth_failed(self, error: PulsarError) -> None:
        """Close all new partitions; the next interval tries again (rule PART-11)."""
        growth, self._growth = self._growth, []
        self._missing.clear()
        for partition in growth:
            partition.producer.close(error)

    # --- ends ---

    def on_partition_ended(self, partition: Partition, error: PulsarError | None) -> None:
        """A partition ended permanently; the consequence depends on the producer's state."""
        del self._alive[partition]
        self._sender.forget(partition)
        if partition.detached is not None:
            partition.detached = None
            self._life.attachment.on_ended(bool(self._alive))
        match self._life.state:
            case states.Opening():
                assert error is not None
                self._life.fail(error)
                self._close_all(error)
            case states.Ready():
                self._lost(partition, error)
            case _:
                self._finish_if_empty()

    def _lost(self, partition: Partition, error: PulsarError | None) -> None:
        if partition in self._growth:
            assert error is not None
            self._growth_failed(error)
            return
        partitions = self._sender.partitions
        if partition not in partitions:
            return  # the partition was closed because another new partition failed
        if not partition.ready:
            partitions[partition.index] = None
            self._former = together([self._former, partition.producer.statistics()], ())
            self.on_partition_writable()
            return
        partition.end = error
        if all(each is not None and each.end is not None for each in partitions):
            self._stop_updates()
            for each in self._growth:
                each.producer.close(error)
            self._over(error)
        else:
            self._context.emit(PartitionEnded(self.handle, str(partition.topic), error))
            self.on_partition_writable()  # an application that waits for room sends again, and gets the error

    def _close_all(self, error: PulsarError | None) -> None:
        self._stop_updates()
        self._sender.close()
        failing = self._life.is_failing
        for partition in list(self._alive):
            partition.producer.close(error, failing)
        self._finish_if_empty()

    def _stop_updates(self) -> None:
        self._update.clear()
        if self._query is not None:
            self._query.cancel()

    def _finish_if_empty(self) -> None:
        """Report the end of the producer once all partitions have ended."""
        if not self._alive and not self._life.is_over:
            self._over(None)

    def _over(self, error: PulsarError | None) -> None:
        self._sender.close()
        self._life.over(error, f"producer {self.handle} on {self.topic} was closed before it was ready")
