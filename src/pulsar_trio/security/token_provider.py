"""`TokenProvider`: the broker's side of JSON Web Tokens (method "token"), verified by PyJWT."""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from pulsar_sansio import AuthenticationError, Identity, InvalidConfiguration, Secret

from .provider_file import ProviderFile

SHORTEST_SECRETS = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Algorithm -> the least bytes of its secret key (RFC 7518, 3.2)."""

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ELLIPTIC = ("ES256", "ES384", "ES512")

UNCHECKED = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
"""Claims that PyJWT leaves alone: the broker compares times with its own, and this class reads the others."""

LATEST_TIME = 10**12
"""Seconds since 1970 of the latest time in a token; the year is 33658."""

KeySource = Secret | bytes | os.PathLike[str]


class VerifyingKey(NamedTuple):
    """`key`: a `Secret`, or a public key of cryptography. `algorithms`: those that may sign for it."""

    key: Any
    algorithms: list[str]


class TokenProvider:
    """`secret_key`: for tokens of HS256, HS384 or HS512: the key's bytes or the file that holds them.
    `public_key`: for tokens of RSA or elliptic curves: the key in PEM or DER, or its file. Exactly one of
    both is given; `pulsar tokens` makes such keys.

    A file that changes on disk is used from the next connection on; the broker refuses every token while a
    changed file cannot be used.

    `claim`: the claim that names the role; of a list the first one counts. `audience`: a text that the claim
    `audience_claim` has to be or to contain; None accepts every audience.

    Needs PyJWT (`pip install 'pulsar-trio[auth]'`). Raises `InvalidConfiguration` without it, and for a key
    that cannot be used.
    """

    method = "token"

    def __init__(
        self,
        *,
        secret_key: KeySource | None = None,
        public_key: KeySource | str | None = None,
        claim: str = "sub",
        audience: str | None = None,
        audience_claim: str = "aud",
    ) -> None:
        try:
            self._jwt = import_module("jwt")
        except ImportError:
            raise InvalidConfiguration(
                "TokenProvider needs PyJWT, which is not installed: pip install 'pulsar-trio[auth]'"
            ) from None
        for name, value in (("claim", claim), ("audience_claim", audience_claim)):
            if not isinstance(value, str) or not value:
                raise InvalidConfiguration(f"{name}: the name of a claim, not {value!r:.200}")
        if audience is not None and (not isinstance(audience, str) or not audience):
            raise InvalidConfiguration(f"audience: text or None, not {audience!r:.200}")
        if (secret_key is None) == (public_key is None):
            raise InvalidConfiguration("TokenProvider: either secret_key or public_key")
        self._claim = claim
        self._audience = audience
        self._audience_claim = audience_claim
        option, source, make = (
            ("secret_key", secret_key, _secret_key)
            if public_key is None
            else ("public_key", public_key, _public_key)
        )
        self._current: Callable[[], VerifyingKey]
        """Returns the key to verify with."""
        if isinstance(source, os.PathLike):
            self._current = ProviderFile(option, source, make).current
        else:
            given = source.encode() if isinstance(source, str) and make is _public_key else source
            if not isinstance(given, (Secret, bytes)):
                raise InvalidConfiguration(
                    f"{option}: bytes, a Secret, or the Path of a file, not {type(given).__name__}"
                )
            made = make(Secret(given).reveal())
            self._current = lambda: made

        self.algorithms = tuple(self._current().algorithms)
        """The algorithms of the tokens that the key verifies; a file that changes may bring others."""

    def authenticate(self, data: bytes, certificate: str | None) -> Identity:
        """Return the role of a token, with the time in which it is valid. Raises `AuthenticationError`.

        White space around the token is ignored, as by a Java broker: a file of a token may end its line.
        """
        key, algorithms = self._current()
        options = {f"verify_{claim}": False for claim in UNCHECKED}
        try:
            claims: Mapping[str, Any] = self._jwt.decode(
                data.strip(),
                key.reveal() if isinstance(key, Secret) else key,
                algorithms=algorithms,
                options=options,
            )
        except self._jwt.PyJWTError as error:  # its text may quote the token
            raise AuthenticationError(f"the token is refused: {type(error).__name__}") from None
        self._check_audience(claims)
        return Identity(self._role(claims), _moment(claims, "exp"), _moment(claims, "nbf"))

    def _role(self, claims: Mapping[str, Any]) -> str:
        role = claims.get(self._claim)
        if isinstance(role, list) and role:
            role = role[0]
        if not isinstance(role, str) or not role:
            raise AuthenticationError(f"the token has no text in its claim {self._claim!r}")
        try:
            role.encode()
        except UnicodeEncodeError:
            raise AuthenticationError(f"the claim {self._claim!r} has half of a surrogate pair") from None
        return role

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        if self._audience is None:
            return
        found = claims.get(self._audience_claim)
        if self._audience not in (found if isinstance(found, list) else [found]):
            raise AuthenticationError("the token is for another audience")

    def __repr__(self) -> str:
        return f"TokenProvider({', '.join(self.algorithms)})"


def _secret_key(data: bytes) -> VerifyingKey:
    """Return a secret key with the algorithms that it is long enough for."""
    algorithms = [name for name, least in SHORTEST_SECRETS.items() if len(data) >= least]
    if not algorithms:
        raise InvalidConfiguration(f"secret_key: {len(data)} bytes, at least 32 are needed")
    return VerifyingKey(Secret(data), algorithms)


def _public_key(data: bytes) -> VerifyingKey:
    """Read a key in PEM or DER; returns it and the algorithms for its kind."""
    try:
        serialization = import_module("cryptography.hazmat.primitives.serialization")
    except ImportError:
        raise InvalidConfiguration(
            "public_key needs cryptography, which is not installed: pip install 'pulsar-trio[auth]'"
        ) from None
    load = serialization.load_der_public_key
    if data.lstrip().startswith(b"-----BEGIN"):
        load = serialization.load_pem_public_key
    try:
        key = load(data)
    except Exception:
        raise InvalidConfiguration("public_key: no public key in PEM or DER") from None
    asymmetric = "cryptography.hazmat.primitives.asymmetric"
    if isinstance(key, import_module(f"{asymmetric}.rsa").RSAPublicKey):
        return VerifyingKey(key, list(RSA))
    if isinstance(key, import_module(f"{asymmetric}.ec").EllipticCurvePublicKey):
        return VerifyingKey(key, list(ELLIPTIC))
    raise InvalidConfiguration("public_key: a key of RSA or of an elliptic curve is needed")


def _moment(claims: Mapping[str, Any], claim: str) -> int | None:
    """Return a time of the token in milliseconds since 1970."""
    seconds = claims.get(claim)
    if seconds is None:
        return None
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not -LATEST_TIME <= seconds <= LATEST_TIME
    ):
        raise AuthenticationError(f"the token has no time in its claim {claim!r}")
    return int(seconds * 1000)
