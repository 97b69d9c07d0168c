"""`OAuth2Issuer`: the requests to an OAuth 2.0 issuer, for its metadata and for a token, without a socket.

`OAuth2Issuer.steps` says what to send and when to wait; an adapter does both and tells what came of it. The
adapter knows the time and the deadline.
"""

import json
import re
from collections.abc import Generator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret

from .client_credentials import TokenRequest
from .tokens import checked_token

FIRST_PAUSE = 0.1
"""Seconds before the first repetition of a request; each further pause is twice as long."""

LONGEST_PAUSE = 2.0

REQUEST_TIME = 5.0
"""Seconds that an adapter lets a single request wait for the issuer."""

MAX_ANSWER = 256 * 1024
"""Bytes of an answer; an adapter keeps no more than one part beyond them."""

MAX_URL = 2048
"""Characters of a URL; errors show it."""

HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
"""The headers of each request. An adapter decompresses no answer: some kilobytes could become gigabytes."""

EARLY_REFRESH = 0.9
"""The part of a token's life after which the client asks for the next one."""

RENEWAL_TIME = 2.0
"""Seconds that an adapter asks for the next token while the last one is valid, and goes on with the last one
after a failure."""

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
"""The error codes of RFC 6749. A longer text might repeat what the client sent."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token, and the seconds that it lives from now on; 0 where the issuer does not tell."""

    text: Secret
    lifetime: float

    def refresh_at(self, now: float) -> float:
        """Return the moment from which the client asks for the next token; `now` and it are seconds."""
        return now + EARLY_REFRESH * self.lifetime

    def expires_at(self, now: float) -> float:
        """Return the moment from which the token is not valid any more."""
        return now + self.lifetime


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Send this request, and answer with `IssuerAnswer` or `HttpFailure`. Redirects are not followed."""

    method: str
    url: str
    form: dict[str, str] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds before the next attempt. `reason`: why the last one failed."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class IssuerAnswer:
    """The issuer's answer to a request."""

    status: int
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class HttpFailure:
    """There was no answer. `may_pass`: True where another attempt may succeed."""

    text: str
    may_pass: bool


Told: TypeAlias = IssuerAnswer | HttpFailure | None
"""The outcome of a step; None for the first step and after a pause."""


class _MayPass(Exception):
    """A request failed for a reason that may pass by itself."""


class _NotThere(Exception):
    """The issuer has nothing at this URL."""


