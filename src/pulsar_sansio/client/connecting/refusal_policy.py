"""What a refused attempt to open a producer or a consumer leads to (GAP-04; PROD-22 to PROD-24, CONS-15).

One table for both: by the broker's code, and by whether it was attached before. It knows nothing of states.
"""

from enum import Enum, auto

from ...model.errors import AuthenticationError, BrokerError, PulsarError, ServerError, TimedOut


class Decision(Enum):
    """What becomes of an attempt that the broker refused."""

    DEFAULT = auto()
    """What the table says."""
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
"""What a refusal of PRODUCER, SUBSCRIBE or, while creating, of a lookup leads to."""


def decide(error: PulsarError, was_attached: bool) -> Decision:
    """RETRY or FAIL: by the table where the broker refused, else by what kind of failure it is."""
    if isinstance(error, BrokerError):
        return REFUSALS[error.code][was_attached]
    return Decision.RETRY if error.retryable else Decision.FAIL


def not_ready(what: str, seconds: float, last: PulsarError | None) -> PulsarError:
    """Why something was not opened in time (PROD-25): what the broker said last, or that time is up."""
    if isinstance(last, BrokerError) and not isinstance(last, AuthenticationError):
        return last
    why = f"; the last attempt: {last}" if last is not None else ""
    error = TimedOut(f"{what} was not ready within {seconds:g} s{why}")
    error.__cause__ = last
    return error
