"""Interceptors of a world's producers: one watches, one changes messages, one raises.

Owns what the watching interceptor has seen: each message once before it is sent and once when its outcome is
known, never after the close (INTC-01, PROD-29). An interceptor belongs to the application and knows only what
the client passes to it. It raises each violation, and the client reports that exception to the application.
"""

from collections.abc import Callable, Mapping, Sequence

from pulsar_sansio.model.config import OutgoingMessage
from pulsar_sansio.model.errors import ProducerQueueIsFull, PulsarError
from pulsar_sansio.model.interceptors import ProducerInterceptor
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.model.topic_name import TopicName

from ..engine.failures import ViolationError
from ..engine.randomness import Stream
from ..model.records.sent import Sent

MARK = "intercepted"
"""The property that the changing interceptor adds."""


class ProbeFailure(Exception):
    """Raised by the raising interceptor."""


def interceptors(kinds: Sequence[str], tag: str, stream: Stream) -> tuple[ProducerInterceptor, ...]:
    """Make the interceptors named "watches", "changes" and "raises", in the order given."""
    made: dict[str, Callable[[], ProducerInterceptor]] = {
        "watches": lambda: WatchingInterceptor(tag),
        "changes": ChangingInterceptor,
        "raises": lambda: RaisingInterceptor(stream),
    }
    return tuple(made[kind]() for kind in kinds)


class WatchingInterceptor(ProducerInterceptor):
    """Sees each message once, and gets its outcome once."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.closed = False
        self.shown = 0
        self._open: dict[tuple[int, str], None] = {}
        """Messages seen and without an outcome, by partition and name. A message without room gets an error
        as its outcome before another message reaches the same partition."""
        self._settled: dict[str, MessageId | PulsarError] = {}
        """The outcome of each message, from its last send."""

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        self._check_open()
        key = topic.partition, name_of(message.payload, message.properties)
        if key in self._open:
            raise ViolationError("INTC-01", f"{self.tag}: {key} is seen twice")
        self._open[key] = None
        self.shown += 1
        return message

    def on_send_acknowledgement(
        self,
        topic: TopicName,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        self._check_open()
        name = name_of(message.payload, message.properties)
        outcome = message_id if error is None else error
        if outcome is None or (message_id is not None and error is not None):
            raise ViolationError("INTC-01", f"{self.tag}: {name} has {message_id} and {error}")
        # Messages sent before the partitions were known were seen under the topic itself.
        key = (topic.partition, name) if (topic.partition, name) in self._open else (-1, name)
        if key not in self._open:
            raise ViolationError("INTC-01", f"{self.tag}: is told of {name}, which is not under way")
        del self._open[key]
        if not isinstance(
            error, ProducerQueueIsFull
        ):  # the application sends it again, perhaps to another partition
            self._settled[name] = outcome

    def close(self) -> None:
        self._check_open()
        self.closed = True

    def _check_open(self) -> None:
        if self.closed:
            raise ViolationError("INTC-01", f"{self.tag}: an interceptor that is closed is called")

    def check(self, sent: Sent, outcome: MessageId | PulsarError) -> None:
        """INTC-01, PROD-29: the interceptor has got the outcome that the application gets."""
        name = name_of(sent.payload, sent.properties)
        if self._settled.get(name) != outcome:
            raise ViolationError(
                "INTC-01", f"{sent} is {outcome!r}; its interceptor got {self._settled.get(name)!r}"
            )

    def check_end(self) -> None:
        """INTC-01: the interceptor got an outcome for each message, and was then closed."""
        if not self.closed or self._open:
            state = "closed" if self.closed else "not closed"
            raise ViolationError(
                "INTC-01",
                f"{self.tag} is gone; its interceptor is {state} and waits for news of {len(self._open)} of "
                f"{self.shown} messages",
            )


class ChangingInterceptor(ProducerInterceptor):
    """Adds a property to each message."""

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        changed = OutgoingMessage(
            message.payload,
            key=message.key,
            properties={**(message.properties or {}), MARK: "yes"},
            event_time=message.event_time,
            sequence_id=message.sequence_id,
            deliver_at=message.deliver_at,
            schema=message.schema,
        )
        changed.has_base64_key = message.has_base64_key
        return changed


class RaisingInterceptor(ProducerInterceptor):
    """Raises at random in each of its methods."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.raised = 0

    def _raise_at_random(self) -> None:
        if self._stream.chance(300):
            self.raised += 1
            raise ProbeFailure

    def eligible(self, topic: TopicName, message: OutgoingMessage) -> bool:
        self._raise_at_random()
        return self._stream.chance(800)

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        self._raise_at_random()
        return message

    def on_send_acknowledgement(
        self,
        topic: TopicName,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        self._raise_at_random()

    def close(self) -> None:
        self._raise_at_random()


def name_of(payload: bytes | None, properties: Mapping[str, str] | None) -> str:
    """Return the name of a message of this world: its property "n", or else its payload."""
    return (properties or {}).get("n") or repr(payload)
