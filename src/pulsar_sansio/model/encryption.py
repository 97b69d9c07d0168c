"""Values of end-to-end encryption: keys as a key reader returns them, and what happens without one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from .errors import InvalidConfiguration
from .secret import Secret
from .topic_name import is_text

MAX_RECIPIENTS = 64
"""Encryption keys of one message. Each may cost a consumer an operation with a private key."""


class ProducerCryptoFailureAction(Enum):
    """The behaviour of a producer while a public key cannot be had (rule CRYPTO-03)."""

    FAIL = "fail"
    """Opening the producer fails."""
    SEND = "send"
    """The producer sends messages that are not encrypted, until it has the keys. It tries again and again."""


class ConsumerCryptoFailureAction(Enum):
    """The way of a message that a consumer cannot decrypt (rule CRYPTO-05)."""

    FAIL = "fail"
    """The message is not delivered, and stays unacknowledged."""
    DISCARD = "discard"
    """The message is acknowledged, and not delivered."""
    CONSUME = "consume"
    """The message is delivered as it is: see `Message.encryption_context`."""


@dataclass(frozen=True, slots=True)
class EncryptionKeyInfo:
    """One key, as a key reader returns it.

    `key`: a public or a private key as PEM text. `metadata`: of a public key, text that travels with every
    message, so that consumers find the private key by it. Raises `InvalidConfiguration`.
    """

    key: Secret
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.key, Secret):
            raise InvalidConfiguration(f"key: a Secret, not {type(self.key).__name__}")
        metadata: object = self.metadata
        if not isinstance(metadata, Mapping) or not all(
            is_text(name) and is_text(value) for name, value in metadata.items()
        ):
            raise InvalidConfiguration("metadata: a mapping of text to text")


def check_recipients(keys: object, key_reader: object, action: object) -> None:
    """Check the encryption options of a producer. Raises `InvalidConfiguration`."""
    if not isinstance(keys, tuple) or not all(is_text(key) and key.strip() for key in keys):
        raise InvalidConfiguration(
            f"encryption_keys: a tuple of names of keys, which are not blank, not {keys!r}"
        )
    if len(set(keys)) < len(keys) or len(keys) > MAX_RECIPIENTS:
        raise InvalidConfiguration(
            f"encryption_keys: up to {MAX_RECIPIENTS} names, each once, and there are {len(keys)}"
        )
    if bool(keys) is (key_reader is None):
        raise InvalidConfiguration(
            "encryption_keys, crypto_key_reader: a producer that encrypts has both, others have neither"
        )
    if not isinstance(action, ProducerCryptoFailureAction):
        raise InvalidConfiguration(f"crypto_failure_action: a ProducerCryptoFailureAction, not {action!r}")
    if keys:
        require_cryptography("encryption_keys")


def check_decryption(key_reader: object, action: object) -> None:
    """Check the encryption options of a consumer. Raises `InvalidConfiguration`."""
    if not isinstance(action, ConsumerCryptoFailureAction):
        raise InvalidConfiguration(f"crypto_failure_action: a ConsumerCryptoFailureAction, not {action!r}")
    if key_reader is not None:
        require_cryptography("crypto_key_reader")


def require_cryptography(option: str) -> None:
    """Raise `InvalidConfiguration` for an option that needs the library `cryptography`, if it is missing."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise InvalidConfiguration(
            f"{option}: install cryptography, the extra 'encryption' (pip install 'pulsar-trio[encryption]')"
        ) from None
