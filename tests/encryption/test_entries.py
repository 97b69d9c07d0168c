"""`EntryCipher` and `wrapped_keys`: encrypted entries, also those that the Java client wrote."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_sansio.encryption import (
    MAX_KEY_TEXT,
    EntryCipher,
    unwrap_data_key,
    wrapped_keys,
)
from pulsar_sansio.model.encryption import MAX_RECIPIENTS, EncryptionKeyInfo
from pulsar_sansio.model.errors import CryptoError, InvalidConfiguration
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.wire import (
    EncryptionKey,
    MessageMetadata,
    SingleMessageMetadata,
    decompress,
    encode_message_metadata,
    proto,
    split_batch,
    unpack_payload,
)
from tests.wire.recorded.recordings import FOLDER, frames

from .keys import key_pair

JAVAS_KEY = (Path(FOLDER) / "encryption-private-key.pem").read_bytes()


def javas_entries() -> list[tuple[MessageMetadata, bytes, bytes]]:
    """The metadata of the recorded entries, what is behind them as it was sent, and all of it."""
    found = []
    for frame in frames("java-encryption"):
        if (
            frame.direction == ">"
            and proto.BaseCommand.FromString(frame.command).type == proto.BaseCommand.SEND
        ):
            entry = unpack_payload(frame.payload)
            found.append((entry.metadata, entry.payload, frame.payload))
    return found


def test_a_batch_of_java_is_decrypted_then_decompressed_then_split() -> None:
    metadata, payload, _ = javas_entries()[0]
    [key] = wrapped_keys(metadata.encryption_keys)
    assert (key.key, key.metadata) == ("my-key", ())
    assert metadata.encryption_param is not None
    packed = unwrap_data_key(JAVAS_KEY, key.value).decrypt(metadata.encryption_param, payload)
    plain = decompress(metadata.compression, packed, metadata.uncompressed_size, 1000)
    batch = split_batch(plain, metadata.num_messages_in_batch or 0, 0)
    assert list(batch.payloads) == [b"secret 0", b"secret 1"]
    assert isinstance(batch.single(0), SingleMessageMetadata)


def test_with_javas_data_key_and_nonce_an_entry_is_javas_byte_for_byte() -> None:
    metadata, payload, whole = javas_entries()[1]
    [key] = metadata.encryption_keys
    nonce = metadata.encryption_param
    assert nonce is not None
    data_key = unwrap_data_key(JAVAS_KEY, key.value)
    ours = MessageMetadata(metadata.producer_name, metadata.sequence_id or 0, metadata.publish_time)
    ours.uncompressed_size = metadata.uncompressed_size
    encrypted = EntryCipher(data_key, [key], lambda size: nonce).encrypt(ours, b"secret single")
    assert encrypted == payload
    assert encode_message_metadata(ours) in whole


def test_each_recipient_gets_the_data_key_with_the_metadata_of_the_public_key() -> None:
    pairs = {"a": key_pair("rsa"), "b": key_pair("p256")}
    infos = [(name, EncryptionKeyInfo(Secret(pair[0]), {"for": name})) for name, pair in pairs.items()]
    metadata = MessageMetadata("p", 1, 2)
    encrypted = EntryCipher.new(infos, os.urandom).encrypt(metadata, b"payload")
    assert metadata.encryption_param is not None
    for name, value, told in wrapped_keys(metadata.encryption_keys):
        assert told == (("for", name),)
        data_key = unwrap_data_key(pairs[name][1], value)
        assert data_key.decrypt(metadata.encryption_param, encrypted) == b"payload"


def test_every_entry_has_a_nonce_of_its_own() -> None:
    cipher = EntryCipher.new([("a", EncryptionKeyInfo(Secret(key_pair("p256")[0])))], os.urandom)
    first, second = MessageMetadata("p", 1, 2), MessageMetadata("p", 1, 2)
    assert cipher.encrypt(first, b"x") != cipher.encrypt(second, b"x")
    assert first.encryption_param != second.encryption_param


def test_a_public_key_that_cannot_be_used_is_named() -> None:
    good = EncryptionKeyInfo(Secret(key_pair("p256")[0]))
    with pytest.raises(CryptoError, match=r"^encryption key 'b': it is no public key"):
        EntryCipher.new([("a", good), ("b", EncryptionKeyInfo(Secret("no key")))], os.urandom)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ([EncryptionKey("k", b"w")] * (MAX_RECIPIENTS + 1), "65 encryption keys, allowed are 64"),
        ([EncryptionKey("k" * (MAX_KEY_TEXT + 1), b"w")], "65537 characters, allowed are 65536"),
        ([EncryptionKey("k", b"w", (("a" * MAX_KEY_TEXT, ""),))], "65537 characters"),
        ([EncryptionKey("", b"w", (("", "a" * MAX_KEY_TEXT),) * 2)], "131072 characters"),
    ],
)
def test_a_consumer_looks_at_a_limited_number_of_limited_keys(keys: list[EncryptionKey], words: str) -> None:
    metadata = MessageMetadata("p", 1, 2)
    metadata.encryption_keys = keys
    with pytest.raises(CryptoError, match=words):
        wrapped_keys(metadata.encryption_keys)
    metadata.encryption_keys = [EncryptionKey("k" * MAX_KEY_TEXT, b"w")] + [EncryptionKey("", b"w")] * 63
    assert len(wrapped_keys(metadata.encryption_keys)) == MAX_RECIPIENTS


def test_a_key_reader_returns_a_secret_and_text() -> None:
    with pytest.raises(InvalidConfiguration, match="key: a Secret, not str"):
        EncryptionKeyInfo("pem")  # type: ignore[arg-type]
    with pytest.raises(InvalidConfiguration, match="metadata: a mapping of text to text"):
        EncryptionKeyInfo(Secret("pem"), {"a": 1})  # type: ignore[dict-item]
    assert "pem" not in repr(EncryptionKeyInfo(Secret("pem")))


FORK = """
import os
import subprocess
import sys
from pulsar_sansio import EncryptionKeyInfo, Secret
from pulsar_sansio.encryption import EntryCipher
from pulsar_sansio.wire import MessageMetadata

def nonce():
    metadata = MessageMetadata("p", 0, 0)
    cipher.encrypt(metadata, b"x")
    return metadata.encryption_param.hex()

cipher = EntryCipher.new([("k", EncryptionKeyInfo(Secret({pem!r})))], os.urandom)
nonce()
child = os.fork()
os.write(1, nonce().encode() + b" ")
if child:
    os.waitpid(child, 0)
"""


def test_parent_and_child_of_a_fork_use_different_nonces() -> None:
    """Both have the data key in common."""
    script = FORK.format(pem=key_pair("p256")[0])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    first, second = done.stdout.split()
    assert first != second
