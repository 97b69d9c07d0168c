"""Errors: a class for each of the broker's codes, and which of them are worth another try."""

import pickle

import pytest

from pulsar_sansio.model.errors import (
    BrokerError,
    LocalProtocolError,
    PulsarError,
    RemoteProtocolError,
    ServerError,
    broker_error,
)

NOT_RETRYABLE = {
    ServerError.AuthorizationError,
    ServerError.ConsumerBusy,
    ServerError.ChecksumError,
    ServerError.UnsupportedVersionError,
    ServerError.TopicNotFound,
    ServerError.SubscriptionNotFound,
    ServerError.TopicTerminatedError,
    ServerError.ProducerBusy,
    ServerError.InvalidTopicName,
    ServerError.IncompatibleSchema,
    ServerError.ConsumerAssignError,
    ServerError.InvalidTxnStatus,
    ServerError.NotAllowedError,
    ServerError.TransactionConflict,
    ServerError.TransactionNotFound,
    ServerError.ProducerFenced,
}


@pytest.mark.parametrize("code", ServerError)
def test_every_code_has_its_error(code: ServerError) -> None:
    """Rules WIRE-19 and ERR-15. Rule HAND-14."""
    error = broker_error(code, "the broker's words")
    assert error.code == code
    assert error.text == "the broker's words"
    assert code.name in str(error)
    assert error.retryable == (code not in NOT_RETRYABLE)
    assert (type(error) is BrokerError) == (code == ServerError.UnknownError)


@pytest.mark.parametrize("code", [-1, 26, 999])
def test_a_code_of_a_newer_broker_is_unknown_and_retryable(code: int) -> None:
    """Rule WIRE-19."""
    error = broker_error(code, "new")
    assert error.code == ServerError.UnknownError
    assert str(code) in str(error)
    assert error.retryable


def test_errors_survive_pickle() -> None:
    error = broker_error(ServerError.ConsumerBusy, "taken")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, str(again)) == (type(error), error.code, str(error))


def test_blame_is_disjoint() -> None:
    for kind in (LocalProtocolError, RemoteProtocolError, BrokerError):
        assert issubclass(kind, PulsarError)
        others = {LocalProtocolError, RemoteProtocolError, BrokerError} - {kind}
        assert not any(issubclass(sub, other) for sub in kind.__subclasses__() for other in others)


@pytest.mark.parametrize(
    ("code", "text", "advice"),
    [
        (
            ServerError.TopicNotFound,
            "Topic t does not exist",
            "create the topic, or allow automatic creation",
        ),
        (ServerError.TopicNotFound, "Namespace not found", "create the namespace first: a client does not"),
        (ServerError.MetadataError, "Policies not found for a/b namespace", "create the namespace first"),
        (ServerError.TopicNotFound, "Tenant not found", "create the tenant first"),
        (
            ServerError.TopicNotFound,
            "Topic t-partition-9 does not exist: t has fewer partitions",
            "by its own name",
        ),
        (ServerError.ProducerBusy, "Topic reached max producers limit", "have the limit raised"),
        (ServerError.ConsumerBusy, "Topic reached max consumers limit", "have the limit raised"),
        (ServerError.ConsumerBusy, "Exclusive consumer is already connected", "close the other consumer"),
        (
            ServerError.AuthenticationError,
            "Unable to authenticate",
            "the credentials that this broker accepts",
        ),
    ],
)
def test_the_advice_fits_what_the_broker_says(code: ServerError, text: str, advice: str) -> None:
    words = str(broker_error(code, text))
    assert words.startswith(f"{code.name}: {text} (")
    assert advice in words
    assert ("create the topic" in words) == (advice.startswith("create the topic"))
