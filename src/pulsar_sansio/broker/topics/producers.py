"""The producers of a topic: names, access modes, fencing, deduplication.

`Producer` is one producer of one connection. `Producers` is a topic's registry and decides which producers
may join. `Deduplication` knows the sequence ids of each name. None of them stores a message; the topic does.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...model.errors import (
    BrokerError,
    PersistenceError,
    ProducerBusy,
    ProducerFenced,
    ServiceNotReady,
)
from ...wire import proto

if TYPE_CHECKING:
    from ..serving.connection import Connection
    from .registry import AnyTopic

MODE_NAMES = {
    proto.Shared: "Shared",
    proto.Exclusive: "Exclusive",
    proto.WaitForExclusive: "WaitForExclusive",
    proto.ExclusiveWithFencing: "ExclusiveWithFencing",
}


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


class Producer:
    """One producer. `ready` is False until its client was told that it may send."""

    __slots__ = (
        "_durable",
        "_after_receipts",
        "bytes_in",
        "closing",
        "connected_at",
        "connection",
        "encrypted",
        "fenced",
        "id",
        "messages_in",
        "metadata",
        "mode",
        "name",
        "name_given",
        "pending",
        "ready",
        "request_id",
        "schema_version",
        "topic",
        "topic_epoch",
    )

    def __init__(
        self,
        connection: "Connection",
        command: proto.CommandProducer,
        name: str,
        topic: "AnyTopic",
        wall_time: int,
    ) -> None:
        self.connection = connection
        self.topic = topic
        self.id = command.producer_id
        self.request_id = command.request_id
        self.name = name
        self.name_given = command.user_provided_producer_name and bool(command.producer_name)
        self.mode = command.producer_access_mode
        self.topic_epoch: int | None = command.topic_epoch if command.HasField("topic_epoch") else None
        self.encrypted = command.encrypted
        self.metadata = [(pair.key, pair.value) for pair in command.metadata]
        self.connected_at = wall_time
        self.schema_version = b""
        self.ready = False
        self.closing = False
        """No more messages are accepted."""
        self.fenced = False
        """Another producer has exclusive access: only receipts are still sent."""
        self.pending = 0
        """The number of messages accepted and not yet durable."""
        self._durable = 0
        self._after_receipts: deque[tuple[int, Callable[[], None]]] = deque()
        """(number of durable messages to wait for, action), in order."""
        self.messages_in = 0
        self.bytes_in = 0

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in, messages and bytes out (always 0)."""
        return self.messages_in, self.bytes_in, 0, 0

    def close_when_drained(self, then: Callable[[], None]) -> None:
        """Accept no more messages; call `then` after the receipts of those accepted.

        Both sides may close. The broker's notice, if it is asked for first, precedes the answer to the
        client's CLOSE_PRODUCER, and tells the client that SENDs in between were ignored (GAP-37).
        """
        self.closing = True
        self.after_receipts(then)

    def after_receipts(self, action: Callable[[], None]) -> None:
        """Call `action` after the receipts of all messages accepted so far: SENDs are answered in order."""
        if self.pending:
            self._after_receipts.append((self._durable + self.pending, action))
        else:
            action()

    def message_durable(self) -> None:
        self.pending -= 1
        self._durable += 1
        while self._after_receipts and self._after_receipts[0][0] <= self._durable:
            self._after_receipts.popleft()[1]()


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
            self._check_epoch(newcomer)
            if self.by_name:
                self.waiting[newcomer] = None
                return False
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


class Deduplication:
    """The sequence ids of each producer name: highest accepted, and highest stored (BROKER-39).

    Clients choose names, and their sequence ids outlive their producers. So at most `limit` names without a
    producer are kept, and the name absent longest is discarded first. `now` in nanoseconds.
    """

    def __init__(self, stored: dict[str, int], now: int, limit: int) -> None:
        self.pushed: dict[str, int] = dict(stored)
        self.persisted: dict[str, int] = dict(stored)
        self._limit = limit
        self._absent_since: dict[str, int] = dict.fromkeys(stored, now)
        """Name without a producer -> the moment its producer was detached (ns), the earliest first."""

    def last_sequence_id(self, name: str) -> int:
        return self.pushed.get(name, -1)

    def is_duplicate(self, name: str, sequence_id: int, highest: int) -> bool:
        """Return True when the message is stored already, False when it is new.

        Raises `PersistenceError` while an equal or later message is accepted and not yet durable.
        """
        pushed = self.pushed.get(name)
        if pushed is None or sequence_id > pushed:
            self.pushed[name] = max(sequence_id, highest)
            return False
        if sequence_id <= self.persisted.get(name, -1):
            return True
        raise PersistenceError("Cannot determine whether the message is a duplicate at this time")

    def stored(self, name: str, highest: int) -> None:
        """Record that a message is durable."""
        if name in self.pushed and highest > self.persisted.get(name, -1):
            self.persisted[name] = highest

    def attached(self, name: str) -> None:
        """Record that a producer of that name is attached."""
        self._absent_since.pop(name, None)

    def detached(self, name: str, now: int) -> None:
        """Record that no producer of that name is attached."""
        self._absent_since.pop(name, None)
        if name in self.pushed:
            self._absent_since[name] = now

    def purge(self, before: int) -> list[str]:
        """Discard and return the names absent since before `before`, and those beyond the limit."""
        absent = self._absent_since
        discarded: list[str] = []
        for name, since in absent.items():
            if since >= before and len(absent) - len(discarded) <= self._limit:
                break
            discarded.append(name)
        for name in discarded:
            del absent[name]
            self.pushed.pop(name, None)
            self.persisted.pop(name, None)
        return discarded
