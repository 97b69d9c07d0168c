"""What a broker has, as its ends of the wires show it: producers, consumers, and subscriptions with what is
acknowledged of them.

Owns the accounts, and how an ACK changes them. What a broker may write because of them is `watch_broker`'s.
"""

from collections import deque

from pulsar_sansio.wire import Ack, Send

from ..model.key_ranges import Range
from ..model.records import Position, SubscriptionRecord, TopicRecord


class ProducerSeat:
    """A producer as the broker has it."""

    __slots__ = ("pending", "topic")

    def __init__(self, topic: TopicRecord) -> None:
        self.topic = topic
        self.pending: deque[Send] = deque()


class ConsumerSeat:
    """A consumer as the broker has it."""

    __slots__ = (
        "floor",
        "largest",
        "loose",
        "name",
        "pending",
        "permits",
        "ranges",
        "rewinds",
        "state",
        "unsubscribing",
    )

    def __init__(self, name: str, state: "SubscriptionState") -> None:
        self.name = name
        self.state = state
        self.ranges: tuple[Range, ...] = ()
        """Hashes of the keys that it takes, where it says so."""
        self.permits = 0
        self.largest = 1
        """Messages of the largest entry it was sent."""
        self.floor: Position = (-1, -1)
        self.rewinds = 0
        """Requests to begin again that may still show in the order."""
        self.pending: dict[Position, None] = {}
        self.loose = False
        """In the input being handled it gives back what it has, at a moment that is not known."""
        self.unsubscribing = False
        """It has sent UNSUBSCRIBE: what it acknowledges from then on is nothing to a later subscription of
        that name."""


class SubscriptionState:
    """What a broker knows to be acknowledged."""

    __slots__ = (
        "batch_index",
        "before",
        "durable_bits",
        "durable_upto",
        "holders",
        "keys",
        "memory_bits",
        "memory_upto",
        "origin",
        "record",
    )

    def __init__(self, record: SubscriptionRecord, batch_index: bool) -> None:
        self.record = record
        self.batch_index = batch_index
        """The broker keeps which messages of an entry are acknowledged, not only whole entries."""
        self.memory_bits: dict[Position, int] = {}
        """Entry -> messages acknowledged, in the memory of the running broker."""
        self.memory_upto: Position = (-1, -1)
        self.durable_bits: dict[Position, int] = {}
        self.durable_upto: Position = (-1, -1)
        """The same, as far as confirmed to a client: a restart may not forget it."""
        self.holders: dict[Position, ConsumerSeat] = {}
        """Shared types: who has an entry that is neither acknowledged nor given back."""
        self.before: SubscriptionState | None = None
        """What a broker knew that served the topic before, and perhaps still believes to, or has died."""
        self.origin: SubscriptionState = self
        """What the first broker knew that it comes from, by way of all those that served the topic since."""
        self.keys: dict[str, dict[Position, None]] = {}
        """Key_Shared: the entries of a key that somebody has, or had."""

    def acknowledged(self, position: Position) -> int:
        if position <= self.memory_upto:
            return -1
        return self.memory_bits.get(position, 0)

    def ever_acknowledged(self, position: Position) -> int:
        """The same, at any broker that ever served the topic."""
        return self.acknowledged(position) | (
            self.before.ever_acknowledged(position) if self.before is not None else 0
        )

    def acknowledge(self, position: Position, bits: int | None, durable: bool) -> None:
        """An individual acknowledgement, with the set of what it leaves open: in memory, or confirmed."""
        entry = self.record.topic.log.get(position)
        if entry is None:
            return
        if bits is not None and not self.batch_index:
            return  # nothing is acknowledged until an id without a set comes, not even by a set of no bits
        done = ((1 << entry.size) - 1) & ~(bits or 0)
        known = self.durable_bits if durable else self.memory_bits
        known[position] = known.get(position, 0) | done

    def acknowledge_up_to(self, position: Position, bits: int | None, durable: bool) -> None:
        """Likewise a cumulative one."""
        ledger, entry_id = position
        if bits and entry_id >= 0:
            self.acknowledge(position, bits, durable)
            position = (ledger, entry_id - 1)
        if durable:
            self.durable_upto = max(self.durable_upto, position)
        else:
            self.memory_upto = max(self.memory_upto, position)

    def is_whole(self, command: Ack, position: Position) -> bool:
        """Whether nothing of the entry is left open by this ACK and those before it."""
        entry = self.record.topic.log.get(position)
        if entry is None:
            return False
        left = ((1 << entry.size) - 1) & ~self.memory_bits.get(position, 0)
        for ledger, entry_id, bits in command.message_ids:
            if (ledger, entry_id) == position and (self.batch_index or bits is None):
                left &= bits or 0
        return left == 0

    def forget(self) -> None:
        """It is moved by a seek, or removed."""
        self.durable_bits, self.durable_upto, self.before = {}, (-1, -1), None
        self.memory_bits, self.memory_upto = {}, (-1, -1)

    def forget_unconfirmed(self) -> None:
        """The broker dies. It was told nevertheless."""
        died = SubscriptionState(self.record, self.batch_index)
        died.memory_bits, died.memory_upto, died.before = self.memory_bits, self.memory_upto, self.before
        self.before = died
        self.memory_bits = dict(self.durable_bits)
        self.memory_upto = self.durable_upto
        self.holders.clear()


class BrokerEnd:
    """What one wire looks like from its broker."""

    __slots__ = ("acknowledging", "consumers", "opening", "producers", "whispered")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerSeat] = {}
        self.consumers: dict[int, ConsumerSeat] = {}
        self.whispered: set[int] = set()
        """Consumers of topics of which nothing is kept."""
        self.opening: dict[int, tuple[int, ProducerSeat | ConsumerSeat]] = {}
        """Request -> (id, what it will be)."""
        self.acknowledging: dict[int, tuple[SubscriptionState, Ack]] = {}
        """Requests for confirmation."""
