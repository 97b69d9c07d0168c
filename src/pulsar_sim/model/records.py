"""The records of a world: topics and their logs, messages, subscriptions, producers and consumers.

Owns the records and their questions: where an entry lies, which chunks make a message, which messages are
acknowledged or missing. Two contradictions are always refused: one position that holds two entries, and an
order with gaps. `reference_model` owns the callers, and what applications may be told.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pulsar_sansio.model.config import ConsumerSpec, ProducerSpec, SubscriptionType

from ..engine.failures import ViolationError
from .compaction import Compacted
from .deliveries import ConsumerDeliveries
from .key_order import KeyOrder
from .partitioned_topics import PartitionedTopic
from .redelivery_timing import RedeliveryTiming

Position: TypeAlias = tuple[int, int]
"""Ledger id and entry id."""

MessagePosition: TypeAlias = tuple[int, int, int]
"""Ledger id, entry id, and index in the batch, which is 0 without a batch."""

BEFORE_ALL: MessagePosition = (-1, -1, -1)


class Sent:
    """One message as submitted."""

    __slots__ = (
        "chunks",
        "deliver_at",
        "event_time",
        "key",
        "number",
        "outcome",
        "payload",
        "message_positions",
        "producer",
        "properties",
        "sent_at",
        "ticket",
        "topic",
        "turn",
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
        """The outcome: "" while it is pending, then "confirmed" or "failed"."""
        self.message_positions: list[MessagePosition] = []
        """Positions of the message in the log."""
        self.wires = 0
        """The number of attachments that the message was written on."""
        self.topic: TopicRecord | None = None
        """The topic of the message; for a partitioned topic it is known once the message is written."""
        self.deliver_at: int | None = None
        """The time of delivery, in milliseconds since 1970."""
        self.turn = 0
        """The number of messages without a key that the producer sent before."""
        self.chunks: list[tuple[Position, int]] = []
        """Positions of its chunks in the log, in order, each with the chunk's number."""

    def __str__(self) -> str:
        return f"{self.producer.tag}#{self.number}"


class Chunk(NamedTuple):
    """Marks a SEND as one chunk of a message."""

    number: int
    total: int
    uuid: str
    """The uuid of the message: a producer of that name that sends under that sequence id has it too."""


class Entry:
    """One SEND as a broker stores it: the bytes, and the messages they hold."""

    __slots__ = ("chunk", "epochs", "key", "messages", "payload", "positions", "size", "source")

    def __init__(self, payload: bytes, messages: tuple[Sent, ...], chunk: Chunk | None = None) -> None:
        self.key = messages[0].key
        """The key of the entry: a batch has the key of its first message (BATCH-11)."""
        self.payload = payload
        self.messages = messages
        """The messages of the entry. A chunk in a log has the message when it completes it, otherwise
        none."""
        self.size = len(messages)
        """The size of the entry, in permits."""
        self.positions: list[Position] = []
        self.chunk = chunk
        self.epochs: tuple[int, ...] = ()
        """Topic epochs under which producers with exclusive access wrote the entry, in order."""
        self.source = messages[0]


