"""The client explains, against each broker, why nothing moves."""

import logging

import pytest
import trio

from pulsar_sansio import PulsarError
from pulsar_sansio.client.consuming import blocked_watch as blocked
from pulsar_trio import Client, ResourceClosed, open_client
from tests.patience import PATIENCE
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive_and_acknowledge, until
from tests.suite.line import Line

LIMIT = 120
"""Unacknowledged messages of a consumer that the namespace allows."""


@pytest.fixture
async def namespace(broker: BrokerUnderTest, local_name: str) -> str:
    name = f"public/{local_name}".lower()
    assert await broker.request("PUT", f"/admin/v2/namespaces/{name}") == (204, None)
    path = f"/admin/v2/namespaces/{name}/maxUnackedMessagesPerConsumer"
    assert await broker.request("POST", path, LIMIT) == (204, None)
    return name


async def test_a_consumer_that_acknowledges_nothing_is_found_to_be_blocked(
    client: Client,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(blocked, "QUIET", 200_000_000)
    caplog.set_level(logging.INFO, "pulsar_trio.consumer")
    topic = f"persistent://{namespace}/t"
    async with (
        client.subscribe(topic, "s", receiver_queue_size=20) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many([b"x"] * 3 * LIMIT)
        received = []

        async def take() -> None:
            while True:
                received.append(await consumer.receive())

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take)

                async def is_said() -> bool:
                    return "blocked: the broker said" in consumer.explain()

                await until(is_said)
                nursery.cancel_scope.cancel()
        assert LIMIT <= len(received) < 3 * LIMIT
        assert f"at most {len(received)} messages are delivered and not acknowledged" in consumer.explain()
        assert any(
            f"delivers nothing more of {topic}, because {len(received)} messages are unacknowledged"
            in record.getMessage()
            for record in caplog.records
        )
        consumer.acknowledge(received)
        for _ in range(3 * LIMIT - len(received)):
            await receive_and_acknowledge(consumer, 1)
        assert "blocked: the broker said" not in consumer.explain()


async def test_a_cut_line_is_explained_until_it_is_whole_again(line: Line, topic: str) -> None:
    async with (
        open_client(line.url, max_backoff=1.0) as client,
        client.create_producer(topic) as producer,
        client.subscribe(topic, "s") as consumer,
    ):
        assert ": connected to " in producer.explain()
        line.cut()

        async def is_lost() -> bool:
            return not producer.connected and not consumer.connected

        await until(is_lost)
        for text in (producer.explain(), consumer.explain()):
            assert "not connected for" in text
            assert "127.0.0.1" in text or "localhost" in text
        await producer.send(b"x")
        await receive_and_acknowledge(consumer, 1)
        assert ": connected to " in producer.explain()
        assert ": connected to " in consumer.explain()


async def test_a_namespace_that_does_not_exist_is_to_be_created_and_not_the_topic(client: Client) -> None:
    with pytest.raises(PulsarError) as raised:
        async with client.create_producer("public/nowhere/t"):
            raise AssertionError("not reached")
    assert "create the namespace first" in str(raised.value)
    assert "create the topic" not in str(raised.value)


async def test_a_closed_reader_says_that_it_is_closed(client: Client, topic: str) -> None:
    async with client.create_reader(topic, "earliest") as reader:
        pass
    with pytest.raises(ResourceClosed, match=r"the reader of .* is closed"):
        await reader.receive()
