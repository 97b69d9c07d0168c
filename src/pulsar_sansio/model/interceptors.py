"""`ProducerInterceptor` and `ConsumerInterceptor`: hooks that an application sets for every message that it
sends (rule INTC-01) or receives (INTC-02).

Interceptors serve a purpose common to all messages: a trace id, a count, a check. A producer or consumer
without interceptors pays nothing for them; one that has some leaves the fast paths.
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

    The producer calls the methods in the middle of its work: they must not wait, nor call the client. The
    output `InterceptorFailed` tells an exception that they raise (pulsar_trio logs it). The exception changes
    nothing else: the message goes on as if that interceptor were not there.
    """

    def eligible(self, topic: TopicName, message: "OutgoingMessage") -> bool:
        """Return True to see the message, as the interceptors before this one have left it."""
        return True

    def before_send(self, topic: TopicName, message: "OutgoingMessage") -> "OutgoingMessage":
        """Return the message to send: the same, or another one in its place. The next interceptor gets it.

        The producer calls it after it routed the message and before it checks it (rule PROD-29). When the
        producer had to wait for room and the application sends the same message again, it is not called
        again. It is called again if the message is then routed to another partition, or if another message
        was sent meanwhile. The first attempt is then settled as failed, and this one is a message of its own.
        For a message sent before the client knows whether the topic is partitioned, `topic` is the topic
        itself.
        """
        return message

    def on_send_acknowledgement(
        self,
        topic: TopicName,
        message: "OutgoingMessage",
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        """Take the result of a message that went through `before_send`, as the interceptors left it: an id or
        an error. The producer calls it exactly once, before the application learns the result."""

    def close(self) -> None:
        """The producer has ended; nothing is called after it."""


class ConsumerInterceptor:
    """Override what you need. `topic` is that of the partition, where the topic is partitioned; its
    `partition` is the index, -1 for none.

    The consumer calls the methods in the middle of its work: they must not wait, nor call the client. The
    output `ConsumerInterceptorFailed` tells an exception that they raise (pulsar_trio logs it). The exception
    changes nothing else.
    """

    def before_consume(self, topic: TopicName, message: "Message") -> "Message":
        """Return the message for the application: the same, or another one in its place. The next interceptor
        gets it, and the application gets the last one."""
        return message

    def on_acknowledge(self, topic: TopicName, message_id: MessageId, error: PulsarError | None) -> None:
        """The application has acknowledged a message, and nothing was sent yet; or the client refused it."""

    def on_acknowledge_cumulative(
        self, topic: TopicName, message_id: MessageId, error: PulsarError | None
    ) -> None:
        """The application has acknowledged a message and all before it, or the client refused it."""

    def on_negative_acknowledgements_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        """The consumer is about to ask for redelivery of negatively acknowledged entries: their ids, without
        the index in a batch."""

    def on_acknowledgement_timeout_send(self, topic: TopicName, message_ids: Sequence[MessageId]) -> None:
        """The consumer is about to ask for redelivery of entries whose acknowledgement timeout is over: their
        ids, without the index in a batch."""

    def close(self) -> None:
        """The consumer has ended; nothing is called after it."""
