"""Interceptors of the producers in a world: one that watches, one that changes messages, one that raises.

Owns what the watching one has seen: every message once on its way in and once when its fate is known, never
after the end (INTC-01, PROD-29). It is the application's; of the machine it knows what it is told. What is
wrong it raises, which comes back to the application as news.
"""

from collections.abc import Callable, Mapping, Sequence

from pulsar_sansio.model.config import OutgoingMessage
from pulsar_sansio.model.errors import ProducerQueueIsFull, PulsarError
from pulsar_sansio.model.interceptors import ProducerInterceptor
from pulsar_sansio.model.message_id import MessageId
from pulsar_sansio.model.topic_name import TopicName

from ..engine.failures import ViolationError
from ..engine.randomness import Stream
from ..model.records import Sent

MARK = "intercepted"
"""The property that the changing one adds."""


class Interruption(Exception):
    """What the raising one raises."""


def interceptors(kinds: Sequence[str], tag: str, stream: Stream) -> tuple[ProducerInterceptor, ...]:
    """ "watches", "changes", "raises": in that order, or any other."""
    made: dict[str, Callable[[], ProducerInterceptor]] = {
        "watches": lambda: Watching(tag),
        "changes": Changing,
        "raises": lambda: Raising(stream),
    }
    return tuple(made[kind]() for kind in kinds)


class Watching(ProducerInterceptor):
    """Sees each message once, hears once what became of it."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.closed = False
        self.shown = 0
        self._open: dict[tuple[int, str], None] = {}
        """Messages that were seen and are not settled, by partition and name. One without room is
        settled, by an error, before another one comes to the same partition."""
        self._settled: dict[str, MessageId | PulsarError] = {}
        """What became of messages, the last time that they were taken."""

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
        # What came before partitions were known was seen as the topic's.
        key = (topic.partition, name) if (topic.partition, name) in self._open else (-1, name)
        if key not in self._open:
            raise ViolationError("INTC-01", f"{self.tag}: is told of {name}, which is not under way")
        del self._open[key]
        if not isinstance(error, ProducerQueueIsFull):  # it came again, perhaps elsewhere
            self._settled[name] = outcome

    def close(self) -> None:
        self._check_open()
        self.closed = True

    def _check_open(self) -> None:
        if self.closed:
            raise ViolationError("INTC-01", f"{self.tag}: an interceptor that is closed is called")

    def check(self, sent: Sent, outcome: MessageId | PulsarError) -> None:
        """INTC-01, PROD-29: the application hears what became of a message, this one has heard the same."""
        name = name_of(sent.payload, sent.properties)
        if self._settled.get(name) != outcome:
            raise ViolationError(
                "INTC-01", f"{sent} is {outcome!r}; its interceptor heard {self._settled.get(name)!r}"
            )

    def check_end(self) -> None:
        """INTC-01: it was told of everything, and then that it is over."""
        if not self.closed or self._open:
            state = "closed" if self.closed else "not closed"
            raise ViolationError(
                "INTC-01",
                f"{self.tag} is gone; its interceptor is {state} and waits for news of {len(self._open)} of "
                f"{self.shown} messages",
            )


class Changing(ProducerInterceptor):
    """Adds a property."""

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        return OutgoingMessage(
            message.payload,
            key=message.key,
            properties={**(message.properties or {}), MARK: "yes"},
            event_time=message.event_time,
            sequence_id=message.sequence_id,
            deliver_at=message.deliver_at,
        )


class Raising(ProducerInterceptor):
    """Raises now and then, at every occasion there is."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.raised = 0

    def _perhaps(self) -> None:
        if self._stream.chance(300):
            self.raised += 1
            raise Interruption

    def eligible(self, topic: TopicName, message: OutgoingMessage) -> bool:
        self._perhaps()
        return self._stream.chance(800)

    def before_send(self, topic: TopicName, message: OutgoingMessage) -> OutgoingMessage:
        self._perhaps()
        return message

    def on_send_acknowledgement(
        self,
        topic: TopicName,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: PulsarError | None,
    ) -> None:
        self._perhaps()

    def close(self) -> None:
        self._perhaps()


def name_of(payload: bytes | None, properties: Mapping[str, str] | None) -> str:
    """By what a message of this world is known: by what is said of it, or by what it carries."""
    return (properties or {}).get("n") or repr(payload)