class TopicRecord:
    """A topic's log, as far as it is known."""

    def __init__(self, name: str, deduplication: bool) -> None:
        self.name = name
        self.persistent = not name.startswith("non-persistent:")
        self.deduplication = deduplication
        self.ended = False
        """An administrator has terminated the topic, perhaps."""
        self.gone = -1
        """The last ledger that was deleted with the topic, perhaps; -1 for none."""
        self.served_twice = False
        """A broker that has lost the topic still serves it with its own state."""
        self.sends: dict[bytes, Entry] = {}
        """Every payload ever written in a SEND for this topic."""
        self.log: dict[Position, Entry] = {}
        self.order: list[Position] = []
        self.messages = 0
        """The number of messages in the log, with duplicates."""
        self.late = 0
        """The number of entries that became known after a later one."""
        self.subscriptions: dict[str, SubscriptionRecord] = {}
        self.compacted = Compacted(self)

    @property
    def expected(self) -> int:
        """Return the number of messages that are certainly in the log, with duplicates."""
        if self.gone < 0:
            return self.messages
        return sum(len(entry.messages) for position, entry in self.log.items() if position[0] > self.gone)

    @property
    def last_message(self) -> Position | None:
        """Return the position of the last message that was not deleted; skip chunks that complete no
        message."""
        for position in reversed(self.order):
            if position[0] <= self.gone:
                return None
            if self.log[position].messages:
                return position
        return None

    def lose_unsaved(self) -> None:
        """Records that were not durable are lost. A deleted and unknown ledger may be among them: its id is
        then used again."""
        self.gone = min(self.gone, self.order[-1][0] if self.order else -1)

    def stored(self, position: Position, entry: Entry) -> None:
        """The broker shows, by a receipt or a delivery, that the entry lies there."""
        known = self.log.get(position)
        if known is not None:
            if known is not entry and (entry.chunk is None or known.payload != entry.payload):
                raise ViolationError("INV-P9", f"{self.name} {position} holds two different entries")
            return
        if entry.chunk is not None:
            self._stored_chunk(position, Entry(entry.payload, entry.messages, entry.chunk))
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
            message.message_positions.append((*position, index))

    def _stored_chunk(self, position: Position, entry: Entry) -> None:
        """Record a chunk as an entry of its own: the chunks before it decide whether it completes the
        message."""
        assert entry.chunk is not None
        sent = entry.source
        entry.messages = ()
        entry.positions.append(position)
        self.log[position] = entry
        if self.order and position < self.order[-1]:
            insort(self.order, position)
            self.late += 1
        else:
            self.order.append(position)
        insort(sent.chunks, (position, entry.chunk.number))
        whole = self.complete_chunks(sent)
        for each, _ in sent.chunks:
            messages = (sent,) if each in whole else ()
            if self.log[each].messages != messages:
                self.messages += len(messages) - len(self.log[each].messages)
                self.log[each].messages = messages
                if each != position:
                    self.late += 1
        sent.message_positions = [(*each, 0) for each in whole]

    def chunks_of(self, position: Position) -> list[Position]:
        """Return the entries of the message that this one completes: all of its chunks, or this entry
        alone."""
        entry = self.log.get(position)
        if entry is None or entry.chunk is None:
            return [position]
        return self.complete_chunks(entry.source).get(position, [position])

    def complete_chunks(self, sent: Sent) -> dict[Position, list[Position]]:
        """Return the chunks of each completion of the message, by last chunk (CHUNK-01). A first chunk begins
        it again, a repeated chunk is skipped, and no chunk fits behind a gap or the deletion of the topic."""
        whole: dict[Position, list[Position]] = {}
        parts: list[Position] = []
        for position, number in sent.chunks:
            chunk = self.log[position].chunk
            assert chunk is not None
            if parts and parts[0][0] <= self.gone < position[0]:
                parts = []
            if number == 0:
                parts = [position]
            elif parts and number == len(parts):
                parts.append(position)
            elif number >= len(parts):
                parts = []
            if len(parts) == chunk.total:
                whole[position] = parts
                parts = []
        return whole

    def is_torn(self, sent: Sent) -> bool:
        """True when chunks of the message were deleted with the topic, so that the rest completes nothing."""
        return any(position[0] <= self.gone for position, _ in sent.chunks)


def identities(sent: Sent) -> list[bytes | str]:
    """Return the values that identify a message on the wire: its payload and, for chunks, its property."""
    found: list[bytes | str] = [sent.payload] if sent.payload else []
    if "n" in sent.properties:
        found.append(sent.properties["n"])
    return found


