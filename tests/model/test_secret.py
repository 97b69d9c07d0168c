"""`Secret`: no text, exception or pickle that comes of it has its bytes."""

import pickle

import pytest

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_trio import Basic, OAuth2, Token
from tests.canary import CANARY

HALF = f"{CANARY}\ud800"
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
        lambda: OAuth2("https://issuer", client_id="worker", client_secret=Secret(CANARY.encode() + b"\xff")),
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
        assert CANARY not in f"{error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


def test_a_secret_prints_and_pickles_as_nothing() -> None:
    """INV-X1"""
    secret = Secret(CANARY)
    assert f"{secret} {secret!r} {[secret]}" == "*** *** [***]"
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(secret)
