"""`wrap_data_key` and `unwrap_data_key`: a data key on its way to the holder of a key pair.

The type of the key pair decides: RSA wraps with OAEP, SHA-1, MGF1 with SHA-1, and no label; an elliptic curve
wraps with ECIES. Keys are PEM text: a public key as SubjectPublicKeyInfo, a private key as PKCS#8 or in the
older form of its type, without a password.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..model.errors import CryptoError
from .data_key import DataKey
from .ecies import ecies_unwrap, ecies_wrap

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.padding import OAEP
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

    _PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey
    _PrivateKey: TypeAlias = RSAPrivateKey | EllipticCurvePrivateKey

MAX_WRAPPED_SIZE = 4096
"""Bytes of a wrapped data key that is worth an attempt: an RSA key of 16384 bits wraps to 2048."""


def wrap_data_key(public_key: bytes, data_key: DataKey, entropy: Callable[[int], bytes]) -> bytes:
    """Wrap a data key for the holder of the private key. Raises `CryptoError`.

    `entropy(size)` returns random bytes. The padding of RSA takes its own from the library.
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    from_pem = _public_key(public_key)
    if not isinstance(from_pem, RSAPublicKey):
        return ecies_wrap(from_pem, data_key.reveal(), entropy)
    try:
        return from_pem.encrypt(data_key.reveal(), _oaep())
    except ValueError:
        pass  # its text may hold more than the size
    raise CryptoError(f"an RSA key of {from_pem.key_size} bits is too short to wrap a data key")


def unwrap_data_key(private_key: bytes, wrapped: bytes) -> DataKey:
    """Return the data key. Raises `CryptoError` for bytes that were not wrapped for this key pair, and for a
    private key that cannot be used."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    from_pem = _private_key(private_key)
    if len(wrapped) > MAX_WRAPPED_SIZE:
        raise CryptoError(f"the data key is wrapped in {len(wrapped)} bytes, allowed are {MAX_WRAPPED_SIZE}")
    if not isinstance(from_pem, RSAPrivateKey):
        return DataKey(ecies_unwrap(from_pem, wrapped))
    try:
        return DataKey(from_pem.decrypt(wrapped, _oaep()))
    except ValueError:
        pass
    raise CryptoError("the data key was wrapped for another key pair")


def _oaep() -> "OAEP":
    """Return the padding that Java names RSA/NONE/OAEPWithSHA1AndMGF1Padding."""
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.hashes import SHA1

    return OAEP(mgf=MGF1(algorithm=SHA1()), algorithm=SHA1(), label=None)


def _public_key(pem: bytes) -> "_PublicKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        raise CryptoError("it is no public key in PEM") from None
    if not isinstance(key, RSAPublicKey | EllipticCurvePublicKey):
        raise CryptoError("a public key for encryption is of RSA or of an elliptic curve")
    return key


def _private_key(pem: bytes) -> "_PrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None)
    except TypeError:
        raise CryptoError("the private key has a password, and may not have one") from None
    except (ValueError, UnsupportedAlgorithm):
        raise CryptoError("it is no private key in PEM") from None
    if not isinstance(key, RSAPrivateKey | EllipticCurvePrivateKey):
        raise CryptoError("a private key for decryption is of RSA or of an elliptic curve")
    return key
