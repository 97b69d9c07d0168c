"""The reference model: what applications asked for and were told, and what therefore must be in the log.

Owns the truth of a world: every message submitted, every position of every topic's log, what each
subscription has delivered and acknowledged. It is fed by the applications' calls and by frames on the wires,
never by the inside of a machine, and shares no code with either. `watch_client` and `watch_broker` feed it
from the two ends of the wires.

Invariants are named as in the catalogue of the simulator's guide: P of producers, C of consumers, N of
connections.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..model.config import ConsumerSpec, ProducerSpec, SubscriptionType
from ..model.errors import ClosedError, ConnectionLost, PulsarError, TimedOut, TopicTerminated
from ..model.message import Message
from ..model.message_id import MessageId
from .violations import ViolationError

Position: TypeAlias = tuple[int, int]
"""(ledger, entry)."""

Place: TypeAlias = tuple[int, int, int]
"""(ledger, entry, index in the batch; 0 where there is none)."""

AUDIT = "audit"
"""The subscription that nobody consumes until the end: it keeps the log whole, and is then read as the
truth."""

BEFORE_ALL: Place = (-1, -1, -1)

EXCUSES = (TimedOut, ConnectionLost, ClosedError)
"""What a send may fail with although nothing is wrong with the message: its fate is not known."""


class Sent:
    """One message as submitted."""

    __slots__ = (
        "event_time",
        "key",
        "number",
        "outcome",
        "payload",
        "places",
        "producer",
        "properties",
        "sent_at",
        "ticket",
        "wires",
    )

    def __init__(
        self,
        producer: "ProducerRecord",
        number: int,
        payload: bytes | None,
        key: str | None,
        properties: Mapping[str, str],
        event_time: int,
    ) -> None:
        self.producer = producer
        self.number = number
        self.payload = payload
        self.key = key
        self.properties = properties
        self.event_time = event_time
        self.ticket = -1
        self.sent_at = 0
        self.outcome = ""
        """"" while it is pending, then "confirmed" or "failed"."""
        self.places: list[Place] = []
        """Where the log holds it."""
        self.wires = 0
        """How many attachments it was written on."""

    def __str__(self) -> str:
        return f"{self.producer.tag}#{self.number}"


class Entry:
    """One SEND as a broker stores it: the bytes, and the messages they hold."""

    __slots__ = ("key", "messages", "payload", "positions")

    def __init__(self, payload: bytes, messages: tuple[Sent, ...]) -> None:
        self.key = messages[0].key
        """A batch has the key of its first message (BATCH-11)."""
        self.payload = payload
        self.messages = messages
        self.positions: list[Position] = []


class TopicRecord:
    """A topic's log as far as it is known."""

    def __init__(self, name: str, deduplication: bool) -> None:
        self.name = name
        self.deduplication = deduplication
        self.ended = False
        """An administrator has terminated it, perhaps."""
        self.gone = -1
        """It was deleted, perhaps, and with it everything up to this ledger."""
        self.sends: dict[bytes, Entry] = {}
        """Every payload ever written in a SEND for this topic."""
        self.log: dict[Position, Entry] = {}
        self.order: list[Position] = []
        self.messages = 0
        """In the log, duplicates counted."""
        self.late = 0
        """Entries that became known after a later one."""
        self.subscriptions: dict[str, SubscriptionRecord] = {}

    @property
    def expected(self) -> int:
        """Messages that are in the log for sure, duplicates counted."""
        if self.gone < 0:
            return self.messages
        return sum(len(entry.messages) for position, entry in self.log.items() if position[0] > self.gone)

    def stored(self, position: Position, entry: Entry) -> None:
        """The broker says, by a receipt or a delivery, that the entry lies there."""
        known = self.log.get(position)
        if known is not None:
            if known is not entry:
                raise ViolationError("INV-P9", f"{self.name} {position} holds two different entries")
            return
        self.log[position] = entry
        if self.order and position < self.order[-1]:
            insort(self.order, position)
            self.late += 1
        else:
            self.order.append(position)
        self.messages += len(entry.messages)
        entry.positions.append(position)
        for index, message in enumerate(entry.messages):
            message.places.append((*position, index))


