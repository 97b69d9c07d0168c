"""The key pairs of all worlds, by name and version, and the opening of what was encrypted for them.

Owns the arithmetic by which the checks look into encrypted entries. It shares no code with
`pulsar_sansio.encryption`. All key pairs are of the curve P-256: a wrap for RSA takes randomness of the
machine, and no two runs of a world would write the same bytes. The library `cryptography` is imported when a
world encrypts: all other worlds run without it.
"""

import hmac
from functools import cache
from hashlib import blake2b, sha1, sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_POINT, _MAC = 65, 20
"""Bytes of the first and the last part of a wrapped data key."""


class OpeningError(Exception):
    """Bytes that were not encrypted with this key."""


@cache
def _pair(name: str, version: int) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

    number = int.from_bytes(sha256(f"{name} {version}".encode()).digest()[:31])
    return derive_private_key(number, SECP256R1())


@cache
def public_pem(name: str, version: int) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = _pair(name, version).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


@cache
def private_pem(name: str, version: int) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return _pair(name, version).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def unwrap(name: str, version: int, wrapped: bytes) -> bytes:
    """Return the data key: ECIES with KDF2 and SHA-1, as BouncyCastle writes it. Raises `OpeningError`."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDH, SECP256R1, EllipticCurvePublicKey

    point, masked, mac = wrapped[:_POINT], wrapped[_POINT:-_MAC], wrapped[-_MAC:]
    try:
        other = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    except ValueError:
        raise OpeningError("no point of the curve") from None
    secret = point + _pair(name, version).exchange(ECDH(), other)
    blocks = [sha1(secret + number.to_bytes(4)).digest() for number in range(1, 4)]
    derived = b"".join(blocks)
    if hmac.digest(derived[:16], masked + bytes(8), "sha1") != mac:
        raise OpeningError("wrapped for another key pair")
    return bytes(one ^ other for one, other in zip(masked, derived[16:], strict=False))


def decrypt(data_key: bytes, nonce: bytes, payload: bytes) -> bytes:
    """Return the plaintext. Raises `OpeningError`."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(data_key).decrypt(nonce, payload, None)
    except InvalidTag:
        raise OpeningError("encrypted with another data key") from None


def fingerprint(data_key: bytes) -> str:
    """Return a name of a data key, for messages."""
    return blake2b(data_key, digest_size=4).hexdigest()
