"""`RetriedLookup`: one lookup, repeated until its one outcome or the operation timeout."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_sansio.client.lookup.questions import Query
from pulsar_sansio.client.lookup.retried_lookup import RetriedLookup
from pulsar_sansio.client.outputs import Retrying
from pulsar_sansio.model.errors import (
    AuthenticationError,
    AuthorizationError,
    PulsarError,
    ServiceNotReady,
    TimedOut,
    TooManyPartitions,
)
from tests.client.script import Script


class Attempt:
    """One attempt, which the test answers."""

    def __init__(self, done: Callable[..., None], failed: Callable[[PulsarError], None]) -> None:
        self.done = done
        self.failed = failed
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Lookup:
    """A lookup whose attempts and outcomes are kept."""

    def __init__(self) -> None:
        self.script = Script(operation_timeout=10.0)
        self.attempts: list[Attempt] = []
        self.results: list[Any] = []
        self.errors: list[PulsarError] = []
        services = self.script.client._services
        self.lookup = RetriedLookup(
            services,
            7,
            "the topics of a",
            self._ask,
            self.results.append,
            self.errors.append,
        )
        self.lookup.ask()

    def _ask(self, done: Callable[..., None], failed: Callable[[PulsarError], None]) -> Query:
        self.attempts.append(Attempt(done, failed))
        return cast(Query, self.attempts[-1])


def test_the_first_result_is_the_outcome() -> None:
    lookup = Lookup()
    lookup.attempts[0].done("result")
    lookup.script.advance(20)
    assert (lookup.results, lookup.errors, len(lookup.attempts)) == (["result"], [], 1)


def test_a_retryable_failure_is_told_and_repeated_after_a_backoff() -> None:
    lookup = Lookup()
    error = ServiceNotReady("later")
    lookup.attempts[0].failed(error)
    lookup.script.drain()
    (retrying,) = lookup.script.notices
    assert isinstance(retrying, Retrying)
    assert (retrying.error, len(lookup.attempts)) == (error, 1)
    lookup.script.advance(1)
    assert len(lookup.attempts) == 2
    lookup.attempts[1].done("result")
    assert (lookup.results, lookup.errors) == (["result"], [])


@pytest.mark.parametrize("error", [AuthorizationError("no"), AuthenticationError("no"), TooManyPartitions()])
def test_another_failure_is_the_outcome(error: PulsarError) -> None:
    """The policy is that of opening a producer: wrong credentials do not become right by waiting (GAP-04)."""
    lookup = Lookup()
    lookup.attempts[0].failed(error)
    lookup.script.advance(20)
    assert (lookup.results, lookup.errors, len(lookup.attempts)) == ([], [error], 1)


def test_the_operation_timeout_ends_it_with_the_last_failure_as_cause() -> None:
    lookup = Lookup()
    error = ServiceNotReady("later")
    lookup.attempts[0].failed(error)
    lookup.script.advance(11)
    (timeout,) = lookup.errors
    assert isinstance(timeout, TimedOut)
    assert str(timeout) == f"the topics of a were not known within 10 s; the last attempt: {error}"
    assert timeout.__cause__ is error
    assert lookup.attempts[-1].cancelled


def test_a_timeout_without_an_answer_has_no_cause() -> None:
    lookup = Lookup()
    lookup.script.advance(11)
    (timeout,) = lookup.errors
    assert (str(timeout), timeout.__cause__) == ("the topics of a were not known within 10 s", None)


def test_a_cancelled_lookup_has_no_outcome() -> None:
    lookup = Lookup()
    lookup.attempts[0].failed(ServiceNotReady("later"))
    lookup.lookup.cancel()
    lookup.script.advance(20)
    assert (lookup.results, lookup.errors, len(lookup.attempts)) == ([], [], 1)
    assert lookup.attempts[0].cancelled
