"""The producers of a topic: names, access modes, fencing, deduplication (rules BROKER-33 to BROKER-42).

`Producer` is one producer of one connection. `Producers` is a topic's registry and decides who may join.
`Deduplication` knows the sequence ids of each name. None of them stores a message; the topic does.
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
    """What a client gets that waits for its turn, or comes, while the topic is unloaded or deleted."""
    return ServiceNotReady("Topic is temporarily unavailable")


class NameTaken(ProducerBusy):
    """Another connection has a producer of this name: the newcomer may try again if that one is dead."""

    def __init__(self, present: "Producer") -> None:
        super().__init__(f"Producer with name '{present.name}' is already connected to topic")
        self.present = present


class Producer:
    """One producer. `ready` is False until it was told that it may send."""

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
        """No more messages are taken."""
        self.fenced = False
        """Somebody else has the topic: only receipts are still to come."""
        self.pending = 0
        """Messages taken and not yet durable."""
        self._durable = 0
        self._after_receipts: deque[tuple[int, Callable[[], None]]] = deque()
        """What is to be said once so many messages are durable."""
        self.messages_in = 0
        self.bytes_in = 0

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes in, messages and bytes out (none)."""
        return self.messages_in, self.bytes_in, 0, 0

    def close_when_drained(self, then: Callable[[], None]) -> None:
        """Take nothing more; call `then` after the receipts of what was taken.

        Both sides may close: the broker's notice, asked for first, leaves before the answer to the client's
        CLOSE_PRODUCER, and tells it that SENDs in between were ignored (GAP-37).
        """
        self.closing = True
        self.after_receipts(then)

    def after_receipts(self, say: Callable[[], None]) -> None:
        """Call `say` after the receipts of what was taken until now: SENDs are answered in their order."""
        if self.pending:
            self._after_receipts.append((self._durable + self.pending, say))
        else:
            say()

    def message_durable(self) -> None:
        self.pending -= 1
        self._durable += 1
        while self._after_receipts and self._after_receipts[0][0] <= self._durable:
            self._after_receipts.popleft()[1]()


class Producers:
    """Who may produce to a topic."""

    def __init__(self, topic: "AnyTopic", topic_epoch: int | None) -> None:
        self._topic = topic
        self.by_name: dict[str, Producer] = {}
        self.exclusive: Producer | None = None
        self.waiting: OrderedDict[Producer, None] = OrderedDict()
        """In WaitForExclusive mode, in the order they came."""
        self.topic_epoch = topic_epoch

    def join(self, newcomer: Producer) -> bool:
        """Let `newcomer` in; False when it has to wait for exclusiveness. Raises its refusal.

        Access modes first, then names (BROKER-34 to BROKER-36, BROKER-42).
        """
        mode = newcomer.mode
        if mode == proto.Shared:
            if self.exclusive is not None or self.waiting:
                who = self.exclusive or next(iter(self.waiting))
                raise ProducerBusy(f"Topic has an existing exclusive producer: {who.name}")
        elif mode == proto.Exclusive:
            if self.exclusive is not None or self.waiting:
                who = self.exclusive or next(iter(self.waiting))
                raise ProducerFenced(f"Topic has an existing exclusive producer: {who.name}")
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
        """One name, one producer (rule BROKER-42).

        The same producer id on the same connection never comes here, so no epochs are compared: its
        connection answers it again, or has closed the old one.
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
        """Producers go without a word, waiters get ProducerFenced (BROKER-36)."""
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
        """CLOSE_PRODUCER to each, after the receipts of what it sent; who waits for its turn is refused.

        The Java broker refuses only the first of those that wait, and the others wait for ever.
        """
        self._refuse_waiting(refusal)
        for producer in list(self.by_name.values()):
            producer.connection.close_producer(producer)

    def detach(self, producer: Producer) -> None:
        """The producer is gone; the first of the waiting may become the exclusive one."""
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
    """Sequence ids of each producer name: highest taken, and highest stored (BROKER-39).

    Names are chosen by clients, and what is known of them outlives their producers. So the names without a
    producer have a number, `limit`: the longest absent is forgotten first. `now` in nanoseconds.
    """

    def __init__(self, stored: dict[str, int], now: int, limit: int) -> None:
        self.pushed: dict[str, int] = dict(stored)
        self.persisted: dict[str, int] = dict(stored)
        self._limit = limit
        self._absent_since: dict[str, int] = dict.fromkeys(stored, now)
        """Names without a producer, the longest absent first."""

    def last_sequence_id(self, name: str) -> int:
        return self.pushed.get(name, -1)

    def is_duplicate(self, name: str, sequence_id: int, highest: int) -> bool:
        """Whether the message was stored before. Raises `PersistenceError` when that cannot be told yet."""
        pushed = self.pushed.get(name)
        if pushed is None or sequence_id > pushed:
            self.pushed[name] = max(sequence_id, highest)
            return False
        if sequence_id <= self.persisted.get(name, -1):
            return True
        raise PersistenceError("Cannot determine whether the message is a duplicate at this time")

    def stored(self, name: str, highest: int) -> None:
        """A message is durable."""
        if name in self.pushed and highest > self.persisted.get(name, -1):
            self.persisted[name] = highest

    def attached(self, name: str) -> None:
        """There is a producer of that name."""
        self._absent_since.pop(name, None)

    def detached(self, name: str, now: int) -> None:
        """There is none any more."""
        self._absent_since.pop(name, None)
        if name in self.pushed:
            self._absent_since[name] = now

    def purge(self, before: int) -> list[str]:
        """Forget the names without a producer since before `before`, and those beyond the limit; which."""
        absent = self._absent_since
        gone: list[str] = []
        for name, since in absent.items():
            if since >= before and len(absent) - len(gone) <= self._limit:
                break
            gone.append(name)
        for name in gone:
            del absent[name]
            self.pushed.pop(name, None)
            self.persisted.pop(name, None)
        return gone
