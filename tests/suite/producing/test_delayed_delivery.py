"""Messages that are to be delivered later, and the official client on the other end."""

import time
from typing import Any

import pulsar
import pytest
import trio

from pulsar_sansio import NotAllowed
from pulsar_trio import Client, OutgoingMessage, Producer
from tests.official.client import in_thread, open_official_client
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import receive, receive_and_acknowledge, values

DELAY = 600
"""Milliseconds."""

LONG_DELAY = 2000
"""Milliseconds: long enough for the next message to be sent, stored and delivered meanwhile."""

TICK = 100
"""Milliseconds that a message may come too early."""

kinds = pytest.mark.parametrize("kind", ["shared", "key_shared"])


@pytest.fixture
async def topic(broker: BrokerUnderTest, local_name: str) -> str:
    """In a namespace of its own, with a short tick."""
    namespace = f"public/{local_name}".lower()
    path = f"/admin/v2/namespaces/{namespace}"
    assert await broker.request("PUT", path) == (204, None)
    delays = {"tickTime": TICK, "active": True}
    assert await broker.request("POST", f"{path}/delayedDelivery", delays) == (204, None)
    return f"persistent://{namespace}/t"


def in_ms(milliseconds: int) -> int:
    return time.time_ns() // 1_000_000 + milliseconds


async def send(producer: Producer, payload: bytes, milliseconds: int) -> int:
    """To be delivered in so many milliseconds; when that is."""
    when = in_ms(milliseconds)
    await producer.send(OutgoingMessage(payload, deliver_at=when))
    return when


async def subscription(broker: BrokerUnderTest, topic: str) -> Any:
    status, stats = await broker.request("GET", f"{topic_path(topic)}/stats")
    assert status == 200
    return stats["subscriptions"]["sub"]


@kinds
async def test_they_come_at_their_time_and_others_before(client: Client, topic: str, kind: Any) -> None:
    async with client.subscribe(topic, "sub", kind) as consumer, client.create_producer(topic) as producer:
        later = await send(producer, b"later", 2 * LONG_DELAY)
        sooner = await send(producer, b"sooner", LONG_DELAY)
        await producer.send(b"now")
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"now"]
        for payload, when in ((b"sooner", sooner), (b"later", later)):
            assert values(await receive_and_acknowledge(consumer, 1)) == [payload]
            assert in_ms(0) >= when - TICK - 1
        await consumer.flush()


@pytest.mark.parametrize("kind", ["exclusive", "failover"])
async def test_other_types_get_them_at_once(client: Client, topic: str, kind: Any) -> None:
    async with client.subscribe(topic, "sub", kind) as consumer, client.create_producer(topic) as producer:
        when = await send(producer, b"later", 60_000)
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"later"]
        assert in_ms(0) < when - 30_000


@kinds
async def test_a_time_that_is_over_is_now(client: Client, topic: str, kind: Any) -> None:
    async with client.subscribe(topic, "sub", kind) as consumer, client.create_producer(topic) as producer:
        await send(producer, b"past", -5000)
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"past"]


@kinds
async def test_they_are_backlog_and_counted(
    broker: BrokerUnderTest, client: Client, topic: str, kind: Any
) -> None:
    async with client.subscribe(topic, "sub", kind) as consumer, client.create_producer(topic) as producer:
        for number in range(3):
            await send(producer, b"%d" % number, 60_000)
        await producer.send(b"now")
        await receive_and_acknowledge(consumer, 1)
        await consumer.flush()
        stats = await subscription(broker, topic)
        assert (stats["msgBacklog"], stats["msgDelayed"], stats["msgBacklogNoDelayed"]) == (3, 3, 0)


async def test_they_wait_on_while_the_topic_is_unloaded_and_no_consumer_is_attached(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.subscribe(topic, "sub", "shared"), client.create_producer(topic) as producer:
        when = await send(producer, b"later", 3 * DELAY)
    await broker.unload(topic)
    async with client.subscribe(topic, "sub", "shared") as consumer:
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"later"]
        assert in_ms(0) >= when - TICK - 1


