"""`TokenProvider`: the broker's side of JSON Web Tokens (method "token"), verified by PyJWT."""

import os
from collections.abc import Mapping
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

from pulsar_sansio import AuthenticationError, Identity, InvalidConfiguration, Secret

SHORTEST_SECRETS = {"HS256": 32, "HS384": 48, "HS512": 64}
"""Algorithm -> the least bytes of its secret key (RFC 7518, 3.2)."""

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ELLIPTIC = ("ES256", "ES384", "ES512")

UNCHECKED = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
"""Claims that PyJWT leaves alone: the broker compares times with its own, and this class reads the others."""

KeySource = Secret | bytes | os.PathLike[str]


class TokenProvider:
    """`secret_key`: for tokens of HS256, HS384 or HS512: the key's bytes or the file that holds them.
    `public_key`: for tokens of RSA or elliptic curves: the key in PEM or DER, or its file. Exactly one of
    both is given; `pulsar tokens` makes such keys.

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
        self._secret: Secret | None = None
        self._public: Any = None
        self._algorithms: list[str]
        if secret_key is not None:
            self._secret = _read("secret_key", secret_key)
            size = len(self._secret.reveal())
            self._algorithms = [name for name, least in SHORTEST_SECRETS.items() if size >= least]
            if not self._algorithms:
                raise InvalidConfiguration(f"secret_key: {size} bytes, at least 32 are needed")
        else:
            data = public_key.encode() if isinstance(public_key, str) else public_key
            self._public, self._algorithms = _public_key(_read("public_key", data).reveal())

    def authenticate(self, data: bytes, certificate: str | None) -> Identity:
        """Return the role of a token, with the time in which it is valid. Raises `AuthenticationError`."""
        key = self._public if self._secret is None else self._secret.reveal()
        options = {f"verify_{claim}": False for claim in UNCHECKED}
        try:
            claims: Mapping[str, Any] = self._jwt.decode(
                data, key, algorithms=self._algorithms, options=options
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
        return role

    def _check_audience(self, claims: Mapping[str, Any]) -> None:
        if self._audience is None:
            return
        found = claims.get(self._audience_claim)
        if self._audience not in (found if isinstance(found, list) else [found]):
            raise AuthenticationError("the token is for another audience")

    def __repr__(self) -> str:
        return f"TokenProvider({', '.join(self._algorithms)})"


def _read(option: str, source: object) -> Secret:
    if isinstance(source, os.PathLike):
        try:
            return Secret(Path(source).read_bytes())
        except OSError as error:
            raise InvalidConfiguration(f"{option} {os.fspath(source)!r}: {error.strerror}") from None
    if not isinstance(source, (Secret, bytes)):
        raise InvalidConfiguration(
            f"{option}: bytes, a Secret, or the Path of a file, not {type(source).__name__}"
        )
    return Secret(source)


def _public_key(data: bytes) -> tuple[Any, list[str]]:
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
        return key, list(RSA)
    if isinstance(key, import_module(f"{asymmetric}.ec").EllipticCurvePublicKey):
        return key, list(ELLIPTIC)
    raise InvalidConfiguration("public_key: a key of RSA or of an elliptic curve is needed")


def _moment(claims: Mapping[str, Any], claim: str) -> int | None:
    """Return a time of the token in milliseconds since 1970."""
    seconds = claims.get(claim)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not isfinite(seconds):
        raise AuthenticationError(f"the token has no time in its claim {claim!r}")
    return int(seconds * 1000)
