"""The order of messages per key on a Key_Shared subscription (INV-C12).

Owns, for one subscription, the messages of each key that no consumer has got yet. The next message of a key
that any consumer gets is the first of these; redelivered messages may come later. So may messages that a
consumer drops from its queue when it asks for redelivery of everything: those in flight then are delivered
first, because a shared subscription has no epoch.
"""

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .records.message_position import MessagePosition, Position
    from .records.subscription_record import SubscriptionRecord


class KeyOrder:
    """The key order of one subscription."""

    def __init__(self, subscription: "SubscriptionRecord") -> None:
        self._subscription = subscription
        self._waiting: dict[str, deque[MessagePosition]] = {}
        self._uniform: set[Position] = set()
        """Entries with one key: a batch with several keys is dispatched by the key of its first message."""
        self._dropped: set[MessagePosition] = set()
        """Messages that may have been in the queue of a consumer that asked for redelivery of everything."""
        self._again: set[Position] = set()
        """Entries that were asked for again: their undelivered messages may come later."""
        self._known = 0
        """The number of entries, in the topic's order, that were looked at."""
        self._late = 0

    def overtaken(self, key: str, message_position: "MessagePosition") -> "MessagePosition | None":
        """Return the first message of the key that lies before the position and was delivered to no consumer;
        None when there is none."""
        self._look()
        waiting = self._waiting.get(key) if message_position[:2] in self._uniform else None
        while waiting:
            first = waiting[0]
            if first >= message_position:
                return None
            if not self._is_done(first):
                return first
            waiting.popleft()
        return None

    def asked_for(self, position: "Position") -> None:
        """A consumer asks for an entry again, and drops its undelivered messages."""
        self._again.add(position)

    def asked_for_everything(self) -> None:
        """A consumer of the subscription drops its queue: messages stored by now may come later."""
        self._look()
        for waiting in self._waiting.values():
            self._dropped.update(waiting)
            waiting.clear()

    def _is_done(self, message_position: "MessagePosition") -> bool:
        subscription = self._subscription
        return (
            message_position in subscription.delivered
            or message_position in self._dropped
            or message_position[:2] in self._again
            or subscription.is_acknowledged(message_position)
            or message_position[:2] in subscription.useless_chunks
            or message_position[0] <= subscription.topic.gone
            or subscription.is_withheld(message_position[:2])
        )

    def _look(self) -> None:
        topic = self._subscription.topic
        if self._late != topic.late:
            self._waiting.clear()
            self._known, self._late = 0, topic.late
        while self._known < len(topic.order):
            position = topic.order[self._known]
            self._known += 1
            entry = topic.log[position]
            keys = {sent.key for sent in entry.messages}
            if entry.chunk is not None or len(keys) != 1 or entry.source.deliver_at is not None:
                continue
            self._uniform.add(position)
            for index, sent in enumerate(entry.messages):
                if sent.key is not None:
                    self._waiting.setdefault(sent.key, deque()).append((*position, index))
