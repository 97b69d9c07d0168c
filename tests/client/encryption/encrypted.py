"""Producers that encrypt, in a `Script`, and their entries as a consumer with the private key reads them."""

from typing import Any

from pulsar_sansio.client.outputs import Connect, EncryptionKeyWanted, ProducerReady
from pulsar_sansio.encryption import unwrap_data_key
from pulsar_sansio.model.config import ProducerSpec
from pulsar_sansio.model.encryption import EncryptionKeyInfo
from pulsar_sansio.model.errors import CryptoError
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.wire import decompress, unpack_payload
from tests.client.script import Command, Script, frame_producer_success
from tests.encryption.keys import key_pair

READER = "the application's key reader"

MAX_SIZE = 10 * 1024 * 1024


def spec_of(*keys: str, **options: Any) -> ProducerSpec:
    """The spec of a producer that does not batch, and encrypts for these keys."""
    return ProducerSpec(
        **{
            "topic": "demo",
            "batching": None,
            "send_timeout": 0.0,
            "encryption_keys": keys or ("a",),
            "crypto_key_reader": READER,
            **options,
        }
    )


def info_of(key: str, **metadata: str) -> EncryptionKeyInfo:
    """The public key of that name: key "a" is RSA, others are elliptic curves."""
    return EncryptionKeyInfo(Secret(key_pair("rsa" if key == "a" else "p256", ord(key))[0]), metadata)


def private_key(key: str) -> bytes:
    return key_pair("rsa" if key == "a" else "p256", ord(key))[1]


def wanted(script: Script) -> list[EncryptionKeyWanted]:
    """The keys that the client asks for, and nothing else."""
    asked = [output for output in script.said() if isinstance(output, EncryptionKeyWanted)]
    assert asked
    return asked


def provide(script: Script, *asked: EncryptionKeyWanted, **metadata: str) -> None:
    for each in asked:
        script.client.provide_encryption_key(script.now, each.request, info_of(each.key, **metadata))
    script.drain()


def refuse(script: Script, asked: EncryptionKeyWanted, why: str = "no such file") -> None:
    script.client.refuse_encryption_key(script.now, asked.request, CryptoError(why))
    script.drain()


def attach(script: Script, **connected: Any) -> int:
    """Let the producer that has its keys open; return its link."""
    link = script.ready_link(**connected)
    script.check_partitions(link)
    script.find_topic(link)
    asked = script.sent(link, Command.PRODUCER)
    assert asked.encrypted
    script.feed(link, frame_producer_success(asked.request_id))
    assert isinstance(script.said()[-1], ProducerReady)
    return link


def ready(spec: ProducerSpec, **connected: Any) -> tuple[Script, int, int]:
    """A producer that is open, of a client that can do without PING for hours; its handle and its link."""
    script = Script(keepalive_interval=86_400.0)
    producer = script.client.open_producer(script.now, spec)
    provide(script, *wanted(script))
    return script, producer, attach(script, **connected)


def opened(send: Any, key: str = "a") -> bytes:
    """The payload of a SEND, decrypted with the private key of that name and decompressed."""
    metadata, payload = unpack_payload(send.payload).metadata, unpack_payload(send.payload).payload
    [wrapped] = [each.value for each in metadata.encryption_keys if each.key == key]
    data_key = unwrap_data_key(private_key(key), wrapped)
    assert metadata.encryption_param is not None
    packed = data_key.decrypt(metadata.encryption_param, payload)
    return decompress(metadata.compression, packed, metadata.uncompressed_size, MAX_SIZE)


def metadata_of(send: Any) -> Any:
    return unpack_payload(send.payload).metadata


def is_connecting(script: Script) -> bool:
    return any(isinstance(output, Connect) for output in script.said())
