"""Lines of an explanation about permits, the receiver queue, and a broker that delivers nothing more."""

from ...model.config import ConsumerSpec, ReadingSpec
from ..explanation import seconds
from .permits import Permits

USUAL_LIMIT = 50_000
"""Unacknowledged messages of one consumer at which a broker stops delivering by default
(`maxUnackedMessagesPerConsumer`). The limit holds for Shared and Key_Shared subscriptions only."""


def called(spec: ConsumerSpec, topics: str) -> str:
    """Describe a consumer with that spec, for texts."""
    return f"reader of {topics}" if isinstance(spec, ReadingSpec) else f"consumer on {topics}"


def subscription(spec: ConsumerSpec) -> str:
    """Name the subscription of a consumer; the generated name of a reader's subscription is left out."""
    return f", subscription {spec.subscription!r}" if spec.durable else ""


def permits(ledger: Permits, available: int) -> list[str]:
    """Say how many messages the broker may still send, and how many wait in the receiver queue."""
    if ledger.paused:
        first = "paused: it asks for no more messages until resume"
    elif ledger.queue_size == 0 and ledger.at_broker <= 0:
        first = "it asks for a message when the application waits for one (receiver_queue_size is 0)"
    else:
        first = f"{max(0, ledger.at_broker)} permits are at the broker, for a queue of {ledger.queue_size}"
    return [first, f"{available} messages are in the receiver queue and wait for the application"]


def unacknowledged(at_most: int) -> str:
    """Say how many messages are delivered over the present connection and not acknowledged."""
    return (
        f"at most {at_most} messages are delivered and not acknowledged; a broker stops at a limit "
        f"(usually {USUAL_LIMIT} for one consumer)"
    )


def blocked(count: int, ago: int) -> str:
    """Say that the broker itself reports that it delivers nothing more."""
    return (
        f"blocked: the broker said {seconds(ago)} ago that {count} messages are unacknowledged, and delivers "
        "no more until the application acknowledges or negatively acknowledges some of them"
    )
