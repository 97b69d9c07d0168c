"""Subscriptions of transient consumers, and of consumers that seek in one topic.

Owns the messages that such a consumer may get next: after a seek no message from before it comes, the first
message is the one sought, and none is left out after it (INV-C7).
"""

from pulsar_sansio.model.config import SubscriptionType

from ...engine.failures import ViolationError
from ..records.consumer_record import ConsumerRecord
from ..records.message_position import MessagePosition, Position
from ..records.subscription_record import SubscriptionRecord
from ..records.topic_record import TopicRecord
from .expected_position import START, ExpectedPosition, after


class TransientSubscription(SubscriptionRecord):
    """A subscription that goes away, acknowledged or not."""

    def __init__(self, topic: TopicRecord, name: str, durable: bool) -> None:
        super().__init__(topic, name, SubscriptionType.EXCLUSIVE)
        self.durable = durable

    def everything_acknowledged(self) -> bool:
        return True

    def missing(self) -> list[MessagePosition]:
        return []


class SoughtSubscription(TransientSubscription):
    """A subscription that is moved by seeks."""

    def __init__(self, topic: TopicRecord, name: str, compacted: bool) -> None:
        super().__init__(topic, name, durable=False)
        self.reads_compacted = compacted
        self.where = ExpectedPosition(topic, compacted)
        self.sought = False
        """The last move was a seek."""

    def may_be_out_of_date(self) -> None:
        """A broker that has lost the topic without knowing it goes on from its own state."""
        if self.topic.served_twice:
            self.where.may_be_at(START)

    def all_up_to(self, message_position: MessagePosition) -> bool:
        """True when the position is not behind the messages that came since the last move."""
        furthest = self.where.furthest
        if furthest is None:
            return False
        left_out = self.reads_compacted and not self.where.lacks(after(furthest), after(message_position))
        return message_position <= furthest or left_out

    def open_bits(self, position: Position) -> int:
        """Return the unacknowledged messages as bits; those before the sought position, wherever the end was,
        do not count."""
        size = len(self.topic.log[position].messages)
        return sum(1 << index for index in range(size) if not self.where.may_be_ignored((*position, index)))

    def check_order(self, consumer: ConsumerRecord, message_position: MessagePosition) -> None:
        """INV-C7, INV-C3; INV-C17 where the topic is compacted."""
        first = self.where.last is None
        wrong = self.where.came(message_position)
        if wrong and self.reads_compacted and self.topic.compacted.horizon >= (0, 0):
            raise ViolationError("INV-C17", f"{consumer.name}: {message_position} comes next, and {wrong}")
        if wrong:
            rule = "INV-C7" if first and self.sought else "INV-C3"
            raise ViolationError(rule, f"{consumer.name}: {message_position} comes next, and {wrong}")
        consumer.floor = message_position