@pytest.mark.slow
async def test_they_wait_on_over_a_restart(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", "shared") as consumer:
        async with client.create_producer(topic) as producer:
            when = await send(producer, b"later", 1500 if broker.name == "ours" else 60_000)
        await broker.kill()
        await broker.start()
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"later"]
        assert in_ms(0) >= when - TICK - 1


async def test_negatively_acknowledged_they_are_redelivered(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", "shared", negative_acknowledgement_delay=0.1) as consumer,
        client.create_producer(topic) as producer,
    ):
        await send(producer, b"later", DELAY)
        [message] = await receive(consumer, 1)
        consumer.negative_acknowledge(message)
        [again] = await receive_and_acknowledge(consumer, 1)
        assert (again.message_id, again.redelivery_count) == (message.message_id, 1)


async def test_a_namespace_may_have_it_switched_off(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    namespace = topic.removeprefix("persistent://").rpartition("/")[0]
    path = f"/admin/v2/namespaces/{namespace}/delayedDelivery"
    assert await broker.request("POST", path, {"tickTime": TICK, "active": False}) == (204, None)
    async with (
        client.subscribe(topic, "sub", "shared") as consumer,
        client.create_producer(topic) as producer,
    ):
        await send(producer, b"at once", 60_000)
        assert values(await receive_and_acknowledge(consumer, 1)) == [b"at once"]


async def test_longer_than_is_allowed(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    namespace = topic.removeprefix("persistent://").rpartition("/")[0]
    path = f"/admin/v2/namespaces/{namespace}/delayedDelivery"
    delays = {"tickTime": TICK, "active": True, "maxDeliveryDelayInMillis": 10_000}
    assert await broker.request("POST", path, delays) == (204, None)
    assert await broker.request("GET", path) == (200, delays)
    async with client.create_producer(topic) as producer:
        await send(producer, b"short enough", 9000)
        with pytest.raises(NotAllowed, match="Exceeds max allowed delivery delay of 10000 milliseconds"):
            await send(producer, b"too long", 60_000)


async def test_the_official_client_gets_ours_when_they_are_due(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with open_official_client(broker.url) as official, client.create_producer(topic) as producer:
        consumer = await in_thread(official.subscribe, topic, "sub", pulsar.ConsumerType.Shared)
        when = await send(producer, b"later", LONG_DELAY)
        await producer.send(b"now")
        for payload in (b"now", b"later"):
            message = await in_thread(consumer.receive, 10_000)
            assert message.data() == payload
            await in_thread(consumer.acknowledge, message)
        assert in_ms(0) >= when - TICK - 1


async def test_we_get_the_official_clients_when_they_are_due(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with (
        open_official_client(broker.url) as official,
        client.subscribe(topic, "sub", "shared") as consumer,
    ):
        producer = await in_thread(official.create_producer, topic)
        when = in_ms(LONG_DELAY)
        await in_thread(producer.send, b"later", deliver_at=when)
        await in_thread(producer.send, b"now")
        assert values(await receive_and_acknowledge(consumer, 2)) == [b"now", b"later"]
        assert in_ms(0) >= when - TICK - 1


async def test_they_go_to_all_consumers_of_the_subscription(client: Client, topic: str) -> None:
    """Not all at the moment of one: they are shared out as any others."""
    async with (
        client.subscribe(topic, "sub", "shared", receiver_queue_size=10) as one,
        client.subscribe(topic, "sub", "shared", receiver_queue_size=10) as other,
        client.create_producer(topic) as producer,
    ):
        when = in_ms(DELAY)
        for number in range(20):
            await producer.enqueue(OutgoingMessage(b"%d" % number, deliver_at=when))
        await producer.flush()
        async with trio.open_nursery() as nursery:
            for consumer in (one, other):
                nursery.start_soon(receive_and_acknowledge, consumer, 10)
