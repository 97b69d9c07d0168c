"""The policy for refused attempts to open a producer or a consumer: retry or fail (GAP-04).

One table serves both. The keys are the broker's error code and whether the owner was attached before.
"""

from enum import Enum, auto

from ...model.errors import (
    AuthenticationError,
    BrokerError,
    PulsarError,
    SecurityError,
    ServerError,
    TimedOut,
)


class Decision(Enum):
    """The consequence of a refused attempt."""

    DEFAULT = auto()
    """Decide by the table."""
    RETRY = auto()
    FAIL = auto()


_RETRY, _FAIL = Decision.RETRY, Decision.FAIL

REFUSALS: dict[ServerError, tuple[Decision, Decision]] = {
    # code: (while creating, when it was attached before)
    ServerError.UnknownError: (_RETRY, _RETRY),
    ServerError.MetadataError: (_RETRY, _RETRY),
    ServerError.PersistenceError: (_RETRY, _RETRY),
    ServerError.AuthenticationError: (_FAIL, _RETRY),
    ServerError.AuthorizationError: (_FAIL, _RETRY),
    ServerError.ConsumerBusy: (_FAIL, _RETRY),
    ServerError.ServiceNotReady: (_RETRY, _RETRY),
    ServerError.ProducerBlockedQuotaExceededError: (_RETRY, _RETRY),
    ServerError.ProducerBlockedQuotaExceededException: (_FAIL, _RETRY),
    ServerError.ChecksumError: (_FAIL, _RETRY),
    ServerError.UnsupportedVersionError: (_FAIL, _RETRY),
    ServerError.TopicNotFound: (_FAIL, _FAIL),
    ServerError.SubscriptionNotFound: (_FAIL, _FAIL),
    ServerError.ConsumerNotFound: (_RETRY, _RETRY),
    ServerError.TooManyRequests: (_RETRY, _RETRY),
    ServerError.TopicTerminatedError: (_FAIL, _FAIL),
    ServerError.ProducerBusy: (_FAIL, _RETRY),
    ServerError.InvalidTopicName: (_FAIL, _RETRY),
    ServerError.IncompatibleSchema: (_FAIL, _RETRY),
    ServerError.ConsumerAssignError: (_FAIL, _RETRY),
    ServerError.TransactionCoordinatorNotFound: (_RETRY, _RETRY),
    ServerError.InvalidTxnStatus: (_FAIL, _RETRY),
    ServerError.NotAllowedError: (_FAIL, _RETRY),
    ServerError.TransactionConflict: (_FAIL, _RETRY),
    ServerError.TransactionNotFound: (_FAIL, _RETRY),
    ServerError.ProducerFenced: (_FAIL, _FAIL),
}
"""The decision for each code that refuses PRODUCER, SUBSCRIBE or, before the first attachment, a lookup
(PROD-22, PROD-23, PROD-24, CONS-15)."""


def decide(error: PulsarError, was_attached: bool) -> Decision:
    """Return RETRY or FAIL: by the table for a `BrokerError`, else by `PulsarError.retryable`.

    A `SecurityError` that is not retryable is decided as the code AuthenticationError is.
    """
    if isinstance(error, BrokerError):
        return REFUSALS[error.code][was_attached]
    if isinstance(error, SecurityError) and not error.retryable:
        return REFUSALS[ServerError.AuthenticationError][was_attached]
    return Decision.RETRY if error.retryable else Decision.FAIL


def not_ready(what: str, seconds: float, last: PulsarError | None) -> PulsarError:
    """Return the error for an opening that timed out: the broker's last error or `TimedOut` (PROD-25)."""
    if isinstance(last, BrokerError) and not isinstance(last, AuthenticationError):
        return last
    why = f"; the last attempt: {last}" if last is not None else ""
    error = TimedOut(f"{what} was not ready within {seconds:g} s{why}")
    error.__cause__ = last
    return error
