"""`OAuth2Issuer`: what it sends, when it waits, and what it makes of each answer, step by step."""

import json
import sys
from typing import Any

import httpx2
import pytest

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret
from pulsar_security import HttpFailure, HttpRequest, Issued, IssuerAnswer, OAuth2Issuer, Pause, TokenRequest
from pulsar_security.oauth2_issuer import MAX_ANSWER, MAX_URL
from tests.canary import CANARY

REQUEST = TokenRequest("https://issuer", "worker", Secret(CANARY), None, None)
FORM = {"grant_type": "client_credentials", "client_id": "worker", "client_secret": CANARY}
OPENID = HttpRequest("GET", "https://issuer/.well-known/openid-configuration", None)
SERVER = HttpRequest("GET", "https://issuer/.well-known/oauth-authorization-server", None)
ASK = HttpRequest("POST", "https://issuer/token", FORM)
NOT_THERE = IssuerAnswer(404, b"")


def answer(status: int = 200, **values: object) -> IssuerAnswer:
    return IssuerAnswer(status, json.dumps(values).encode())


METADATA = answer(token_endpoint="https://issuer/token")
TOKEN = answer(access_token="t", expires_in=60)


def told(
    issuer: OAuth2Issuer, *answers: IssuerAnswer | HttpFailure | None, request: TokenRequest = REQUEST
) -> list[object]:
    """Return the steps of a request that is told these outcomes; the last is the token or the error."""
    steps, outcomes = issuer.steps(request), iter(answers)
    found: list[object] = [next(steps)]
    try:
        for outcome in outcomes:
            found.append(steps.send(outcome))
    except StopIteration as end:
        found.append(end.value)
    except CredentialsFailed as error:
        found.append(str(error))
    assert next(outcomes, None) is None
    return found


def test_the_endpoint_is_asked_for_once() -> None:
    issuer = OAuth2Issuer("https://issuer/")
    issued = Issued(Secret("t"), 60.0)
    assert told(issuer, NOT_THERE, METADATA, TOKEN) == [OPENID, SERVER, ASK, issued]
    wide = TokenRequest("https://issuer", "worker", Secret(CANARY), "urn:pulsar", "send")
    asked = HttpRequest("POST", ASK.url, {**FORM, "audience": "urn:pulsar", "scope": "send"})
    assert told(issuer, TOKEN, request=wide) == [asked, issued]
    assert CANARY not in repr(asked)
    assert (issued.refresh_at(10), issued.expires_at(10)) == (64, 70)


def test_an_issuer_with_a_path_and_a_port() -> None:
    """RFC 8414, 3.1, puts its well-known path before the path of the issuer."""
    found = told(OAuth2Issuer("https://issuer:8443/realm/"), NOT_THERE, METADATA, TOKEN)
    assert found[:2] == [
        HttpRequest("GET", "https://issuer:8443/realm/.well-known/openid-configuration", None),
        HttpRequest("GET", "https://issuer:8443/.well-known/oauth-authorization-server/realm", None),
    ]


def test_an_issuer_without_encryption_may_name_such_an_endpoint() -> None:
    metadata = answer(token_endpoint="http://issuer/token")
    assert told(OAuth2Issuer("http://issuer"), metadata, TOKEN)[-1] == Issued(Secret("t"), 60.0)


def test_an_endpoint_that_is_gone_is_asked_for_anew() -> None:
    issuer = OAuth2Issuer("https://issuer")
    gone = "OAuth2: the token endpoint https://issuer/token is not there"
    assert told(issuer, METADATA, NOT_THERE) == [OPENID, ASK, gone]
    assert told(issuer, METADATA, TOKEN)[:2] == [OPENID, ASK]


def test_a_failure_that_may_pass_is_followed_by_pauses_up_to_the_longest() -> None:
    down = HttpFailure("down", may_pass=True)
    found = told(OAuth2Issuer("https://issuer"), *[down, None] * 6, answer(503), None, answer(429))
    pauses = [step for step in found if isinstance(step, Pause)]
    status = f"{OPENID.url} answers with status"
    assert pauses == [
        *(Pause(seconds, "down") for seconds in (0.1, 0.2, 0.4, 0.8, 1.6, 2.0)),
        Pause(2.0, f"{status} 503"),
        Pause(2.0, f"{status} 429"),
    ]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (HttpFailure("no route", may_pass=False), "no route"),
        (answer(401, error="invalid_client"), f"{ASK.url} answers with invalid_client (status 401)"),
        (answer(400, error=CANARY), f"{ASK.url} answers with status 400"),
        (answer(400, error=7), f"{ASK.url} answers with status 400"),
        (IssuerAnswer(302, b"<html>"), f"{ASK.url} answers with status 302"),
        (IssuerAnswer(200, b"{"), f"the answer of {ASK.url} is no JSON object"),
        (IssuerAnswer(200, b"[]"), f"the answer of {ASK.url} is no JSON object"),
        (
            IssuerAnswer(200, TOKEN.content.ljust(MAX_ANSWER + 1)),
            f"the answer of {ASK.url} is no JSON object",
        ),
        (answer(), f"the answer of {ASK.url} has no token"),
        (answer(access_token=7), f"the answer of {ASK.url} has no token"),
        (answer(access_token=f"{CANARY} "), f"the answer of {ASK.url} has no token"),
        (answer(access_token=f"{CANARY}\ud800"), f"the answer of {ASK.url} has no token"),
    ],
)
def test_an_outcome_that_ends_the_attempt(outcome: IssuerAnswer | HttpFailure, text: str) -> None:
    """An error code that is no word of the standard might repeat what the client sent."""
    assert told(OAuth2Issuer("https://issuer"), METADATA, outcome) == [OPENID, ASK, f"OAuth2: {text}"]


