"""The state of a broker, as its ends of the wires show it: producers, consumers, subscriptions and their
acknowledgements.

Owns the accounts, and how an ACK changes them. `broker_frames` owns what a broker may write because of them.
"""

from collections import deque

from pulsar_sansio.wire import Ack, Send

from ..model.key_ranges import Range
from ..model.records.message_position import Position
from ..model.records.subscription_record import SubscriptionRecord
from ..model.records.topic_record import TopicRecord


class BrokerProducer:
    """A producer in the broker's state."""

    __slots__ = ("pending", "topic")

    def __init__(self, topic: TopicRecord) -> None:
        self.topic = topic
        self.pending: deque[Send] = deque()


class BrokerConsumer:
    """A consumer in the broker's state."""

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
        """The consumer's own key hash ranges, if it asked for any."""
        self.permits = 0
        self.largest = 1
        """Messages of the largest entry that the consumer was sent."""
        self.floor: Position = (-1, -1)
        self.rewinds = 0
        """Requests to rewind that may still show in the order."""
        self.pending: dict[Position, None] = {}
        self.loose = False
        """During the current input the consumer asks for redelivery of its entries, at an unknown moment."""
        self.unsubscribing = False
        """The consumer has sent UNSUBSCRIBE: its later acknowledgements do not count for a new subscription
        of that name."""


class SubscriptionState:
    """The acknowledgements of one subscription, as a broker knows them."""

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
        """The broker keeps the acknowledged messages of an entry, not only whole entries."""
        self.memory_bits: dict[Position, int] = {}
        """The acknowledged messages of each entry, as bits, in the memory of the running broker."""
        self.memory_upto: Position = (-1, -1)
        self.durable_bits: dict[Position, int] = {}
        self.durable_upto: Position = (-1, -1)
        """Acknowledgements up to here, and bits above, are confirmed to a client: a restart may not forget
        them."""
        self.holders: dict[Position, BrokerConsumer] = {}
        """Shared types: the consumer of each entry that is delivered and not settled."""
        self.before: SubscriptionState | None = None
        """The state of the broker that served the topic before; it may still believe to serve it, or has
        died."""
        self.origin: SubscriptionState = self
        """The state of the first broker in the chain of `before`."""
        self.keys: dict[str, dict[Position, None]] = {}
        """Key_Shared: the entries of each key that a consumer holds, or has held."""

    def acknowledged(self, position: Position) -> int:
        if position <= self.memory_upto:
            return -1
        return self.memory_bits.get(position, 0)

    def ever_acknowledged(self, position: Position) -> int:
        """Return the messages of an entry acknowledged at any broker that ever served the topic, as bits."""
        return self.acknowledged(position) | (
            self.before.ever_acknowledged(position) if self.before is not None else 0
        )

    def acknowledge(self, position: Position, bits: int | None, durable: bool) -> None:
        """Apply an individual acknowledgement with its ack set, in memory or as confirmed."""
        entry = self.record.topic.log.get(position)
        if entry is None:
            return
        if bits is not None and not self.batch_index:
            return  # the entry stays open until an id without an ack set arrives; an empty set does not count
        done = ((1 << entry.size) - 1) & ~(bits or 0)
        known = self.durable_bits if durable else self.memory_bits
        known[position] = known.get(position, 0) | done

    def acknowledge_up_to(self, position: Position, bits: int | None, durable: bool) -> None:
        """Apply a cumulative acknowledgement with its ack set, in memory or as confirmed."""
        ledger, entry_id = position
        if bits and entry_id >= 0:
            self.acknowledge(position, bits, durable)
            position = (ledger, entry_id - 1)
        if durable:
            self.durable_upto = max(self.durable_upto, position)
        else:
            self.memory_upto = max(self.memory_upto, position)

    def is_whole(self, command: Ack, position: Position) -> bool:
        """True when this ACK and earlier ones leave nothing of the entry open."""
        entry = self.record.topic.log.get(position)
        if entry is None:
            return False
        left = ((1 << entry.size) - 1) & ~self.memory_bits.get(position, 0)
        for ledger, entry_id, bits in command.message_ids:
            if (ledger, entry_id) == position and (self.batch_index or bits is None):
                left &= bits or 0
        return left == 0

    def forget(self) -> None:
        """Forget everything, because the subscription is moved by a seek, or removed."""
        self.durable_bits, self.durable_upto, self.before = {}, (-1, -1), None
        self.memory_bits, self.memory_upto = {}, (-1, -1)

    def forget_unconfirmed(self) -> None:
        """The broker dies: keep what it was told as the state before."""
        died = SubscriptionState(self.record, self.batch_index)
        died.memory_bits, died.memory_upto, died.before = self.memory_bits, self.memory_upto, self.before
        self.before = died
        self.memory_bits = dict(self.durable_bits)
        self.memory_upto = self.durable_upto
        self.holders.clear()


class BrokerEnd:
    """One wire as its broker sees it."""

    __slots__ = ("acknowledging", "consumers", "opening", "producers", "nonpersistent_consumers")

    def __init__(self) -> None:
        self.producers: dict[int, BrokerProducer] = {}
        self.consumers: dict[int, BrokerConsumer] = {}
        self.nonpersistent_consumers: set[int] = set()
        """Consumers of non-persistent topics."""
        self.opening: dict[int, tuple[int, BrokerProducer | BrokerConsumer]] = {}
        """Requests in progress, each with its id and the producer or consumer that it opens."""
        self.acknowledging: dict[int, tuple[SubscriptionState, Ack]] = {}
        """Requests to confirm acknowledgements."""
