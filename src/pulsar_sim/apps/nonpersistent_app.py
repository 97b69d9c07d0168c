"""Applications that send to a non-persistent topic and receive from it.

The broker keeps no message of such a topic, so no message has to arrive. A message that arrives was sent
(INV-C2), and in order while its producer keeps its connection (INV-C3); nothing is acknowledged on the wire
(INV-C4). An attached consumer receives the messages sent from then on, however often its connection was lost
before (INV-N5).
"""

from typing import TYPE_CHECKING

from pulsar_sansio.client.outputs import (
    Attached,
    Closed,
    Output,
    ProducerFailed,
    ProducerReady,
    Receipts,
    SendFailed,
)
from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec, ReaderSpec, SubscriptionType
from pulsar_sansio.model.errors import ClosedError, ProducerQueueIsFull
from pulsar_sansio.model.message_id import EARLIEST

from ..engine.clock import MILLISECOND
from ..engine.failures import ViolationError
from ..engine.profile import NonPersistentPlan
from ..model.positions.single_topic_position import TransientSubscription
from ..model.records.consumer_record import ConsumerRecord
from ..model.records.producer_record import ProducerRecord
from ..model.records.topic_record import TopicRecord
from .transient_app import ReceivingApp

if TYPE_CHECKING:
    from ..engine.surroundings import Surroundings

MOST_WORDS = 40
"""Messages that one application sends while there are faults."""

SHORT_PAUSE = 100 * MILLISECOND
"""Nanoseconds between two messages after healing, at most, until one is received."""


class OwnProducer:
    """One producer of the application."""

    def __init__(self, app: "NonPersistentApp", record: ProducerRecord) -> None:
        self._app = app
        self._record = record
        self.ready = False
        self.pending = 0
        """Messages sent that have no outcome yet."""
        self.handle = 0

    def on_output(self, output: Output) -> None:
        if isinstance(output, ProducerReady):
            self.ready = True
        elif isinstance(output, Receipts):
            self.pending -= len(output.message_ids)
        elif isinstance(output, SendFailed):
            self.pending -= output.count
        elif isinstance(output, Attached) and self.pending:
            self._app.may_resend()
        elif isinstance(output, (ProducerFailed, Closed)):
            self.is_gone()
            self._app.has_lost(self)

    def is_gone(self) -> None:
        self.ready = False
        self.pending = 0
        self._record.closed = True