@pytest.mark.parametrize(
    ("seconds", "lifetime"),
    [("60", 60), (1.5, 1.5), (None, 0), (True, 0), (-1, 0), (1e9, 0), ("1" * 10, 0), ("1.5", 0)],
)
def test_the_life_of_a_token(seconds: object, lifetime: float) -> None:
    found = told(OAuth2Issuer("https://issuer"), METADATA, answer(access_token="t", expires_in=seconds))
    assert found[-1] == Issued(Secret("t"), lifetime)


@pytest.mark.parametrize(
    "endpoint",
    [
        None,
        7,
        "http://issuer/token",
        "ftp://issuer/token",
        "https:///token",
        "https://[",
        "https://user:word@issuer/token",
        "https://issuer:0",
        "https://issuer:x",
        "https://é",
        "https://issuer/\x7f",
        "https://issuer/" + "t" * MAX_URL,
    ],
)
def test_metadata_that_name_no_usable_endpoint(endpoint: object) -> None:
    """An issuer over https names no endpoint without encryption."""
    text = f"OAuth2: the metadata {OPENID.url} name no usable token_endpoint"
    assert told(OAuth2Issuer("https://issuer"), answer(token_endpoint=endpoint)) == [OPENID, text]


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://issuer", "https://issuer"),
        ("https://issuer", "https://issuer/"),
        ("https://issuer/", "https://issuer"),
        ("https://issuer", None),
    ],
)
def test_metadata_of_this_issuer(url: str, named: object) -> None:
    """A slash at the end makes no other issuer, and metadata without a name are taken as they are."""
    metadata = answer(issuer=named, token_endpoint="https://issuer/token")
    assert told(OAuth2Issuer(url), metadata, TOKEN) == [OPENID, ASK, Issued(Secret("t"), 60.0)]


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("https://other", "of https://other"),
        ("http://issuer", "of http://issuer"),
        ("https://issuer/realm", "of https://issuer/realm"),
        ("https://issuer//", "of https://issuer//"),
        ("\x1b[2J", "of no URL"),
        ("", "of no URL"),
        (7, "of no URL"),
    ],
)
def test_metadata_of_another_issuer(named: object, shown: str) -> None:
    """RFC 8414, 3.3: a client must not use them."""
    metadata = answer(issuer=named, token_endpoint="https://issuer/token")
    text = (
        f"OAuth2: the metadata {OPENID.url} are {shown}, not of https://issuer: "
        "issuer_url has to be the issuer's own name"
    )
    assert told(OAuth2Issuer("https://issuer"), metadata) == [OPENID, text]


def test_an_issuer_without_metadata() -> None:
    text = f"OAuth2: no metadata at {OPENID.url} nor at {SERVER.url}"
    assert told(OAuth2Issuer("https://issuer"), NOT_THERE, NOT_THERE) == [OPENID, SERVER, text]


@pytest.mark.parametrize(
    "url",
    [
        "issuer",
        "broker:6650",
        "ftp://issuer",
        "https://i?q",
        "https://i#f",
        "https://i /",
        "https://user:canary-secret@i",
        "https://" + "i" * MAX_URL,
    ],
)
def test_a_url_that_no_issuer_has(url: str) -> None:
    with pytest.raises(InvalidConfiguration, match="OAuth2: issuer_url") as caught:
        OAuth2Issuer(url)
    assert CANARY not in str(caught.value)


def test_the_library_is_wanted_only_for_an_issuer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(InvalidConfiguration, match="OAuth2 needs the library httpx2"):
        OAuth2Issuer("https://issuer")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (httpx2.ConnectError("refused"), HttpFailure("URL: refused", may_pass=True)),
        (httpx2.ReadTimeout(""), HttpFailure("URL: ReadTimeout", may_pass=True)),
        (httpx2.InvalidURL(CANARY), HttpFailure("URL: InvalidURL", may_pass=False)),
    ],
)
def test_the_meaning_of_an_exception_of_the_library(error: Any, expected: HttpFailure) -> None:
    issuer = OAuth2Issuer("https://issuer")
    assert isinstance(error, issuer.failures)
    assert issuer.failure_of("URL", error) == expected


def test_the_error_of_an_adapter_that_waited_too_long() -> None:
    issuer = OAuth2Issuer("https://issuer")
    text = "OAuth2: no token of https://issuer within 1.5 s: "
    assert str(issuer.too_late(1.5, None)) == f"{text}no answer"
    assert str(issuer.too_late(1.5, "down")) == f"{text}down"
