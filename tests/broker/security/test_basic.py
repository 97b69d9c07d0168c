"""Users and passwords of htpasswd."""

import pickle
from collections.abc import Callable
from unittest.mock import patch

import pytest

from pulsar_sansio import AuthenticationError, BasicProvider, Identity, InvalidConfiguration, Secret
from pulsar_sansio.broker.security import basic

# htpasswd -s: the SHA-1 of "password"
HTPASSWD = """
# users
ada:$apr1$12345678$XsuVNBMt1BhIqqVcUl6NI1
bob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=
"""


@pytest.mark.parametrize(("data", "role"), [(b"ada:p", "ada"), (b"bob:password", "bob")])
def test_a_right_password_proves_the_user(data: bytes, role: str) -> None:
    assert BasicProvider(HTPASSWD).authenticate(data, None) == Identity(role)


@pytest.mark.parametrize(
    "data", [b"ada:q", b"ada", b"ada:", b"", b":", b"bob:p", b"eve:p", b"\xff:p", b"ada:" + b"p" * 5000]
)
def test_other_credentials_are_refused_without_a_hint_to_the_user(data: bytes) -> None:
    with pytest.raises(AuthenticationError) as caught:
        BasicProvider(HTPASSWD).authenticate(data, None)
    assert "ada" not in str(caught.value)


@pytest.mark.parametrize(
    ("htpasswd", "kinds"),
    [
        (HTPASSWD, ["apr1", "sha1"]),
        (HTPASSWD.splitlines()[2], ["apr1"]),
        (HTPASSWD.splitlines()[3], ["sha1"]),
    ],
)
def test_a_refusal_of_any_user_hashes_in_each_kind_of_the_file(
    monkeypatch: pytest.MonkeyPatch, htpasswd: str, kinds: list[str]
) -> None:
    """Otherwise the time of the refusal would tell that an unknown user is unknown."""
    called: list[str] = []

    def noted(name: str) -> Callable[..., object]:
        real: Callable[..., object] = getattr(basic, name)

        def call(*arguments: object, **options: object) -> object:
            called.append(name)
            return real(*arguments, **options)

        return call

    for name in ("apr1", "sha1"):
        monkeypatch.setattr(basic, name, noted(name))
    provider = BasicProvider(htpasswd)
    for user in (b"ada", b"bob", b"eve"):
        called.clear()
        with pytest.raises(AuthenticationError):
            provider.authenticate(user + b":wrong", None)
        assert called == kinds


def test_no_password_belongs_to_the_hashes_of_nobody() -> None:
    """The comparison for a user without such a hash never proves anything, even if a password matched it."""
    matching = {"{SHA}": Secret("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=")}
    provider = BasicProvider(HTPASSWD)
    with patch.dict(basic.NO_PASSWORD, matching):
        for user in (b"ada", b"eve"):
            with pytest.raises(AuthenticationError):
                provider.authenticate(user + b":password", None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ada:$2y$05$" + "x" * 53, "line 1: bcrypt is not supported"),
        ("ada:plain", "line 1: a hash by htpasswd"),
        ("ada", "line 1 is not user:hash"),
        (":$apr1$x$tMwYqBfQwi3FYAr0aJc8M/", "line 1 is not user:hash"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_by_number(line: str | bytes, reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=reason) as caught:
        BasicProvider(line)
    assert "plain" not in str(caught.value)


def test_the_hashes_are_neither_shown_nor_pickled() -> None:
    provider = BasicProvider(HTPASSWD)
    assert repr(provider) == "BasicProvider(2 users)"
    with pytest.raises(TypeError):
        pickle.dumps(provider)
