"""What an administrator does with subscriptions: make, delete, skip, expire, move, describe.

The part of `TopicAdministration` that knows subscriptions. What is done to that of a partitioned topic is
done to those of its partitions.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..core.context import Context
from ..model.errors import InvalidConfiguration, NotAllowed, TopicNotFound
from ..model.message_id import MessageId
from ..model.topic_name import TopicName
from .journal import Journal
from .lookups import MAX_NAME_LENGTH, check_text_properties
from .mistakes import AlreadyThere, NoSuchThing, StillInUse, WrongKind
from .outputs import Output
from .topic import Topic

if TYPE_CHECKING:
    from .broker import AnyTopic


class SubscriptionAdministration:
    """The administrator's commands that name a subscription."""

    context: Context[Output]
    journal: Journal
    partitions: dict[str, int]

    if TYPE_CHECKING:

        def _settle(self) -> None: ...
        def _topics_of(self, topic: str) -> list[AnyTopic]: ...
        def topic_for_use(self, name: TopicName, create: bool) -> AnyTopic: ...

    def subscriptions(self, topic: str) -> list[str]:
        """Names, of all partitions together. Raises `NoSuchThing`."""
        return sorted({name for each in self._topics_of(topic) for name in each.subscriptions})

    def create_subscription(
        self,
        now: int,
        topic: str,
        subscription: str,
        position: MessageId | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """A durable subscription that begins with the first message at or after `position`; None is the end.

        The topic comes into being if policies allow that, as when somebody subscribes. Raises `NoSuchThing`,
        `AlreadyThere`, `WrongKind` for non-persistent topics, `InvalidConfiguration`.
        """
        self.context.now = now
        if not subscription.strip() or len(subscription) > MAX_NAME_LENGTH:
            raise InvalidConfiguration(f"the subscription's name has 1 to {MAX_NAME_LENGTH} characters")
        pairs = text_pairs(properties)
        topics = self._topics_for_use(topic)
        for each in topics:
            if not isinstance(each, Topic):
                raise WrongKind(f"{each.name} is not persistent")
            if subscription in each.subscriptions:
                raise AlreadyThere(f"subscription {subscription} of {each.name} exists")
        for each in topics:
            assert isinstance(each, Topic)
            log = each.log
            begin = log.end if position is None else log.offset(position.ledger_id, position.entry_id)
            each.subscribe(subscription, begin - 1, True, pairs)
        self._settle()

    def _topics_for_use(self, topic: str) -> "list[AnyTopic]":
        name = TopicName.parse(topic)
        if name.persistent and str(name) not in self.partitions:
            try:
                return [self.topic_for_use(name, True)]
            except (TopicNotFound, NotAllowed) as error:
                raise NoSuchThing(error.text) from None
        return self._topics_of(topic)

    def delete_subscription(self, now: int, topic: str, subscription: str, force: bool = False) -> None:
        """Raises `NoSuchThing`, or `StillInUse` while consumers are connected, unless `force`."""
        self.context.now = now
        found = [
            each.subscriptions[subscription]
            for each in self._topics_of(topic)
            if subscription in each.subscriptions
        ]
        if not found:
            raise NoSuchThing(f"no subscription {subscription} of {topic}")
        if not force and any(each.consumers for each in found):
            raise StillInUse(f"subscription {subscription} has active connected consumers")
        for each in found:
            each.delete()
        self._settle()

    def skip_messages(self, now: int, topic: str, subscription: str, count: int | None = None) -> None:
        """Acknowledge the next `count` entries on the consumers' behalf; None is all there are.

        Raises `NoSuchThing`.
        """
        self.context.now = now
        for each in self._subscribed_topics(topic, subscription):
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
        """Acknowledge on the consumers' behalf what was published more than so many seconds ago, or what lies
        before a message and that message itself. False where there was nothing to do: no backlog, or
        consumers who are connected and nothing that is old enough.

        Raises `NoSuchThing`.
        """
        self.context.now = now
        expired = False
        for each in self._subscribed_topics(topic, subscription):
            log = each.log
            if isinstance(older_than, MessageId):
                last = log.offset(older_than.ledger_id, older_than.entry_id)
                if log.exact(older_than.ledger_id, older_than.entry_id) is None:
                    last -= 1
            else:
                last = log.find_publish_time(each.broker.wall_time - round(older_than * 1000)) - 1
            expired |= each.subscriptions[subscription].expire_up_to(min(last, log.durable_end - 1))
        self._settle()
        return expired

    def reset_cursor(self, now: int, topic: str, subscription: str, position: MessageId | int) -> None:
        """Move a subscription to a message id or to a publish time (ms); its consumers reconnect."""
        self.context.now = now
        for each in self._subscribed_topics(topic, subscription):
            if isinstance(position, MessageId):
                offset = each.log.offset(position.ledger_id, position.entry_id)
            else:
                offset = each.log.find_publish_time(position)
            each.subscriptions[subscription].seek(offset - 1, None)
        self._settle()

    def subscription_properties(self, topic: str, subscription: str) -> dict[str, str]:
        """What is kept with a subscription, that of all partitions together. Raises `NoSuchThing`."""
        properties: dict[str, str] = {}
        for each in self._subscribed_topics(topic, subscription):
            properties.update(each.subscriptions[subscription].properties)
        return properties

    def set_subscription_properties(
        self, now: int, topic: str, subscription: str, properties: Mapping[str, str]
    ) -> None:
        """Keep these instead of what was kept. Raises `NoSuchThing`, `InvalidConfiguration`."""
        self.context.now = now
        pairs = text_pairs(properties)
        for each in self._subscribed_topics(topic, subscription):
            found = each.subscriptions[subscription]
            found.properties = pairs
            if found.durable:
                self.journal.cursor_moved(found)
        self.journal.flush_cursors()
        self._settle()

    def _subscribed_topics(self, topic: str, subscription: str) -> list[Topic]:
        """The topic or its partitions, all of which have this subscription. Raises `NoSuchThing`."""
        topics = []
        for each in self._topics_of(topic):
            if not isinstance(each, Topic) or subscription not in each.subscriptions:
                raise NoSuchThing(f"no subscription {subscription} of persistent topic {each.name}")
            topics.append(each)
        return topics


def text_pairs(properties: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Raises `InvalidConfiguration` for what is not text or too much of it."""
    pairs = tuple((properties or {}).items())
    check_text_properties(pairs)
    return pairs
