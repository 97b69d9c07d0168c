"""One producer, and its frames on each topic."""

from dataclasses import dataclass, field

from pulsar_sansio.model.config import ProducerSpec

from ..partitioned_topics import PartitionedTopic
from ..schemas.definition import Definition
from .message_position import BEFORE_ALL, MessagePosition
from .sent import Sent
from .topic_record import TopicRecord


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
    definition: Definition | None = None
    """The definition of the producer's values; None where its messages are bytes, and while a producer that
    adopts the definition of its topic has none."""

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
