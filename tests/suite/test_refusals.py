"""A broker's refusals, and the error as which each arrives."""

import pytest
import trio

from pulsar_sansio import (
    BrokerError,
    ProducerBusy,
    SubscriptionNotFound,
    TopicNotFound,
    TopicTerminated,
)
from pulsar_trio import Client
from tests.patience import PATIENCE
from tests.suite.brokers import NO_SUBSCRIPTION_CREATION, NO_TOPIC_CREATION, BrokerUnderTest
from tests.suite.helpers import payloads, receive_and_acknowledge


async def test_a_producer_name_is_taken_once(client: Client, topic: str) -> None:
    async with client.create_producer(topic, name="the-name") as first:
        with pytest.raises(ProducerBusy, match="the-name"):
            async with client.create_producer(topic, name="the-name"):
                pass
        await first.send(b"x")
    async with client.create_producer(topic, name="the-name") as second:
        await second.send(b"y")


async def test_a_topic_that_is_not_there(broker: BrokerUnderTest, client: Client, local_name: str) -> None:
    topic = f"persistent://{NO_TOPIC_CREATION}/{local_name}"
    with pytest.raises(TopicNotFound):
        async with client.create_producer(topic):
            pass
    with pytest.raises(TopicNotFound):
        async with client.subscribe(topic, "sub"):
            pass
    await broker.create_topic(topic)
    async with client.create_producer(topic) as producer:
        await producer.send(b"x")


async def test_a_subscription_that_is_not_there(
    broker: BrokerUnderTest, client: Client, local_name: str
) -> None:
    topic = f"persistent://{NO_SUBSCRIPTION_CREATION}/{local_name}"
    await broker.create_topic(topic)
    with pytest.raises(SubscriptionNotFound):
        async with client.subscribe(topic, "sub"):
            pass


async def test_a_namespace_that_is_not_there(client: Client, local_name: str) -> None:
    with pytest.raises(BrokerError):
        async with client.create_producer(f"persistent://public/no-such-namespace/{local_name}"):
            pass


async def test_a_terminated_topic_takes_nothing_and_gives_what_it_has(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.subscribe(topic, "sub") as consumer:
        async with client.create_producer(topic) as producer:
            await producer.send_many(payloads(5))
            await broker.terminate(topic)
            with pytest.raises(TopicTerminated):
                await producer.send(b"too late")
        with pytest.raises(TopicTerminated):
            async with client.create_producer(topic):
                pass
        assert len(await receive_and_acknowledge(consumer, 5)) == 5
        with trio.fail_after(PATIENCE), pytest.raises(trio.EndOfChannel):
            await consumer.receive()


async def test_a_subscription_in_use_is_deleted_by_force_only(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with (
        client.subscribe(topic, "sub", kind="shared") as one,
        client.subscribe(topic, "sub", kind="shared") as other,
    ):
        with pytest.raises(BrokerError):
            await one.unsubscribe()
        assert await broker.subscriptions(topic) == ["sub"]
        await other.aclose()
        await one.unsubscribe()
    assert await broker.subscriptions(topic) == []


async def test_one_refusal_leaves_the_others_alone(client: Client, topic: str, local_name: str) -> None:
    """All of them share a connection with the refused one."""
    async with (
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        for _ in range(3):
            with pytest.raises(TopicNotFound):
                async with client.create_producer(f"persistent://{NO_TOPIC_CREATION}/{local_name}"):
                    pass
        await producer.send(b"x")
        assert (await consumer.receive()).value == b"x"
