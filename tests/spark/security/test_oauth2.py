"""Tokens of OAuth 2.0 by blocking calls: one for each process, until nine tenths of its life are over."""

import gzip
import json
import socket
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from pulsar_sansio import CredentialsFailed
from pulsar_spark.security import oauth2
from pulsar_spark.security.access import Access
from pulsar_spark.security.carried_secret import CarriedSecret
from pulsar_spark.security.oauth2 import OAuth2Options, fetch_token
from tests.patience import PATIENCE
from tests.trio.security.issuer import LocalIssuer

SECRET = "canary-secret"


@pytest.fixture(autouse=True)
def fresh(issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The issuer was not asked yet, and the process holds no token."""
    issuer.asked.clear()
    issuer.answers.clear()
    issuer.headers.clear()
    issuer.pause = 0.0
    monkeypatch.setattr(oauth2, "_held", {})


def by_id(issuer: LocalIssuer, **options: Any) -> OAuth2Options:
    return OAuth2Options(
        issuer=issuer.url, client_id="worker", client_secret=CarriedSecret(SECRET), **options
    )


def failure(options: OAuth2Options) -> str:
    """Return the text of the error; nothing that hangs on the error has the secret."""
    with pytest.raises(CredentialsFailed) as caught:
        fetch_token(options)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    error: BaseException | None = caught.value
    while error is not None:
        assert type(error).__module__.partition(".")[0] not in ("httpx2", "json")
        error = error.__cause__ or error.__context__
    return str(caught.value)


def test_the_request_has_what_the_options_say(issuer: LocalIssuer) -> None:
    issuer.tokens()
    access = Access(method="oauth2", oauth2=by_id(issuer, audience="urn:broker", scope="a b"))
    assert access.client_config()["authentication_method"] == "token"
    assert access.credentials().reveal() == b"token-1"
    assert issuer.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": "worker",
            "client_secret": SECRET,
            "audience": "urn:broker",
            "scope": "a b",
        }
    ]


def test_a_process_holds_one_token_for_equal_options(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.tokens(lifetime=1000)
    now = 5000.0
    monkeypatch.setattr("pulsar_spark.security.oauth2.time.monotonic", lambda: now)
    assert [fetch_token(by_id(issuer)).reveal() for _ in range(2)] == [b"token-1"] * 2
    assert fetch_token(by_id(issuer, scope="other")).reveal() == b"token-2"
    now += 890
    assert fetch_token(by_id(issuer)).reveal() == b"token-1"
    now += 11
    assert fetch_token(by_id(issuer)).reveal() == b"token-3"


def test_a_token_is_used_to_its_end_while_there_is_no_next_one(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last tenth of its life is there for an issuer that fails for a while."""
    issuer.tokens(lifetime=1000)
    now = 5000.0
    monkeypatch.setattr("pulsar_spark.security.oauth2.time.monotonic", lambda: now)
    assert fetch_token(by_id(issuer)).reveal() == b"token-1"
    issuer.answers["/token"] = lambda form: (401, {})
    now += 999
    assert fetch_token(by_id(issuer)).reveal() == b"token-1"
    now += 2
    assert "status 401" in failure(by_id(issuer))


def test_the_tokens_that_a_process_holds_are_limited(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.tokens()
    monkeypatch.setattr(oauth2, "MAX_HELD", 2)
    for scope in "abc":
        fetch_token(by_id(issuer, scope=scope))
    assert [options.scope for options in oauth2._held] == ["c"]


def test_the_file_is_read_for_each_token(issuer: LocalIssuer, tmp_path: Path) -> None:
    issuer.tokens(lifetime=None)
    file = tmp_path / "credentials.json"
    options = OAuth2Options(credentials=str(file))
    assert f"auth.oauth2Credentials '{file}': No such file" in failure(options)
    for client_id in ("one", "two"):
        values = {"client_id": client_id, "client_secret": SECRET, "issuer_url": issuer.url}
        file.write_text(json.dumps(values))
        fetch_token(options)
    assert [form["client_id"] for form in issuer.forms] == ["one", "two"]
    file.write_text(json.dumps({"client_secret": SECRET}))
    assert "has no client_id" in failure(options)


def test_failures_that_may_pass_are_repeated(issuer: LocalIssuer) -> None:
    issuer.tokens()
    good = issuer.answers["/token"]
    issuer.answers["/token"] = lambda form: (503, {}) if len(issuer.forms) < 3 else good(form)
    assert fetch_token(by_id(issuer)).reveal() == b"token-3"


def test_the_time_for_a_token_is_limited(issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth2, "TIMEOUT", 0.3)
    issuer.tokens()
    issuer.answers["/token"] = lambda form: (503, {})
    assert "status 503" in failure(by_id(issuer))
    nothing = OAuth2Options(
        issuer="http://127.0.0.1:1", client_id="worker", client_secret=CarriedSecret(SECRET)
    )
    assert "127.0.0.1:1" in failure(nothing)
    issuer.pause = 2.0
    assert "within 0." in failure(by_id(issuer))


class Dripping:
    """A server that never finishes: it sends a beginning, and then single bytes until the client leaves."""

    def __init__(self, beginning: bytes) -> None:
        self._beginning = beginning
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._left = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with self._listener, self._listener.accept()[0] as peer, suppress(OSError):
            peer.sendall(self._beginning)
            peer.settimeout(0.02)
            while True:
                with suppress(TimeoutError):
                    if not peer.recv(10_000):
                        break
                peer.sendall(b"a")
        self._left.set()

    def was_left(self) -> bool:
        """Wait for the end of the client's side."""
        return self._left.wait(PATIENCE)


@pytest.mark.parametrize(
    ("scheme", "beginning"),
    [
        ("http", b"HTTP/1.1 200 OK\r\nX: "),
        ("http", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"),
        ("https", b"\x16\x03\x03\x40\x00"),
    ],
    ids=["head", "body", "handshake"],
)
def test_an_issuer_that_sends_single_bytes_holds_nothing_up(
    scheme: str, beginning: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is one for the whole exchange, and the connection ends with it."""
    monkeypatch.setattr(oauth2, "TIMEOUT", 0.3)
    issuer = Dripping(beginning)
    options = OAuth2Options(
        issuer=f"{scheme}://127.0.0.1:{issuer.port}",
        client_id="worker",
        client_secret=CarriedSecret(SECRET),
    )
    assert "within 0.3 s" in failure(options)
    assert issuer.was_left()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, {"error": "invalid_client", "error_description": SECRET}), "invalid_client (status 401)"),
        ((302, {}), "status 302"),
        ((200, b"x" * 300_000), "no JSON object"),
        ((200, {"token": SECRET}), "has no token"),
    ],
)
def test_answers_that_end_the_attempt(issuer: LocalIssuer, answer: tuple[int, object], words: str) -> None:
    issuer.tokens()
    issuer.answers["/token"] = lambda form: answer
    assert words in failure(by_id(issuer))
    assert len(issuer.forms) == 1


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("http://a..b/token", "http://a..b/token"),
        (f"http://{'a' * 64}/token", f"{'a' * 64}/token"),
        ("http://999.1.1.1/token", "http://999.1.1.1/token: InvalidURL"),
    ],
)
def test_an_endpoint_that_no_request_can_go_to(
    issuer: LocalIssuer, endpoint: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library or the resolver refuses the URL by exceptions that are not those of HTTP."""
    monkeypatch.setattr(oauth2, "TIMEOUT", 0.3)
    issuer.answers["/.well-known/openid-configuration"] = lambda form: (200, {"token_endpoint": endpoint})
    assert words in failure(by_id(issuer))


def test_an_answer_is_not_decompressed(issuer: LocalIssuer) -> None:
    """A few kilobytes could become gigabytes."""
    issuer.tokens()
    good = issuer.answers["/.well-known/openid-configuration"]
    issuer.headers.append(("Content-Encoding", "gzip"))
    issuer.answers["/.well-known/openid-configuration"] = lambda form: (
        200,
        gzip.compress(json.dumps(good(form)[1]).encode()),
    )
    assert "no JSON object" in failure(by_id(issuer))
