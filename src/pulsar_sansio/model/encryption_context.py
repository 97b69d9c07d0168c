"""`EncryptionContext`: what an encrypted message says of its encryption, for applications that decrypt."""

from dataclasses import dataclass
from typing import NamedTuple

NONCE_SIZE = 12
"""Bytes of the nonce of an encrypted payload, which MessageMetadata names encryption_param (CRYPTO-02)."""

TAG_SIZE = 16
"""Bytes that encryption adds to a payload."""


class EncryptionKey(NamedTuple):
    """The data key of a message, wrapped for the holder of the key pair `key` (message EncryptionKeys)."""

    key: str
    value: bytes
    metadata: tuple[tuple[str, str], ...] = ()
    """The metadata that the producer wrote of the public key."""


@dataclass(frozen=True, slots=True)
class EncryptionContext:
    """The encryption of a message, and what has to be done behind it (rule CRYPTO-06).

    `keys`: the data key, once for each recipient. `param`: the nonce of AES-GCM. `algorithm`: None as a rule.
    `compression`: a `CompressionType`; it and `uncompressed_size` are of the plaintext. `batch_size`: the
    number of messages in the batch, None for a message that was sent alone. `uuid`, `chunk_id`, `chunks`: of
    a chunk of a message; None for any other. `decryption_failed`: True when the message was delivered as it
    is, and False when the client has decrypted it.
    """

    keys: tuple[EncryptionKey, ...]
    param: bytes
    algorithm: str | None
    compression: int
    uncompressed_size: int
    batch_size: int | None
    uuid: str | None
    chunk_id: int | None
    chunks: int | None
    decryption_failed: bool
