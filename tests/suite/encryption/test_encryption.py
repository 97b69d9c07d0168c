"""Producers that encrypt and consumers that decrypt, with each other and with the official client."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulsar
import pytest
import trio

from pulsar_sansio.schemas import STRING
from pulsar_trio import (
    BatchingPolicy,
    Client,
    CryptoError,
    EncryptionKeyInfo,
    OutgoingMessage,
    SchemaDecodingError,
    Secret,
    open_client,
)
from tests.encryption.keys import key_pair
from tests.official.client import Letter, consume, in_thread, produce
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import payloads, receive, receive_and_acknowledge, values

from .key_files import KeyFiles, key_files

BATCHED = BatchingPolicy(max_messages=5, max_delay=1.0)


@pytest.fixture(params=["rsa", "p256"])
def keys(request: pytest.FixtureRequest, tmp_path: Path) -> KeyFiles:
    return key_files(tmp_path, request.param)


@pytest.fixture
def rsa(tmp_path: Path) -> KeyFiles:
    return key_files(tmp_path, "rsa")


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("batching", [None, BATCHED], ids=["single", "batches"])
async def test_what_was_encrypted_comes_out_as_it_went_in(
    client: Client, topic: str, keys: KeyFiles, batching: BatchingPolicy | None, compression: Any
) -> None:
    """Batches keep keys and properties, which travel in clear."""
    encryption: Any = {"encryption_keys": ("k",), "crypto_key_reader": keys.public}
    async with (
        client.subscribe(topic, "sub", crypto_key_reader=keys.private) as consumer,
        client.subscribe(topic, "without", crypto_failure_action="consume") as without,
        client.create_producer(topic, batching=batching, compression=compression, **encryption) as producer,
    ):
        await producer.send_many(payloads(10))
        await producer.send(OutgoingMessage(b"last", key="key", properties={"a": "b"}))
        messages = await receive_and_acknowledge(consumer, 11)
        assert values(messages) == [*payloads(10), b"last"]
        assert (messages[-1].key, messages[-1].properties) == ("key", {"a": "b"})
        [raw] = await receive(without, 1)
        assert raw.encryption_context is not None
        assert raw.encryption_context.batch_size == (None if batching is None else 5)
        assert raw.data != b"0"


async def test_chunks(client: Client, topic: str, rsa: KeyFiles) -> None:
    payload = bytes(range(256)) * 40
    async with (
        client.subscribe(topic, "sub", crypto_key_reader=rsa.private) as consumer,
        client.create_producer(
            topic,
            batching=None,
            chunking=True,
            chunk_max_message_size=1000,
            encryption_keys=("k",),
            crypto_key_reader=rsa.public,
        ) as producer,
    ):
        await producer.send(payload)
        [message] = await receive_and_acknowledge(consumer, 1)
        assert message.data == payload


async def test_each_of_several_recipients_decrypts_by_a_function(client: Client, topic: str) -> None:
    """The metadata of a public key tell which private key is wanted."""
    pairs = {"x": key_pair("rsa"), "y": key_pair("p521")}
    wanted: list[tuple[str, Mapping[str, str]]] = []

    def public(name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return EncryptionKeyInfo(Secret(pairs[name][0]), {"version": name})

    def reader_of(mine: str) -> Any:
        async def private(name: str, metadata: Mapping[str, str]) -> bytes:
            await trio.lowlevel.checkpoint()
            wanted.append((name, metadata))
            if name != mine:
                raise CryptoError("it is of another recipient")
            return pairs[name][1]

        return private

    async with (
        client.subscribe(topic, "x", crypto_key_reader=reader_of("x")) as first,
        client.subscribe(topic, "y", crypto_key_reader=reader_of("y")) as second,
        client.create_producer(topic, encryption_keys=("x", "y"), crypto_key_reader=public) as producer,
    ):
        await producer.send_many(payloads(3))
        assert values(await receive_and_acknowledge(first, 3)) == payloads(3)
        assert values(await receive_and_acknowledge(second, 3)) == payloads(3)
    assert sorted(name for name, _ in wanted) == ["x", "x", "y"]
    assert all(metadata == {"version": name} for name, metadata in wanted)


async def test_readers_and_table_views_decrypt(client: Client, topic: str, rsa: KeyFiles) -> None:
    async with client.create_producer(
        topic, encryption_keys=("k",), crypto_key_reader=rsa.public
    ) as producer:
        for number in range(3):
            await producer.send(b"%d" % number, key=f"key-{number % 2}")
    async with client.create_reader(topic, "earliest", crypto_key_reader={"k": rsa.private}) as reader:
        assert [(await reader.receive()).value for _ in range(3)] == payloads(3)
    async with client.create_table_view(topic, crypto_key_reader=rsa.private) as view:
        assert dict(view) == {"key-0": b"2", "key-1": b"1"}


async def test_without_the_private_key_a_message_waits_for_one(
    client: Client, topic: str, rsa: KeyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pulsar_trio")
    other = key_files(rsa.public.parent, "rsa", 1)
    async with client.create_producer(
        topic, encryption_keys=("k",), crypto_key_reader=rsa.public, initial_subscription="sub"
    ) as producer:
        await producer.send(b"secret")
    async with (
        client.subscribe(topic, "sub", crypto_key_reader=other.private) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"in clear")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"in clear"]
        assert consumer.statistics().undelivered.undecryptable == 1
    [record] = caplog.records
    assert "encryption key 'k': the data key was wrapped for another key pair" in record.getMessage()
    async with client.subscribe(topic, "sub", crypto_key_reader=rsa.private) as consumer:
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"secret"]


async def test_a_schema_decodes_what_was_decrypted_and_nothing_else(
    client: Client, topic: str, rsa: KeyFiles
) -> None:
    schema: Any = STRING
    async with (
        client.subscribe(topic, "sub", schema=schema, crypto_key_reader=rsa.private) as consumer,
        client.subscribe(topic, "raw", schema=schema, crypto_failure_action="consume") as raw,
        client.create_producer(
            topic, schema=schema, encryption_keys=("k",), crypto_key_reader=rsa.public
        ) as producer,
    ):
        await producer.send("secret")
        [message] = await receive_and_acknowledge(consumer, 1)
        value: object = message.value
        assert value == "secret"
        [encrypted] = await receive(raw, 1)
        with pytest.raises(SchemaDecodingError, match="still encrypted"):
            _ = encrypted.value


async def test_discarded_messages_are_gone(client: Client, topic: str, rsa: KeyFiles) -> None:
    async with (
        client.subscribe(topic, "sub", crypto_failure_action="discard") as consumer,
        client.create_producer(topic, encryption_keys=("k",), crypto_key_reader=rsa.public) as producer,
        client.create_producer(topic) as plain,
    ):
        await producer.send(b"secret")
        await plain.send(b"in clear")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"in clear"]
    async with client.subscribe(topic, "sub", crypto_key_reader=rsa.private) as consumer:
        async with client.create_producer(topic) as plain:
            await plain.send(b"last")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"last"]


async def test_a_producer_without_its_key_says_which(client: Client, topic: str, tmp_path: Path) -> None:
    with pytest.raises(CryptoError, match=r"encryption key 'k': .*missing': No such file"):
        async with client.create_producer(
            topic, encryption_keys=("k",), crypto_key_reader=tmp_path / "missing"
        ):
            raise AssertionError("it opened")


async def test_partitions_encrypt(broker: BrokerUnderTest, client: Client, topic: str, rsa: KeyFiles) -> None:
    await broker.create_partitioned_topic(topic, 3)
    async with (
        client.subscribe(topic, "sub", crypto_key_reader=rsa.private) as consumer,
        client.create_producer(
            topic, batching=None, encryption_keys=("k",), crypto_key_reader=rsa.public
        ) as producer,
    ):
        await producer.send_many(payloads(9))
        messages = await receive_and_acknowledge(consumer, 9)
        assert sorted(message.data for message in messages) == payloads(9)


async def test_two_clients_of_one_seed_share_no_nonce(
    broker: BrokerUnderTest, topic: str, rsa: KeyFiles
) -> None:
    """A seed fixes what a client draws, except data keys and nonces."""
    contexts = []
    for _ in range(2):
        async with (
            open_client(broker.url, seed=1) as client,
            client.subscribe(topic, "sub", crypto_failure_action="consume") as consumer,
            client.create_producer(topic, encryption_keys=("k",), crypto_key_reader=rsa.public) as producer,
        ):
            await producer.send(b"x")
            [message] = await receive_and_acknowledge(consumer, 1)
            contexts.append(message.encryption_context)
            await consumer.flush()
    first, second = contexts
    assert first is not None
    assert second is not None
    assert first.param != second.param
    assert first.keys[0].value != second.keys[0].value


# --- the official client -------------------------------------------------------------------------


def official(keys: KeyFiles) -> dict[str, Any]:
    reader = pulsar.CryptoKeyReader(str(keys.public), str(keys.private))
    return {"crypto_key_reader": reader}


@pytest.mark.parametrize("batched", [True, False], ids=["batches", "single"])
async def test_the_official_client_reads_what_this_one_encrypts(
    broker: BrokerUnderTest, client: Client, topic: str, rsa: KeyFiles, batched: bool
) -> None:
    async with client.create_producer(
        topic,
        batching=BATCHED if batched else None,
        compression="zlib",
        encryption_keys=("k",),
        crypto_key_reader=rsa.public,
    ) as producer:
        await producer.send_many(payloads(10))
    found = await in_thread(consume, broker.url, topic, 10, **official(rsa))
    assert [letter.value for letter in found] == payloads(10)


@pytest.mark.parametrize("batched", [True, False], ids=["batches", "single"])
async def test_this_client_reads_what_the_official_one_encrypts(
    broker: BrokerUnderTest, client: Client, topic: str, rsa: KeyFiles, batched: bool
) -> None:
    letters = [Letter(payload) for payload in payloads(10)]
    options = {
        "encryption_key": "k",
        "batching_enabled": batched,
        "compression_type": pulsar.CompressionType.LZ4,
    }
    async with client.subscribe(topic, "sub", crypto_key_reader=rsa.private) as consumer:
        await in_thread(produce, broker.url, topic, letters, **options, **official(rsa))
        assert values(await receive_and_acknowledge(consumer, 10)) == payloads(10)