class SubscriptionRecord:
    """The deliveries of a subscription to applications, and their acknowledgements."""

    named_by_client = False
    """True when the client chooses the name and announces it with SUBSCRIBE (`is_called`)."""
    reads_compacted = False
    """True when messages that compaction may remove need not come."""

    def __init__(self, topic: TopicRecord, name: str, kind: SubscriptionType) -> None:
        self.topic = topic
        self.name = name
        self.kind = kind
        self.delivered: dict[MessagePosition, int] = {}
        self.acknowledged: set[MessagePosition] = set()
        self.useless_chunks: set[Position] = set()
        """Useless chunks that a client acknowledged by itself, as it may."""
        self.keys = KeyOrder(self) if kind is SubscriptionType.KEY_SHARED else None
        self.copied: set[MessagePosition] = set()
        """Messages that certainly have a dead-letter copy."""
        self.cumulative: MessagePosition = BEFORE_ALL
        self._complete = 0
        """Entries below this index in the topic's order were delivered or acknowledged completely."""
        self._acknowledged = 0
        self._late = 0
        """Entries below `_acknowledged` are acknowledged, given this number of late entries."""

    def is_called(self, name: str) -> None:
        """A client announces the subscription's name."""

    def arrived(self, position: Position) -> None:
        """An entry arrived at the consumer, for names that the client chooses."""

    def subscribed_again(self) -> None:
        """A member of a multi-topics consumer subscribes; its deliveries show where it begins."""

    def is_acknowledged(self, message_position: MessagePosition) -> bool:
        return message_position <= self.cumulative or message_position in self.acknowledged

    def left_of(self, position: Position) -> list[MessagePosition]:
        """Return the messages of an entry that the application did not acknowledge."""
        cumulative, acknowledged = self.cumulative, self.acknowledged
        if position < cumulative[:2]:
            return []
        message_positions = [(*position, index) for index in range(len(self.topic.log[position].messages))]
        return [each for each in message_positions if each > cumulative and each not in acknowledged]

    def acknowledge_copied(self, position: Position) -> None:
        """A client acknowledges an entry by itself: its copied messages are done."""
        for index in range(len(self.topic.log[position].messages)):
            if (*position, index) in self.copied:
                self.acknowledged.add((*position, index))
                self.useless_chunks.add(position)

    def open_bits(self, position: Position) -> int:
        """Return the messages of an entry that the application did not acknowledge, as bits."""
        return sum(1 << index for _, _, index in self.left_of(position))

    def is_incomplete(self, position: Position) -> bool:
        """True when an earlier chunk of the message that ends here is acknowledged: by a cumulative
        acknowledgement of a message in between, or because another copy completed the message. A consumer
        that attaches again gets only the other chunks, which complete nothing, as in Pulsar."""
        before, earlier = self.cumulative[:2], self.topic.chunks_of(position)[:-1]
        if any(each <= before for each in earlier):
            return True
        return not self.useless_chunks.isdisjoint(earlier) and any(
            message_position in self.delivered
            for message_position in self.topic.log[position].source.message_positions
        )

    def reassembled(self, position: Position, first: Position | None) -> tuple[Sent, ...]:
        """Return the message that a client may assemble from left-over chunks although the application is
        done with it. Without deduplication a resent message lies in the log twice, and the acknowledgement of
        one of two chunks may be lost."""
        entry = self.topic.log[position]
        sent, chunk = entry.source, entry.chunk
        if chunk is None or chunk.number < chunk.total - 1 or first is None or first >= position:
            return ()
        done = any(self.is_acknowledged(message_position) for message_position in sent.message_positions)
        return (sent,) if done and (first, 0) in sent.chunks else ()

    def all_up_to(self, message_position: MessagePosition) -> bool:
        """True when everything up to a message was acknowledged, cumulatively or individually."""
        for position in self.topic.order:
            if position > message_position[:2]:
                break
            if position[0] > self.topic.gone and any(
                each <= message_position for each in self.left_of(position)
            ):
                return False
        return True

    def through(self, message_position: MessagePosition) -> list[MessagePosition]:
        """Return all messages up to and including that one."""
        log = self.topic.log
        positions = [
            each for each in self.topic.order if self.topic.gone < each[0] and each <= message_position[:2]
        ]
        found = [(*each, index) for each in positions for index in range(len(log[each].messages))]
        return [each for each in found if each <= message_position]

    def everything_acknowledged(self) -> bool:
        """True when no message of the log is left; each call continues where the last one stopped."""
        topic = self.topic
        if self._late != topic.late:
            self._acknowledged, self._late = 0, topic.late
        while self._acknowledged < len(topic.order):
            position = topic.order[self._acknowledged]
            if position[0] > topic.gone and self.left_of(position) and not self.is_incomplete(position):
                return False
            self._acknowledged += 1
        return True

    def missing(self) -> list[MessagePosition]:
        """Return the messages of the log that were not acknowledged."""
        return [
            message_position
            for position in self.topic.log
            if position[0] > self.topic.gone
            for message_position in self.left_of(position)
            if not self.is_incomplete(position)
        ]

    def check_order(self, consumer: "ConsumerRecord", message_position: MessagePosition) -> None:
        """INV-C3, for subscriptions in order: a step back has a cause, and every message before this entry
        was delivered or acknowledged."""
        if message_position <= consumer.floor:
            if not consumer.rewinds:
                raise ViolationError(
                    "INV-C3", f"{consumer.name}: {message_position} after {consumer.floor} without a cause"
                )
            consumer.rewinds -= 1
        consumer.floor = message_position
        self._check_no_gap(message_position[:2])

    def _check_no_gap(self, position: Position) -> None:
        order = self.topic.order
        end = bisect_left(order, position)
        while self._complete < end:
            before = order[self._complete]
            for message_position in self.left_of(before):
                if (
                    message_position not in self.delivered
                    and message_position[0] > self.topic.gone
                    and not self.is_incomplete(before)
                ):
                    raise ViolationError(
                        "INV-C3",
                        f"{self.topic.name}/{self.name}: {position} is delivered, "
                        f"{message_position} never was",
                    )
            self._complete += 1


