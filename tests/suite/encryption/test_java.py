"""The Java client and this one decrypt what the other encrypts, for RSA and for elliptic curves."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsar_trio import BatchingPolicy, Client, EncryptionKeyInfo, Secret
from tests.real_pulsar.jars import jars, java
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive_and_acknowledge

from .key_files import key_files

pytestmark = [pytest.mark.real, pytest.mark.slow]

PROGRAM = Path(__file__).parents[2] / "interop" / "java" / "Encrypt.java"

FORMS: dict[str, dict[str, Any]] = {
    "single": {"batching": None, "compression": "zlib"},
    "batches": {"batching": BatchingPolicy(max_messages=5, max_delay=10.0), "compression": "zstd"},
    "chunks": {"batching": None, "chunking": True, "chunk_max_message_size": 100},
}

KEYS = (("rsa-0",), ("p256-0",), ("p521-0",), ("rsa-0", "p256-0", "p521-0"))


def payload(form: str, number: int) -> bytes:
    return b"p%d" % number * (200 if form == "chunks" else 1)


async def test_both_clients_read_each_other(
    broker: BrokerUnderTest, client: Client, topic: str, tmp_path: Path
) -> None:
    for kind in ("rsa", "p256", "p521"):
        key_files(tmp_path, kind)

    async def public(name: str, _: object) -> EncryptionKeyInfo:
        pem = await trio.Path(tmp_path / f"{name}-public.key").read_bytes()
        return EncryptionKeyInfo(Secret(pem), {"name": name})

    async def private(name: str, metadata: Any) -> bytes:
        assert metadata == {"name": name}
        return await trio.Path(tmp_path / f"{name}-private.key").read_bytes()

    cases = {f"{topic}-{form}-{len(keys)}-{keys[0]}": (form, keys) for form in FORMS for keys in KEYS}
    for name, (form, keys) in cases.items():
        options = FORMS[form] | {"encryption_keys": keys, "crypto_key_reader": public}
        async with client.create_producer(name, **options) as producer:
            await producer.send_many(payload(form, number) for number in range(5))

    arguments = [f"{name}={form}={','.join(keys)}" for name, (form, keys) in cases.items()]
    command = [java(), "-cp", f"{jars()}/*", str(PROGRAM), broker.url, str(tmp_path), *arguments]
    done = await trio.run_process(command, capture_stdout=True, stderr=subprocess.DEVNULL, check=False)
    said = [line.split("\t") for line in done.stdout.decode().splitlines()]
    for name, (form, keys) in cases.items():
        heard = [parts[2] for parts in said if parts[:2] == ["received", name]]
        assert heard == [f"p{number}" for number in range(5)], (name, done.stdout)
        if form != "chunks":
            batch, codec = ("5", "ZSTD") if form == "batches" else ("none", "ZLIB")
            assert ["context", name, batch, codec, ",".join(sorted(keys))] in said
        async with client.subscribe(
            name, "sub", initial_position="earliest", crypto_key_reader=private
        ) as consumer:
            messages = await receive_and_acknowledge(consumer, 10)
        assert [message.data[:2] for message in messages[5:]] == [b"j%d" % number for number in range(5)]
        assert all(len(message.data) == len(payload(form, 0)) for message in messages)
