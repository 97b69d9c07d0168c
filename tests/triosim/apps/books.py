"""The oracle of these runs: what applications were told, and what therefore must be in the log.

Only the applications' calls feed it. It knows nothing of the library but its public objects.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import trio

from pulsar_sansio import (
    ClosedError,
    Message,
    MessageId,
    ProducerQueueIsFull,
    PulsarError,
    SubscriptionType,
)
from pulsar_trio import Consumer, Producer, Receipt
from tests.triosim.profile import Subscription

Position = tuple[int, int, int]
Call = Callable[[], object]
Order = tuple[int, int, int]
"""Messages of one (producer, session, task) lie in the log in the order in which they were given."""


def position_of(message_id: MessageId) -> Position:
    return message_id.ledger_id, message_id.entry_id, max(0, message_id.batch_index)


BATCH_AGE = 60
"""Milliseconds by which a message may be younger than its batch, whose publish time it has."""


class State(Enum):
    OPEN = "may or may not be in the log"
    KEPT_OUT = "was never taken, and must not be in the log"
    TAKEN = "is in the window, and will be settled"


class Sent:
    """One message. `result`: what it came to, as first seen."""

    __slots__ = ("given_at", "key", "number", "order", "payload", "receipt", "result", "state", "topic")

    def __init__(self, topic: str, order: Order, number: int, padding: int, given_at: int) -> None:
        self.topic = topic
        self.order = order
        self.number = number
        self.payload = b"%d.%d.%d.%d|" % (*order, number) + b"x" * padding
        self.key = f"key {number % 5}" if number % 3 == 0 else None
        self.given_at = given_at
        """When it was made, in milliseconds since 1970."""
        self.state = State.OPEN
        self.receipt: Receipt | None = None
        self.result: MessageId | PulsarError | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The keywords of the call that sends it."""
        return {"key": self.key} if self.key else {}

    def __str__(self) -> str:
        return self.payload.partition(b"|")[0].decode()


class ProducerBook:
    """One producer, from opening to closing."""

    def __init__(self, books: "Books", topic: str, producer: Producer, window: int, waits: bool) -> None:
        """`waits`: for room in the window, where there is none."""
        self.books = books
        self.topic = topic
        self.producer = producer
        self.window = window
        self.waits = waits
        self.receipts: list[Sent] = []
        self.unsettled: list[Sent] = []

    def taken(self, sent: Sent, receipt: Receipt) -> None:
        sent.state = State.TAKEN
        sent.receipt = receipt
        self.receipts.append(sent)
        self.unsettled.append(sent)

    def look(self) -> None:
        """Note what is settled, and see that nothing changes its mind."""
        self.unsettled = [sent for sent in self.unsettled if not self.books.settled(sent)]
        found = self.producer.statistics()
        if not 0 <= found.pending <= self.window:
            self.books.fail("INV-P7", f"a window of {self.window}, and {found}")

    def must_be_settled(self, sent: Sequence[Sent], why: str) -> None:
        for one in sent:
            if not self.books.settled(one):
                self.books.fail("INV-P8", f"{one} is not settled after {why}")

    def refused(self, error: PulsarError) -> None:
        """A call has raised this: a window that is full is an error only where nothing waits for room."""
        if isinstance(error, ProducerQueueIsFull) and self.waits:
            self.books.fail("INV-P7", f"a producer that waits for room has raised {error!r}")

    def check_idle(self) -> None:
        found = self.producer.statistics()
        if found.waiting and found.pending < self.window:
            self.books.fail("WAKE", f"tasks wait for room, and there is some: {found}")
        if found.waiting and not self.waits:
            self.books.fail("INV-P7", f"tasks of a producer that does not wait do wait for room: {found}")

    def left(self) -> None:
        """The block was left in whatever way: every call refuses, and says why it has ended."""
        producer = self.producer
        calls: list[Call] = [
            lambda: producer.enqueue_nowait(b"late"),
            lambda: producer.enqueue_nowait(b"late", key="key"),
            producer.partition_statistics,
        ]
        self.books.check_ended(producer, calls)

    def ended(self) -> None:
        """After the producer's block: everything has come to an end, once."""
        self.must_be_settled(self.unsettled, "its producer's block was left")
        self.look()
        found = self.producer.statistics()
        if found.pending or found.waiting:
            self.books.fail("INV-P1", f"a closed producer has {found}")
        settled = found.confirmed + found.failed
        if settled < len(self.receipts):
            self.books.fail("INV-P1", f"{len(self.receipts)} receipts, of which {settled} are counted")


