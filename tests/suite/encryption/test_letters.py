"""Copies of encrypted messages in dead-letter and retry topics."""

from pathlib import Path
from typing import Any

import pytest

from pulsar_trio import Client, DeadLetterPolicy
from tests.suite.helpers import receive, receive_and_acknowledge

from .key_files import KeyFiles, key_files

QUICK: dict[str, Any] = {"kind": "shared", "negative_acknowledgement_delay": 0.1}


@pytest.fixture
def rsa(tmp_path: Path) -> KeyFiles:
    return key_files(tmp_path, "rsa")


async def dead_letter(client: Client, topic: str, rsa: KeyFiles, **options: Any) -> bytes:
    """Send one encrypted message, and negatively acknowledge it until it is a dead letter. Return the payload
    that the consumer received."""
    async with (
        client.subscribe(topic, "sub", **QUICK, **options) as consumer,
        client.create_producer(topic, encryption_keys=("k",), crypto_key_reader=rsa.public) as producer,
    ):
        await producer.send(b"secret")
        for _ in range(2):
            [message] = await receive(consumer, 1)
            consumer.negative_acknowledge(message)
        async with client.subscribe(f"{topic}-sub-DLQ", "all", initial_position="earliest") as dead:
            await receive(dead, 1)
        return message.data


async def test_a_dead_letter_is_in_clear_unless_its_policy_encrypts(
    client: Client, topic: str, rsa: KeyFiles
) -> None:
    """The copies are those of the Java client."""
    policy = DeadLetterPolicy(1, initial_subscription="kept")
    await dead_letter(client, topic, rsa, crypto_key_reader=rsa.private, dead_letter=policy)
    async with client.subscribe(f"{topic}-sub-DLQ", "kept") as dead:
        [letter] = await receive_and_acknowledge(dead, 1)
        assert letter.data == b"secret"
        assert letter.encryption_context is None


async def test_a_dead_letter_is_encrypted_by_its_policy(client: Client, topic: str, tmp_path: Path) -> None:
    rsa, archive = key_files(tmp_path, "rsa"), key_files(tmp_path, "p256")
    policy = DeadLetterPolicy(
        1, initial_subscription="kept", encryption_keys=("archive",), crypto_key_reader=archive.public
    )
    async with client.subscribe(f"{topic}-sub-DLQ", "all", crypto_failure_action="consume") as raw:
        async with (
            client.subscribe(
                topic, "sub", **QUICK, crypto_key_reader=rsa.private, dead_letter=policy
            ) as consumer,
            client.create_producer(topic, encryption_keys=("k",), crypto_key_reader=rsa.public) as producer,
        ):
            await producer.send(b"secret")
            for _ in range(2):
                consumer.negative_acknowledge(await receive(consumer, 1))
            [encrypted] = await receive(raw, 1)
    assert encrypted.encryption_context is not None
    assert [key.key for key in encrypted.encryption_context.keys] == ["archive"]
    assert encrypted.properties["REAL_SUBSCRIPTION"] == "sub"
    async with client.subscribe(f"{topic}-sub-DLQ", "kept", crypto_key_reader=archive.private) as dead:
        [letter] = await receive_and_acknowledge(dead, 1)
        assert letter.data == b"secret"


async def test_a_message_to_reconsume_later_is_encrypted_by_the_policy(
    client: Client, topic: str, tmp_path: Path
) -> None:
    rsa = key_files(tmp_path, "rsa")
    policy = DeadLetterPolicy(3, encryption_keys=("k",), crypto_key_reader={"k": rsa.public})
    async with (
        client.subscribe(f"{topic}-sub-RETRY", "raw", crypto_failure_action="consume") as raw,
        client.subscribe(
            topic, "sub", retry=True, crypto_key_reader=rsa.private, dead_letter=policy
        ) as consumer,
        client.create_producer(topic, encryption_keys=("k",), crypto_key_reader=rsa.public) as producer,
    ):
        await producer.send(b"secret")
        [message] = await receive(consumer, 1)
        await consumer.reconsume_later(message, 0.0)
        [encrypted] = await receive(raw, 1)
        assert encrypted.encryption_context is not None
        [again] = await receive_and_acknowledge(consumer, 1)
        assert again.data == b"secret"
        assert again.properties["RECONSUMETIMES"] == "1"


async def test_a_message_that_was_delivered_encrypted_is_copied_as_it_is(
    client: Client, topic: str, rsa: KeyFiles
) -> None:
    """The Java client does that, too: nothing tells any more how the payload was encrypted."""
    policy = DeadLetterPolicy(1, initial_subscription="kept")
    received = await dead_letter(client, topic, rsa, crypto_failure_action="consume", dead_letter=policy)
    async with client.subscribe(f"{topic}-sub-DLQ", "kept") as dead:
        [letter] = await receive_and_acknowledge(dead, 1)
        assert letter.data == received != b"secret"
        assert letter.encryption_context is None
