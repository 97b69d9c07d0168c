"""Brokers found over HTTP, and failover to a cluster: against our broker and a real one."""

import pytest

from pulsar_trio import AutoFailover, TopicNotFound, TopicsPattern, open_client
from tests.suite.brokers import NO_TOPIC_CREATION, BrokerUnderTest
from tests.suite.helpers import payloads, receive_and_acknowledge, values


def web(broker: BrokerUnderTest) -> str:
    """The service URL that asks over HTTP, by the name that the broker has for itself."""
    host = broker.url.removeprefix("pulsar://").rpartition(":")[0]
    return f"http://{host}:{broker.admin.url.rpartition(':')[2]}"


async def test_produce_and_consume(broker: BrokerUnderTest, topic: str) -> None:
    async with (
        open_client(web(broker)) as client,
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send_many(payloads(100))
        assert values(await receive_and_acknowledge(consumer, 100)) == payloads(100)
        await broker.unload(topic)
        await producer.send(b"after")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"after"]


@pytest.mark.parametrize("name", ["a b", "ü", "100%", "a?b#c", "a+b", "a:b", "a%2Fb"])
async def test_names_that_have_to_be_encoded(broker: BrokerUnderTest, topic: str, name: str) -> None:
    """The binary protocol and HTTP mean the same topic."""
    topic = f"{topic}-{name}"
    async with (
        open_client(web(broker)) as over_http,
        open_client(broker.url) as binary,
        over_http.subscribe(topic, "sub") as consumer,
        binary.create_producer(topic) as producer,
    ):
        await producer.send(b"x")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"x"]
        assert topic in await over_http.topics()
        assert await over_http.partitions(topic) == []


async def test_partitions_and_patterns(broker: BrokerUnderTest, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 3)
    async with open_client(web(broker)) as client:
        assert len(await client.partitions(topic)) == 3
        assert topic in await client.topics()
        async with (
            client.create_producer(topic) as producer,
            client.subscribe(TopicsPattern(f"{topic}.*"), "sub") as consumer,
        ):
            await producer.send_many(payloads(30))
            received = values(await receive_and_acknowledge(consumer, 30))
            assert sorted(received, key=lambda value: int(value or b"")) == payloads(30)


async def test_transactions(broker: BrokerUnderTest, topic: str) -> None:
    """GAP-40: the coordinators are found over HTTP, too."""
    async with (
        open_client(web(broker), transactions=True) as client,
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        async with client.transaction() as transaction:
            await producer.send(b"inside", transaction=transaction)
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"inside"]


async def test_a_topic_that_must_not_be_created(broker: BrokerUnderTest, local_name: str) -> None:
    topic = f"{NO_TOPIC_CREATION}/{local_name}"
    async with open_client(web(broker)) as client:
        with pytest.raises(TopicNotFound):
            async with client.create_producer(topic):
                pass
        with pytest.raises(TopicNotFound):
            await client.partitions(topic)


async def test_partitions_are_asked_for_without_creating(broker: BrokerUnderTest, topic: str) -> None:
    async with open_client(web(broker), create_topics=False) as client:
        with pytest.raises(TopicNotFound):
            await client.partitions(topic)
        assert topic not in await client.topics()


async def test_a_namespace_that_is_not_there(broker: BrokerUnderTest) -> None:
    async with open_client(web(broker), operation_timeout=2) as client:
        with pytest.raises(TopicNotFound, match="amespace"):
            await client.topics("public/nowhere")


@pytest.mark.parametrize("over_http", [False, True])
async def test_failover_to_a_cluster_that_is_there(
    broker: BrokerUnderTest, topic: str, over_http: bool
) -> None:
    url = web(broker) if over_http else broker.url
    failover = AutoFailover((url,), failover_delay=0.1, switch_back_delay=60, check_interval=0.1)
    async with (
        open_client("pulsar://127.0.0.1:1", failover=failover, max_backoff=0.5) as client,
        client.subscribe(topic, "sub") as consumer,
        client.create_producer(topic) as producer,
    ):
        await producer.send(b"x")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"x"]
