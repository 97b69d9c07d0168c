"""`Issuer`: the HTTP requests to an OAuth 2.0 issuer, for its metadata and for a token."""

import json
import re
import ssl
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import trio

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret
from pulsar_security import checked_token

FIRST_PAUSE = 0.1
"""Seconds before the first repetition of a request; each further pause is twice as long."""

LONGEST_PAUSE = 2.0

REQUEST_TIME = 5.0
"""Seconds that a single request may wait for the issuer."""

MAX_ANSWER = 256 * 1024
"""Bytes of an answer."""

MARGIN = 0.05
"""Seconds before a caller's own time is over: the caller then learns the reason of the last failure."""

_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
"""The error codes of RFC 6749. A longer text might repeat what the client sent."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The values that the client sends for a token."""

    client_id: str
    client_secret: Secret
    audience: str | None
    scope: str | None


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token, and the seconds that it lives from now on; 0 where the issuer does not tell."""

    text: Secret
    lifetime: float


class _MayPass(Exception):
    """A request failed for a reason that may pass by itself."""


class _NotThere(Exception):
    """The issuer has nothing at this URL."""


class Issuer:
    """One issuer. Raises `InvalidConfiguration` for a wrong URL, and where `httpx2` is not installed."""

    def __init__(self, url: str) -> None:
        parts = _split(url)
        if parts is None or parts.query or parts.fragment:
            raise InvalidConfiguration("OAuth2: issuer_url: https://host[/path] without a user or password")
        try:
            self._http: Any = import_module("httpx2")
        except ImportError:
            raise InvalidConfiguration(
                "OAuth2 needs the library httpx2: pip install 'pulsar-trio[oauth2]'"
            ) from None
        self.url = url
        self._scheme = parts.scheme
        base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        self._metadata = (
            f"{base}{path}/.well-known/openid-configuration",
            f"{base}/.well-known/oauth-authorization-server{path}",  # RFC 8414, 3.1
        )
        self._endpoint: str | None = None

    async def token(self, request: TokenRequest, context: ssl.SSLContext, timeout: float) -> Issued:
        """Ask for a token, and ask again after a failure that may pass. Raises `CredentialsFailed`."""
        began = trio.current_time()
        deadline = min(began + timeout, trio.current_effective_deadline()) - MARGIN
        reason, pause = "no answer", FIRST_PAUSE
        with trio.move_on_at(deadline):
            async with self._http.AsyncClient(verify=context, timeout=REQUEST_TIME) as client:
                while True:
                    try:
                        return await self._ask(client, request)
                    except _MayPass as failure:
                        reason = str(failure)
                    await trio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
        waited = trio.current_time() - began
        raise CredentialsFailed(f"OAuth2: no token of {self.url} within {waited:.1f} s: {reason}")

    async def _ask(self, client: Any, request: TokenRequest) -> Issued:
        if self._endpoint is None:
            self._endpoint = await self._discover(client)
        form = {
            "grant_type": "client_credentials",
            "client_id": request.client_id,
            "client_secret": request.client_secret.reveal().decode(),
        }
        form |= {"audience": request.audience} if request.audience else {}
        form |= {"scope": request.scope} if request.scope else {}
        try:
            answer = await self._send(client, "POST", self._endpoint, form)
        except _NotThere:
            endpoint, self._endpoint = self._endpoint, None
            raise CredentialsFailed(f"OAuth2: the token endpoint {endpoint} is not there") from None
        try:
            return Issued(checked_token(answer["access_token"]), _lifetime(answer.get("expires_in")))
        except (KeyError, InvalidConfiguration):
            raise CredentialsFailed(f"OAuth2: the answer of {self._endpoint} has no token") from None

    async def _discover(self, client: Any) -> str:
        """Return the URL of the token endpoint, of the issuer's metadata."""
        for url in self._metadata:
            try:
                answer = await self._send(client, "GET", url, None)
            except _NotThere:
                continue
            endpoint = answer.get("token_endpoint")
            parts = _split(endpoint)
            if parts is None or (self._scheme == "https" and parts.scheme != "https"):
                raise CredentialsFailed(f"OAuth2: the metadata {url} name no usable token_endpoint")
            return str(endpoint)
        raise CredentialsFailed(f"OAuth2: no metadata at {' nor at '.join(self._metadata)}")

    async def _send(self, client: Any, method: str, url: str, form: dict[str, str] | None) -> dict[str, Any]:
        """Return the JSON object of the answer.

        The library's exceptions refer to the request, which holds the secret. So no error of ours has one as
        its cause or context.
        """
        status, content, failure = 0, b"", ""
        try:
            headers = {"Accept": "application/json"}
            async with client.stream(method, url, data=form, headers=headers) as response:
                status = response.status_code
                async for part in response.aiter_bytes():
                    content += part if len(content) <= MAX_ANSWER else b""
        except self._http.TransportError as error:
            failure = f"{url}: {str(error) or type(error).__name__}"
        except self._http.HTTPError as error:
            status, content, failure = -1, b"", f"{url}: {type(error).__name__}"
        if failure and status >= 0:
            raise _MayPass(failure)
        if failure:
            raise CredentialsFailed(f"OAuth2: {failure}")
        if status >= 500 or status == 429:
            raise _MayPass(f"{url} answers with status {status}")
        if status == 404:
            raise _NotThere
        found = _json_object(content)
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
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
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
