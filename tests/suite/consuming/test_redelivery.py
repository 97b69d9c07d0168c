"""Messages that are negatively acknowledged, and how often the broker says it has delivered them before."""

import trio

from pulsar_trio import Client, RedeliveryBackoff
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import numbers, payloads, receive, receive_and_acknowledge, rest


async def test_a_negatively_acknowledged_message_is_redelivered(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", kind="shared", negative_acknowledgement_delay=0.2) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(5))
        for message in await receive(consumer, 5):
            assert message.redelivery_count == 0
            if int(message.data) in (1, 3):
                consumer.negative_acknowledge(message)
            else:
                consumer.acknowledge(message)
        again = await receive(consumer, 2)
        assert sorted(numbers(again)) == [1, 3]
        assert [message.redelivery_count for message in again] == [1, 1]
        consumer.negative_acknowledge(again)
        third = await receive_and_acknowledge(consumer, 2)
        assert [message.redelivery_count for message in third] == [2, 2]
        assert await rest(consumer, quiet=0.6) == []


async def test_it_waits_for_the_delay(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", kind="shared", negative_acknowledgement_delay=0.5) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"x")
        message = await consumer.receive()
        refused_at = trio.current_time()
        consumer.negative_acknowledge(message)
        await receive_and_acknowledge(consumer, 1)
        assert trio.current_time() - refused_at >= 0.45


async def test_it_goes_to_whichever_consumer_is_there(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", kind="shared", receiver_queue_size=5) as stays:
        async with client.subscribe(
            topic, "sub", kind="shared", receiver_queue_size=5, negative_acknowledgement_delay=0.1
        ) as refusing:
            async with client.create_producer(topic, batching=None) as producer:
                await producer.send_many(payloads(10))
            refusing.negative_acknowledge(await refusing.receive())
        got = await receive_and_acknowledge(stays, 10)
        assert sorted(numbers(got)) == list(range(10))


async def test_redeliver_unacknowledged(client: Client, topic: str) -> None:
    """Every message that is not acknowledged is redelivered, in order (Exclusive)."""
    async with (
        client.subscribe(topic, "sub", kind="exclusive") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(6))
        messages = await receive(consumer, 4)
        consumer.acknowledge(messages[:2])
        await consumer.flush()
        consumer.redeliver_unacknowledged()
        assert numbers(await receive_and_acknowledge(consumer, 4)) == [2, 3, 4, 5]


async def test_one_message_of_a_batch_can_be_negatively_acknowledged(client: Client, topic: str) -> None:
    """The broker delivers whole batches; the client does not deliver a batch's acknowledged messages
    again."""
    async with (
        client.subscribe(
            topic,
            "sub",
            kind="shared",
            negative_acknowledgement_delay=0.1,
            batch_index_acknowledgement=True,
        ) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send_many(payloads(10))
        messages = await receive(consumer, 10)
        consumer.acknowledge([message for message in messages if int(message.data) != 4])
        await consumer.flush()
        consumer.negative_acknowledge(messages[4])
        assert numbers(await receive_and_acknowledge(consumer, 1)) == [4]
        assert await rest(consumer) == []


async def test_what_is_not_acknowledged_in_time_is_redelivered(client: Client, topic: str) -> None:
    """Rules UNACK-04, UNACK-05: a tick or two after the timeout."""
    async with (
        client.subscribe(
            topic, "sub", kind="shared", acknowledgement_timeout=1.0, acknowledgement_timeout_tick=0.2
        ) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(4))
        messages = await receive(consumer, 4)
        received = trio.current_time()
        consumer.acknowledge(messages[1])
        again = await receive_and_acknowledge(consumer, 3)
        assert trio.current_time() - received >= 1.0
        assert sorted(numbers(again)) == [0, 2, 3]
        assert [message.redelivery_count for message in again] == [1, 1, 1]
        assert await rest(consumer, quiet=1.6) == []


async def test_the_delay_grows_with_the_redelivery_count(client: Client, topic: str) -> None:
    backoff = RedeliveryBackoff(min_delay=0.1, max_delay=2.0, multiplier=6.0)
    async with (
        client.subscribe(topic, "sub", kind="shared", negative_acknowledgement_backoff=backoff) as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"x")
        for least in (0.1, 0.6):
            message = await consumer.receive()
            refused_at = trio.current_time()
            consumer.negative_acknowledge(message)
            await receive(consumer, 1)
            assert least <= trio.current_time() - refused_at
            consumer.redeliver_unacknowledged()
        assert (await consumer.receive()).redelivery_count == 4


async def test_the_timeout_grows_with_the_redelivery_count(client: Client, topic: str) -> None:
    async with (
        client.subscribe(
            topic,
            "sub",
            kind="shared",
            acknowledgement_timeout=0.1,
            acknowledgement_timeout_tick=0.05,
            acknowledgement_timeout_backoff=RedeliveryBackoff(0.1, 5.0, 5.0),
        ) as consumer,
        client.create_producer(topic) as producer,
    ):
        began = trio.current_time()
        await producer.send(b"x")
        messages = [await consumer.receive() for _ in range(3)]
        assert trio.current_time() - began >= 0.1 + 0.5
        assert [message.redelivery_count for message in messages] == [0, 1, 2]
        consumer.acknowledge(messages[-1])
        await consumer.flush()


async def test_what_is_not_acknowledged_is_redelivered_from_every_partition(
    client: Client, topic: str, broker: BrokerUnderTest
) -> None:
    """UNACK-10: each partition keeps its own time. Rules MULTI-05 and MULTI-33."""
    await broker.create_partitioned_topic(topic, 3)
    async with (
        client.subscribe(
            topic, "sub", kind="shared", acknowledgement_timeout=1.0, acknowledgement_timeout_tick=0.2
        ) as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(9))
        messages = await receive(consumer, 9)
        received = trio.current_time()
        consumer.acknowledge([message for message in messages if int(message.data) % 3])
        again = await receive_and_acknowledge(consumer, 3)
        assert trio.current_time() - received >= 1.0
        assert sorted(numbers(again)) == [0, 3, 6]
        assert await rest(consumer, quiet=1.6) == []
