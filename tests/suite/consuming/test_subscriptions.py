"""The four subscription types, as consumers see them."""

import pytest
import trio

from pulsar_sansio import ConsumerBusy
from pulsar_trio import Client, FailoverConsumer, SharedConsumer
from tests.suite.brokers import BrokerUnderTest
from tests.suite.helpers import gather, numbers, payloads, receive_and_acknowledge, rest, values


async def test_exclusive_gets_everything_in_order(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", kind="exclusive") as consumer:
        async with client.create_producer(topic) as producer:
            await producer.send_many(payloads(100))
        assert values(await receive_and_acknowledge(consumer, 100)) == payloads(100)


async def test_exclusive_refuses_a_second_consumer(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", kind="exclusive") as first:
        with pytest.raises(ConsumerBusy):
            async with client.subscribe(topic, "sub", kind="exclusive"):
                pass
        async with client.create_producer(topic) as producer:
            await producer.send(b"x")
        assert (await first.receive()).value == b"x"


async def test_a_subscription_has_one_type_at_a_time(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", kind="shared"):
        with pytest.raises(ConsumerBusy):
            async with client.subscribe(topic, "sub", kind="failover"):
                pass


async def test_each_subscription_gets_everything(client: Client, topic: str) -> None:
    """Rule SUBT-09."""
    async with (
        client.subscribe(topic, "one", kind="exclusive") as one,
        client.subscribe(topic, "two", kind="shared") as two,
        client.create_producer(topic) as producer,
    ):
        await producer.send_many(payloads(20))
        assert values(await receive_and_acknowledge(one, 20)) == payloads(20)
        assert sorted(numbers(await receive_and_acknowledge(two, 20))) == list(range(20))


async def test_shared_consumers_share(client: Client, topic: str) -> None:
    """Rule SUBT-09."""
    async with (
        client.subscribe(topic, "sub", kind="shared", receiver_queue_size=10) as first,
        client.subscribe(topic, "sub", kind="shared", receiver_queue_size=10) as second,
        client.create_producer(topic, batching=None) as producer,
    ):
        await producer.send_many(payloads(100))
        got: dict[str, list[int]] = {"first": [], "second": []}
        all_there = trio.Event()

        async def take(name: str, consumer: SharedConsumer) -> None:
            async for message in consumer:
                got[name] += numbers([message])
                consumer.acknowledge(message)
                if len(got["first"]) + len(got["second"]) == 100:
                    all_there.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take, "first", first)
            nursery.start_soon(take, "second", second)
            await all_there.wait()
            nursery.cancel_scope.cancel()
        assert sorted(got["first"] + got["second"]) == list(range(100))
        assert got["first"]
        assert got["second"]


async def test_messages_of_a_closed_shared_consumer_go_to_the_others(client: Client, topic: str) -> None:
    async with client.subscribe(topic, "sub", kind="shared", receiver_queue_size=5) as stays:
        async with client.subscribe(topic, "sub", kind="shared", receiver_queue_size=5) as goes:
            async with client.create_producer(topic, batching=None) as producer:
                await producer.send_many(payloads(20))
            first = numbers(await receive_and_acknowledge(goes, 3))
            await goes.flush()
        rest_of_them = numbers(await receive_and_acknowledge(stays, 17))
        assert sorted(first + rest_of_them) == list(range(20))


async def test_failover_has_one_active_consumer_and_then_the_next(client: Client, topic: str) -> None:
    async with (
        client.subscribe(topic, "sub", kind="failover", consumer_name="b") as one,
        client.subscribe(topic, "sub", kind="failover", consumer_name="a") as other,
    ):
        async with client.create_producer(topic, batching=None) as producer:
            await producer.send_many(payloads(10))
        active, waiting = await active_and_waiting(one, other)
        assert numbers(await receive_and_acknowledge(active, 4)) == [0, 1, 2, 3]
        await active.flush()
        assert await rest(waiting) == []
        await active.aclose()
        # What was not acknowledged comes to the next one, in order.
        assert numbers(await receive_and_acknowledge(waiting, 6)) == [4, 5, 6, 7, 8, 9]


async def active_and_waiting(
    one: FailoverConsumer, other: FailoverConsumer
) -> tuple[FailoverConsumer, FailoverConsumer]:
    """The same two, when both have been told which of them is active."""
    while {one.active, other.active} != {True, False}:  # noqa: ASYNC110
        await trio.sleep(0.02)
    return (one, other) if one.active else (other, one)


async def test_key_shared_keeps_a_key_at_one_consumer_in_order(client: Client, topic: str) -> None:
    keys = [f"key-{number}" for number in range(20)]
    async with (
        client.subscribe(topic, "sub", kind="key_shared") as first,
        client.subscribe(topic, "sub", kind="key_shared") as second,
        client.create_producer(topic, batching=None) as producer,
    ):
        for number in range(100):
            await producer.enqueue(b"%d" % number, key=keys[number % 20])
        seen: dict[str, dict[str | None, list[int]]] = {"first": {}, "second": {}}
        for name, messages in zip(seen, await gather([first, second], 100), strict=True):
            for message in messages:
                seen[name].setdefault(message.key, []).append(int(message.data))
        assert seen["first"], "one consumer got every key"
        assert seen["second"], "one consumer got every key"
        assert not seen["first"].keys() & seen["second"].keys()
        together = seen["first"] | seen["second"]
        assert together == {key: list(range(index, 100, 20)) for index, key in enumerate(keys)}


async def test_a_new_subscription_begins_where_it_is_told(client: Client, topic: str) -> None:
    """Rule CONS-43."""
    async with client.create_producer(topic) as producer:
        await producer.send_many(payloads(5))
        async with (
            client.subscribe(topic, "all", initial_position="earliest") as everything,
            client.subscribe(topic, "new", initial_position="latest") as only_new,
        ):
            await producer.send_many(payloads(5, start=5))
            assert numbers(await receive_and_acknowledge(everything, 10)) == list(range(10))
            assert numbers(await receive_and_acknowledge(only_new, 5)) == [5, 6, 7, 8, 9]


async def test_a_subscription_that_is_not_durable_ends_with_its_consumer(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.create_producer(topic) as producer:
        async with client.subscribe(topic, "passing", durable=False) as consumer:
            await producer.send(b"x")
            assert (await consumer.receive()).value == b"x"
            assert await broker.subscriptions(topic) == ["passing"]
        assert await broker.subscriptions(topic) == []


async def test_unsubscribe_deletes_the_subscription(
    broker: BrokerUnderTest, client: Client, topic: str
) -> None:
    async with client.create_producer(topic) as producer:
        async with client.subscribe(topic, "sub") as consumer:
            assert await broker.subscriptions(topic) == ["sub"]
            await producer.send(b"before")
            await consumer.unsubscribe()
        assert await broker.subscriptions(topic) == []
        async with client.subscribe(topic, "sub", initial_position="latest") as consumer:
            await producer.send(b"after")
            assert (await consumer.receive()).value == b"after"


async def test_partitions_are_told(broker: BrokerUnderTest, client: Client, topic: str) -> None:
    await broker.create_partitioned_topic(topic, 4)
    assert len(await client.partitions(topic)) == 4
    assert len(await client.partitions(f"{topic}-single")) == 0
