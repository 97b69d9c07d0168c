"""`Authenticator`: what it makes of the answers of a provider."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from pulsar_sansio import AuthenticationError, Challenge, Identity
from pulsar_sansio.broker import BrokerAuthentication
from pulsar_sansio.broker.security.authenticator import MAX_CREDENTIALS, Authenticator
from tests.canary import CANARY

NOW = 1_700_000_000_000


class Provider:
    """A provider that answers with what the test gives it."""

    method = "test"

    def __init__(self, answer: Callable[[bytes], Any]) -> None:
        self.answer = answer

    def authenticate(self, data: bytes, certificate: str | None) -> Any:
        return self.answer(data)


def authenticator(answer: Callable[[bytes], Any], **options: Any) -> Authenticator:
    settings = BrokerAuthentication(providers=(cast(Any, Provider(answer)),), **options)
    return Authenticator(settings, lambda: NOW)


def test_an_identity_is_passed_on() -> None:
    identity = Identity("ada", expires_at_ms=NOW + 1, begins_at_ms=NOW)
    assert authenticator(lambda data: identity).begin("test", b"x", None) is identity
    assert authenticator(lambda data: identity).role("test", b"x", None) == "ada"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Identity("ada", begins_at_ms=NOW + 1), "not valid yet"),
        (Identity("ada", expires_at_ms=NOW), "have expired"),
        (Identity(""), "no role"),
        (Identity(cast(Any, 5)), "no role"),
        (None, "no role"),
        ("ada", "no role"),
    ],
)
def test_an_answer_that_proves_nothing_is_refused(answer: Any, words: str) -> None:
    with pytest.raises(AuthenticationError, match=words):
        authenticator(lambda data: answer).begin("test", b"x", None)


def test_what_a_provider_raises_is_named_by_its_type_alone() -> None:
    def fail(data: bytes) -> Any:
        raise KeyError(data.decode())

    with pytest.raises(AuthenticationError, match="the provider raised KeyError") as caught:
        authenticator(fail).begin("test", CANARY.encode(), None)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_error_of_the_provider_itself_is_passed_on() -> None:
    def fail(data: bytes) -> Any:
        raise AuthenticationError("no such user")

    with pytest.raises(AuthenticationError, match="no such user"):
        authenticator(fail).begin("test", b"x", None)


def test_credentials_without_end_are_not_shown_to_the_provider() -> None:
    asked: list[int] = []

    def answer(data: bytes) -> Identity:
        asked.append(len(data))
        return Identity("ada")

    judge = authenticator(answer)
    judge.begin("test", bytes(MAX_CREDENTIALS), None)
    with pytest.raises(AuthenticationError, match=f"credentials of {MAX_CREDENTIALS + 1} bytes"):
        judge.begin("test", bytes(MAX_CREDENTIALS + 1), None)
    assert asked == [MAX_CREDENTIALS]


def test_each_step_is_judged_and_one_step_methods_have_a_role() -> None:
    judge = authenticator(lambda data: Challenge(b"prove it", lambda proof: Identity(proof.decode())))
    first = judge.begin("test", b"", None)
    assert isinstance(first, Challenge)
    assert judge.step(first.then, b"ada") == Identity("ada")
    with pytest.raises(AuthenticationError, match="no role"):
        judge.step(first.then, b"")
    with pytest.raises(AuthenticationError, match="needs several steps"):
        judge.role("test", b"", None)


def test_a_method_without_a_provider_has_the_anonymous_role_or_none() -> None:
    with pytest.raises(AuthenticationError, match="no provider of the method 'other'"):
        authenticator(lambda data: Identity("ada")).begin("other", b"x", None)
    anonymous = authenticator(lambda data: Identity("ada"), anonymous_role="guest")
    assert anonymous.begin("other", b"x", None) == Identity("guest")


@pytest.mark.parametrize(
    ("role", "original", "valid"),
    [
        ("proxy", "ada", True),
        ("proxy", None, False),
        ("proxy", "", False),
        ("proxy", "proxy", False),
        ("proxy", "gate", False),
        ("ada", None, True),
        ("ada", "", True),
        ("ada", "bob", False),
    ],
)
def test_only_a_proxy_stands_for_another_role(role: str, original: str | None, valid: bool) -> None:
    judge = authenticator(lambda data: Identity("ada"), proxy_roles=frozenset({"proxy", "gate"}))
    assert judge.valid_principals(role, original) is valid
