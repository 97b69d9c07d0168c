"""Authentication and authorization of the broker under Pulsar's own names.

`settings` lists the names. This module reads the values that are special to providers, and makes a
`BrokerAuthentication` of all values. Errors never show a key.
"""

import os
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_trio import (
    AuthenticationProvider,
    BasicProvider,
    BrokerAuthentication,
    CertificateProvider,
    HtpasswdFile,
    TokenProvider,
)

from ..properties import Property

_PACKAGE = "org.apache.pulsar.broker"

TLS, TOKEN, BASIC = (
    f"{_PACKAGE}.authentication.AuthenticationProvider{name}" for name in ("Tls", "Token", "Basic")
)
"""The class names of the Java broker's providers that this broker has, too."""

AUTHORIZATION = f"{_PACKAGE}.authorization.PulsarAuthorizationProvider"

PUBLIC_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")

KEY_FORMS = "a path, file:///PATH, data:;base64,DATA, or Base64"


# --- values -------------------------------------------------------------------------------------------


def read_providers(text: str) -> tuple[str, ...]:
    """Class names between commas, each once. Raises `InvalidConfiguration` for one that is not known."""
    names = [name for name in (part.strip() for part in text.split(",")) if name]
    for name in names:
        if name not in (TLS, TOKEN, BASIC):
            raise InvalidConfiguration(
                f"this broker has no provider {name!r:.200}; it has {TLS}, {TOKEN} and {BASIC}"
            )
    return tuple(dict.fromkeys(names))


def read_roles(text: str) -> tuple[str, ...]:
    return tuple(role for role in (part.strip() for part in text.split(",")) if role)


def _content(value: Secret) -> Path | bytes:
    """Return the file that a value names, or the bytes that it holds, in the forms that a Java broker takes.

    Raises `InvalidConfiguration` for any other text, without showing it. A path in a folder that exists names
    a file, though its text may be Base64, too: a key that everyone can guess is worse than an error.
    """
    text = value.reveal().decode()
    kind, _, rest = text.partition(":")
    try:
        if kind == "file":
            return _path_in(rest)
        if kind == "data":
            header, comma, data = rest.partition(",")
            if not comma:
                raise ValueError
            return b64decode(data, validate=True) if header.endswith(";base64") else data.encode()
        folder = os.path.dirname(text)
        if os.path.exists(text) or (folder.strip("/") and os.path.isdir(folder)):
            return Path(text)
        return b64decode(text, validate=True)
    except ValueError:
        raise InvalidConfiguration(f"no such file, and not one of {KEY_FORMS}") from None


def _path_in(rest: str) -> Path:
    """Return the path in a URL of a file, whose scheme is cut off. Raises `ValueError` for another host."""
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise ValueError
        rest = slash + path
    return Path(unquote(rest))


# --- all together -------------------------------------------------------------------------------------


def authentication(
    parts: Mapping[str, Any], options: Mapping[str, Any], given: Mapping[str, Property]
) -> BrokerAuthentication | None:
    """Return the broker's authentication, or None where `authenticationEnabled` is not true.

    `parts`: values of settings that choose and fill providers. `options`: keywords of `BrokerAuthentication`.
    `given`: the settings by name, for errors. Raises `InvalidConfiguration`.
    """
    if not parts.get("authentication", False):
        if options.get("authorization", False):
            with _naming("authorizationEnabled", given):
                raise InvalidConfiguration("true needs authenticationEnabled=true")
        return None
    chosen = parts.get("providers", ())
    makers = {TLS: _certificates, TOKEN: _tokens, BASIC: _passwords}
    providers = tuple(makers[name](parts, given) for name in chosen)
    if not providers and options.get("anonymous_role") is None:
        with _naming("authenticationEnabled", given):
            raise InvalidConfiguration("true needs authenticationProviders or anonymousUserRole")
    return BrokerAuthentication(providers, **{"authorization": False, **options})


@contextmanager
def _naming(name: str, given: Mapping[str, Property]) -> Iterator[None]:
    """Put place and name of a setting in front of the errors of this block."""
    try:
        yield
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"{given[name].where}: {name}: {error}") from None


def _certificates(parts: Mapping[str, Any], given: Mapping[str, Property]) -> AuthenticationProvider:
    return CertificateProvider()


def _tokens(parts: Mapping[str, Any], given: Mapping[str, Property]) -> AuthenticationProvider:
    """Make the provider. The secret key goes before the public one, as in Pulsar."""
    claims = {
        keyword: parts[f"token_{keyword}"]
        for keyword in ("claim", "audience_claim", "audience")
        if f"token_{keyword}" in parts
    }
    if ("audience" in claims) != ("audience_claim" in claims):
        names = ("tokenAudience", "tokenAudienceClaim")
        one, other = names if "audience" in claims else reversed(names)
        with _naming(one, given):
            raise InvalidConfiguration(f"counts only together with {other}")
    if "token_secret_key" in parts:
        with _naming("tokenSecretKey", given):
            return TokenProvider(secret_key=_content(parts["token_secret_key"]), **claims)
    if "token_public_key" not in parts:
        with _naming("authenticationProviders", given):
            raise InvalidConfiguration(f"{TOKEN} needs tokenSecretKey or tokenPublicKey")
    with _naming("tokenPublicKey", given):
        provider = TokenProvider(public_key=_content(parts["token_public_key"]), **claims)
    algorithm = parts.get("token_algorithm")
    if algorithm is not None and algorithm not in provider.algorithms:
        with _naming("tokenPublicAlg", given):
            raise InvalidConfiguration(
                f"the tokens of this public key have {', '.join(provider.algorithms)}, not {algorithm}"
            )
    return provider


def _passwords(parts: Mapping[str, Any], given: Mapping[str, Property]) -> AuthenticationProvider:
    for part, name in (("passwords", "basicAuthConf"), ("passwords_property", "pulsar.auth.basic.conf")):
        if part in parts:
            with _naming(name, given):
                content = _content(parts[part])
                return HtpasswdFile(content) if isinstance(content, Path) else BasicProvider(content)
    with _naming("authenticationProviders", given):
        raise InvalidConfiguration(f"{BASIC} needs basicAuthConf")
