"""`OAuth2` against an issuer on this machine: discovery, cache, repetitions, and errors without secrets."""

import gzip
import json
import traceback
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_trio import (
    AuthenticationError,
    AuthenticationProvider,
    BrokerAuthentication,
    CredentialsFailed,
    Identity,
    InvalidConfiguration,
    OAuth2,
    Secret,
    open_broker,
    open_client,
)
from tests.canary import CANARY

from .issuer import LocalIssuer, open_issuer


@pytest.fixture
async def issuer() -> AsyncIterator[LocalIssuer]:
    async with open_issuer() as opened:
        yield opened


def by_id(issuer: LocalIssuer, **options: object) -> OAuth2:
    return OAuth2(issuer.url, client_id="worker", client_secret=CANARY, **options)  # type: ignore[arg-type]


async def token(method: OAuth2) -> bytes:
    return (await method.credentials("broker")).reveal()


async def failure(method: OAuth2) -> str:
    """Return the text of the error; nothing that hangs on the error has the secret."""
    with pytest.raises(CredentialsFailed) as caught:
        await method.credentials("broker")
    error: BaseException | None = caught.value
    assert CANARY not in "".join(traceback.format_exception(error))
    while error is not None:
        assert type(error).__module__.partition(".")[0] not in ("httpx2", "json")
        error = error.__cause__ or error.__context__
    return str(caught.value)


async def test_the_request_has_what_the_client_was_given(issuer: LocalIssuer) -> None:
    issuer.tokens()
    method = by_id(issuer, audience="urn:broker", scope="a b")
    assert method.method == "token"
    assert await token(method) == b"token-1"
    assert issuer.asked[0][0] == "/.well-known/openid-configuration"
    assert issuer.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": "worker",
            "client_secret": CANARY,
            "audience": "urn:broker",
            "scope": "a b",
        }
    ]


async def test_a_credentials_file_is_read_for_each_token(issuer: LocalIssuer, tmp_path: Path) -> None:
    issuer.tokens(lifetime=None)
    file = tmp_path / "credentials.json"
    values = {
        "type": "client_credentials",
        "client_id": "one",
        "client_secret": "x",
        "issuer_url": issuer.url,
    }
    file.write_text(json.dumps(values | {"type": "client_credentials"}))
    method = OAuth2(credentials=file)
    assert await token(method) == b"token-1"
    file.write_text(json.dumps(values | {"client_id": "two"}))
    assert await token(method) == b"token-2"
    assert [form["client_id"] for form in issuer.forms] == ["one", "two"]


