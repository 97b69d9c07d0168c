"""What is remembered of a world: its topics and their logs, messages, subscriptions, producers and consumers.

Owns the records and what each can say of itself: where an entry lies, which chunks make a message, what is
acknowledged and what is missing. Two things it does not accept whoever asks: that one position holds two
entries, and that an order has gaps. It does not know who tells it things; that, and what applications may be
told, is the business of `model`.
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
"""(ledger, entry)."""

Place: TypeAlias = tuple[int, int, int]
"""(ledger, entry, index in the batch; 0 where there is none)."""

BEFORE_ALL: Place = (-1, -1, -1)


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
        "places",
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
        """"" while it is pending, then "confirmed" or "failed"."""
        self.places: list[Place] = []
        """Where the log holds it."""
        self.wires = 0
        """How many attachments it was written on."""
        self.topic: TopicRecord | None = None
        """Where it goes; of a partitioned topic that shows when it is written."""
        self.deliver_at: int | None = None
        """Milliseconds since 1970."""
        self.turn = 0
        """How many messages without a key its producer had before it."""
        self.chunks: list[tuple[Position, int]] = []
        """Where the log holds chunks of it, in order, and which."""

    def __str__(self) -> str:
        return f"{self.producer.tag}#{self.number}"


class Chunk(NamedTuple):
    """That a SEND is one of several of a message."""

    number: int
    total: int
    uuid: str
    """Of the message: what a producer of the same name sends under the same sequence id has it, too."""


class Entry:
    """One SEND as a broker stores it: the bytes, and the messages they hold."""

    __slots__ = ("chunk", "epochs", "key", "messages", "payload", "positions", "size", "source")

    def __init__(self, payload: bytes, messages: tuple[Sent, ...], chunk: Chunk | None = None) -> None:
        self.key = messages[0].key
        """A batch has the key of its first message (BATCH-11)."""
        self.payload = payload
        self.messages = messages
        """Of a chunk in a log: the message where it is complete with it, else nothing."""
        self.size = len(messages)
        """In permits."""
        self.positions: list[Position] = []
        self.chunk = chunk
        self.epochs: tuple[int, ...] = ()
        """Of the topic, when it was written by a producer with exclusive access; again, perhaps, later."""
        self.source = messages[0]


class TopicRecord:
    """A topic's log as far as it is known."""

    def __init__(self, name: str, deduplication: bool) -> None:
        self.name = name
        self.persistent = not name.startswith("non-persistent:")
        self.deduplication = deduplication
        self.ended = False
        """An administrator has terminated it, perhaps."""
        self.gone = -1
        """It was deleted, perhaps, and with it everything up to this ledger."""
        self.served_twice = False
        """By one that has lost it, too, and goes on with what it knew."""
        self.sends: dict[bytes, Entry] = {}
        """Every payload ever written in a SEND for this topic."""
        self.log: dict[Position, Entry] = {}
        self.order: list[Position] = []
        self.messages = 0
        """In the log, duplicates counted."""
        self.late = 0
        """Entries that became known after a later one."""
        self.subscriptions: dict[str, SubscriptionRecord] = {}
        self.compacted = Compacted(self)

    @property
    def expected(self) -> int:
        """Messages that are in the log for sure, duplicates counted."""
        if self.gone < 0:
            return self.messages
        return sum(len(entry.messages) for position, entry in self.log.items() if position[0] > self.gone)

    @property
    def last_message(self) -> Position | None:
        """Where the last message lies that was not deleted; chunks that make none are passed over."""
        for position in reversed(self.order):
            if position[0] <= self.gone:
                return None
            if self.log[position].messages:
                return position
        return None

    def lose_unsaved(self) -> None:
        """What was not durable is lost. That may be a ledger that was deleted, and of which nothing is known:
        then its number is given once more."""
        self.gone = min(self.gone, self.order[-1][0] if self.order else -1)

    def stored(self, position: Position, entry: Entry) -> None:
        """The broker says, by a receipt or a delivery, that the entry lies there."""
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
            message.places.append((*position, index))

    def _stored_chunk(self, position: Position, entry: Entry) -> None:
        """Every entry of a chunk is one of its own: whether it completes the message depends on what lies
        before it."""
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
        sent.places = [(*each, 0) for each in whole]

    def chunks_of(self, position: Position) -> list[Position]:
        """The entries of the message that is complete with this one: all of its chunks, or this one alone."""
        entry = self.log.get(position)
        if entry is None or entry.chunk is None:
            return [position]
        return self.complete_chunks(entry.source).get(position, [position])

    def complete_chunks(self, sent: Sent) -> dict[Position, list[Position]]:
        """Last chunk -> all of them, for every time that the message is complete (CHUNK-01): a first chunk
        begins it anew, one that was there already is passed over, and behind a gap, or the deletion of the
        topic, nothing fits."""
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
        """Whether chunks of it were deleted with the topic, so that what is behind them makes nothing."""
        return any(position[0] <= self.gone for position, _ in sent.chunks)