class SubscriptionBook:
    """The messages that a subscription's consumers received."""

    def __init__(self, books: "Books", subscription: Subscription) -> None:
        self.books = books
        self.subscription = subscription
        self.seen: dict[Position, int] = {}
        self.last: Position = (-1, -1, -1)

    def received(self, message: Message) -> None:
        sent = self.books.sent.get(bytes(message.data))
        if sent is None or sent.topic != self.subscription.topic:
            self.books.fail("INV-C2", f"{self.subscription.name} got a message that no producer sent there")
            return
        position = position_of(message.message_id)
        if position not in self.seen and self.subscription.kind is SubscriptionType.EXCLUSIVE:
            if position < self.last:
                self.books.fail("INV-C3", f"{self.subscription.name} got {sent} after {self.last}")
            self.last = position
        if message.key != sent.key:
            self.books.fail("INV-C2", f"{sent} has the key {message.key!r}, and was sent with {sent.key!r}")
        if not sent.given_at - BATCH_AGE <= message.publish_time <= self.books.wall_time() + 1:
            self.books.fail("INV-C2", f"{sent} of {sent.given_at} was published at {message.publish_time}")
        self.seen[position] = self.seen.get(position, 0) + 1
        self.books.received += 1


class ConsumerBook:
    """One consumer, from subscribing to closing. `hand`: received and not yet acknowledged."""

    def __init__(self, subscription: SubscriptionBook, consumer: Consumer, enough: int) -> None:
        self.subscription = subscription
        self.consumer = consumer
        self.hand: list[Message] = []
        self.enough = enough
        """The number of messages that is enough for every task that waits."""
        self.receiving = 0
        """Tasks in a call that waits for a message; without those of `run`."""
        self.runs = 0
        """Calls of `run` that go on."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a call that waits for a message."""
        self.receiving += 1
        try:
            yield
        finally:
            self.receiving -= 1

    def check_idle(self) -> None:
        found = self.consumer.statistics()
        if found.waiting and found.available >= self.enough:
            self.subscription.books.fail("WAKE", f"tasks wait for messages, and there are some: {found}")
        if not self.receiving <= found.waiting <= self.receiving + self.runs:
            self.subscription.books.fail(
                "WAKE", f"{self.receiving} tasks wait for messages, beside {self.runs} runs: {found}"
            )

    def left(self, some: MessageId) -> None:
        """The block was left in whatever way: every call refuses, and says why it has ended."""
        consumer = self.consumer
        calls: list[Call] = [
            lambda: consumer.acknowledge(some),
            lambda: consumer.acknowledge([some]),
            lambda: consumer.negative_acknowledge(some),
            consumer.receive_nowait,
            consumer.pause,
            consumer.redeliver_unacknowledged,
            consumer.positions,
        ]
        self.subscription.books.check_ended(consumer, calls)

    def received(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.subscription.received(message)
        self.hand += messages


class Books:
    """All records of a run. `fail` is told what is wrong."""

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        fail: Callable[[str, str], None],
        wall_time: Callable[[], int],
    ) -> None:
        self.fail = fail
        self.wall_time = wall_time
        """Milliseconds since 1970."""
        self.sent: dict[bytes, Sent] = {}
        self.subscriptions = [SubscriptionBook(self, subscription) for subscription in subscriptions]
        self.producers: list[ProducerBook] = []
        """The producers that are open."""
        self.consumers: list[ConsumerBook] = []
        self.received = 0
        self.confirmed = 0
        self._numbers: dict[Order, int] = {}

    def new(self, topic: str, order: Order, padding: int) -> Sent:
        number = self._numbers[order] = self._numbers.get(order, -1) + 1
        sent = Sent(topic, order, number, padding, self.wall_time())
        self.sent[sent.payload] = sent
        return sent

    def settled(self, sent: Sent) -> bool:
        """Return whether a receipt is done. Its result must be the same as before."""
        receipt = sent.receipt
        assert receipt is not None
        if not receipt.done():
            if sent.result is not None:
                self.fail("INV-P1", f"{sent} was settled and is not any more")
            return False
        try:
            result: MessageId | PulsarError = receipt.result()
        except PulsarError as error:
            result = error
        self.came_to(sent, result)
        return True

    def came_to(self, sent: Sent, result: MessageId | PulsarError) -> None:
        """Note the result of a message, each time an application is told of it."""
        if sent.result is None:
            sent.result = result
            self.confirmed += isinstance(result, MessageId)
        elif sent.result != result and sent.result is not result:
            self.fail("INV-P1", f"{sent} was settled as {sent.result!r}, and then as {result!r}")

    def check_idle(self) -> None:
        """Check that no task waits for what is there; nothing can run before time goes on."""
        for book in self.producers:
            book.check_idle()
        for entry in self.consumers:
            entry.check_idle()

    def check_ended(self, endpoint: Producer | Consumer, calls: Sequence[Call]) -> None:
        """Every call of what has ended raises the reason."""
        reason = endpoint.explain()
        for call in calls:
            try:
                call()
            except ClosedError as error:
                if str(error) != reason:
                    self.fail("ENDED", f"{endpoint} has ended: {reason}; and a call says: {error}")
            except PulsarError as error:
                self.fail("ENDED", f"{endpoint} has ended: {reason}; and a call raises {error!r}")
            else:
                self.fail("ENDED", f"{endpoint} has ended, and a call works")

    async def check_cancelled(self, what: str, call: Callable[[], Awaitable[None]]) -> None:
        """A call of a task that is cancelled is cancelled, whatever it would come to without that."""
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await call()
            except PulsarError as error:
                self.fail("CANCEL", f"a cancelled {what} raises {error!r}")
            else:
                self.fail("CANCEL", f"a cancelled {what} goes on")

    def check_log(self, topic: str, log: Sequence[Message]) -> None:
        """The finished history of one topic against what a fresh reader found in it."""
        held: dict[Position, Sent] = {}
        first: dict[bytes, Position] = {}
        for message in log:
            position = position_of(message.message_id)
            payload = bytes(message.data)
            sent = self.sent.get(payload)
            if sent is None or sent.topic != topic:
                self.fail("INV-P5", f"{topic} {position} holds a message that no producer sent")
                continue
            if sent.state is State.KEPT_OUT:
                self.fail("INV-P5", f"{sent} was cancelled or refused before it was taken, and was sent")
            held[position] = sent
            first.setdefault(payload, position)
        for sent in self.sent.values():
            if sent.topic == topic and isinstance(sent.result, MessageId):
                position = position_of(sent.result)
                if sent.payload not in first or (position[0] >= 0 and held.get(position) is not sent):
                    self.fail("INV-P2", f"{sent} is confirmed at {position}, where the log does not hold it")
        last: dict[Order, tuple[Position, Sent]] = {}
        for sent in self.sent.values():
            if sent.topic != topic or sent.payload not in first:
                continue
            position = first[sent.payload]
            before = last.get(sent.order)
            if before is not None and position < before[0]:
                self.fail("INV-P3", f"{sent} lies at {position}, before {before[1]} at {before[0]}")
            last[sent.order] = position, sent
        for book in self.subscriptions:
            if book.subscription.topic == topic:
                missing = [position for position in held if position not in book.seen]
                if missing:
                    self.fail("INV-C1", f"{book.subscription.name}: {missing[:5]} never received")