class OAuth2Issuer:
    """One issuer. `http`: the module `httpx2`, for the adapter.

    Raises `InvalidConfiguration` for a wrong URL, and where `httpx2` is not installed.
    """

    def __init__(self, url: str) -> None:
        parts = _split(url)
        if parts is None or parts.query or parts.fragment:
            raise InvalidConfiguration("OAuth2: issuer_url: https://host[/path] without a user or password")
        try:
            self.http: Any = import_module("httpx2")
        except ImportError:
            raise InvalidConfiguration(
                "OAuth2 needs the library httpx2: pip install 'pulsar-trio[oauth2]'"
            ) from None
        self.failures = (self.http.HTTPError, self.http.InvalidURL, UnicodeError)
        """The exceptions of a request without an answer; `failure_of` tells their meaning."""
        self.url = url
        self._scheme = parts.scheme
        base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        self._metadata = (
            f"{base}{path}/.well-known/openid-configuration",
            f"{base}/.well-known/oauth-authorization-server{path}",  # RFC 8414, 3.1
        )
        self._endpoint: str | None = None

    def steps(self, request: TokenRequest) -> Generator[HttpRequest | Pause, Told, Issued]:
        """Ask for a token, and ask again after a failure that may pass, for as long as the adapter lets it.

        Raises `CredentialsFailed`.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                return (yield from self._ask(request))
            except _MayPass as failure:
                reason = str(failure)
            yield Pause(pause, reason)
            pause = min(2 * pause, LONGEST_PAUSE)

    def failure_of(self, url: str, error: Exception) -> HttpFailure:
        """Return what one of `failures` means.

        The library's exceptions refer to the request, which holds the secret. So no error of ours may have
        one as its cause or context.
        """
        if isinstance(error, self.http.TransportError):
            return HttpFailure(f"{url}: {str(error) or type(error).__name__}", may_pass=True)
        return HttpFailure(f"{url}: {type(error).__name__}", may_pass=False)

    def too_late(self, seconds: float, reason: str | None) -> CredentialsFailed:
        """Return the error for an adapter that waited so long. `reason`: that of the last pause."""
        reason = reason or "no answer"
        return CredentialsFailed(f"OAuth2: no token of {self.url} within {seconds:.1f} s: {reason}")

    def _ask(self, request: TokenRequest) -> Generator[HttpRequest, Told, Issued]:
        if self._endpoint is None:
            self._endpoint = yield from self._discover()
        form = {
            "grant_type": "client_credentials",
            "client_id": request.client_id,
            "client_secret": request.client_secret.reveal().decode(),
        }
        form |= {"audience": request.audience} if request.audience else {}
        form |= {"scope": request.scope} if request.scope else {}
        try:
            answer = yield from _send(HttpRequest("POST", self._endpoint, form))
        except _NotThere:
            endpoint, self._endpoint = self._endpoint, None
            raise CredentialsFailed(f"OAuth2: the token endpoint {endpoint} is not there") from None
        try:
            return Issued(checked_token(answer["access_token"]), _lifetime(answer.get("expires_in")))
        except (KeyError, InvalidConfiguration):
            raise CredentialsFailed(f"OAuth2: the answer of {self._endpoint} has no token") from None

    def _discover(self) -> Generator[HttpRequest, Told, str]:
        """Return the URL of the token endpoint, of the issuer's metadata."""
        for url in self._metadata:
            try:
                answer = yield from _send(HttpRequest("GET", url, None))
            except _NotThere:
                continue
            self._check_issuer(url, answer.get("issuer"))
            endpoint = answer.get("token_endpoint")
            parts = _split(endpoint)
            if parts is None or (self._scheme == "https" and parts.scheme != "https"):
                raise CredentialsFailed(f"OAuth2: the metadata {url} name no usable token_endpoint")
            return str(endpoint)
        raise CredentialsFailed(f"OAuth2: no metadata at {' nor at '.join(self._metadata)}")

    def _check_issuer(self, url: str, named: object) -> None:
        """Raise for the metadata of another issuer (RFC 8414, 3.3; OpenID Connect Discovery, 4.3).

        Some issuers have a slash at their end that applications leave out. Java's client looks at neither.
        """
        if named is not None and str(named).removesuffix("/") != self.url.removesuffix("/"):
            shown = f"of {named}" if _split(named) is not None else "of no URL"
            raise CredentialsFailed(
                f"OAuth2: the metadata {url} are {shown}, not of {self.url}: "
                "issuer_url has to be the issuer's own name"
            )


def _send(request: HttpRequest) -> Generator[HttpRequest, Told, dict[str, Any]]:
    """Return the JSON object of the answer."""
    told, url = (yield request), request.url
    assert told is not None
    if isinstance(told, HttpFailure):
        if told.may_pass:
            raise _MayPass(told.text)
        raise CredentialsFailed(f"OAuth2: {told.text}")
    status = told.status
    if status >= 500 or status == 429:
        raise _MayPass(f"{url} answers with status {status}")
    if status == 404:
        raise _NotThere
    found = _json_object(told.content)
    if status != 200:
        code = (found or {}).get("error")
        known = isinstance(code, str) and _ERROR_CODE.fullmatch(code)
        what = f"{code} (status {status})" if known else f"status {status}"
        raise CredentialsFailed(f"OAuth2: {url} answers with {what}")
    if found is None:
        raise CredentialsFailed(f"OAuth2: the answer of {url} is no JSON object")
    return found


def _split(url: object) -> Any:
    """Return the parts of an HTTP URL without a user; None for any other value."""
    if not isinstance(url, str) or len(url) > MAX_URL:
        return None
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if usable and "@" not in parts.netloc else None


def _json_object(content: bytes) -> dict[str, Any] | None:
    if len(content) > MAX_ANSWER:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _lifetime(seconds: object) -> float:
    """Return the seconds of `expires_in`, which some issuers write as text."""
    if isinstance(seconds, str) and seconds.isdecimal() and len(seconds) < 10:
        seconds = int(seconds)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9:
        return 0.0
    return float(seconds)
