"""`on_failure`: what `Consumer.run` does with a message whose handler raised.

Each action is a small record. A function of the message and the exception gives one of them where it depends
on these. `FailureActions` does what they say for one consumer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from logging import getLogger
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from pulsar_sansio import ConsumerSpec, InvalidConfiguration, Message, PulsarError

if TYPE_CHECKING:
    from .consumer import Consumer

_log = getLogger("pulsar_trio.failures")


@dataclass(frozen=True, slots=True)
class NegativeAcknowledge:
    """The message is redelivered after `negative_acknowledgement_delay`, and counted as tried."""


@dataclass(frozen=True, slots=True)
class RetryLater:
    """The message is redelivered after `delay` seconds, 0 and more, over the retry topic: see
    `Consumer.reconsume_later`. `properties`: more of them for the copy. Needs `retry=True`.
    """

    delay: float
    properties: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.delay, bool) or not isinstance(self.delay, int | float):
            raise InvalidConfiguration(f"RetryLater: a delay in seconds, 0 and more, not {self.delay!r}")
        if not 0 <= self.delay < inf:
            raise InvalidConfiguration(f"RetryLater: a delay in seconds, 0 and more, not {self.delay!r}")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The message goes to the dead-letter topic at once: see `Consumer.dead_letter`. `properties`: more of
    them for the copy. Needs a `DeadLetterPolicy`, or `retry=True`."""

    properties: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Raise:
    """`run` ends with the handler's exception as itself. The message is negatively acknowledged."""


OnFailure: TypeAlias = NegativeAcknowledge | RetryLater | DeadLetter | Raise
FailurePolicy: TypeAlias = OnFailure | Callable[[Message[Any], Exception], OnFailure]

NEGATIVE_ACKNOWLEDGE = NegativeAcknowledge()

_CHOICES = "NegativeAcknowledge(), RetryLater(delay), DeadLetter() or Raise()"


class FailureActions:
    """Acts on the failed messages of one consumer. Raises `InvalidConfiguration` for what is no action, and
    for an action that the consumer was not subscribed for."""

    def __init__(self, consumer: "Consumer[Any]", spec: ConsumerSpec, policy: FailurePolicy) -> None:
        self._consumer = consumer
        self._spec = spec
        self._policy = policy
        if isinstance(policy, type) or not callable(policy):
            self._check(policy)

    async def failed(self, message: Message[Any], error: Exception) -> None:
        """Act on a message whose handler raised `error`.

        Raises `error` where that is asked for, what the application's function raises, and
        `InvalidConfiguration` for what it gives and should not. A copy that fails is logged: the core has
        negatively acknowledged the message.
        """
        policy = self._policy
        if isinstance(policy, OnFailure):
            action = policy
        else:
            action = policy(message, error)
            self._check(action)
        consumer = self._consumer
        if isinstance(action, Raise):
            consumer.negative_acknowledge(message)
            raise error
        _log.error(
            "%r: the handler failed at message %s: %s",
            consumer,
            message.message_id,
            type(action).__name__,
            exc_info=error,
        )
        try:
            match action:
                case NegativeAcknowledge():
                    consumer.negative_acknowledge(message)
                case RetryLater(delay, properties):
                    await consumer.reconsume_later(message, delay, properties)
                case DeadLetter(properties):
                    await consumer.dead_letter(message, properties)
        except PulsarError as copying:
            if isinstance(action, NegativeAcknowledge) or isinstance(copying, InvalidConfiguration):
                raise
            _log.warning(
                "%r: message %s could not be copied, and is negatively acknowledged: %s",
                consumer,
                message.message_id,
                copying,
            )

    def _check(self, action: object) -> None:
        if not isinstance(action, OnFailure):
            raise InvalidConfiguration(
                f"on_failure: {_CHOICES}, or a function of message and exception that gives one of them, not "
                f"{action!r}"
            )
        if isinstance(action, RetryLater) and not self._spec.retry:
            raise InvalidConfiguration("on_failure: RetryLater needs a consumer subscribed with retry=True")
        if isinstance(action, DeadLetter) and self._spec.letters is None:
            raise InvalidConfiguration(
                "on_failure: DeadLetter needs a consumer subscribed with dead_letter=DeadLetterPolicy(…)"
            )
