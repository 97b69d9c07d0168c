"""The deliveries of a subscription to applications, and their acknowledgements."""

from bisect import bisect_left
from typing import TYPE_CHECKING

from pulsar_sansio.model.config import SubscriptionType

from ...engine.failures import ViolationError
from ..key_order import KeyOrder
from .message_position import BEFORE_ALL, MessagePosition, Position
from .sent import Sent
from .topic_record import TopicRecord

if TYPE_CHECKING:
    from ..withheld import WithheldEntries
    from .consumer_record import ConsumerRecord


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
        self.discarded: set[Position] = set()
        """Entries that a client could not decrypt and acknowledged by itself, as it was told to."""
        self.withholders: list[WithheldEntries] = []
        """Key_Shared: what each consumer could not decrypt."""
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

    def detached(self) -> None:
        """The consumer has lost its connection, or the broker has closed it: its queue is dropped."""

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

    def discards(self, position: Position) -> None:
        """A client acknowledges an entry that it cannot decrypt."""
        self.discarded.add(position)
        self.acknowledged.update(self.left_of(position))

    def is_withheld(self, position: Position) -> bool:
        """True when a consumer may have skipped the entry, because it could not decrypt it."""
        return any(each.may_skip(position) for each in self.withholders)

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
        self._check_no_gap(message_position[:2], consumer.withheld)

    def _check_no_gap(self, position: Position, withheld: "WithheldEntries") -> None:
        order = self.topic.order
        end = bisect_left(order, position)
        while self._complete < end:
            before = order[self._complete]
            for message_position in self.left_of(before):
                if (
                    message_position not in self.delivered
                    and message_position[0] > self.topic.gone
                    and not self.is_incomplete(before)
                    and not withheld.may_skip(before)
                ):
                    raise ViolationError(
                        "INV-C3",
                        f"{self.topic.name}/{self.name}: {position} is delivered, "
                        f"{message_position} never was",
                    )
            self._complete += 1