def identities(sent: Sent) -> list[bytes | str]:
    """By what a message is recognised on the wire: what it carries or, in chunks, what is said of it."""
    found: list[bytes | str] = [sent.payload] if sent.payload else []
    if "n" in sent.properties:
        found.append(sent.properties["n"])
    return found


class SubscriptionRecord:
    """What a subscription has delivered to applications, and what they acknowledged."""

    made_up = False
    """The client chooses its name, and says it with SUBSCRIBE (`is_called`)."""
    reads_compacted = False
    """What compaction leaves out need not come."""

    def __init__(self, topic: TopicRecord, name: str, kind: SubscriptionType) -> None:
        self.topic = topic
        self.name = name
        self.kind = kind
        self.delivered: dict[Place, int] = {}
        self.acknowledged: set[Place] = set()
        self.let_go: set[Position] = set()
        """Chunks of no use that a client acknowledged by itself, as it may."""
        self.keys = KeyOrder(self) if kind is SubscriptionType.KEY_SHARED else None
        self.copied: set[Place] = set()
        """Messages of which there is a dead letter for sure."""
        self.cumulative: Place = BEFORE_ALL
        self._complete = 0
        """Entries of the topic's order below this index were delivered or acknowledged whole."""
        self._acknowledged = 0
        self._late = 0
        """Entries below that index are acknowledged; as of so many late ones."""

    def is_called(self, name: str) -> None:
        """A client gives it its name."""

    def arrived(self, position: Position) -> None:
        """Where the name is made up: an entry has come to its consumer."""

    def subscribed_again(self) -> None:
        """A part of a consumer of several topics subscribes; what is delivered says where it begins."""

    def is_acknowledged(self, place: Place) -> bool:
        return place <= self.cumulative or place in self.acknowledged

    def left_of(self, position: Position) -> list[Place]:
        """Messages of an entry that the application did not acknowledge."""
        cumulative, acknowledged = self.cumulative, self.acknowledged
        if position < cumulative[:2]:
            return []
        places = [(*position, index) for index in range(len(self.topic.log[position].messages))]
        return [each for each in places if each > cumulative and each not in acknowledged]

    def bury(self, position: Position) -> None:
        """A client acknowledges an entry by itself: what was copied of it is done."""
        for index in range(len(self.topic.log[position].messages)):
            if (*position, index) in self.copied:
                self.acknowledged.add((*position, index))
                self.let_go.add(position)

    def open_bits(self, position: Position) -> int:
        """Messages of an entry that the application did not acknowledge, as bits."""
        return sum(1 << index for _, _, index in self.left_of(position))

    def is_beheaded(self, position: Position) -> bool:
        """Whether an earlier chunk of the message that ends here was acknowledged cumulatively, along with
        somebody else's message between them, or as one of which another copy made the message. Who attaches
        anew gets the rest alone, and can make nothing of it: so it is with Pulsar."""
        before, earlier = self.cumulative[:2], self.topic.chunks_of(position)[:-1]
        if any(each <= before for each in earlier):
            return True
        return not self.let_go.isdisjoint(earlier) and any(
            place in self.delivered for place in self.topic.log[position].source.places
        )

    def made_again(self, position: Position, first: Position | None) -> tuple[Sent, ...]:
        """What a client may make of chunks that are left over, although the application is done with the
        message: what was sent again lies there twice where nothing is deduplicated, and of the
        acknowledgements of two chunks one may be lost."""
        entry = self.topic.log[position]
        sent, chunk = entry.source, entry.chunk
        if chunk is None or chunk.number < chunk.total - 1 or first is None or first >= position:
            return ()
        done = any(self.is_acknowledged(place) for place in sent.places)
        return (sent,) if done and (first, 0) in sent.chunks else ()

    def all_up_to(self, place: Place) -> bool:
        """Whether everything up to a place was acknowledged, cumulatively or one by one."""
        for position in self.topic.order:
            if position > place[:2]:
                break
            if position[0] > self.topic.gone and any(each <= place for each in self.left_of(position)):
                return False
        return True

    def through(self, place: Place) -> list[Place]:
        """All messages up to that one, and it."""
        log = self.topic.log
        positions = [each for each in self.topic.order if self.topic.gone < each[0] and each <= place[:2]]
        found = [(*each, index) for each in positions for index in range(len(log[each].messages))]
        return [each for each in found if each <= place]

    def everything_acknowledged(self) -> bool:
        """Whether nothing of the log is left; each call goes on where the last one stopped."""
        topic = self.topic
        if self._late != topic.late:
            self._acknowledged, self._late = 0, topic.late
        while self._acknowledged < len(topic.order):
            position = topic.order[self._acknowledged]
            if position[0] > topic.gone and self.left_of(position) and not self.is_beheaded(position):
                return False
            self._acknowledged += 1
        return True

    def missing(self) -> list[Place]:
        """Messages of the log that were not acknowledged."""
        return [
            place
            for position in self.topic.log
            if position[0] > self.topic.gone
            for place in self.left_of(position)
            if not self.is_beheaded(position)
        ]

    def check_order(self, consumer: "ConsumerRecord", place: Place) -> None:
        """In-order subscriptions: a step back has a cause, and everything before this entry was delivered or
        acknowledged (INV-C3)."""
        if place <= consumer.floor:
            if not consumer.rewinds:
                raise ViolationError(
                    "INV-C3", f"{consumer.name}: {place} after {consumer.floor} without a cause"
                )
            consumer.rewinds -= 1
        consumer.floor = place
        self._check_no_gap(place[:2])

    def _check_no_gap(self, position: Position) -> None:
        order = self.topic.order
        end = bisect_left(order, position)
        while self._complete < end:
            before = order[self._complete]
            for place in self.left_of(before):
                if (
                    place not in self.delivered
                    and place[0] > self.topic.gone
                    and not self.is_beheaded(before)
                ):
                    raise ViolationError(
                        "INV-C3", f"{self.topic.name}/{self.name}: {position} is delivered, {place} never was"
                    )
            self._complete += 1


