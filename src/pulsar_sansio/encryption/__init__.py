"""End-to-end encryption of entries: data keys, their wraps for recipients, and AES-GCM.

Pure functions and values; the library `cryptography` does the arithmetic, and is imported when a key is
used. The client's machines decide which keys are wanted; adapters bring them.
"""

from ..model.encryption_context import NONCE_SIZE, TAG_SIZE
from .data_key import DATA_KEY_SIZE, DataKey
from .entries import MAX_KEY_TEXT, EntryCipher, wrapped_keys
from .key_pairs import MAX_WRAPPED_SIZE, unwrap_data_key, wrap_data_key

__all__ = [
    "DATA_KEY_SIZE",
    "MAX_KEY_TEXT",
    "MAX_WRAPPED_SIZE",
    "NONCE_SIZE",
    "TAG_SIZE",
    "DataKey",
    "EntryCipher",
    "unwrap_data_key",
    "wrap_data_key",
    "wrapped_keys",
]
