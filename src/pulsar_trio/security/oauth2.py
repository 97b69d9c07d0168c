"""`OAuth2`: a token that the client gets from an OAuth 2.0 issuer by the client credentials grant."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import trio

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret
from pulsar_security import ReloadedContext, TlsConfig

from .authentication import Authentication
from .oauth2_issuer import Issuer, TokenRequest

EARLY_REFRESH = 0.9
"""The part of a token's life after which the client asks for the next one."""

MAX_FILE = 64 * 1024
"""Bytes of a credentials file."""


@dataclass(slots=True)
class _Pending:
    """A request that is on its way; each link that asks meanwhile waits for its outcome."""

    done: trio.Event = field(default_factory=trio.Event)
    token: Secret | None = None
    error: str | None = None


class OAuth2(Authentication):
    """An access token by the client credentials grant (RFC 6749, 4.4), for the broker's method "token".

    `issuer_url`: None takes `issuer_url` of the credentials file. The issuer's metadata tell the endpoint.
    An `http://` URL sends the secret in plain text. `credentials`: a JSON file as Java's client has it, with
    `client_id` and `client_secret`; the client reads it for each token. `client_id`, `client_secret`: in
    place of the file. `audience`, `scope`: sent to the issuer where they are given. `tls`: how the client
    verifies the issuer; None for the defaults of `TlsConfig`. `timeout`: seconds for one token; within that
    time the client repeats requests that fail for a reason that may pass.

    A token is used until nine tenths of its life are over. Needs the extra `oauth2`. Raises
    `InvalidConfiguration` for options that contradict each other, and where that extra is not installed.
    """

    method = "token"

    def __init__(
        self,
        issuer_url: str | None = None,
        *,
        credentials: str | os.PathLike[str] | None = None,
        client_id: str | None = None,
        client_secret: Secret | str | None = None,
        audience: str | None = None,
        scope: str | None = None,
        tls: TlsConfig | None = None,
        timeout: float = 10.0,
    ) -> None:
        by_id = client_id is not None and client_secret is not None
        if (credentials is not None) == by_id or (client_id is None) != (client_secret is None):
            raise InvalidConfiguration("OAuth2: give credentials, or client_id and client_secret")
        if by_id and issuer_url is None:
            raise InvalidConfiguration("OAuth2: client_id needs issuer_url")
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3600:
            raise InvalidConfiguration(f"OAuth2: timeout: seconds from 0 to 3600, not {timeout!r}")
        self._issuer_url = issuer_url
        self._file = None if credentials is None else Path(credentials)
        self._client_id = client_id
        self._client_secret = None if client_secret is None else Secret(client_secret)
        self._audience = audience
        self._scope = scope
        self._timeout = timeout
        self._context = ReloadedContext(TlsConfig() if tls is None else tls)
        self._issuer: Issuer | None = None if issuer_url is None else Issuer(issuer_url)
        self._token: Secret | None = None
        self._refresh_at = 0.0
        self._run: trio.lowlevel.TrioToken | None = None
        """The run of trio whose clock counts for `_token`."""
        self._pending: _Pending | None = None

    async def credentials(self, host: str) -> Secret:
        while True:
            held = self._held()
            if held is not None:
                return held
            pending = self._pending
            if pending is None:
                return await self._ask()
            await pending.done.wait()
            if pending.error is not None:
                raise CredentialsFailed(pending.error)
            if pending.token is not None:
                return pending.token
            # the task that asked was cancelled, so this one asks

    def _held(self) -> Secret | None:
        """Return the token of an earlier request, while it need not be refreshed."""
        if self._run is not trio.lowlevel.current_trio_token():
            self._token = self._pending = None
            self._run = trio.lowlevel.current_trio_token()
        return self._token if trio.current_time() < self._refresh_at else None

    async def _ask(self) -> Secret:
        self._pending = pending = _Pending()
        try:
            issuer, request = await self._request()
            issued = await issuer.token(request, self._context.current(), self._timeout)
            self._token = pending.token = issued.text
            self._refresh_at = trio.current_time() + EARLY_REFRESH * issued.lifetime
            return issued.text
        except (CredentialsFailed, InvalidConfiguration, OSError) as error:
            pending.error = str(error)
            raise
        finally:
            self._pending = None
            pending.done.set()

    async def _request(self) -> tuple[Issuer, TokenRequest]:
        client_id, secret, issuer_url = self._client_id, self._client_secret, self._issuer_url
        if self._file is not None:
            found = await trio.to_thread.run_sync(_read_credentials, self._file, abandon_on_cancel=True)
            client_id, secret = found.client_id, found.client_secret
            issuer_url = issuer_url or found.issuer_url
        if issuer_url is None:
            raise InvalidConfiguration(f"OAuth2: neither issuer_url nor {self._file} names the issuer")
        if self._issuer is None or self._issuer.url != issuer_url:
            self._issuer = Issuer(issuer_url)
        assert client_id is not None
        assert secret is not None
        return self._issuer, TokenRequest(client_id, secret, self._audience, self._scope)

    def __repr__(self) -> str:
        source = (
            f"client_id={self._client_id!r}" if self._file is None else f"credentials={str(self._file)!r}"
        )
        return f"OAuth2({self._issuer_url!r}, {source})"


@dataclass(frozen=True, slots=True)
class _Credentials:
    client_id: str
    client_secret: Secret
    issuer_url: str | None


def _read_credentials(file: Path) -> _Credentials:
    """Read the file that Java's client calls a private key.

    Raises `InvalidConfiguration`, which quotes nothing of the file, and `OSError`.
    """
    with file.open("rb") as source:
        content = source.read(MAX_FILE + 1)
    try:
        found = json.loads(content) if len(content) <= MAX_FILE else None
    except ValueError:  # its text has the content, so it is no cause
        found = None
    if not isinstance(found, dict):
        raise InvalidConfiguration(f"OAuth2: {file} is no JSON object of credentials")
    if found.get("type", "client_credentials") != "client_credentials":
        raise InvalidConfiguration(f"OAuth2: {file}: its type is not client_credentials")
    for name in ("client_id", "client_secret"):
        if not isinstance(found.get(name), str) or not found[name]:
            raise InvalidConfiguration(f"OAuth2: {file} has no {name}")
    issuer_url = found.get("issuer_url")
    return _Credentials(
        found["client_id"],
        Secret(found["client_secret"]),
        issuer_url if isinstance(issuer_url, str) and issuer_url else None,
    )
