"""`ClientCredentials`: the options of OAuth 2.0, and the request for a token that a client makes of them."""

import json
from dataclasses import dataclass
from pathlib import Path

from pulsar_sansio import InvalidConfiguration, Secret

MAX_FILE = 64 * 1024
"""Bytes of a credentials file."""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """The values that the client sends to an issuer for a token."""

    issuer_url: str
    client_id: str
    client_secret: Secret
    audience: str | None
    scope: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """The client credentials grant (RFC 6749, 4.4) as an application describes it.

    `file`: the JSON file of Java's client, with `client_id`, `client_secret`, and `issuer_url` where
    `issuer_url` is None here. `client_id` and `client_secret` take the place of the file. Raises
    `InvalidConfiguration` for options that contradict each other.
    """

    issuer_url: str | None = None
    file: Path | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    audience: str | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        by_id = self.client_id is not None and self.client_secret is not None
        half = (self.client_id is None) != (self.client_secret is None)
        if (self.file is not None) == by_id or half:
            raise InvalidConfiguration("OAuth2: give credentials, or client_id and client_secret")
        if by_id and self.issuer_url is None:
            raise InvalidConfiguration("OAuth2: client_id needs issuer_url")
        for name in ("client_id", "client_secret", "audience", "scope"):
            value = getattr(self, name)
            if value is not None and not _is_text(value):
                raise InvalidConfiguration(f"OAuth2: {name}: text that UTF-8 can have")

    def request(self) -> TokenRequest:
        """Return the request for a token; the file is read anew.

        Raises `InvalidConfiguration`, which quotes nothing of the file, and `OSError`.
        """
        client_id, secret, issuer_url = self.client_id, self.client_secret, self.issuer_url
        if self.file is not None:
            found = _read(self.file)
            client_id, secret = found["client_id"], Secret(found["client_secret"])
            issuer_url = issuer_url or found["issuer_url"] or None
        if issuer_url is None:
            raise InvalidConfiguration(f"OAuth2: neither issuer_url nor {self.file} names the issuer")
        assert client_id is not None
        assert secret is not None
        return TokenRequest(issuer_url, client_id, secret, self.audience, self.scope)


def _is_text(value: object) -> bool:
    """Return True for text that has a form in UTF-8, and for a secret that is one."""
    try:
        if isinstance(value, Secret):
            value.reveal().decode()
        elif isinstance(value, str):
            value.encode()
        else:
            return False
    except UnicodeError:  # it holds the text
        return False
    return True


def _read(file: Path) -> dict[str, str]:
    """Read the file that Java's client calls a private key; `issuer_url` is empty where it has none."""
    with file.open("rb") as source:
        content = source.read(MAX_FILE + 1)
    try:
        found = json.loads(content) if len(content) <= MAX_FILE else None
    except (ValueError, RecursionError):  # its text has the content, so it is no cause
        found = None
    if not isinstance(found, dict):
        raise InvalidConfiguration(f"OAuth2: {file} is no JSON object of credentials")
    if found.get("type", "client_credentials") != "client_credentials":
        raise InvalidConfiguration(f"OAuth2: {file}: its type is not client_credentials")
    for name in ("client_id", "client_secret"):
        if not found.get(name) or not isinstance(found[name], str) or not _is_text(found[name]):
            raise InvalidConfiguration(f"OAuth2: {file} has no {name}")
    issuer_url = found.get("issuer_url")
    return {**found, "issuer_url": issuer_url if isinstance(issuer_url, str) else ""}
