"""Requests and answers: what a target, a body and a value may be, and the words of a refusal."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pulsar_sansio import AlreadyExists, InUse, InvalidConfiguration, LocalProtocolError, NotFound
from pulsar_trio.broker.admin.messages import (
    MAX_DIGITS,
    PARTITIONED_METADATA,
    Refused,
    Request,
    answer_to,
    answering,
    json_answer,
    path_number,
    phrase,
    properties,
    truth,
    whole_number,
)


def request(
    body: bytes = b"", content_type: str = "application/json", parameters: Mapping[str, str] | None = None
) -> Request:
    return Request("POST", (), {}, content_type, body, dict(parameters or {}))


# --- the target ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b", ("a", "b"), {}),
        ("/a/b/", ("a", "b"), {}),
        ("/a//b", ("a", "", "b"), {}),
        ("/a%2Fb/%C3%BC", ("a/b", "ü"), {}),
        ("/a?x=1&y=&x=2", ("a",), {"x": "2", "y": ""}),
        ("/a?x=%C3%BC+b", ("a",), {"x": "ü b"}),
        ("http://broker:8080/a?x=://", ("a",), {"x": "://"}),
        ("/redirect?to=http://x/", ("redirect",), {"to": "http://x/"}),
    ],
)
def test_a_target_is_path_and_query(target: str, path: tuple[str, ...], query: dict[str, str]) -> None:
    found = Request.parse("GET", target, "Application/JSON; charset=utf-8")
    assert (found.path, found.query, found.content_type) == (path, query, "application/json")


@pytest.mark.parametrize(
    "target", ["a", "a?to=http://x/y", "*", "", "/%", "/%2", "/%zz", "/%ff", "/a?x=%ff", "/a?" + "x=1&" * 51]
)
def test_a_target_that_cannot_be_decoded_is_refused(target: str) -> None:
    with pytest.raises(Refused) as caught:
        Request.parse("GET", target, "")
    assert caught.value.status == 400


# --- the body -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "", 415),
        (b"{", "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"NaN", "application/json", 400),
        (b'{"a": Infinity}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_body_that_is_no_json_is_refused(body: bytes, content_type: str, status: int) -> None:
    with pytest.raises(Refused) as caught:
        request(body, content_type).json()
    assert caught.value.status == status


def test_a_body_has_one_of_two_media_types() -> None:
    assert request(b"[1]").json() == [1]
    assert request(b"2", PARTITIONED_METADATA).json() == 2


@pytest.mark.parametrize("value", [[], "x", 1, None])
def test_an_object_is_asked_for(value: object) -> None:
    with pytest.raises(Refused, match="has to be a JSON object"):
        request(json.dumps(value).encode()).json_object()


# --- names in the path --------------------------------------------------------------------------------


def test_names_of_the_path_are_whole_names() -> None:
    found = request(
        parameters={"domain": "non-persistent", "tenant": "acme", "namespace": "orders", "topic": "t"}
    )
    assert (found.topic, found.namespace) == ("non-persistent://acme/orders/t", "acme/orders")


@pytest.mark.parametrize(
    ("parts", "what"),
    [({"tenant": "a b"}, "Namespace"), ({"namespace": ""}, "Namespace"), ({"topic": ""}, "Topic")],
)
def test_names_that_cannot_be(parts: dict[str, str], what: str) -> None:
    given = {"domain": "persistent", "tenant": "acme", "namespace": "orders", "topic": "t", **parts}
    with pytest.raises(Refused) as caught:
        _ = request(parameters=given).topic if what == "Topic" else request(parameters=given).namespace
    assert (caught.value.status, caught.value.reason) == (412, f"{what} name is not valid")


# --- values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "bits", "number"),
    [
        (0, 32, 0),
        ("-5", 32, -5),
        (2**31 - 1, 32, 2**31 - 1),
        (-(2**31), 32, -(2**31)),
        ("9223372036854775807", 64, 2**63 - 1),
        (2**31, 32, None),
        (-(2**31) - 1, 32, None),
        (2**63, 64, None),
        (True, 32, None),
        (1.0, 32, None),
        ("+5", 32, None),
        ("", 32, None),
        ("1" * 20, 128, None),
        (None, 32, None),
    ],
)
def test_whole_numbers(value: object, bits: int, number: int | None) -> None:
    """A JSON number or its digits; None is a refusal."""
    if number is not None:
        assert whole_number(value, bits) == number
    else:
        with pytest.raises(Refused, match="has to be a whole number"):
            whole_number(value, bits)


@pytest.mark.parametrize(
    ("text", "signed", "number"),
    [
        ("0", False, 0),
        ("9" * MAX_DIGITS, False, 10**MAX_DIGITS - 1),
        ("-1", True, -1),
        ("-1", False, None),
        ("9" * (MAX_DIGITS + 1), False, None),
        ("--1", True, None),
        ("", False, None),
        ("²", False, None),
        ("٣", False, None),
    ],
)
def test_numbers_in_the_path(text: str, signed: bool, number: int | None) -> None:
    if number is not None:
        assert path_number(text, signed=signed) == number
    else:
        with pytest.raises(Refused) as caught:
            path_number(text, signed=signed)
        assert caught.value.status == 404


@pytest.mark.parametrize("value", [1, 0, "true", None])
def test_truth_is_no_number_and_no_text(value: object) -> None:
    assert (truth(True), truth(False)) == (True, False)
    with pytest.raises(Refused, match="true or false"):
        truth(value)


@pytest.mark.parametrize("value", [None, [], "x", {"a": 1}, {"a": None}])
def test_properties_are_texts(value: Any) -> None:
    assert properties({"a": "b"}) == {"a": "b"}
    with pytest.raises(Refused, match="map of text to text"):
        properties(value)


# --- answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "body"), [("ü", '"ü"'.encode()), ("\ud800", b'"\\ud800"')])
def test_a_name_that_is_no_proper_text_is_escaped(value: str, body: bytes) -> None:
    assert json_answer(value).body == body


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [(NotFound("no t"), 404, "gone"), (InvalidConfiguration("bad"), 422, "bad")],
)
def test_a_path_has_its_own_words_for_some_refusals(
    error: LocalProtocolError, status: int, reason: str
) -> None:
    """An empty reason stands for the broker's text."""
    with pytest.raises(Refused) as caught:
        with answering((NotFound, 404, "gone"), (InvalidConfiguration, 422, "")):
            raise error
    assert (caught.value.status, caught.value.reason) == (status, reason)


@pytest.mark.parametrize(
    ("error", "status"),
    [(AlreadyExists("there"), 409), (InUse("used"), 412), (LocalProtocolError("no"), 412)],
)
def test_other_refusals_have_the_status_of_their_kind(error: LocalProtocolError, status: int) -> None:
    with pytest.raises(type(error)) as caught:
        with answering((NotFound, 404, "gone")):
            raise error
    answer = answer_to(caught.value)
    assert (answer.status, json.loads(answer.body)) == (status, {"reason": str(error)})


def test_a_status_without_a_phrase() -> None:
    assert (phrase(404), phrase(499)) == ("Not Found", "")
