"""`OAuth2`: a token that the client gets from an OAuth 2.0 issuer by the client credentials grant."""

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret
from pulsar_security import (
    HEADERS,
    MAX_ANSWER,
    RENEWAL_TIME,
    REQUEST_TIME,
    ClientCredentials,
    HttpFailure,
    HttpRequest,
    Issued,
    IssuerAnswer,
    OAuth2Issuer,
    Pause,
    ReloadedContext,
    TlsConfig,
    TokenRequest,
)

from ..application_function import Threads
from .authentication import Authentication

MARGIN = 0.05
"""Seconds before a caller's own time is over: the caller then learns the reason of the last failure."""


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

    A token is used until nine tenths of its life are over, or a broker does not take it any more. Needs the
    extra `oauth2`. Raises `InvalidConfiguration` for options that contradict each other, and where that extra
    is not installed.
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
        self._threads = Threads()
        self._credentials = ClientCredentials(
            issuer_url=issuer_url,
            file=None if credentials is None else Path(credentials),
            client_id=client_id,
            client_secret=None if client_secret is None else Secret(client_secret),
            audience=audience,
            scope=scope,
        )
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 3600:
            raise InvalidConfiguration(f"OAuth2: timeout: seconds from 0 to 3600, not {timeout!r}")
        self._timeout = timeout
        self._context = ReloadedContext(TlsConfig() if tls is None else tls)
        self._issuer: OAuth2Issuer | None = None if issuer_url is None else OAuth2Issuer(issuer_url)
        self._issued: Issued | None = None
        self._issued_at = 0.0
        self._run: trio.lowlevel.TrioToken | None = None
        """The run of trio whose clock counts for `_issued_at`."""
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

    def discard(self, credentials: Secret) -> None:
        if self._issued is not None and self._issued.text == credentials:
            self._issued = None

    def _held(self) -> Secret | None:
        """Return the token of an earlier request, while it need not be refreshed."""
        if self._run is not trio.lowlevel.current_trio_token():
            self._issued = self._pending = None
            self._run = trio.lowlevel.current_trio_token()
        issued = self._issued
        if issued is None or trio.current_time() >= issued.refresh_at(self._issued_at):
            return None
        return issued.text

    async def _ask(self) -> Secret:
        self._pending = pending = _Pending()
        try:
            request = await self._threads.run(self._credentials.request)
            if self._issuer is None or self._issuer.url != request.issuer_url:
                self._issuer = OAuth2Issuer(request.issuer_url)
            pending.token = await self._next_token(self._issuer, request)
            return pending.token
        except (CredentialsFailed, InvalidConfiguration, OSError) as error:
            pending.error = str(error)
            raise
        finally:
            self._pending = None
            pending.done.set()

    async def _next_token(self, issuer: OAuth2Issuer, request: TokenRequest) -> Secret:
        """Return a new token, or the last one where that is still valid and there is no new one."""
        run, last = self._run, self._issued
        if last is not None and trio.current_time() >= last.expires_at(self._issued_at):
            last = None
        timeout = self._timeout if last is None else min(self._timeout, RENEWAL_TIME)
        try:
            issued = await _token(issuer, request, self._context.current(), timeout)
        except CredentialsFailed:
            if last is None or last is not self._issued:  # a broker refused it meanwhile
                raise
            return last.text
        if self._run is run:  # else another thread's run has taken the object over
            self._issued, self._issued_at = issued, trio.current_time()
        return issued.text

    def __repr__(self) -> str:
        given = self._credentials
        by_file = f"credentials={str(given.file)!r}"
        source = by_file if given.file is not None else f"client_id={given.client_id!r}"
        return f"OAuth2({given.issuer_url!r}, {source})"


async def _token(
    issuer: OAuth2Issuer, request: TokenRequest, context: ssl.SSLContext, timeout: float
) -> Issued:
    """Ask the issuer for a token, for so many seconds at most. Raises `CredentialsFailed`."""
    began = trio.current_time()
    deadline = min(began + timeout, trio.current_effective_deadline()) - MARGIN
    reason = None
    steps, told = issuer.steps(request), None
    with trio.move_on_at(deadline):
        async with issuer.http.AsyncClient(verify=context, timeout=REQUEST_TIME) as client:
            while True:
                try:
                    step = steps.send(told)
                except StopIteration as end:
                    issued: Issued = end.value
                    return issued
                if isinstance(step, Pause):
                    reason, told = step.reason, None
                    await trio.sleep(step.seconds)
                else:
                    told = await _send(issuer, client, step)
    raise issuer.too_late(trio.current_time() - began, reason)


async def _send(issuer: OAuth2Issuer, client: Any, request: HttpRequest) -> IssuerAnswer | HttpFailure:
    content = b""
    try:
        async with client.stream(request.method, request.url, data=request.form, headers=HEADERS) as response:
            async for part in response.aiter_raw():
                content += part if len(content) <= MAX_ANSWER else b""
            return IssuerAnswer(response.status_code, content)
    except issuer.failures as error:
        return issuer.failure_of(request.url, error)
