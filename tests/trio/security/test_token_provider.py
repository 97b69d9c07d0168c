"""The broker's side of JSON Web Tokens."""

import base64
import hmac
import importlib
import json
import pickle
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pulsar_sansio import AuthenticationError, Identity, InvalidConfiguration, Secret
from pulsar_trio import TokenProvider
from pulsar_trio.security import token_provider

KEY = b"k" * 64
RSA = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def made(claims: dict[str, Any], algorithm: str = "HS256", key: Any = KEY) -> bytes:
    return jwt.encode(claims, key, algorithm=algorithm).encode()


def public(key: Any, encoding: Encoding = Encoding.PEM) -> bytes:
    found: bytes = key.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
    return found


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_role_and_the_times_of_a_token(algorithm: str) -> None:
    provider = TokenProvider(secret_key=Secret(KEY))
    data = made({"sub": "ada", "exp": 2_000_000_000.5, "nbf": 5, "iat": 9e9, "aud": "any"}, algorithm)
    assert provider.authenticate(data, None) == Identity("ada", 2_000_000_000_500, 5_000)
    assert provider.authenticate(made({"sub": "ada"}), None) == Identity("ada")


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "RS512"), (CURVE, "ES256")])
def test_public_keys(key: Any, algorithm: str, encoding: Encoding, tmp_path: Path) -> None:
    file = tmp_path / "public.key"
    file.write_bytes(public(key, encoding))
    for source in (public(key, encoding), file):
        provider = TokenProvider(public_key=source)
        assert provider.authenticate(made({"sub": "ada"}, algorithm, key), None) == Identity("ada")
    assert TokenProvider(public_key=public(key).decode())


def test_a_secret_key_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_bytes(KEY)
    provider = TokenProvider(secret_key=tmp_path / "secret.key")
    assert provider.authenticate(made({"sub": "ada"}), None) == Identity("ada")


def test_white_space_around_a_token_is_ignored() -> None:
    """The Go client sends a token's file as it is."""
    provider = TokenProvider(secret_key=Secret(KEY))
    assert provider.authenticate(b" " + made({"sub": "ada"}) + b"\r\n", None) == Identity("ada")


def unsigned(header: dict[str, str]) -> bytes:
    parts = (json.dumps(each).encode() for each in (header, {"sub": "root"}))
    return b".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts), b""])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"a.b.c",
        b"\xff",
        made({"sub": "ada"}, key=b"x" * 64),
        unsigned({"alg": "none", "typ": "JWT"}),
        unsigned({"alg": "HS256", "typ": "JWT"}),
        made({"sub": "ada"}, "RS256", RSA),
        made({}),
        made({"sub": ""}),
        made({"sub": "ada", "exp": True}),
        made({"sub": "ada", "exp": [1]}),
        made({"sub": "ada", "nbf": "soon"}),
        made({"sub": "ada", "exp": 10**400}),
        made({"sub": "ada", "exp": 1e308}),
        made({"sub": "ada", "exp": float("nan")}),
        made({"sub": "\ud800"}),
    ],
)
def test_other_tokens_are_refused(data: bytes) -> None:
    with pytest.raises(AuthenticationError) as caught:
        TokenProvider(secret_key=KEY).authenticate(data, None)
    assert not data or data.decode("latin-1") not in str(caught.value)


def test_a_public_key_is_no_secret_key() -> None:
    """A token signed with the public key's own text, as if it were a secret, is refused."""
    pem = public(RSA)
    signed = unsigned({"alg": "HS256", "typ": "JWT"}).rstrip(b".")
    signature = base64.urlsafe_b64encode(hmac.digest(pem, signed, "sha256")).rstrip(b"=")
    with pytest.raises(AuthenticationError):
        TokenProvider(public_key=pem).authenticate(signed + b"." + signature, None)


def test_a_short_secret_key_is_for_the_shorter_hashes_only() -> None:
    provider = TokenProvider(secret_key=b"k" * 32)
    assert repr(provider) == "TokenProvider(HS256)"
    with pytest.raises(AuthenticationError):
        provider.authenticate(made({"sub": "ada"}, "HS512"), None)


def test_another_claim_may_name_the_role() -> None:
    provider = TokenProvider(secret_key=KEY, claim="groups")
    assert provider.authenticate(made({"groups": ["a", "b"]}), None) == Identity("a")
    assert provider.authenticate(made({"groups": "c"}), None) == Identity("c")
    wrong: list[dict[str, Any]] = [{"sub": "ada"}, {"groups": []}, {"groups": [3]}]
    for claims in wrong:
        with pytest.raises(AuthenticationError, match="'groups'"):
            provider.authenticate(made(claims), None)


def test_the_audience() -> None:
    provider = TokenProvider(secret_key=KEY, audience="us")
    for audience in ("us", ["them", "us"]):
        assert provider.authenticate(made({"sub": "ada", "aud": audience}), None).role == "ada"
    wrong: list[dict[str, Any]] = [{}, {"aud": "them"}, {"aud": ["them"]}, {"aud": "us too"}]
    for claims in wrong:
        with pytest.raises(AuthenticationError, match="audience"):
            provider.authenticate(made({"sub": "ada", **claims}), None)
    other = TokenProvider(secret_key=KEY, audience="us", audience_claim="for")
    assert other.authenticate(made({"sub": "ada", "for": "us"}), None).role == "ada"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "either secret_key or public_key"),
        ({"secret_key": KEY, "public_key": public(RSA)}, "either secret_key or public_key"),
        ({"secret_key": b"short"}, "secret_key: 5 bytes, at least 32"),
        ({"secret_key": "text"}, "secret_key: bytes, a Secret, or the Path"),
        ({"secret_key": Path("/no/such/key")}, "secret_key '/no/such/key': No such file"),
        ({"public_key": b"none"}, "public_key: no public key"),
        ({"public_key": "-----BEGIN PUBLIC KEY-----"}, "public_key: no public key"),
        ({"public_key": public(ed25519.Ed25519PrivateKey.generate())}, "RSA or of an elliptic curve"),
        ({"secret_key": KEY, "claim": ""}, "claim"),
        ({"secret_key": KEY, "audience": 3}, "audience"),
        ({"secret_key": KEY, "audience_claim": None}, "audience_claim"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidConfiguration, match=reason):
        TokenProvider(**options)


@pytest.mark.parametrize("missing", ["jwt", "cryptography.hazmat.primitives.serialization"])
def test_what_is_not_installed_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str) -> Any:
        if name == missing:
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(token_provider, "import_module", without)
    with pytest.raises(InvalidConfiguration, match=r"pulsar-trio\[auth\]"):
        TokenProvider(public_key=public(RSA))


def test_the_key_is_neither_shown_nor_pickled() -> None:
    provider = TokenProvider(secret_key=KEY)
    assert repr(provider) == "TokenProvider(HS256, HS384, HS512)"
    with pytest.raises(TypeError):
        pickle.dumps(provider)
