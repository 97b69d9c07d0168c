"""What a broker remembers of acknowledgements, and what it delivers again."""

import pytest

from pulsar_trio import BatchingPolicy, Client

from .brokers import BrokerUnderTest
from .helpers import numbers, payloads, receive, receive_and_acknowledge, rest

pytestmark = pytest.mark.parametrize("interruption", ["close", "unload"])

ONE_BATCH = BatchingPolicy(max_messages=10, max_delay=5.0)


async def test_individual_acknowledgements(
    broker: BrokerUnderTest, client: Client, topic: str, interruption: str
) -> None:
    async with client.subscribe(topic, "sub", kind="shared") as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(10))
        messages = await receive(consumer, 10)
        consumer.acknowledge([message for message in messages if int(message.data) % 2])
        await consumer.flush()
        if interruption == "unload":
            await broker.unload(topic)
            assert sorted(numbers(await receive_and_acknowledge(consumer, 5))) == [0, 2, 4, 6, 8]
            assert await rest(consumer) == []
            return
    async with client.subscribe(topic, "sub", kind="shared") as consumer:
        assert sorted(numbers(await receive_and_acknowledge(consumer, 5))) == [0, 2, 4, 6, 8]
        assert await rest(consumer) == []


async def test_cumulative_acknowledgement(
    broker: BrokerUnderTest, client: Client, topic: str, interruption: str
) -> None:
    async with client.subscribe(topic, "sub", kind="exclusive") as consumer:
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(10))
        messages = await receive(consumer, 10)
        consumer.acknowledge_cumulative(messages[6])
        await consumer.flush()
        if interruption == "unload":
            await broker.unload(topic)
            assert numbers(await receive_and_acknowledge(consumer, 3)) == [7, 8, 9]
            return
    async with client.subscribe(topic, "sub", kind="exclusive") as consumer:
        assert numbers(await receive_and_acknowledge(consumer, 3)) == [7, 8, 9]


@pytest.mark.parametrize("cumulative", [False, True], ids=["individual", "cumulative"])
async def test_acknowledgements_inside_a_batch(
    broker: BrokerUnderTest, client: Client, topic: str, interruption: str, cumulative: bool
) -> None:
    """With batch-index acknowledgement only what is left of a batch comes again."""
    async with client.subscribe(
        topic, "sub", kind="exclusive", batch_index_acknowledgement=True, acknowledgement_receipts=True
    ) as consumer:
        async with client.create_producer(topic, batching=ONE_BATCH) as producer:
            await producer.send_many(payloads(10))
        messages = await receive(consumer, 10)
        assert len({message.message_id[:2] for message in messages}) == 1, "one batch"
        if cumulative:
            consumer.acknowledge_cumulative(messages[3])
            left = [4, 5, 6, 7, 8, 9]
        else:
            consumer.acknowledge([messages[0], messages[2], messages[9]])
            left = [1, 3, 4, 5, 6, 7, 8]
        await consumer.flush()
        if interruption == "unload":
            await broker.unload(topic)
            assert numbers(await receive_and_acknowledge(consumer, len(left))) == left
            return
    async with client.subscribe(topic, "sub", kind="exclusive", batch_index_acknowledgement=True) as consumer:
        assert numbers(await receive_and_acknowledge(consumer, len(left))) == left


async def test_a_batch_is_acknowledged_as_a_whole_without_batch_indexes(
    broker: BrokerUnderTest, client: Client, topic: str, interruption: str
) -> None:
    """The broker hears of a batch when all of it is acknowledged, and delivers the others in full."""
    async with client.subscribe(topic, "sub", kind="shared") as consumer:
        async with client.create_producer(topic, batching=ONE_BATCH) as producer:
            await producer.send_many(payloads(20))
        messages = await receive(consumer, 20)
        consumer.acknowledge(messages[:15])
        await consumer.flush()
        if interruption == "unload":
            await broker.unload(topic)
            assert numbers(await rest(consumer, quiet=1.5)) in (list(range(10, 20)), list(range(15, 20)))
            return
    async with client.subscribe(topic, "sub", kind="shared") as consumer:
        assert numbers(await receive_and_acknowledge(consumer, 10)) == list(range(10, 20))
