"""The registry of a topic's producers: names, access modes and fencing.

It decides which producers may join.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING

from ....model.errors import BrokerError, ProducerBusy, ProducerFenced, ServiceNotReady
from ....wire import proto
from .producer import Producer

if TYPE_CHECKING:
    from ..registry import AnyTopic


def going_away() -> ServiceNotReady:
    """The refusal of a client that waits for exclusive access, or connects, while a topic is unloaded or
    deleted."""
    return ServiceNotReady("Topic is temporarily unavailable")


class NameTaken(ProducerBusy):
    """Another connection has a producer of this name. The new producer may retry if that connection is
    dead."""

    def __init__(self, present: "Producer") -> None:
        super().__init__(f"Producer with name '{present.name}' is already connected to topic")
        self.present = present


class Producers:
    """The producers of a topic, and the access they have."""

    def __init__(self, topic: "AnyTopic", topic_epoch: int | None) -> None:
        self._topic = topic
        self.by_name: dict[str, Producer] = {}
        self.exclusive: Producer | None = None
        self.waiting: OrderedDict[Producer, None] = OrderedDict()
        """Producers in WaitForExclusive mode, in order of arrival."""
        self.topic_epoch = topic_epoch

    def join(self, newcomer: Producer) -> bool:
        """Admit `newcomer`; return False when it must wait for exclusive access. Raises its refusal.

        Access modes are checked first (BROKER-34, BROKER-35, BROKER-36), then names (BROKER-42).
        """
        mode = newcomer.mode
        if mode == proto.Shared:
            if self.exclusive is not None or self.waiting:
                present = self.exclusive or next(iter(self.waiting))
                raise ProducerBusy(f"Topic has an existing exclusive producer: {present.name}")
        elif mode == proto.Exclusive:
            if self.exclusive is not None or self.waiting:
                present = self.exclusive or next(iter(self.waiting))
                raise ProducerFenced(f"Topic has an existing exclusive producer: {present.name}")
            if self.by_name:
                raise ProducerFenced("Topic has existing shared producers")
            self._check_epoch(newcomer)
        elif mode == proto.WaitForExclusive:
            if self.by_name:
                self.waiting[newcomer] = None
                return False
            self._check_epoch(newcomer)
        else:
            self._check_epoch(newcomer)
            self._fence_all()
        self._check_name(newcomer)
        self._admit(newcomer)
        return True

    def _check_epoch(self, newcomer: Producer) -> None:
        epoch = newcomer.topic_epoch
        if epoch is not None and self.topic_epoch is not None and epoch < self.topic_epoch:
            raise ProducerFenced(
                f"Topic epoch has already moved. Current epoch: {self.topic_epoch}, Producer epoch: {epoch}"
            )

    def _check_name(self, newcomer: Producer) -> None:
        """Allow one producer per name (rule BROKER-42).

        Epochs are not compared: a connection answers a repeated PRODUCER of one producer id itself, or has
        closed the old producer.
        """
        present = self.by_name.get(newcomer.name)
        if present is None:
            return
        if present.connection is not newcomer.connection:
            raise NameTaken(present)
        raise ProducerBusy(f"Producer with name '{newcomer.name}' is already connected to topic")

    def _admit(self, producer: Producer) -> None:
        self.by_name[producer.name] = producer
        if producer.mode == proto.Shared:
            producer.topic_epoch = self.topic_epoch
            return
        self.exclusive = producer
        before = self.topic_epoch
        if producer.topic_epoch is None:
            producer.topic_epoch = 0 if before is None else before + 1
        if producer.topic_epoch != before:
            self.topic_epoch = producer.topic_epoch
            self._topic.save()

    def _fence_all(self) -> None:
        """Remove producers without a frame, and refuse waiting ones with ProducerFenced (BROKER-36)."""
        self._refuse_waiting(ProducerFenced("Fenced out by another producer"))
        fenced, self.by_name = self.by_name, {}
        self.exclusive = None
        for producer in fenced.values():
            producer.connection.fence_producer(producer)

    def _refuse_waiting(self, refusal: BrokerError) -> None:
        waiting, self.waiting = self.waiting, OrderedDict()
        for producer in waiting:
            producer.connection.refuse_waiting_producer(producer, refusal)

    def disconnect_all(self, refusal: BrokerError) -> None:
        """Send CLOSE_PRODUCER to each producer after its receipts, and refuse all waiting ones.

        The Java broker refuses only the first waiting producer, and leaves the others without an answer.
        """
        self._refuse_waiting(refusal)
        for producer in list(self.by_name.values()):
            producer.connection.close_producer(producer)

    def detach(self, producer: Producer) -> None:
        """Remove a producer. The first waiting one gets exclusive access if no other producer is left."""
        if self.by_name.get(producer.name) is producer:
            del self.by_name[producer.name]
        elif producer in self.waiting:
            del self.waiting[producer]
        if self.exclusive is producer:
            self.exclusive = None
        if self.waiting and not self.by_name and not self._topic.closing:
            first, _ = self.waiting.popitem(last=False)
            first.topic_epoch = None
            self._admit(first)
            first.connection.grant_waiting_producer(first)
