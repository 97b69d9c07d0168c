"""OAuth 2.0 of a query: each process asks the issuer for a token of its own, by blocking calls.

The options travel with the query; a token never does. This module owns the tokens of this process. What is
sent to the issuer is `pulsar_security.OAuth2Issuer`'s.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from pulsar_sansio import CredentialsFailed, InvalidConfiguration, Secret
from pulsar_security import RENEWAL_TIME, ClientCredentials, Issued, OAuth2Issuer, TlsConfig

from .carried_secret import CarriedSecret
from .token_exchange import TokenExchange

TIMEOUT = 10.0
"""Seconds for one token, repetitions included. The link serves no socket meanwhile, and a broker ends a
connection that was silent for a minute."""

MAX_HELD = 64
"""Tokens that a process holds: more than queries have credentials."""


@dataclass(frozen=True, kw_only=True)
class OAuth2Options:
    """The options `auth.oauth2…`, checked. `trust`: a PEM file or folder for `https://` issuers."""

    issuer: str | None = None
    credentials: str | None = None
    client_id: str | None = None
    client_secret: CarriedSecret | None = None
    audience: str | None = None
    scope: str | None = None
    trust: str | None = None

    def client_credentials(self) -> ClientCredentials:
        """Raises `InvalidConfiguration` for options that contradict each other."""
        return ClientCredentials(
            issuer_url=self.issuer,
            file=None if self.credentials is None else Path(self.credentials),
            client_id=self.client_id,
            client_secret=None if self.client_secret is None else self.client_secret.reveal(),
            audience=self.audience,
            scope=self.scope,
        )

    def check(self) -> None:
        """Raises `InvalidConfiguration` for options that contradict each other, and without `httpx2`."""
        self.client_credentials()
        if self.issuer is not None:
            OAuth2Issuer(self.issuer)


_held: dict[OAuth2Options, tuple[Issued, float]] = {}
"""The token that this process got last with these options, and the moment when it came."""


def fetch_token(options: OAuth2Options) -> Secret:
    """Return the token of this process, or a new one when nine tenths of its life are over, or a broker did
    not take it.

    Waits for the issuer, for `TIMEOUT` at most, and for `RENEWAL_TIME` while the last token is valid. That
    one is returned where there is no new one. Raises `CredentialsFailed`.
    """
    last, came = _held.get(options, (None, 0.0))
    now = time.monotonic()
    if last is not None and now < last.refresh_at(came):
        return last.text
    if last is not None and now >= last.expires_at(came):
        last = None
    try:
        issued = _new_token(options, TIMEOUT if last is None else RENEWAL_TIME)
    except CredentialsFailed:
        if last is None:
            raise
        return last.text
    if len(_held) >= MAX_HELD:
        _held.clear()
    _held[options] = issued, time.monotonic()
    return issued.text


def _new_token(options: OAuth2Options, seconds: float) -> Issued:
    """Ask the issuer for so many seconds at most. Raises `CredentialsFailed`."""
    try:
        request = options.client_credentials().request()
        context = TlsConfig(trust=options.trust).make_context()
        return TokenExchange(OAuth2Issuer(request.issuer_url), request, context).token(seconds)
    except OSError as error:
        raise CredentialsFailed(
            f"auth.oauth2Credentials {options.credentials!r}: {error.strerror}"
        ) from error
    except InvalidConfiguration as error:
        raise CredentialsFailed(str(error)) from None


def discard_token(options: OAuth2Options, token: Secret) -> None:
    """A broker does not take this token: ask the issuer for another one next time."""
    held = _held.get(options)
    if held is not None and held[0].text == token:
        del _held[options]
