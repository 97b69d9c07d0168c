"""Names of the official client raise an error that names ours."""

import re
from typing import Any

import pytest

import pulsar_trio
from pulsar_trio import Client, EmbeddedBroker, UnknownName, WrongArguments


async def test_attributes_of_the_official_client_name_ours(client: Client, broker: EmbeddedBroker) -> None:
    async with (
        client.create_producer("t") as producer,
        client.subscribe("t", "s", initial_position="earliest") as consumer,
        client.create_reader("t", "earliest") as reader,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        for thing, name, words in (
            (
                client,
                "close",
                "Client has no 'close'; leave the 'async with' block, or await client.aclose()",
            ),
            (client, "new_transaction", "did you mean async with client.transaction(timeout=seconds)"),
            (
                producer,
                "send_async",
                "write: receipt = await producer.enqueue(…), and later await receipt.wait()",
            ),
            (producer, "producer_name", "Producer has no 'producer_name'; did you mean 'name'?"),
            (consumer, "acknowledge_cumulative", "only consumers of kind 'exclusive' and 'failover' have it"),
            (consumer, "close", "SharedConsumer has no 'close'; leave the 'async with' block"),
            (consumer, "batch_receive", "did you mean await consumer.receive_many()?"),
            (reader, "read_next", "did you mean await reader.receive(), or 'async for message in reader'?"),
            (message, "partition_key", "Message has no 'partition_key'; did you mean 'key'?"),
            (message, "publish_timestamp", "did you mean 'publish_time'?"),
            (pulsar_trio, "ConsumerType", "did you mean the words 'shared', 'key_shared'"),
            (pulsar_trio, "ConsumerDeadLetterPolicy", "did you mean 'DeadLetterPolicy'?"),
        ):
            with pytest.raises(UnknownName, match=re.escape(words)):
                getattr(thing, name)
            assert not hasattr(thing, name), "it is an AttributeError"
            assert thing is pulsar_trio or name not in dir(thing), "it is not offered for completion"
        assert "send" in dir(producer)
        assert "key" in dir(message)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            pulsar_trio.nonsense  # type: ignore[attr-defined]  # noqa: B018


async def test_receive_has_no_timeout(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer, client.create_reader("t", "latest") as reader:
        calls: list[Any] = [consumer.receive, reader.receive]
        for receive in calls:
            with pytest.raises(WrongArguments, match=re.escape("with trio.move_on_after(seconds): …")):
                await receive(timeout_millis=1000)
            with pytest.raises(WrongArguments, match="not even of 1000"):
                await receive(1000)
