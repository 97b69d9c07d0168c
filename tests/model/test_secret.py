"""`Secret`: no way but `reveal` shows the bytes."""

import copy
import json
import pickle
from typing import Any, cast

import pytest

from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.secret import Secret
from pulsar_trio import Basic, OAuth2, Token
from tests.canary import CANARY as TEXT

HALF = f"{TEXT}\ud800"
"""Text without a UTF-8 form; the environment has it for bytes that are not UTF-8."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: Secret(HALF),
        lambda: Token(HALF),
        lambda: Basic("ada", HALF),
        lambda: Basic(HALF, "word"),
        lambda: OAuth2("https://issuer", client_id="worker", client_secret=HALF),
        lambda: OAuth2("https://issuer", client_id=HALF, client_secret="word"),
        lambda: OAuth2("https://issuer", client_id="worker", client_secret="word", scope=HALF),
        lambda: OAuth2("https://issuer", client_id="worker", client_secret=Secret(TEXT.encode() + b"\xff")),
    ],
    ids=["secret", "token", "password", "user", "client secret", "client id", "scope", "bytes"],
)
def test_half_of_a_surrogate_pair_is_refused_without_the_secret(make: object) -> None:
    """Python's own error holds the whole text, and its `repr` shows it."""
    assert callable(make)
    with pytest.raises(InvalidConfiguration) as caught:
        make()
    error: BaseException | None = caught.value
    while error is not None:
        assert TEXT not in f"{error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("value", [TEXT, TEXT.encode(), Secret(TEXT)])
def test_only_reveal_shows_it(value: Any) -> None:
    """INV-X1: a secret prints as `***`."""
    secret = Secret(value)
    assert secret.reveal() == TEXT.encode()
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>5}", f"{[secret]}", "%s" % secret):  # noqa: UP031
        assert TEXT not in shown
    assert repr(secret) == "***"


def test_it_cannot_be_pickled_copied_or_made_json() -> None:
    secret = Secret(TEXT)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError) as caught:
            attempt(secret)
        assert TEXT not in str(caught.value)
    with pytest.raises(TypeError, match="a secret cannot be pickled"):
        pickle.dumps({"token": secret})


def test_equality_is_that_of_the_bytes_and_there_is_no_hash() -> None:
    assert Secret("a") == Secret(b"a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    with pytest.raises(TypeError):
        hash(Secret("a"))


def test_an_empty_secret_is_false() -> None:
    assert not Secret("")
    assert Secret("a")


@pytest.mark.parametrize("value", [None, 5, ["a"], bytearray(b"a")])
def test_anything_else_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(InvalidConfiguration, match=f"not {type(value).__name__}"):
        Secret(cast(Any, value))
