"""`Secret`: no way but `reveal` shows the bytes."""

import copy
import json
import pickle
from typing import Any, cast

import pytest

from pulsar_sansio.model.errors import InvalidConfiguration
from pulsar_sansio.model.secret import Secret
from tests.canary import CANARY as TEXT


@pytest.mark.parametrize("value", [TEXT, TEXT.encode(), Secret(TEXT)])
def test_only_reveal_shows_it(value: Any) -> None:
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