class Lane:
    """What one producer puts on one topic: the topic itself, or one partition."""

    __slots__ = ("epoch", "frames", "last_place", "topic")

    def __init__(self, topic: TopicRecord) -> None:
        self.topic = topic
        self.frames: dict[tuple[int, int], bytes] = {}
        """Sequence id and number of the chunk -> payload, of every SEND it ever wrote."""
        self.last_place: Place = BEFORE_ALL
        self.epoch: int | None = None
        """Of the topic, where it has exclusive access."""


@dataclass(slots=True, eq=False)
class ProducerRecord:
    """One producer, from opening to closing."""

    tag: str
    topic: TopicRecord | PartitionedTopic
    spec: ProducerSpec
    pending: dict[int, Sent] = field(default_factory=dict)
    """By ticket, in order of submission."""
    next_ticket: int | None = None
    lanes: dict[str, Lane] = field(default_factory=dict)
    """By topic or partition."""
    turns: int = 0
    """Messages without a key so far."""
    start: int | None = None
    """Where messages without a key began to go round, or the partition to which they all go."""
    flushes: dict[int, list[int]] = field(default_factory=dict)
    """Request -> tickets that were pending when it was asked."""
    sent: list[Sent] = field(default_factory=list)
    contested: bool = False
    """Others want the topic for themselves."""
    explicit: bool = False
    """Chooses its sequence ids, and sends again what it does not know to be stored."""
    sent_far: bool = False
    """A broker has said that its topic goes on in another cluster."""
    ready_at: int | None = None
    """When it was attached for the first time; what was sent before is not timed (rules PROD-03, PROD-48)."""
    closed: bool = False

    @property
    def by_key(self) -> bool:
        """Order holds for each key only."""
        return self.spec.batching is not None and self.spec.batching.by_key

    @property
    def window(self) -> int:
        """Messages that may be pending: of a partitioned topic, so many for each partition."""
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
        """How many are pending that count towards the window. Of a partitioned topic those do not that were
        taken before it was known to be one, when there was a window for the topic itself."""
        pending, ready_at = self.pending.values(), self.ready_at
        if isinstance(self.topic, TopicRecord):
            return len(pending)
        if ready_at is None:
            return len(pending) - self.spec.max_pending_messages
        return sum(sent.sent_at > ready_at for sent in pending)

    @property
    def least_window(self) -> int:
        """With fewer pending than this it is never full."""
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
    floor: Place = BEFORE_ALL
    """The last message delivered in order."""
    rewinds: int = 0
    """How many steps back in the order have a cause that is not used up."""
    nacked: set[Position] = field(default_factory=set)
    """Entries that were ever refused."""
    refused: set[Position] = field(default_factory=set)
    """Entries that may be asked for again: refused, not asked for yet, and not acknowledged since."""
    requests_to_rewind: int = 0
    copies_to_fail: int = 0
    """Likewise: each message that was put off may be one, where its copy fails."""
    """Exclusive and Failover: reasons to ask for everything again, other than what is refused."""
    given_back: set[Position] = field(default_factory=set)
    """Entries asked for again that have not come again yet."""
    redeliver_all: int = 0
    """Requests for everything unacknowledged that may still show on the wire."""
    sent_far: bool = False
    """A broker has said that its topic goes on in another cluster."""
    farewell: bool = False
    """The broker answered the client's close; so it has everything that was acknowledged on that
    connection."""
    closed: bool = False
    removed: bool = False
    """Its subscription was asked to be removed."""
    too_often: dict[Position, int] = field(default_factory=dict)
    """Entries that came once too often, and which messages of them, as bits: they are to be copied."""
    uncopied: set[Position] = field(default_factory=set)
    """Dead letters that could not be copied, and may be asked for."""
    halted: bool = False
    """The application wants nothing more for now."""
    wanting: bool = False
    """It has found nothing, and nothing was handed out since."""
    questions: int = 0
    """Seeks, and questions for the last message: each may be put once on every attachment, and those that are
    open when a seek fails once more."""
    chunks: dict[Position, int] = field(default_factory=dict)
    """Not durable: when each chunk arrived first."""
    unjudged: RedeliveryTiming = field(init=False)
    given: ConsumerDeliveries = field(init=False)

    def __post_init__(self) -> None:
        self.unjudged = RedeliveryTiming(self.spec)
        self.given = ConsumerDeliveries(self.spec)

    @property
    def kind(self) -> SubscriptionType:
        return self.subscription.kind
