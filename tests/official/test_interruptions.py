"""The official client when our broker, or one topic of it, goes away and comes back."""

import pulsar

from tests.official.client import Letter, in_thread, open_official_client, send_all, take
from tests.official.consuming.test_subscriptions import letters, numbers
from tests.suite.brokers import OurBroker


async def test_it_reconnects_after_the_broker_is_started_again(broker: OurBroker, topic: str) -> None:
    """On the same port, over the store that survived: nothing confirmed is lost."""
    async with open_official_client(broker.url) as client:
        consumer = await in_thread(client.subscribe, topic, "sub", pulsar.ConsumerType.Shared)
        producer = await in_thread(client.create_producer, topic)
        await in_thread(send_all, producer, letters(10))
        before = await in_thread(take, consumer, 4)
        await in_thread(producer.flush)
        await broker.kill()
        await broker.start()
        await in_thread(send_all, producer, letters(10, start=10))
        after: list[Letter] = []
        while not set(range(4, 20)) <= set(numbers(after)):
            after += await in_thread(take, consumer, 1)
        # Its acknowledgements are collected for 100 ms, so the last ones may have died with the connection.
        assert set(numbers(before)) == {0, 1, 2, 3}
        assert set(numbers(after)) <= set(range(20))


async def test_a_message_sent_while_the_broker_is_away_arrives(broker: OurBroker, topic: str) -> None:
    async with open_official_client(broker.url) as client:
        consumer = await in_thread(client.subscribe, topic, "sub")
        producer = await in_thread(client.create_producer, topic)
        await in_thread(producer.send, b"0")
        await broker.kill()
        await in_thread(producer.send_async, b"1", None)
        await broker.start()
        await in_thread(producer.send, b"2")
        received = await in_thread(take, consumer, 3)
        assert numbers(received) == [0, 1, 2]


async def test_it_attaches_again_after_an_unload(broker: OurBroker, topic: str) -> None:
    async with open_official_client(broker.url) as client:
        consumer = await in_thread(client.subscribe, topic, "sub")
        producer = await in_thread(client.create_producer, topic)
        await in_thread(send_all, producer, letters(5))
        assert numbers(await in_thread(take, consumer, 5)) == [0, 1, 2, 3, 4]
        await broker.unload(topic)
        await in_thread(send_all, producer, letters(5, start=5))
        received: list[Letter] = []
        while not set(range(5, 10)) <= set(numbers(received)):
            received += await in_thread(take, consumer, 1)
