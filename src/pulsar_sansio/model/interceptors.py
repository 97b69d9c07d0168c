"""`ProducerInterceptor` and `ConsumerInterceptor`: what an application may hang into the way of every message
that it sends (rule INTC-01) or receives (INTC-02).

For what concerns all messages and not one: a trace id, a count, a check. Who has no interceptors pays nothing
for them; a producer or consumer that has some takes no short ways.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .errors import PulsarError
from .message_id import MessageId
from .topic_name import TopicName

if TYPE_CHECKING:
    from .config import OutgoingMessage
    from .message import Message


class ProducerInterceptor:
    """Override what you need. `topic` is that of the partition, where the topic is partitioned; its
    `partition` is the index, -1 for none.

    The methods are called in the middle of the producer's work: they must not wait, nor call the client. What
    they raise is told by the output `InterceptorFailed` (pulsar_trio logs it), and changes nothing else: the
    message goes on as if that interceptor were not there.
    """

    def eligible(self, topic: TopicName, message: "OutgoingMessage") -> bool:
        """Whether this interceptor wants to see the message, as those before it have left it."""
        return True

    def before_send(self, topic: TopicName, message: "OutgoingMessage") -> "OutgoingMessage":
        """The message to be sent: the same, or another one in its place, which the next interceptor is given.

        It is called when the message has been routed and before it is checked (rule PROD-29). Where the
        producer has to wait for room it is not called again when the same message comes again, unless that
        is routed to another partition then, or another message came meanwhile: the first attempt is settled
        as failed, and this one is a message of its own. Of messages that are sent before it is known whether
        the topic is partitioned the topic itself is told.
        """
        return message

    def on_send_acknowledgement(
        self,
        topic: TopicName,
        message: "OutgoingMessage",
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        """What became of a message that went through `before_send`, as the interceptors left it: an id or an
        error. It is called before the application hears of it, and exactly once."""

    def close(self) -> None:
        """The producer has ended; nothing is called after it."""


class ConsumerInterceptor:
    """Override what you need. `topic` is that of the partition, where the topic is partitioned; its
    `partition` is the index, -1 for none.

    The methods are called in the middle of the consumer's work: they must not wait, nor call the client. What
    they raise is told by the output `ConsumerInterceptorFailed` (pulsar_trio logs it), and changes nothing
    else.
    """

    def before_consume(self, topic: TopicName, message: "Message") -> "Message":
        """A message is about to be handed out: the same, or another one in its place, which the next
        interceptor is given and the application in the end."""
        return message

    def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: PulsarError | None) -> None:
        """The application has acknowledged a message, and nothing was sent yet; or that was refused."""

    def on_acknowledge_cumulative(
        self, topic: TopicName, message_id: MessageId, error: PulsarError | None
    ) -> None:
        """It has acknowledged a message and all before it, or that was refused."""

    def on_negative_acknowledgements_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        """Entries that were negatively acknowledged are going to be asked for again: their ids, without the
        index in a batch."""

    def on_acknowledgement_timeout_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        """Likewise entries whose acknowledgement timeout is over."""

    def close(self) -> None:
        """The consumer has ended; nothing is called after it."""
