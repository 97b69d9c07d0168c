"""The policy for refused attempts: the table decides by code, everything else by `retryable`."""

import pytest

from pulsar_sansio.client.connecting.refusal_policy import REFUSALS, Decision, decide, not_ready
from pulsar_sansio.model.errors import (
    AuthenticationError,
    BrokerError,
    ConnectionLost,
    ConsumerBusy,
    InvalidConfiguration,
    PersistenceError,
    ProducerFenced,
    PulsarError,
    ServerError,
    TimedOut,
)


def test_the_table_covers_every_code() -> None:
    assert set(REFUSALS) == set(ServerError)


def test_the_table_decides_nothing_by_default() -> None:
    assert {decision for pair in REFUSALS.values() for decision in pair} == {Decision.RETRY, Decision.FAIL}


def test_an_attached_owner_retries_wherever_a_new_one_does() -> None:
    assert (Decision.RETRY, Decision.FAIL) not in REFUSALS.values()


@pytest.mark.parametrize(
    ("error", "creating", "attached"),
    [
        (PersistenceError("x"), Decision.RETRY, Decision.RETRY),
        (ConsumerBusy("x"), Decision.FAIL, Decision.RETRY),
        (ProducerFenced("x"), Decision.FAIL, Decision.FAIL),
        (ConnectionLost("x"), Decision.RETRY, Decision.RETRY),
        (InvalidConfiguration("x"), Decision.FAIL, Decision.FAIL),
    ],
)
def test_decisions(error: PulsarError, creating: Decision, attached: Decision) -> None:
    assert (decide(error, False), decide(error, True)) == (creating, attached)


def test_an_opening_that_timed_out_fails_with_the_brokers_last_error() -> None:
    last: BrokerError = PersistenceError("disk")
    assert not_ready("producer 1", 3.0, last) is last


@pytest.mark.parametrize("last", [ConnectionLost("gone"), AuthenticationError("token")])
def test_other_last_errors_are_the_cause_of_a_timeout(last: PulsarError) -> None:
    error = not_ready("producer 1", 2.5, last)
    assert type(error) is TimedOut
    assert str(error) == f"producer 1 was not ready within 2.5 s; the last attempt: {last}"
    assert error.__cause__ is last


def test_a_timeout_without_an_attempt_has_no_cause() -> None:
    error = not_ready("consumer 2", 30.0, None)
    assert str(error) == "consumer 2 was not ready within 30 s"
    assert error.__cause__ is None