async def test_a_token_is_kept_until_nine_tenths_of_its_life(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.tokens(lifetime=1000)
    method = by_id(issuer)
    began, passed = trio.current_time(), 0.0
    assert await token(method) == b"token-1"
    now = trio.current_time
    monkeypatch.setattr("pulsar_trio.security.oauth2.trio.current_time", lambda: now() + passed)
    passed = 890.0
    assert await token(method) == b"token-1"
    passed = 901.0 + now() - began
    assert await token(method) == b"token-2"


@pytest.mark.parametrize("status", [401, 503])
async def test_a_token_is_used_to_its_end_while_there_is_no_next_one(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """The last tenth of its life is there for an issuer that fails for a while."""
    monkeypatch.setattr("pulsar_trio.security.oauth2.RENEWAL_TIME", 0.2)
    issuer.tokens(lifetime=1000)
    good = issuer.answers["/token"]
    method = by_id(issuer, timeout=1.0)
    assert await token(method) == b"token-1"
    issuer.answers["/token"] = lambda form: (status, {})
    method._issued_at -= 950
    assert await token(method) == b"token-1"
    method.discard(Secret("token-1"))
    await failure(method)
    issuer.answers["/token"] = good
    newest = await token(method)
    issuer.answers["/token"] = lambda form: (status, {})
    method._issued_at -= 990
    assert await token(method) == newest
    method._issued_at -= 11
    await failure(method)


class OnlyLater(AuthenticationProvider):
    """Accepts each token but the first, as a broker does whose key has changed since."""

    method = "token"

    def authenticate(self, data: bytes, certificate: str | None) -> Identity:
        if data == b"token-1":
            raise AuthenticationError("the signature is wrong")
        return Identity("worker")


async def test_a_token_that_a_broker_refuses_is_not_shown_again(issuer: LocalIssuer) -> None:
    """INV-N10: its life is not over by the issuer's word."""
    issuer.tokens()
    authentication = BrokerAuthentication((OnlyLater(),), authorization=False)
    async with (
        open_broker(authentication=authentication) as broker,
        open_client(broker.url, authentication=by_id(issuer)) as client,
    ):
        with pytest.raises(AuthenticationError):
            await client.topics("public/default")
        async with client.create_producer("demo") as producer:
            await producer.send(b"x")
    assert len(issuer.forms) == 2


async def test_tasks_that_ask_together_share_one_request(issuer: LocalIssuer) -> None:
    issuer.tokens(lifetime=None)
    issuer.pause = 0.05
    method = by_id(issuer)
    found: list[bytes] = []

    async def ask() -> None:
        found.append(await token(method))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert found == [b"token-1"] * 5


async def test_tasks_that_ask_together_share_a_failure(issuer: LocalIssuer) -> None:
    issuer.tokens()
    issuer.answers["/token"] = lambda form: (401, {"error": "invalid_client"})
    issuer.pause = 0.05
    method = by_id(issuer)
    texts: list[str] = []

    async def ask() -> None:
        texts.append(await failure(method))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
    assert len(issuer.forms) == 1
    assert texts == [texts[0]] * 3


async def test_another_task_asks_when_the_first_is_cancelled(issuer: LocalIssuer) -> None:
    issuer.tokens()
    issuer.pause = 0.1
    method = by_id(issuer)
    found: list[bytes] = []

    async def ask(scope: trio.CancelScope) -> None:
        with scope:
            found.append(await token(method))

    first = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, first)
        nursery.start_soon(ask, trio.CancelScope())
        await trio.testing.wait_all_tasks_blocked(0.02)
        first.cancel()
    assert len(found) == 1


async def test_failures_that_may_pass_are_repeated(issuer: LocalIssuer) -> None:
    issuer.tokens()
    good = issuer.answers["/token"]
    issuer.answers["/token"] = lambda form: (503, {}) if len(issuer.forms) < 3 else good(form)
    assert await token(by_id(issuer)) == b"token-3"


async def test_the_time_for_repetitions_is_limited_by_option_and_caller(issuer: LocalIssuer) -> None:
    issuer.tokens()
    issuer.answers["/token"] = lambda form: (503, {})
    assert "status 503" in await failure(by_id(issuer, timeout=0.3))
    with trio.fail_after(0.3):
        assert "status 503" in await failure(by_id(issuer))


async def test_an_issuer_that_does_not_listen_or_answer(issuer: LocalIssuer) -> None:
    nothing = OAuth2("http://127.0.0.1:1", client_id="worker", client_secret=CANARY, timeout=0.3)
    assert "127.0.0.1:1" in await failure(nothing)
    issuer.tokens()
    issuer.pause = 5
    assert "within 0.2 s" in await failure(by_id(issuer, timeout=0.25))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, {"error": "invalid_client", "error_description": CANARY}), "invalid_client (status 401)"),
        ((302, {}), "status 302"),
        ((200, b"x" * 300_000), "no JSON object"),
        ((200, {"token": CANARY}), "has no token"),
    ],
)
async def test_answers_that_end_the_attempt(
    issuer: LocalIssuer, answer: tuple[int, object], words: str
) -> None:
    """The library follows no redirect, an answer is read up to its limit, and no error shows its content."""
    issuer.tokens()
    issuer.answers["/token"] = lambda form: answer
    assert words in await failure(by_id(issuer))
    assert len(issuer.forms) == 1


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("http://a..b/token", "http://a..b/token"),
        (f"http://{'a' * 64}/token", f"{'a' * 64}/token"),
        ("http://999.1.1.1/token", "http://999.1.1.1/token: InvalidURL"),
    ],
)
async def test_an_endpoint_that_no_request_can_go_to(issuer: LocalIssuer, endpoint: str, words: str) -> None:
    """The library or the resolver refuses the URL by exceptions that are not those of HTTP."""
    issuer.answers["/.well-known/openid-configuration"] = lambda form: (200, {"token_endpoint": endpoint})
    assert words in await failure(by_id(issuer, timeout=0.3))


async def test_an_answer_is_not_decompressed(issuer: LocalIssuer) -> None:
    """A few kilobytes could become gigabytes."""
    issuer.tokens()
    good = issuer.answers["/.well-known/openid-configuration"]
    issuer.headers = [("Content-Encoding", "gzip")]
    issuer.answers["/.well-known/openid-configuration"] = lambda form: (
        200,
        gzip.compress(json.dumps(good(form)[1]).encode()),
    )
    assert "no JSON object" in await failure(by_id(issuer))


def test_options_that_contradict_each_other() -> None:
    for wrong, words in (
        ({}, "give credentials, or client_id and client_secret"),
        ({"credentials": "f", "timeout": 0}, "timeout"),
        ({"credentials": "f", "timeout": True}, "timeout"),
        ({"credentials": "f", "timeout": 3601}, "timeout"),
        ({"credentials": "f", "issuer_url": "broker:6650"}, "issuer_url"),
    ):
        with pytest.raises(InvalidConfiguration, match=words):
            OAuth2(**wrong)


def test_no_text_of_it_has_the_secret() -> None:
    method = OAuth2("https://issuer", client_id="worker", client_secret=Secret(CANARY))
    assert repr(method) == "OAuth2('https://issuer', client_id='worker')"
    assert repr(OAuth2(credentials="file.json")) == "OAuth2(None, credentials='file.json')"
