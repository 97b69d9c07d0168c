"""`EntryCipher`: the encryption of a producer's entries between two renewals of its data key.

An entry carries its data key, wrapped once for each recipient. `wrapped_keys` reads and limits these for a
consumer: they come from any producer of the topic.
"""

from collections.abc import Callable, Sequence

from ..model.encryption import MAX_RECIPIENTS, EncryptionKeyInfo
from ..model.encryption_context import NONCE_SIZE
from ..model.errors import CryptoError
from ..wire import EncryptionKey, MessageMetadata
from .data_key import DataKey
from .key_pairs import wrap_data_key

MAX_KEY_TEXT = 64 * 1024
"""Characters of the names and metadata of one entry's keys. A consumer keeps and reports them."""


class EntryCipher:
    """One data key with the wraps for its recipients. `entropy(size)` returns random bytes.

    Every entry gets a random nonce. So no nonce is used twice with one key, also in copies of a process.
    """

    __slots__ = ("_data_key", "_entropy", "keys")

    def __init__(
        self, data_key: DataKey, keys: Sequence[EncryptionKey], entropy: Callable[[int], bytes]
    ) -> None:
        self._data_key = data_key
        self.keys = tuple(keys)
        """The data key, wrapped for each recipient."""
        self._entropy = entropy

    @classmethod
    def new(
        cls, recipients: Sequence[tuple[str, EncryptionKeyInfo]], entropy: Callable[[int], bytes]
    ) -> "EntryCipher":
        """Make a data key for the recipients, each named with its public key. Raises `CryptoError`, which
        names the key that cannot be used."""
        data_key = DataKey.new(entropy)
        return cls(data_key, [_wrapped(name, info, data_key, entropy) for name, info in recipients], entropy)

    def encrypt(self, metadata: MessageMetadata, payload: bytes) -> bytes:
        """Return the payload encrypted, and set what `metadata` says of it."""
        metadata.encryption_keys = self.keys
        metadata.encryption_param, encrypted = self.seal(payload)
        return encrypted

    def seal(self, payload: bytes) -> tuple[bytes, bytes]:
        """Return a new nonce, and the payload encrypted with it."""
        nonce = self._entropy(NONCE_SIZE)
        return nonce, self._data_key.encrypt(nonce, payload)


def _wrapped(
    name: str, info: EncryptionKeyInfo, data_key: DataKey, entropy: Callable[[int], bytes]
) -> EncryptionKey:
    try:
        wrapped = wrap_data_key(info.key.reveal(), data_key, entropy)
    except CryptoError as error:
        raise CryptoError(f"encryption key {name!r}: {error}") from None
    return EncryptionKey(name, wrapped, tuple(info.metadata.items()))


def wrapped_keys(keys: Sequence[EncryptionKey]) -> Sequence[EncryptionKey]:
    """Return the wrapped data keys of an encrypted entry. Raises `CryptoError` for more, or for longer names
    and metadata, than a consumer looks at."""
    if len(keys) > MAX_RECIPIENTS:
        raise CryptoError(f"the entry has {len(keys)} encryption keys, allowed are {MAX_RECIPIENTS}")
    texts = 0
    for key in keys:
        texts += len(key.key)
        for name, value in key.metadata:
            texts += len(name) + len(value)
    if texts > MAX_KEY_TEXT:
        raise CryptoError(
            f"names and metadata of the entry's encryption keys have {texts} characters, "
            f"allowed are {MAX_KEY_TEXT}"
        )
    return keys