class SubscriptionRecord:
    """What a subscription has delivered to applications, and what they acknowledged."""

    def __init__(self, topic: TopicRecord, name: str, kind: SubscriptionType) -> None:
        self.topic = topic
        self.name = name
        self.kind = kind
        self.delivered: dict[Place, int] = {}
        self.acknowledged: set[Place] = set()
        self.cumulative: Place = BEFORE_ALL
        self._complete = 0
        """Entries of the topic's order below this index were delivered or acknowledged whole."""
        self._acknowledged = 0
        self._late = 0
        """Entries below that index are acknowledged; as of so many late ones."""

    def is_acknowledged(self, place: Place) -> bool:
        return place <= self.cumulative or place in self.acknowledged

    def entry_acknowledged(self, position: Position) -> bool:
        """Whether the application acknowledged every message of an entry."""
        entry = self.topic.log.get(position)
        if entry is None:
            return False
        return all(self.is_acknowledged((*position, index)) for index in range(len(entry.messages)))

    def open_bits(self, position: Position) -> int:
        """Messages of an entry that the application did not acknowledge, as bits."""
        bits = 0
        for index in range(len(self.topic.log[position].messages)):
            if not self.is_acknowledged((*position, index)):
                bits |= 1 << index
        return bits

    def all_up_to(self, place: Place) -> bool:
        """Whether everything up to a place was acknowledged, cumulatively or one by one."""
        log = self.topic.log
        for position in self.topic.order:
            if position > place[:2]:
                break
            if position[0] <= self.topic.gone:
                continue
            for index in range(len(log[position].messages)):
                if (*position, index) <= place and not self.is_acknowledged((*position, index)):
                    return False
        return True

    def everything_acknowledged(self) -> bool:
        """Whether nothing of the log is left; each call goes on where the last one stopped."""
        topic = self.topic
        if self._late != topic.late:
            self._acknowledged, self._late = 0, topic.late
        order, log = topic.order, topic.log
        while self._acknowledged < len(order):
            position = order[self._acknowledged]
            if position[0] > topic.gone:
                for index in range(len(log[position].messages)):
                    if not self.is_acknowledged((*position, index)):
                        return False
            self._acknowledged += 1
        return True

    def missing(self) -> list[Place]:
        """Messages of the log that were not acknowledged."""
        cumulative, acknowledged = self.cumulative, self.acknowledged
        return [
            (*position, index)
            for position, entry in self.topic.log.items()
            for index in range(len(entry.messages))
            if (*position, index) not in acknowledged
            and (*position, index) > cumulative
            and position[0] > self.topic.gone
        ]

    def check_no_gap(self, position: Position) -> None:
        """In-order subscriptions: everything before this entry was delivered or acknowledged (INV-C3)."""
        order, log = self.topic.order, self.topic.log
        end = bisect_left(order, position)
        while self._complete < end:
            before = order[self._complete]
            for index in range(len(log[before].messages)):
                place = (*before, index)
                if (
                    place not in self.delivered
                    and not self.is_acknowledged(place)
                    and place[0] > self.topic.gone
                ):
                    raise ViolationError(
                        "INV-C3", f"{self.topic.name}/{self.name}: {position} is delivered, {place} never was"
                    )
            self._complete += 1


@dataclass(slots=True, eq=False)
class ProducerRecord:
    """One producer, from opening to closing."""

    tag: str
    topic: TopicRecord
    spec: ProducerSpec
    pending: dict[int, Sent] = field(default_factory=dict)
    """By ticket, in order of submission."""
    next_ticket: int | None = None
    last_place: Place = BEFORE_ALL
    frames: dict[int, bytes] = field(default_factory=dict)
    """Sequence id -> payload, of every SEND it ever wrote."""
    flushes: dict[int, list[int]] = field(default_factory=dict)
    """Request -> tickets that were pending when it was asked."""
    sent: list[Sent] = field(default_factory=list)
    ready_at: int | None = None
    """When it was attached for the first time; what was sent before is not timed (rules PROD-03, PROD-48)."""
    closed: bool = False


