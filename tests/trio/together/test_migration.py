"""A topic moves from one cluster to another while it is used: two brokers that know nothing of each other."""

from collections.abc import AsyncIterator

import pytest
import trio

from pulsar_trio import Client, EmbeddedBroker, open_broker
from tests.patience import PATIENCE


@pytest.fixture
async def green() -> AsyncIterator[EmbeddedBroker]:
    """The other cluster."""
    async with open_broker() as running:
        yield running


def migrate(blue: EmbeddedBroker, green: EmbeddedBroker, topic: str) -> None:
    blue._driver.command(blue._driver.machine.topic_administration.migrate, topic, green.url)


async def test_nothing_is_lost_and_nothing_comes_twice(
    broker: EmbeddedBroker, green: EmbeddedBroker, client: Client
) -> None:
    async with (
        client.subscribe("t", "sub", initial_position="earliest") as consumer,
        client.create_producer("t") as producer,
    ):
        receipts = [await producer.enqueue(b"%d" % number) for number in range(50)]
        await producer.flush()
        migrate(broker, green, "persistent://public/default/t")
        receipts += [await producer.enqueue(b"%d" % number) for number in range(50, 100)]
        with trio.fail_after(PATIENCE):
            for receipt in receipts:
                await receipt.wait()
            came: list[int] = []
            while len(came) < 100:
                message = await consumer.receive()
                came.append(int(message.data))
                consumer.acknowledge(message)
        assert came == list(range(100))
        assert broker.stats("t")["msgInCounter"] == 50
        assert green.stats("t")["msgInCounter"] == 50


async def test_a_client_that_connects_later_is_redirected(
    broker: EmbeddedBroker, green: EmbeddedBroker, client: Client
) -> None:
    broker.create_topic("t")
    migrate(broker, green, "persistent://public/default/t")
    with trio.fail_after(PATIENCE):
        async with client.subscribe("t", "sub") as consumer, client.create_producer("t") as producer:
            await producer.send(b"x")
            assert (await consumer.receive()).data == b"x"
    assert broker.stats("t")["msgInCounter"] == 0
    assert green.stats("t")["msgInCounter"] == 1


async def test_a_partitioned_topic(broker: EmbeddedBroker, green: EmbeddedBroker, client: Client) -> None:
    for each in (broker, green):
        each.create_partitioned_topic("t", 3)
    async with client.create_producer("t", batching=None) as producer:
        for number in range(6):
            await producer.send(b"%d" % number)
        migrate(broker, green, "persistent://public/default/t")
        with trio.fail_after(PATIENCE):
            places = [await producer.send(b"%d" % number) for number in range(6, 12)]
    assert {place.partition for place in places} == {0, 1, 2}
    assert [green.stats(f"t-partition-{partition}")["msgInCounter"] for partition in range(3)] == [2, 2, 2]
