"""`wrap_data_key` and `unwrap_data_key`: for RSA, and for elliptic curves as BouncyCastle does it."""

import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.encryption import MAX_WRAPPED_SIZE, DataKey, unwrap_data_key, wrap_data_key
from pulsar_sansio.model.errors import CryptoError

from .keys import KINDS, key_pair

VECTORS = json.loads((Path(__file__).resolve().parent.parent / "data" / "vectors.json").read_text())["crypto"]

DATA_KEY = DataKey(bytes(range(32)))


@pytest.mark.parametrize(("kind", "size"), [("rsa", 256), ("p256", 117), ("p521", 185)])
def test_a_wrapped_key_comes_out_again_and_has_the_size_that_the_protocol_says(kind: str, size: int) -> None:
    public, private = key_pair(kind)
    wrapped = wrap_data_key(public, DATA_KEY, os.urandom)
    assert len(wrapped) == size
    assert wrapped != wrap_data_key(public, DATA_KEY, os.urandom), "each wrap is another one"
    assert unwrap_data_key(private, wrapped).reveal() == DATA_KEY.reveal()


def test_all_randomness_of_a_wrap_for_an_elliptic_curve_comes_from_the_driver() -> None:
    """So a simulated world is repeatable. Numbers that are no private key are drawn again."""
    public, private = key_pair("p256")
    drawn = [b"\xff" * 32, bytes(32), b"\1" * 32]
    draws = iter(drawn * 2)
    first, second = (wrap_data_key(public, DATA_KEY, lambda size: next(draws)) for _ in range(2))
    assert first == second
    assert unwrap_data_key(private, first).reveal() == DATA_KEY.reveal()
    assert next(draws, None) is None


def test_a_key_that_bouncy_castle_wrapped_comes_out() -> None:
    vector = VECTORS[1]
    key = ec.derive_private_key(int(vector["private_scalar"], 16), ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert unwrap_data_key(pem, bytes.fromhex(vector["wrapped"])).reveal() == bytes(range(32))


@pytest.mark.parametrize("kind", ["rsa", "p256"])
def test_private_keys_come_in_the_older_form_too(kind: str) -> None:
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    older = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    wrapped = wrap_data_key(public, DATA_KEY, os.urandom)
    parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    assert unwrap_data_key(older, wrapped).reveal() == DATA_KEY.reveal()
    in_front = parameters + older if kind == "p256" else older
    assert unwrap_data_key(in_front, wrapped).reveal() == DATA_KEY.reveal()


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_was_wrapped_for_another_pair_is_refused(kind: str) -> None:
    wrapped = wrap_data_key(key_pair(kind, 1)[0], DATA_KEY, os.urandom)
    with pytest.raises(CryptoError, match="wrapped for another key pair"):
        unwrap_data_key(key_pair(kind)[1], wrapped)


@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_one_changed_bit_of_a_wrapped_key_is_noticed(data: st.DataObject, kind: str) -> None:
    public, private = key_pair(kind)
    wrapped = bytearray(wrap_data_key(public, DATA_KEY, os.urandom))
    bit = data.draw(st.integers(0, 8 * len(wrapped) - 1))
    wrapped[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CryptoError):
        unwrap_data_key(private, bytes(wrapped))


@given(kind=st.sampled_from(KINDS), wrapped=st.binary(max_size=300))
def test_any_other_bytes_are_no_wrapped_key(kind: str, wrapped: bytes) -> None:
    with pytest.raises(CryptoError):
        unwrap_data_key(key_pair(kind)[1], wrapped)


@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_wrapped_key_is_not_tried(kind: str) -> None:
    with pytest.raises(CryptoError, match="1000000 bytes, allowed are 4096"):
        unwrap_data_key(key_pair(kind)[1], bytes(1_000_000))
    with pytest.raises(CryptoError, match=r"point|another|few"):
        unwrap_data_key(key_pair(kind)[1], bytes(MAX_WRAPPED_SIZE))


@pytest.mark.parametrize(
    "pem",
    [b"", b"\xff" * 100, b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", key_pair("rsa")[1]],
    ids=["nothing", "bytes", "malformed", "a private key"],
)
def test_what_is_no_public_key_is_refused_without_its_text(pem: bytes) -> None:
    with pytest.raises(CryptoError, match=r"^it is no public key in PEM$"):
        wrap_data_key(pem, DATA_KEY, os.urandom)


def test_what_is_no_private_key_is_refused_without_its_text() -> None:
    with pytest.raises(CryptoError, match=r"^it is no private key in PEM$"):
        unwrap_data_key(key_pair("rsa")[0], bytes(256))


def test_a_private_key_with_a_password_is_refused() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(os.urandom(9)))
    with pytest.raises(CryptoError, match="has a password"):
        unwrap_data_key(pem, bytes(117))


def test_key_pairs_of_other_kinds_are_refused() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(CryptoError, match="is of RSA or of an elliptic curve"):
        wrap_data_key(public, DATA_KEY, os.urandom)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(CryptoError, match="is of RSA or of an elliptic curve"):
        unwrap_data_key(private, bytes(117))