@dataclass(slots=True, eq=False)
class ConsumerRecord:
    """One consumer, from subscribing to closing."""

    name: str
    subscription: SubscriptionRecord
    spec: ConsumerSpec
    floor: Place = BEFORE_ALL
    """The last message delivered in order."""
    rewinds: int = 0
    """How many steps back in the order have a cause that is not used up."""
    nacked: set[Position] = field(default_factory=set)
    """Entries that were ever refused."""
    refused: dict[Position, int] = field(default_factory=dict)
    """How often an entry may be asked for again: refused, not asked for yet, and not acknowledged since."""
    requests_to_rewind: int = 0
    """Exclusive and Failover: reasons to ask for everything again, other than what is refused."""
    given_back: set[Position] = field(default_factory=set)
    """Entries asked for again that have not come again yet."""
    redeliver_all: int = 0
    """Requests for everything unacknowledged that may still show on the wire."""
    farewell: bool = False
    """The broker answered the client's close; so it has everything that was acknowledged on that
    connection."""
    closed: bool = False


class ReferenceModel:
    """All records of a world, and the checks of what applications are told."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicRecord] = {}
        self.by_identity: dict[bytes | str, Sent] = {}
        self.producers: dict[str, ProducerRecord] = {}
        self.consumers: dict[str, ConsumerRecord] = {}
        self.confirmed = 0
        self.failed = 0
        self.delivered = 0
        self.acknowledged = 0

    # --- producers ---

    def submit(self, sent: Sent, ticket: int, now: int) -> None:
        """The client took a message."""
        record = sent.producer
        expected = record.next_ticket
        if expected is not None and ticket != expected:
            raise ViolationError("INV-P1", f"{record.tag}: ticket {ticket} where {expected} was next")
        record.next_ticket = ticket + 1
        sent.ticket = ticket
        sent.sent_at = now
        record.pending[ticket] = sent
        record.sent.append(sent)
        if len(record.pending) > record.spec.max_pending_messages:
            raise ViolationError(
                "INV-P7",
                f"{record.tag}: {len(record.pending)} messages pending, the window is "
                f"{record.spec.max_pending_messages}",
            )

    def announce(self, sent: Sent) -> None:
        """About to be handed to the client: from now on it may be seen anywhere."""
        identity = sent.payload or sent.properties["n"]
        self.by_identity[identity] = sent

    def withdraw(self, sent: Sent) -> None:
        """The client did not take it after all."""
        del self.by_identity[sent.payload or sent.properties["n"]]

    def _settle(self, record: ProducerRecord, ticket: int, outcome: str) -> Sent:
        sent = record.pending.pop(ticket, None)
        if sent is None:
            known = record.next_ticket is not None and ticket < record.next_ticket
            what = "a second time" if known else "without ever having been sent"
            raise ViolationError("INV-P1", f"{record.tag}: ticket {ticket} is {outcome} {what}")
        sent.outcome = outcome
        return sent

    def receipts(self, record: ProducerRecord, first: int, message_ids: Sequence[MessageId]) -> None:
        """The client says that tickets from `first` on are stored there (INV-P1, INV-P2, INV-P9)."""
        log = record.topic.log
        if not len(message_ids):
            raise ViolationError("INV-P1", f"{record.tag}: receipts for nothing")
        for ticket, message_id in enumerate(message_ids, first):
            sent = self._settle(record, ticket, "confirmed")
            self.confirmed += 1
            ledger, entry_id, _, index, size = message_id[:5]
            if ledger == -1 and entry_id == -1:
                if not record.topic.deduplication:
                    raise ViolationError("INV-P9", f"{sent}: no message id, and no deduplication")
                continue
            entry = log.get((ledger, entry_id))
            place = (ledger, entry_id, max(index, 0))
            if (
                entry is None
                or place[2] >= len(entry.messages)
                or entry.messages[place[2]] is not sent
                or (index >= 0 and size not in (0, len(entry.messages)))
            ):
                raise ViolationError(
                    "INV-P2", f"{sent}: confirmed as {message_id}, where the log does not hold it"
                )
            if place <= record.last_place:
                raise ViolationError("INV-P9", f"{sent}: id {message_id} is not above {record.last_place}")
            record.last_place = place

    def send_failed(self, record: ProducerRecord, first: int, count: int, error: PulsarError) -> None:
        """The client gave up on tickets (INV-P1); it may do so only for a reason that exists."""
        if count < 1:
            raise ViolationError("INV-P1", f"{record.tag}: failure of {count} messages")
        for ticket in range(first, first + count):
            sent = self._settle(record, ticket, "failed")
            self.failed += 1
            if record.ready_at is None:
                continue  # it fails with its producer, for whatever reason that has
            if not isinstance(error, EXCUSES) and not (
                record.topic.ended and isinstance(error, TopicTerminated)
            ):
                raise ViolationError("INV-P1", f"{sent} failed with {type(error).__name__}: {error}")
            if isinstance(error, TimedOut) and not record.spec.send_timeout:
                raise ViolationError("INV-P1", f"{sent} timed out, but its producer has no send timeout")

    def flushed(self, record: ProducerRecord, request: int) -> None:
        """INV-P8: only after everything submitted before it is settled; once."""
        tickets = record.flushes.pop(request, None)
        if tickets is None:
            raise ViolationError("INV-P8", f"{record.tag}: flush {request} is answered twice")
        if any(ticket in record.pending for ticket in tickets):
            raise ViolationError("INV-P8", f"{record.tag}: flush {request} is done before its messages are")

    def check_timeouts(self, now: int, slack: int) -> None:
        """INV-P1: nothing is pending for longer than the send timeout and a tick."""
        for record in self.producers.values():
            if (
                record.spec.send_timeout
                and record.pending
                and record.ready_at is not None
                and not record.closed
            ):
                oldest = next(iter(record.pending.values()))
                if now - max(oldest.sent_at, record.ready_at) > round(record.spec.send_timeout * 1e9) + slack:
                    raise ViolationError("INV-P1", f"{oldest} is pending for longer than the send timeout")

    # --- consumers ---

    def deliver(self, consumer: ConsumerRecord, message: Message) -> Place:
        """The application takes a message (INV-C2, INV-C3, INV-C14)."""
        subscription = consumer.subscription
        topic = subscription.topic
        if consumer.closed:
            raise ViolationError("INV-C14", f"{consumer.name} is closed and gives a message")
        ledger, entry_id, _, index = message.message_id[:4]
        place = (ledger, entry_id, max(index, 0))
        entry = topic.log.get((ledger, entry_id))
        if entry is None or place[2] >= len(entry.messages):
            raise ViolationError("INV-C2", f"{consumer.name}: {place} is not in the log of {topic.name}")
        sent = entry.messages[place[2]]
        if message.value != sent.payload:
            raise ViolationError("INV-C2", f"{consumer.name}: {place} has another payload than {sent}")
        if sent.key is not None or sent.properties or sent.event_time:
            self._compare_fields(consumer, message, sent)
        elif message.key is not None or message.properties:
            raise ViolationError("INV-C2", f"{consumer.name}: {sent} was given a key or properties")
        if consumer.given_back and place[:2] in consumer.given_back:
            raise ViolationError(
                "INV-C9", f"{consumer.name}: {place} is delivered although it was given back"
            )
        if subscription.kind.cumulative:
            if place <= consumer.floor:
                if not consumer.rewinds:
                    raise ViolationError(
                        "INV-C3", f"{consumer.name}: {place} after {consumer.floor} without a cause"
                    )
                consumer.rewinds -= 1
            consumer.floor = place
            subscription.check_no_gap(place[:2])
        delivered = subscription.delivered
        delivered[place] = delivered.get(place, 0) + 1
        self.delivered += 1
        return place

    @staticmethod
    def _compare_fields(consumer: ConsumerRecord, message: Message, sent: Sent) -> None:
        if message.key != sent.key:
            raise ViolationError(
                "INV-C2", f"{consumer.name}: {sent} has the key {message.key!r}, not {sent.key!r}"
            )
        if dict(message.properties) != dict(sent.properties):
            raise ViolationError("INV-C2", f"{consumer.name}: {sent} has other properties")
        if (message.event_time or 0) != sent.event_time:
            raise ViolationError("INV-C2", f"{consumer.name}: {sent} has another event time")

    def acknowledge(self, consumer: ConsumerRecord, place: Place) -> None:
        self._no_longer_refused(consumer, place[:2])
        acknowledged = consumer.subscription.acknowledged
        if place not in acknowledged:
            acknowledged.add(place)
            self.acknowledged += 1

    def acknowledge_cumulative(self, consumer: ConsumerRecord, place: Place) -> None:
        subscription = consumer.subscription
        if place > subscription.cumulative:
            before = subscription.cumulative
            order, log = subscription.topic.order, subscription.topic.log
            for position in order[max(0, bisect_left(order, before[:2])) :]:
                if position > place[:2]:
                    break
                for index in range(len(log[position].messages)):
                    each = (*position, index)
                    if before < each <= place and each not in subscription.acknowledged:
                        self.acknowledged += 1
            subscription.cumulative = place
        for position in [each for each in consumer.refused if each < place[:2]]:
            del consumer.refused[position]
        self._no_longer_refused(consumer, place[:2])

    @staticmethod
    def _no_longer_refused(consumer: ConsumerRecord, position: Position) -> None:
        """Acknowledged: it is not to be asked for. Of a batch that is not clear: each delivery counts."""
        refused = consumer.refused
        if refused and position in refused and len(consumer.subscription.topic.log[position].messages) == 1:
            del refused[position]

    def negative_acknowledge(self, consumer: ConsumerRecord, place: Place) -> None:
        position = place[:2]
        consumer.nacked.add(position)
        consumer.refused[position] = consumer.refused.get(position, 0) + 1
        consumer.rewinds += 1

    # --- the end ---

    def check_log(self, topic: TopicRecord, audited: Sequence[Place]) -> None:
        """The finished history of one topic against what a fresh reader found (INV-P1 to INV-P5, INV-C1)."""
        found = dict.fromkeys(audited)
        if len(found) != len(audited):
            raise ViolationError("INV-C3", f"{topic.name}: a fresh reader got a message twice")
        if list(audited) != sorted(audited):
            raise ViolationError("INV-C3", f"{topic.name}: a fresh reader got messages out of order")
        for position, entry in topic.log.items():
            for index in range(len(entry.messages)):
                if (*position, index) not in found and position[0] > topic.gone:
                    raise ViolationError("INV-P2", f"{topic.name}: {(*position, index)} is gone from the log")
        for record in self.producers.values():
            if record.topic is topic:
                self._check_producer(record)
        for subscription in topic.subscriptions.values():
            if subscription.name == AUDIT:
                continue
            missing = subscription.missing()
            if missing:
                raise ViolationError(
                    "INV-C1", f"{topic.name}/{subscription.name}: {missing[:5]} never acknowledged"
                )
            if subscription.kind.cumulative:
                continue
            for place in audited:
                if place not in subscription.delivered and place[0] > topic.gone:
                    raise ViolationError(
                        "INV-C1", f"{topic.name}/{subscription.name}: {place} never delivered"
                    )

    @staticmethod
    def _check_producer(record: ProducerRecord) -> None:
        if record.pending:
            raise ViolationError("INV-P1", f"{record.tag}: {len(record.pending)} messages never settled")
        last = BEFORE_ALL
        for sent in record.sent:
            places = sent.places
            if sent.outcome == "confirmed" and not places:
                raise ViolationError("INV-P2", f"{sent} is confirmed and not in the log")
            if not places:
                continue
            first = min(places)
            if first <= last:
                raise ViolationError(
                    "INV-P3", f"{sent} lies at {first}, behind a later message of its producer"
                )
            last = first
            there = [place for place in places if place[0] > record.topic.gone]
            if len(there) > 1 and record.topic.deduplication:
                raise ViolationError("INV-P4", f"{sent} lies at {places}, with deduplication")
            if len(places) > sent.wires:
                raise ViolationError(
                    "INV-P4", f"{sent} lies at {places}, was written on {sent.wires} attachments"
                )
