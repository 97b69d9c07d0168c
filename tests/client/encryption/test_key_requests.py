"""`KeyRequests`: a question for a key is answered once, cancelled, or too late."""

import pytest

from pulsar_sansio.client.connecting.services import Durations
from pulsar_sansio.client.encryption.key_requests import KeyAnswer, KeyRequests
from pulsar_sansio.client.outputs import EncryptionKeyWanted, Output
from pulsar_sansio.core.context import Context
from pulsar_sansio.model.config import ClientConfig
from pulsar_sansio.model.errors import CryptoError

from .encrypted import info_of

SECOND = 1_000_000_000


@pytest.fixture
def context() -> Context[Output]:
    return Context(0, 1)


@pytest.fixture
def requests(context: Context[Output]) -> KeyRequests:
    config = ClientConfig("pulsar://broker", operation_timeout=3.0)
    return KeyRequests(context, Durations.of(config), None)


def test_a_question_is_asked_with_all_that_a_key_reader_needs(
    requests: KeyRequests, context: Context[Output]
) -> None:
    answers: list[KeyAnswer] = []
    request = requests.ask("reader", "k", {"version": "1"}, private=True, then=answers.append)
    assert list(context.outputs) == [EncryptionKeyWanted(request, "reader", "k", {"version": "1"}, True)]
    assert answers == []
    requests.answered(request, info_of("b"))
    requests.answered(request, CryptoError("late"))
    assert answers == [info_of("b")]
    assert context.deadlines.next() is None


def test_an_error_names_the_key_shortly(requests: KeyRequests) -> None:
    """The error keeps the cause of the key reader's (rule ERR-12)."""
    answers: list[KeyAnswer] = []
    request = requests.ask("reader", "k" * 1000, {}, private=True, then=answers.append)
    error = CryptoError("no such file")
    error.__cause__ = cause = FileNotFoundError()
    requests.answered(request, error)
    assert str(answers[0]) == f"encryption key '{'k' * 99}: no such file"
    assert isinstance(answers[0], CryptoError)
    assert answers[0].__cause__ is cause


def test_a_cancelled_question_has_no_answer(requests: KeyRequests, context: Context[Output]) -> None:
    answers: list[KeyAnswer] = []
    request = requests.ask("reader", "k", {}, private=False, then=answers.append)
    requests.cancel(request)
    requests.cancel(request)
    requests.answered(request, info_of("b"))
    assert answers == []
    assert context.deadlines.next() is None


def test_a_question_without_an_answer_fails_after_the_operation_timeout(
    requests: KeyRequests, context: Context[Output]
) -> None:
    answers: list[KeyAnswer] = []
    request = requests.ask("reader", "k", {}, private=False, then=answers.append)
    context.deadlines.run(3 * SECOND - 1)
    assert answers == []
    context.deadlines.run(3 * SECOND)
    assert str(answers[0]) == "encryption key 'k': the key reader did not answer within 3 s"
    requests.answered(request, info_of("b"))
    assert len(answers) == 1
