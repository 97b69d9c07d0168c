"""What applications were told, and what therefore must be in the log: the oracle of these runs.

Fed by the applications' calls only. It knows nothing of the library but its public objects.
"""

from collections.abc import Callable, Sequence
from enum import Enum

from pulsar_sansio import Message, MessageId, PulsarError, SubscriptionType
from pulsar_trio import Consumer, Producer, Receipt
from tests.triosim.profile import Subscription

Place = tuple[int, int, int]
Order = tuple[int, int, int]
"""Messages of one (producer, session, task) lie in the log in the order in which they were given."""


def place_of(message_id: MessageId) -> Place:
    return message_id.ledger_id, message_id.entry_id, max(0, message_id.batch_index)


class State(Enum):
    OPEN = "may or may not be in the log"
    KEPT_OUT = "was never taken, and must not be in the log"
    TAKEN = "is in the window, and will be settled"


class Sent:
    """One message. `result`: what it came to, as first seen."""

    __slots__ = ("number", "order", "payload", "receipt", "result", "state", "topic")

    def __init__(self, topic: str, order: Order, number: int, padding: int) -> None:
        self.topic = topic
        self.order = order
        self.number = number
        self.payload = b"%d.%d.%d.%d|" % (*order, number) + b"x" * padding
        self.state = State.OPEN
        self.receipt: Receipt | None = None
        self.result: MessageId | PulsarError | None = None

    def __str__(self) -> str:
        return self.payload.partition(b"|")[0].decode()


class ProducerBook:
    """One producer, from opening to closing."""

    def __init__(self, books: "Books", topic: str, producer: Producer, window: int) -> None:
        self.books = books
        self.topic = topic
        self.producer = producer
        self.window = window
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
    """What a subscription's consumers received."""

    def __init__(self, books: "Books", subscription: Subscription) -> None:
        self.books = books
        self.subscription = subscription
        self.seen: dict[Place, int] = {}
        self.last: Place = (-1, -1, -1)

    def received(self, message: Message) -> None:
        sent = self.books.sent.get(bytes(message.data))
        if sent is None or sent.topic != self.subscription.topic:
            self.books.fail("INV-C2", f"{self.subscription.name} got a message that nobody sent there")
            return
        place = place_of(message.message_id)
        if place not in self.seen and self.subscription.kind is SubscriptionType.EXCLUSIVE:
            if place < self.last:
                self.books.fail("INV-C3", f"{self.subscription.name} got {sent} after {self.last}")
            self.last = place
        self.seen[place] = self.seen.get(place, 0) + 1
        self.books.received += 1


class ConsumerBook:
    """One consumer, from subscribing to closing. `hand`: received and not yet acknowledged."""

    def __init__(self, subscription: SubscriptionBook, consumer: Consumer) -> None:
        self.subscription = subscription
        self.consumer = consumer
        self.hand: list[Message] = []

    def received(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.subscription.received(message)
        self.hand += messages


class Books:
    """All records of a run. `fail` is told what is wrong."""

    def __init__(self, subscriptions: Sequence[Subscription], fail: Callable[[str, str], None]) -> None:
        self.fail = fail
        self.sent: dict[bytes, Sent] = {}
        self.subscriptions = [SubscriptionBook(self, subscription) for subscription in subscriptions]
        self.producers: list[ProducerBook] = []
        """Those that are open."""
        self.consumers: list[ConsumerBook] = []
        self.received = 0
        self.confirmed = 0
        self._numbers: dict[Order, int] = {}

    def new(self, topic: str, order: Order, padding: int) -> Sent:
        number = self._numbers[order] = self._numbers.get(order, -1) + 1
        sent = Sent(topic, order, number, padding)
        self.sent[sent.payload] = sent
        return sent

    def settled(self, sent: Sent) -> bool:
        """Whether a receipt is done. What it says must be what it said before."""
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
        """What a message came to, every time somebody is told."""
        if sent.result is None:
            sent.result = result
            self.confirmed += isinstance(result, MessageId)
        elif sent.result != result and sent.result is not result:
            self.fail("INV-P1", f"{sent} was settled as {sent.result!r}, and then as {result!r}")

    def check_idle(self) -> None:
        """Nothing can run before time goes on: so nobody waits for what is there."""
        for book in self.producers:
            producer = book.producer.statistics()
            if producer.waiting and producer.pending < book.window:
                self.fail("WAKE", f"tasks wait for room, and there is some: {producer}")
        for entry in self.consumers:
            consumer = entry.consumer.statistics()
            if consumer.waiting and consumer.available:
                self.fail("WAKE", f"tasks wait for messages, and there are some: {consumer}")

    def check_log(self, topic: str, log: Sequence[Message]) -> None:
        """The finished history of one topic against what a fresh reader found in it."""
        held: dict[Place, Sent] = {}
        first: dict[bytes, Place] = {}
        for message in log:
            place = place_of(message.message_id)
            payload = bytes(message.data)
            sent = self.sent.get(payload)
            if sent is None or sent.topic != topic:
                self.fail("INV-P5", f"{topic} {place} holds what nobody sent")
                continue
            if sent.state is State.KEPT_OUT:
                self.fail("INV-P5", f"{sent} was cancelled or refused before it was taken, and was sent")
            held[place] = sent
            first.setdefault(payload, place)
        for sent in self.sent.values():
            if sent.topic == topic and isinstance(sent.result, MessageId):
                place = place_of(sent.result)
                if sent.payload not in first or (place[0] >= 0 and held.get(place) is not sent):
                    self.fail("INV-P2", f"{sent} is confirmed at {place}, where the log does not hold it")
        last: dict[Order, tuple[Place, Sent]] = {}
        for sent in self.sent.values():
            if sent.topic != topic or sent.payload not in first:
                continue
            place = first[sent.payload]
            before = last.get(sent.order)
            if before is not None and place < before[0]:
                self.fail("INV-P3", f"{sent} lies at {place}, before {before[1]} at {before[0]}")
            last[sent.order] = place, sent
        for book in self.subscriptions:
            if book.subscription.topic == topic:
                missing = [place for place in held if place not in book.seen]
                if missing:
                    self.fail("INV-C1", f"{book.subscription.name}: {missing[:5]} never received")