class Lane:
    """The frames of one producer on one topic: the topic itself, or one partition."""

    __slots__ = ("epoch", "frames", "last_position", "topic")

    def __init__(self, topic: TopicRecord) -> None:
        self.topic = topic
        self.frames: dict[tuple[int, int], bytes] = {}
        """The payload of every SEND ever written, by sequence id and chunk number."""
        self.last_position: MessagePosition = BEFORE_ALL
        self.epoch: int | None = None
        """The topic epoch of the producer's exclusive access."""


@dataclass(slots=True, eq=False)
class ProducerRecord:
    """One producer, from opening to closing."""

    tag: str
    topic: TopicRecord | PartitionedTopic
    spec: ProducerSpec
    pending: dict[int, Sent] = field(default_factory=dict)
    """Pending messages by ticket, in order of submission."""
    next_ticket: int | None = None
    lanes: dict[str, Lane] = field(default_factory=dict)
    """Lanes by topic or partition."""
    turns: int = 0
    """The number of messages without a key so far."""
    start: int | None = None
    """The partition where round-robin routing began, or the single partition."""
    flushes: dict[int, list[int]] = field(default_factory=dict)
    """Flush requests, each with the tickets pending at that time."""
    sent: list[Sent] = field(default_factory=list)
    contested: bool = False
    """Other producers want exclusive access to the topic."""
    explicit: bool = False
    """The application chooses sequence ids, and resends every message not known to be stored."""
    sent_far: bool = False
    """A broker has told the producer that its topic migrated to another cluster."""
    ready_at: int | None = None
    """Virtual time of the first attachment; messages sent before have no timeout (PROD-03, PROD-48)."""
    closed: bool = False

    @property
    def by_key(self) -> bool:
        """True when messages are in order per key only."""
        return self.spec.batching is not None and self.spec.batching.by_key

    @property
    def window(self) -> int:
        """Return the number of messages that may be pending: for a partitioned topic, the sum over its
        partitions."""
        spec = self.spec
        if isinstance(self.topic, TopicRecord):
            return spec.max_pending_messages
        return max(
            count * max(1, min(spec.max_pending_messages, spec.max_pending_messages_across_partitions // n))
            for n in self.topic.believed
            for count in self.topic.believed
        )

    @property
    def late_pending(self) -> int:
        """Return the number of pending messages that count towards the window. For a partitioned topic,
        messages accepted before it was known to be one do not count: the topic itself had a window then."""
        pending, ready_at = self.pending.values(), self.ready_at
        if isinstance(self.topic, TopicRecord):
            return len(pending)
        if ready_at is None:
            return len(pending) - self.spec.max_pending_messages
        return sum(sent.sent_at > ready_at for sent in pending)

    @property
    def least_window(self) -> int:
        """Return the number of pending messages below which the producer is never full."""
        spec = self.spec
        if isinstance(self.topic, TopicRecord):
            return spec.max_pending_messages
        share = spec.max_pending_messages_across_partitions // self.topic.count
        return max(1, min(spec.max_pending_messages, share))

    def lane(self, topic: TopicRecord) -> Lane:
        found = self.lanes.get(topic.name)
        if found is None:
            found = self.lanes[topic.name] = Lane(topic)
        return found


@dataclass(slots=True, eq=False)
class ConsumerRecord:
    """One consumer, from subscribing to closing."""

    name: str
    subscription: SubscriptionRecord
    spec: ConsumerSpec
    floor: MessagePosition = BEFORE_ALL
    """The last message delivered in order."""
    rewinds: int = 0
    """The number of steps back in the order that have an unused cause."""
    nacked: set[Position] = field(default_factory=set)
    """Entries that were ever negatively acknowledged."""
    refused: set[Position] = field(default_factory=set)
    """Entries that may be asked for again: negatively acknowledged, not yet asked for, and not acknowledged
    since."""
    requests_to_rewind: int = 0
    """Exclusive and Failover: causes to ask for everything again, other than negative acknowledgements."""
    copies_to_fail: int = 0
    """Exclusive and Failover: copies that may still fail, each of which is such a cause."""
    asked_again: set[Position] = field(default_factory=set)
    """Entries asked for again that have not arrived since."""
    redeliver_all: int = 0
    """Requests for redelivery of everything that may still show on the wire."""
    sent_far: bool = False
    """A broker has told the consumer that its topic migrated to another cluster."""
    close_answered: bool = False
    """The broker answered the client's close, so it has all acknowledgements of that connection."""
    closed: bool = False
    removed: bool = False
    """The application asked to remove the subscription."""
    too_often: dict[Position, int] = field(default_factory=dict)
    """Entries that exceeded the redelivery limit, with the messages to copy, as bits."""
    uncopied: set[Position] = field(default_factory=set)
    """Entries that could not be copied to the dead-letter or retry topic, and may be asked for."""
    halted: bool = False
    """The application has paused the consumer."""
    wanting: bool = False
    """The application found no message, and none was delivered since."""
    questions: int = 0
    """Seeks, and requests for the last message: each may be sent once on every attachment, and those open
    when a seek fails once more."""
    chunks: dict[Position, int] = field(default_factory=dict)
    """Arrival time of each chunk, for a subscription that is not durable."""
    redelivery_timing: RedeliveryTiming = field(init=False)
    deliveries: ConsumerDeliveries = field(init=False)

    def __post_init__(self) -> None:
        self.redelivery_timing = RedeliveryTiming(self.spec)
        self.deliveries = ConsumerDeliveries(self.spec)

    @property
    def kind(self) -> SubscriptionType:
        return self.subscription.kind
