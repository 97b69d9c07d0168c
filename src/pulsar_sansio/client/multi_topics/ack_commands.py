"""`MultiTopicsAckCommands`: acknowledgements, passed to the members that the messages came from (rules
MULTI-16, MULTI-17, MULTI-24).

A message carries its topic, an id its partition. An id of one of several topics needs a `TopicMessageId`. All
messages are checked before any is passed on, so a call that raises has changed nothing. An acknowledgement of
a message whose topic has left has no effect, and raises nothing: everything unacknowledged of the topic has
gone with its consumer. It has no effect either after the topic has joined again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from ...model.errors import InvalidTopicName, LocalProtocolError
from ...model.message import Message, Source
from ...model.message_id import MessageId, TopicMessageId
from ...model.topic_name import TopicName
from ..acknowledging.ack_commands import check_id, not_a_message
from ..consuming.consumer import Consumer
from ..delivery.received_entries import Item, Messages, message_at
from ..transactions.transaction import Transaction
from .member import Member, MemberSource

OneMessage = Message | MessageId | TopicMessageId
Spreadable = OneMessage | Iterable[OneMessage]
Part = Message | MessageId | Messages | list[Message | MessageId]
"""The part of an acknowledgement that concerns one consumer."""


class MultiTopicsAckCommands:
    """Acknowledges over several consumers. All commands raise `ClosedError` when `check_open` does, and
    `LocalProtocolError` for anything but a message or id, and for a topic that never was one of these."""

    __slots__ = ("_check_open", "_is_one", "_members", "_only_topic")

    def __init__(
        self,
        members: Mapping[str, Member],
        check_open: Callable[[], None],
        is_one: Callable[[TopicName], bool],
        only_topic: TopicName | None,
    ) -> None:
        """`members`: by the names of their topics, as they join and leave. `is_one`: tells whether a topic is
        one of the group's, or was. `only_topic`: the partitioned topic of a consumer that has no other topic,
        so that ids need not name it."""
        self._members = members
        self._check_open = check_open
        self._is_one = is_one
        self._only_topic = only_topic

    def acknowledge(self, what: Spreadable) -> bool:
        """See `AckCommands.acknowledge`."""
        if type(what) is Message:
            source = what.entry.source
            member = self._members.get(source.topic)
            if member is not None and member.source is source:
                return member.consumer.acknowledge(what)
        waits = False
        for consumer, part in self.spread(what):
            waits |= consumer.acknowledge(part)
        return waits

    def acknowledge_cumulative(self, what: OneMessage) -> None:
        """Acknowledge up to this message in its topic or partition; every other one has its own order."""
        for consumer, part in self.spread_one(what):
            consumer.acknowledge_cumulative(part)

    def acknowledge_in(self, what: Spreadable, transaction: Transaction) -> None:
        """See `AckCommands.acknowledge_in`."""
        for consumer, part in self.spread(what):
            consumer.acknowledge_in(part, transaction)

    def acknowledge_cumulative_in(self, what: OneMessage, transaction: Transaction) -> None:
        """Acknowledge up to this message in its topic or partition, with the transaction."""
        for consumer, part in self.spread_one(what):
            consumer.acknowledge_cumulative_in(part, transaction)

    def negative_acknowledge(self, what: Spreadable) -> None:
        """See `AckCommands.negative_acknowledge`."""
        for consumer, part in self.spread(what):
            consumer.negative_acknowledge(part)

    # --- the member of a message -------------------------------------------------------------------

    def spread(self, what: Spreadable) -> list[tuple[Consumer, Part]]:
        """Return each consumer that is concerned, and its part."""
        if isinstance(what, Message | MessageId | TopicMessageId):
            return list(self.spread_one(what))
        self._check_open()
        if isinstance(what, Messages):
            return self._spread_messages(what)
        if not isinstance(what, Iterable) or isinstance(what, str | bytes):
            raise not_a_message(what)
        parts: dict[Consumer, list[Message | MessageId]] = {}
        for each in what:
            for consumer, part in self.spread_one(each):
                parts.setdefault(consumer, []).append(part)
        return cast(list[tuple[Consumer, Part]], list(parts.items()))

    def spread_one(self, what: OneMessage) -> list[tuple[Consumer, Message | MessageId]]:
        """Return the one consumer that is concerned; an empty list when its topic has left."""
        self._check_open()
        if isinstance(what, Message):
            return [(consumer, what) for consumer in self._of_source(what.entry.source, what)]
        if isinstance(what, TopicMessageId):
            topic, message_id = what
            check_id(message_id)
            try:
                name = TopicName.parse(topic)
            except InvalidTopicName as error:
                raise LocalProtocolError(f"message id {message_id}: {error}") from None
            if str(name) not in self._members and name.partition < 0 and message_id.partition >= 0:
                name = name.partition_name(message_id.partition)
            return [(consumer, message_id) for consumer in self._of_topic(str(name), what)]
        if isinstance(what, MessageId):
            check_id(what)
            if self._only_topic is None or what.partition < 0:
                raise LocalProtocolError(
                    f"message id {what} does not say of which of several topics it is: "
                    "TopicMessageId(topic, id) does"
                )
            name = self._only_topic.partition_name(what.partition)
            return [(consumer, what) for consumer in self._of_topic(str(name), what)]
        raise not_a_message(what)

    def _spread_messages(self, messages: Messages) -> list[tuple[Consumer, Part]]:
        parts: dict[Consumer, list[Item]] = {}
        for item in messages.items:
            if isinstance(item, list) and not item:
                continue
            source = message_at(item, 0)[0].source  # all messages of an item come of one queue
            for consumer in self._of_source(source, "a message"):
                parts.setdefault(consumer, []).append(item)
        return [(consumer, Messages(items)) for consumer, items in parts.items()]

    def _of_source(self, source: Source, what: object) -> Iterable[Consumer]:
        member = self._members.get(source.topic)
        if (
            member is not None
            and isinstance(source, MemberSource)
            and source.member is not member
            and source.group is member.source.group
        ):
            return ()  # the topic left, and joined again, after this message arrived
        return self._of_topic(source.topic, what)

    def _of_topic(self, topic: str, what: object) -> Iterable[Consumer]:
        member = self._members.get(topic)
        if member is not None:
            return (member.consumer,)
        if not self._is_one(TopicName.parse(topic)):
            raise LocalProtocolError(f"{what} is of {topic}, which is none of this consumer's topics")
        return ()
