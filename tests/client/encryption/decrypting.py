"""Encrypted entries for a `ConsumerScript` whose consumer has a key reader, and its questions for keys."""

from random import Random
from typing import Any

from pulsar_sansio.client.outputs import EncryptionKeyWanted
from pulsar_sansio.encryption import EntryCipher
from pulsar_sansio.model.encryption import EncryptionKeyInfo
from pulsar_sansio.model.errors import CryptoError
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.wire import MessageMetadata, encode_batch_payloads
from tests.client.broker_script import ConsumerScript, entry_bytes
from tests.client.consuming.consumer_script import started

from .encrypted import READER, info_of, private_key

_ENTROPY = Random(3).randbytes


class Sealer:
    """A producer session: one data key for these recipients."""

    def __init__(self, *keys: str, **metadata: str) -> None:
        self.cipher = EntryCipher.new([(key, info_of(key, **metadata)) for key in keys or ("a",)], _ENTROPY)

    def entry(self, payload: bytes, **fields: Any) -> bytes:
        """The headers and the payload of a stored entry."""
        metadata = MessageMetadata("p", 0, 0)
        encrypted = self.cipher.encrypt(metadata, payload)
        keys, nonce = metadata.encryption_keys, metadata.encryption_param
        return entry_bytes(encrypted, **{"encryption_keys": keys, "encryption_param": nonce, **fields})

    def batch(self, *payloads: bytes, **fields: Any) -> bytes:
        return self.entry(
            encode_batch_payloads(payloads, 0), **{"num_messages_in_batch": len(payloads), **fields}
        )


def decrypting(**spec: Any) -> ConsumerScript:
    """A subscribed consumer with a key reader."""
    return started(**{"crypto_key_reader": READER, **spec})


def asked(s: ConsumerScript) -> list[EncryptionKeyWanted]:
    """The questions for private keys since the last call."""
    wanted = [output for output in s.outputs() if isinstance(output, EncryptionKeyWanted)]
    assert all(each.private and each.reader == READER for each in wanted)
    return wanted


def provide(s: ConsumerScript, wanted: EncryptionKeyWanted, *, key: str | None = None) -> None:
    """Answer with the private key of that name; None for the one that is wanted."""
    info = EncryptionKeyInfo(Secret(private_key(key or wanted.key)))
    s.client.provide_encryption_key(s.now, wanted.request, info)
    s.pump()


def refuse(s: ConsumerScript, wanted: EncryptionKeyWanted, *, why: str = "no such file") -> None:
    s.client.refuse_encryption_key(s.now, wanted.request, CryptoError(why))
    s.pump()


def payloads(s: ConsumerScript) -> list[bytes]:
    return [message.data for message in s.take()]
