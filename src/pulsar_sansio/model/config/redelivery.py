"""Options for messages that the broker redelivers: the delay of a redelivery, the limit of redeliveries, and
the topic that takes the messages beyond it."""

from dataclasses import dataclass, replace

from ..encryption import ProducerCryptoFailureAction, check_recipients
from ..errors import InvalidConfiguration
from ..topic_name import TopicName
from .checks import duration, integer, nanoseconds_of, optional_text

MAX_RECONSUMED = 16
"""Times that a message is consumed later where no `DeadLetterPolicy` sets it, as in the Java client."""


@dataclass(frozen=True, slots=True)
class RedeliveryBackoff:
    """A delay that grows with the number of deliveries: `min_delay` for a message that was delivered once,
    then `multiplier` times more with each further delivery, up to `max_delay`.

    Delays in seconds; `multiplier` above 1. The Java client's `MultiplierRedeliveryBackoff`.
    """

    min_delay: float = 10.0
    max_delay: float = 600.0
    multiplier: float = 2.0

    def __post_init__(self) -> None:
        duration("backoff.min_delay", self.min_delay)
        duration("backoff.max_delay", self.max_delay, minimum=self.min_delay)
        multiplier: object = self.multiplier
        if (
            isinstance(multiplier, bool)
            or not isinstance(multiplier, int | float)
            or not 1 < multiplier <= 1_000_000
        ):
            raise InvalidConfiguration(
                f"backoff.multiplier: a number above 1 and up to 1000000, not {multiplier!r}"
            )

    def delays(self) -> tuple[int, ...]:
        """Nanoseconds by redelivery count; the last one is that of all greater counts."""
        delays: list[int] = []
        delay = float(self.min_delay)
        while 0 < delay < self.max_delay and len(delays) < 10_000:
            delays.append(nanoseconds_of(delay))
            delay = self.min_delay * self.multiplier ** len(delays)
        return (*delays, nanoseconds_of(min(delay, self.max_delay) if self.min_delay else 0.0))


@dataclass(frozen=True, slots=True)
class DeadLetterPolicy:
    """The limits and topics for messages that cannot be processed (rules DLQ-01, RETRY-03).

    `max_redeliver_count`: 1 and more. A message goes to the dead-letter topic when it is delivered with a
    greater redelivery count, or was to be consumed later more often than that. Only Shared and Key_Shared
    subscriptions count redeliveries.
    `topic`: the dead-letter topic; None for `<topic>-<subscription>-DLQ`.
    `retry_topic`: the topic of messages that are consumed later (`retry=True`); None for
    `<topic>-<subscription>-RETRY`.
    `initial_subscription`: a subscription that the dead-letter topic gets when it is made. It keeps the
    messages that are sent there before a consumer subscribes.
    `encryption_keys`, `crypto_key_reader`: see `ProducerSpec`; copies in both topics are encrypted so.
    Without them copies of messages that the consumer has decrypted are sent in clear, as Java does.
    """

    max_redeliver_count: int
    topic: str | None = None
    retry_topic: str | None = None
    initial_subscription: str | None = None
    encryption_keys: tuple[str, ...] = ()
    crypto_key_reader: object = None

    def __post_init__(self) -> None:
        integer("dead_letter.max_redeliver_count", self.max_redeliver_count, 1, 2**31 - 1)
        for name in (self.topic, self.retry_topic):
            if name is not None:
                TopicName.parse(name)
        optional_text("dead_letter.initial_subscription", self.initial_subscription)
        check_recipients(self.encryption_keys, self.crypto_key_reader, ProducerCryptoFailureAction.FAIL)

    def named(self, topic: TopicName, subscription: str) -> "DeadLetterPolicy":
        """Return the policy with the names of both topics. The defaults derive from `topic`, whichever
        partition it is (DLQ-02, RETRY-02)."""
        return replace(
            self,
            topic=str(TopicName.parse(self.topic or f"{topic.base}-{subscription}-DLQ")),
            retry_topic=str(TopicName.parse(self.retry_topic or f"{topic.base}-{subscription}-RETRY")),
        )
