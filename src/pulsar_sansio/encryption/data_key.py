"""`DataKey`: the AES key that encrypts the entries of one producer, between two renewals.

An entry is encrypted with AES-GCM: a nonce of 12 bytes, no associated data, and the tag of 16 bytes behind
the ciphertext (CRYPTO-02). The key knows neither nonces nor recipients. It never reaches a log, a `repr` or a
pickle.
"""

from collections.abc import Callable
from typing import NoReturn

from ..model.encryption_context import NONCE_SIZE
from ..model.errors import CryptoError

DATA_KEY_SIZE = 32
"""Bytes of a new data key, as the Java client makes it."""

_KEY_SIZES = (16, 24, 32)
"""Bytes of an AES key. The Java client made keys of 16 bytes where the law limited it."""


class DataKey:
    """One AES key. Raises `CryptoError` for bytes that are no such key."""

    __slots__ = ("_cipher", "_invalid_tag", "_key")

    def __init__(self, key: bytes) -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(key) not in _KEY_SIZES:
            raise CryptoError(f"a data key has 16, 24 or 32 bytes, and not {len(key)}")
        self._key = key
        self._cipher = AESGCM(key)
        self._invalid_tag = InvalidTag

    @classmethod
    def new(cls, entropy: Callable[[int], bytes]) -> "DataKey":
        """Make a key. `entropy(size)` returns random bytes."""
        return cls(entropy(DATA_KEY_SIZE))

    def reveal(self) -> bytes:
        """Return the bytes of the key, for the one place that wraps them."""
        return self._key

    def encrypt(self, nonce: bytes, payload: bytes) -> bytes:
        """Return the ciphertext with its tag. No two payloads of one key may have the nonce."""
        return self._cipher.encrypt(nonce, payload, None)

    def decrypt(self, nonce: bytes, payload: bytes) -> bytes:
        """Return the plaintext. Raises `CryptoError` for a payload that this key did not encrypt, or that was
        changed afterwards."""
        if len(nonce) != NONCE_SIZE:
            raise CryptoError(f"the nonce has {len(nonce)} bytes, and not {NONCE_SIZE}")
        try:
            return self._cipher.decrypt(nonce, payload, None)
        except self._invalid_tag:
            pass
        raise CryptoError("the payload was changed, or encrypted with another data key")

    def __repr__(self) -> str:
        return "DataKey(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a data key cannot be pickled")