class NonPersistentApp(ReceivingApp[ConsumerRecord]):
    """One application with a non-persistent topic of its own."""

    def __init__(self, world: "Surroundings", index: int, plan: NonPersistentPlan) -> None:
        super().__init__(world, "whisperer", index, plan.client, plan.pause)
        self.plan = plan
        self.topic = TopicRecord(nonpersistent_topic(index), deduplication=False)
        world.model.nonpersistent[self.topic.name] = self.topic
        self._producer: OwnProducer | None = None
        self._producers = 0
        self._sent = 0
        """The number of the last message sent."""
        self._last_received = 0
        """The number of the last message received."""
        self._repeats: list[int] = []
        """One entry per event after which received messages may arrive once more, in order: the number of the
        last message sent before."""
        self._first = 0
        """The first message sent since the consumer was attached."""
        self._receives_now = False
        """A message sent since the consumer was attached has arrived."""

    @property
    def done(self) -> bool:
        """True when, after healing, messages arrive and none is pending."""
        pending = self._producer.pending if self._producer is not None else 0
        return self.state == "open" and self.attached and self._receives_now and not pending

    # --- one consumer ---------------------------------------------------------------------------------------

    def open(self) -> None:
        if not self._may_open():
            return
        world, plan = self.world, self.plan
        self.incarnation += 1
        name = f"w{self.index}.{self.incarnation}"
        client, now = self.host.node.client, world.clock.now
        subscription = TransientSubscription(
            self.topic, f"whisper-{self.index}.{self.incarnation}", durable=False
        )
        if plan.reads:
            reading = ReaderSpec(
                self.topic.name,
                start=EARLIEST,
                name=name,
                subscription=subscription.name,
                receiver_queue_size=plan.queue,
            )
            self.record = ConsumerRecord(name, subscription, reading.reading("unused"))
            handle = client.open_reader(now, reading)
        else:
            spec = ConsumerSpec(
                self.topic.name,
                subscription.name,
                subscription_type=SubscriptionType.EXCLUSIVE,
                consumer_name=name,
                receiver_queue_size=plan.queue,
            )
            self.record = ConsumerRecord(name, subscription, spec)
            handle = client.subscribe(now, spec)
        world.model.consumers[name] = self.record
        self._opened(handle)

    def _open_producer(self) -> None:
        """Open another producer."""
        self._producers += 1
        world, tag = self.world, f"w{self.index}.v{self._producers}"
        spec = ProducerSpec(self.topic.name, batching=self.plan.batching, properties={"tag": tag})
        record = world.model.producers[tag] = ProducerRecord(tag, self.topic, spec)
        self._producer = producer = OwnProducer(self, record)
        producer.handle = self.host.node.client.open_producer(world.clock.now, spec)
        self.host.routes[producer.handle] = producer
        world.trace.add(world.clock.now, self.host.node.name, f"open_producer {tag} is {producer.handle}")
        if self._producers > 1:  # the previous producer's messages may arrive behind those of this one
            self.may_resend()

    def may_resend(self) -> None:
        """The producer sends its pending messages again. They may have arrived already and still be in the
        receiver queue."""
        self._repeats.append(self._sent)

    def has_lost(self, producer: OwnProducer) -> None:
        if self._producer is producer:
            self._producer = None

    def lose(self) -> None:
        super().lose()
        self._receives_now = False
        if self._producer is not None and self.host.closing is not None:  # the whole process is lost
            self._producer.is_gone()
            self._producer = None

    # --- steps ----------------------------------------------------------------------------------------------

    def _later(self) -> None:
        if self.world.healed:
            self._turn += 1
            self.world.clock.after(1 + self.stream.below(SHORT_PAUSE), self._step, self._turn)
        else:
            super()._later()

    def _step(self, turn: int) -> None:
        if not self._may_step(turn):
            return
        self._receive()
        if self._producer is None:
            self._open_producer()
        elif self._producer.ready and not (self.world.healed and self._receives_now):
            self._send(self._producer)
        if self.world.rash and self.stream.chance(self.plan.close_permille):
            self.close_and_reopen()
        self.host.node.pump()
        if self.state == "open" and not (self.world.healed and self.done):
            self._later()

    def _send(self, producer: OwnProducer) -> None:
        if self.world.healed:
            self._send_one(producer)
        elif self._sent < MOST_WORDS:
            for _ in range(1 + self.stream.below(3)):
                self._send_one(producer)

    def _send_one(self, producer: OwnProducer) -> None:
        world = self.world
        try:
            self.host.node.client.send(
                world.clock.now, producer.handle, str(self._sent + 1).encode(), world.wall_time()
            )
        except (ProducerQueueIsFull, ClosedError):
            return
        self._sent += 1
        producer.pending += 1

    def _receive(self) -> None:
        client, now = self.host.node.client, self.world.clock.now
        assert self.record is not None
        while messages := client.take(now, self.handle, 100):
            for message in messages:
                self._check(int(message.data))
            if not self.plan.reads:
                client.acknowledge(now, self.handle, messages)

    def _check(self, number: int) -> None:
        assert self.record is not None
        name = self.record.name
        if not 0 < number <= self._sent:
            raise ViolationError("INV-C2", f"{name} receives {number}, and {self._sent} were sent")
        if number <= self._last_received:
            allowed = next((last for last in self._repeats if number <= last), None)
            if allowed is None:
                raise ViolationError("INV-C3", f"{name} receives {number} after {self._last_received}")
            self._repeats.remove(allowed)
        self._last_received = number
        self._receives_now = self._receives_now or number >= self._first

    # --- outputs ----------------------------------------------------------------------------------------

    def _is_ready(self) -> None:
        self._is_attached_again()

    def _is_attached_again(self) -> None:
        self._first = self._sent + 1
        self._receives_now = False
        self._later()

    def _is_detached(self) -> None:
        self._receives_now = False


def nonpersistent_topic(index: int) -> str:
    """Return the name of a non-persistent topic."""
    return f"non-persistent://public/default/w{index}"
