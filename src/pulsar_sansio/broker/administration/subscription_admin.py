"""`SubscriptionAdministration`: create, delete, skip, expire, move and describe subscriptions.

A command for a subscription of a partitioned topic applies to the subscription of each partition.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ...model.errors import InvalidConfiguration, NotAllowed, TopicNotFound
from ...model.message_id import MessageId, is_message_id
from ...model.topic_name import TopicName
from ..admin_errors import AlreadyExists, InUse, LimitReached, NotApplicable, NotFound
from ..serving.lookups import MAX_NAME_LENGTH, text_pairs
from ..serving.subscribing import NO_ROOM_FOR_SUBSCRIPTIONS
from ..storage.managed_ledger import ManagedLedger
from ..topics.registry import AnyTopic
from ..topics.topic import Topic
from .parts import Parts
from .stored_message import StoredMessage, stored_message


class BacklogAnalysis(NamedTuple):
    """The backlog of a subscription. `first` and `last`: its entries at both ends; None where it is empty."""

    entries: int
    messages: int
    first: MessageId | None
    last: MessageId | None


class SubscriptionAdministration:
    """Commands that name a subscription."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._context = parts.services.context
        self._journal = parts.services.journal
        self._metadata = parts.metadata
        self._topics = parts.topics
        self._settle = parts.settle

    def subscriptions(self, topic: str) -> list[str]:
        """Return the names of the subscriptions of the topic, or of all its partitions. Raises `NotFound`."""
        return sorted({name for each in self._parts.topics_of(topic) for name in each.subscriptions})

    def topics_with(self, topic: str, subscription: str) -> list[str]:
        """Return the full name of the topic, or of its partitions. Raises `NotFound` unless each of them has
        this subscription."""
        return [each.name for each in self._parts.subscribed_topics(topic, subscription)]

    def create_subscription(
        self,
        now: int,
        topic: str,
        subscription: str,
        position: MessageId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Create a durable subscription at the first entry at or after `position`; None is the end.

        As for a SUBSCRIBE, the topic is created where policies allow. Raises `NotFound`, `AlreadyExists`,
        `LimitReached`, `NotApplicable` for non-persistent topics, `InvalidConfiguration`.
        """
        self._context.now = now
        if not subscription.strip() or len(subscription) > MAX_NAME_LENGTH:
            raise InvalidConfiguration(f"the subscription's name has 1 to {MAX_NAME_LENGTH} characters")
        pairs = text_pairs(properties)
        topics = self._topics_for_use(topic)
        for each in topics:
            if not isinstance(each, Topic):
                raise NotApplicable(f"{each.name} is not persistent")
            if subscription in each.subscriptions:
                raise AlreadyExists(f"subscription {subscription} of {each.name} exists")
            if not each.policies.allows_subscription(len(each.subscriptions)):
                raise LimitReached(NO_ROOM_FOR_SUBSCRIPTIONS.format(each.name))
        for each in topics:
            assert isinstance(each, Topic)
            log = each.log
            begin = log.end if position is None else log.offset(position.ledger_id, position.entry_id)
            each.subscribe(subscription, begin - 1, True, pairs)
        self._settle()

    def _topics_for_use(self, topic: str) -> list[AnyTopic]:
        name = TopicName.parse(topic)
        if name.persistent and str(name) not in self._metadata.partitions:
            try:
                return [self._topics.for_use(name, True)]
            except TopicNotFound as error:
                raise NotFound(error.text) from None
            except NotAllowed as error:
                raise LimitReached(error.text) from None
        return self._parts.topics_of(topic)

    def delete_subscription(self, now: int, topic: str, subscription: str, force: bool = False) -> None:
        """Raises `NotFound`, or `InUse` while consumers are connected, unless `force`."""
        self._context.now = now
        found = [
            each.subscriptions[subscription]
            for each in self._parts.topics_of(topic)
            if subscription in each.subscriptions
        ]
        if not found:
            raise NotFound(f"no subscription {subscription} of {topic}")
        if not force and any(each.consumers for each in found):
            raise InUse(f"subscription {subscription} has active connected consumers")
        for each in found:
            each.delete()
        self._settle()

    def skip_messages(self, now: int, topic: str, subscription: str, count: int | None = None) -> None:
        """Acknowledge the next `count` entries on the consumers' behalf; None is all of them.

        Raises `NotFound`.
        """
        self._context.now = now
        for each in self._parts.subscribed_topics(topic, subscription):
            found = each.subscriptions[subscription]
            last = each.log.durable_end - 1
            if count is not None:
                offset = found.cursor.mark_delete
                for _ in range(count):
                    offset = found.cursor.next_unacknowledged(offset + 1)
                    if offset >= last:
                        break
                last = min(offset, last)
            if found.skip_up_to(last) and found.dispatcher is not None:
                found.dispatcher.dispatch()
        self._settle()

    def expire_messages(self, now: int, topic: str, subscription: str, older_than: float | MessageId) -> bool:
        """Acknowledge old messages on the consumers' behalf.

        `older_than`: the age in seconds, or the id of the last entry to expire; a batch index in it is
        ignored. False where nothing was to be done: the backlog is empty, or consumers are connected and
        nothing is old enough, or the topic ends before that entry. Raises `NotFound`.
        """
        self._context.now = now
        expired = False
        for each in self._parts.subscribed_topics(topic, subscription):
            log = each.log
            if isinstance(older_than, MessageId):
                if older_than[:2] > log.position(log.durable_end - 1):
                    continue
                expired = True
                last = log.offset(older_than.ledger_id, older_than.entry_id)
                if log.exact(older_than.ledger_id, older_than.entry_id) is None:
                    last -= 1
            else:
                last = log.find_publish_time(each.services.wall_time - round(older_than * 1000)) - 1
                last = min(last, each.transactions.read_end - 1)
            expired |= each.subscriptions[subscription].expire_up_to(min(last, log.durable_end - 1))
        self._settle()
        return expired

    def reset_cursor(
        self, now: int, topic: str, subscription: str, position: MessageId | int, *, inclusive: bool = True
    ) -> None:
        """Move a subscription to a message id, or after it unless `inclusive`, or to a publish time (ms).

        Its consumers reconnect. Raises `NotFound`, `InvalidConfiguration`.
        """
        whole = isinstance(position, int) and not isinstance(position, bool)
        if not whole and not is_message_id(position):
            raise InvalidConfiguration(f"position: a message id or milliseconds, not {position!r}")
        self._context.now = now
        for each in self._parts.subscribed_topics(topic, subscription):
            if isinstance(position, MessageId):
                mark, first = _mark_before(each.log, position, inclusive)
            else:
                mark, first = each.log.find_publish_time(position) - 1, None
            each.subscriptions[subscription].seek(mark, first)
        self._settle()

    def clear_backlogs(self, now: int, namespace: str, subscription: str | None = None) -> None:
        """Skip the backlog of this subscription in every topic of the namespace.

        None is every subscription except the one of compaction. Raises `NotFound`.
        """
        self._context.now = now
        for each in self._parts.topics_in(namespace):
            if not isinstance(each, Topic):
                continue
            last = each.log.durable_end - 1
            if subscription is None:
                each.skip_everywhere(last)
            elif subscription in each.subscriptions:
                each.subscriptions[subscription].skip_up_to(last)
        self._settle()

    def unsubscribe_everywhere(self, now: int, namespace: str, subscription: str) -> None:
        """Delete the subscription of every topic of the namespace that has it.

        Raises `NotFound`, or `InUse` while consumers are connected.
        """
        self._context.now = now
        topics = self._parts.topics_in(namespace)
        found = [each.subscriptions[subscription] for each in topics if subscription in each.subscriptions]
        if any(each.consumers for each in found):
            raise InUse(f"subscription {subscription} has active connected consumers")
        for each in found:
            each.delete()
        self._settle()

    def peek(self, topic: str, subscription: str, number: int) -> StoredMessage:
        """Return the `number`th entry, from 1, that the subscription has not acknowledged.

        Raises `NotFound`; `NotApplicable` for a partitioned topic.
        """
        only = self._parts.subscribed_topic(topic, subscription)
        cursor, end = only.subscriptions[subscription].cursor, only.log.durable_end
        offset = cursor.mark_delete
        for _ in range(number):
            offset = cursor.next_unacknowledged(max(offset + 1, only.log.first))
            if offset >= end:
                raise NotFound(f"no message {number} for subscription {subscription} of {topic}")
        return stored_message(only, offset)

    def analyze_backlog(
        self, topic: str, subscription: str, position: MessageId | None = None
    ) -> BacklogAnalysis:
        """Count the entries and messages of a backlog, from `position` on; None is all of it.

        Raises `NotFound`; `NotApplicable` for a partitioned topic.
        """
        only = self._parts.subscribed_topic(topic, subscription)
        log, cursor = only.log, only.subscriptions[subscription].cursor
        offset = log.first if position is None else log.offset(position.ledger_id, position.entry_id)
        runs = list(cursor.unacknowledged(max(offset, log.first), log.durable_end))
        if not runs:
            return BacklogAnalysis(0, 0, None, None)
        first, last = (
            MessageId(*log.position(offset), only.partition) for offset in (runs[0][0], runs[-1][1] - 1)
        )
        entries = sum(end - begin for begin, end in runs)
        return BacklogAnalysis(entries, only.subscriptions[subscription].messages_of(runs), first, last)

    def subscription_properties(self, topic: str, subscription: str) -> dict[str, str]:
        """Return the properties of a subscription, merged over all partitions. Raises `NotFound`."""
        properties: dict[str, str] = {}
        for each in self._parts.subscribed_topics(topic, subscription):
            properties.update(each.subscriptions[subscription].properties)
        return properties

    def set_subscription_properties(
        self, now: int, topic: str, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Replace the properties. Raises `NotFound`, `InvalidConfiguration`."""
        self._context.now = now
        pairs = text_pairs(properties)
        for each in self._parts.subscribed_topics(topic, subscription):
            found = each.subscriptions[subscription]
            found.properties = pairs
            if found.durable:
                self._journal.cursor_moved(found)
        self._journal.flush_cursors()
        self._settle()


def _mark_before(log: ManagedLedger, position: MessageId, inclusive: bool) -> tuple[int, int | None]:
    """Return the mark-delete position for a seek, and the bits of the messages to deliver of the entry after
    it.

    The bits are None where all messages of that entry are to be delivered.
    """
    offset = log.offset(position.ledger_id, position.entry_id)
    if log.exact(position.ledger_id, position.entry_id) is None or offset >= log.durable_end:
        return offset - 1, None
    if position.batch_index < 0:
        return (offset - 1 if inclusive else offset), None
    messages = log.peek(offset).messages
    first = position.batch_index + (not inclusive)
    if first >= messages:
        return offset, None
    return offset - 1, (1 << messages) - (1 << first) if first else None
