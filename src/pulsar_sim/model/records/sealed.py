"""`Sealed`: the encryption of an entry as its metadata describe it, and the ciphertext."""

from typing import NamedTuple

from ...engine.security.key_holder import KeyId


class Sealed(NamedTuple):
    """The encryption of one SEND."""

    keys: tuple[KeyId, ...]
    """The key pairs for which the data key is wrapped, one for each recipient."""
    wrapped: tuple[bytes, ...]
    data_key: bytes
    nonce: bytes
    ciphertext: bytes
