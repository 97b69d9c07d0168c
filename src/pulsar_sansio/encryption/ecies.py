"""ECIES as the Java client's library BouncyCastle writes it, for key pairs on elliptic curves.

A wrapped key is three parts, one behind the other: the uncompressed point of a key pair made for this one
wrap; the data key, XORed with a derived key; and an HMAC-SHA1 of that. Both derived keys are KDF2 with SHA-1
of the point and the shared x coordinate. The MAC's key is the first 16 bytes of it. There is no shared
information, whose length of 8 zero bytes the MAC includes (`IESParameterSpec(null, null, 128)`).
"""

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..model.errors import CryptoError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import (
        EllipticCurve,
        EllipticCurvePrivateKey,
        EllipticCurvePublicKey,
    )

_MAC_KEY_SIZE = 16
_MAC_SIZE = 20
_NO_SHARED_INFORMATION = bytes(8)


def ecies_wrap(
    public_key: "EllipticCurvePublicKey", data_key: bytes, entropy: Callable[[int], bytes]
) -> bytes:
    """Wrap a data key for the holder of the private key. `entropy(size)` returns random bytes."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDH
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    once = _new_private_key(public_key.curve, entropy)
    point = once.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    mac_key, mask = _derived(point, once.exchange(ECDH(), public_key), len(data_key))
    masked = _xor(data_key, mask)
    return point + masked + _mac(mac_key, masked)


def ecies_unwrap(private_key: "EllipticCurvePrivateKey", wrapped: bytes) -> bytes:
    """Return the data key. Raises `CryptoError` for bytes that were not wrapped for this key pair."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDH, EllipticCurvePublicKey

    end = _point_size(private_key.curve)
    point, masked, mac = wrapped[:end], wrapped[end:-_MAC_SIZE], wrapped[-_MAC_SIZE:]
    if len(wrapped) < end + _MAC_SIZE:
        raise CryptoError(f"a data key wrapped in {len(wrapped)} bytes, too few for the curve")
    try:
        other = EllipticCurvePublicKey.from_encoded_point(private_key.curve, point)
    except ValueError:
        raise CryptoError(f"the wrapped data key has no point of {private_key.curve.name}") from None
    mac_key, mask = _derived(point, private_key.exchange(ECDH(), other), len(masked))
    if not hmac.compare_digest(mac, _mac(mac_key, masked)):
        raise CryptoError("the data key was wrapped for another key pair")
    return _xor(masked, mask)


def _new_private_key(curve: "EllipticCurve", entropy: Callable[[int], bytes]) -> "EllipticCurvePrivateKey":
    """Make a key pair. A number that is zero, or not below the order of the curve, is drawn again."""
    from cryptography.hazmat.primitives.asymmetric.ec import derive_private_key

    size = (curve.key_size + 7) // 8
    while True:
        number = int.from_bytes(entropy(size)) >> 8 * size - curve.key_size
        try:
            return derive_private_key(number, curve)
        except ValueError:
            continue


def _point_size(curve: "EllipticCurve") -> int:
    """Return the bytes of an uncompressed point."""
    return 1 + 2 * ((curve.key_size + 7) // 8)


def _derived(point: bytes, shared: bytes, size: int) -> tuple[bytes, bytes]:
    """Return the key of the MAC, and the mask for a data key of `size` bytes."""
    from cryptography.hazmat.primitives.hashes import SHA1
    from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF

    derived = X963KDF(SHA1(), _MAC_KEY_SIZE + size, None).derive(point + shared)
    return derived[:_MAC_KEY_SIZE], derived[_MAC_KEY_SIZE:]


def _mac(key: bytes, masked: bytes) -> bytes:
    return hmac.digest(key, masked + _NO_SHARED_INFORMATION, "sha1")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
