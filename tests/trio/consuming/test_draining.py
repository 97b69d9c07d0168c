"""`drain`: consumers and readers finish what they hold and receive nothing more."""

import re

import pytest
import trio
import trio.lowlevel
import trio.testing

from pulsar_sansio import InvalidConfiguration
from pulsar_trio import (
    BatchReceivePolicy,
    Client,
    Consumer,
    EmbeddedBroker,
    Message,
    ResourceClosed,
    open_client,
)
from tests.patience import PATIENCE
from tests.trio.consuming.stopping_script import Handlers, consumer_gets_nothing, fresh, in_background, left
from tests.trio.consuming.test_consumer import fill, filled
from tests.trio.proxy import open_proxy
from tests.trio.waiting import until


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_drain_waits_for_the_run_and_for_the_broker(client: Client, concurrency: int) -> None:
    handlers = Handlers()
    async with client.subscribe(
        "t", "s", initial_position="earliest", acknowledgement_group_time=60.0
    ) as consumer:
        await fill(client, "t", 10)

        async def run() -> None:
            await consumer.run(handlers.handle, concurrency=concurrency)

        async with in_background(run) as run_over:
            await until(lambda: len(handlers.begun) == concurrency)
            async with in_background(consumer.drain) as drained:
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert not drained.is_set()
                handlers.may_end.set()
            await run_over.wait()
        assert consumer.statistics().acknowledgements_sent == concurrency
        await consumer.drain()  # twice is once
        await consumer.run(handlers.handle)  # nothing to do
    assert await left(client) == fresh(*range(concurrency, 10))


async def test_drain_ends_a_loop_of_the_application(client: Client) -> None:
    async with filled(client, 10) as consumer:
        received: list[int] = []
        going_on = trio.Event()

        async def loop() -> None:
            async for message in consumer:
                received.append(int(message.data))
                consumer.acknowledge(message)
                if len(received) == 3:
                    await going_on.wait()

        async with in_background(loop):
            await until(lambda: len(received) == 3)
            await consumer.drain()
            going_on.set()
    assert received == [0, 1, 2]
    assert await left(client) == fresh(*range(3, 10))


@pytest.mark.parametrize("how", ["receive", "receive_many", "batch receive", "async for"])
async def test_drain_wakes_tasks_that_wait_for_a_message(client: Client, how: str) -> None:
    policy = BatchReceivePolicy(max_messages=5, timeout=0) if how == "batch receive" else None
    async with client.subscribe("t", "s", batch_receive=policy) as consumer:

        async def wait() -> None:
            if how == "async for":
                assert [message async for message in consumer] == []
                return
            with pytest.raises(trio.EndOfChannel):
                await (consumer.receive() if how == "receive" else consumer.receive_many())

        async with in_background(wait), in_background(wait):
            if policy is not None:
                await fill(client, "t", 2)  # not enough
            await until(lambda: consumer.statistics().waiting == 2)
            await consumer.drain()
        assert consumer.statistics().waiting == 0
    assert await left(client) == (fresh(0, 1) if policy is not None else [])


async def test_a_drained_consumer_leaves_new_messages_to_others(client: Client) -> None:
    async with client.subscribe("t", "s", receiver_queue_size=1) as drained:
        await drained.drain()
        async with client.subscribe("t", "s") as other:
            await fill(client, "t", 10)
            received = [int((await other.receive()).data) for _ in range(9)]
        assert len(set(received)) == 9  # one was asked for before it was drained
        with pytest.raises(InvalidConfiguration, match="drained"):
            drained.resume()
        assert drained.statistics().available <= 1


async def test_acknowledging_goes_on_after_drain(client: Client) -> None:
    async with filled(client, 3) as consumer:
        message = await consumer.receive()
        await consumer.drain()
        consumer.acknowledge(message)
        await consumer.flush()
    assert await left(client) == fresh(1, 2)


async def test_a_drain_that_is_cancelled_takes_nothing_new_all_the_same(client: Client) -> None:
    """A handler that never ends: the application limits its patience."""
    handlers = Handlers()
    async with filled(client, 3) as consumer:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.run, handlers.handle)
            await until(lambda: handlers.begun)
            with trio.move_on_after(0.01) as limit:
                await consumer.drain()
            assert limit.cancelled_caught
            nursery.cancel_scope.cancel()
        await consumer.drain()
        assert await consumer_gets_nothing(consumer)
    assert await left(client) == fresh(0, 1, 2)


async def test_a_handler_cannot_drain(client: Client) -> None:
    """A handler that drains would wait for itself; so would tasks of its own."""
    async with filled(client, 4) as consumer:
        refused = 0

        async def drain() -> None:
            nonlocal refused
            with pytest.raises(InvalidConfiguration, match="stop"):
                await consumer.drain()
            refused += 1

        async def handle(message: Message) -> None:
            await drain()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(drain)

        async with trio.open_nursery() as nursery:
            # The task that runs has a nursery around it: tasks in there are no handlers.
            for concurrency in (1, 2):

                async def run(concurrency: int = concurrency) -> None:
                    with trio.move_on_after(0.02):
                        await consumer.run(handle, concurrency=concurrency)

                await run()
            assert refused == 8
            nursery.start_soon(consumer.drain)
            await consumer.run(handle)


async def test_a_task_beside_the_run_may_drain(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer:

        async def handle(message: Message) -> None:
            raise AssertionError

        async def drain_soon() -> None:
            await trio.testing.wait_all_tasks_blocked()
            await consumer.drain()

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(drain_soon)
                await consumer.run(handle)


async def test_drain_of_a_closed_consumer(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer:
        pass
    with pytest.raises(ResourceClosed):
        await consumer.drain()


async def test_a_consumer_that_is_closed_while_it_is_drained(client: Client) -> None:
    handlers = Handlers()
    async with filled(client, 2) as consumer:

        async def run() -> None:
            with pytest.raises(ResourceClosed):
                await consumer.run(handlers.handle)

        async def drain() -> None:
            with pytest.raises(ResourceClosed):
                await consumer.drain()

        async with in_background(run):
            await until(lambda: handlers.begun)
            async with in_background(drain):
                await trio.testing.wait_all_tasks_blocked()
                await consumer.aclose()
                handlers.may_end.set()


async def test_drain_over_a_lost_connection_waits_until_it_is_back() -> None:
    """Acknowledgements wait for the next connection and are confirmed there; the consumer does not deliver
    messages that the broker redelivers on it."""
    async with (
        open_proxy() as proxy,
        open_client(proxy.url, initial_backoff=0.01) as client,
        client.subscribe("t", "s", initial_position="earliest", acknowledgement_group_time=60.0) as consumer,
    ):
        await fill(client, "t", 5)
        handled = 0

        async def handle(message: Message) -> None:
            nonlocal handled
            handled += 1
            if handled == 2:
                proxy.hold()
                proxy.cut()
                await until(lambda: not consumer.connected)
                stop.set()

        stop = trio.Event()
        async with in_background(lambda: consumer.run(handle, stop=stop)) as over:
            await until(stop.is_set)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not over.is_set()
            proxy.release()
        assert handled == 2
        assert await consumer_gets_nothing(consumer)
        await consumer.aclose()
        assert await left(client) == fresh(2, 3, 4)


@pytest.mark.parametrize("several", ["partitions", "topics"])
@pytest.mark.parametrize("concurrency", [1, 2])
async def test_several_topics(broker: EmbeddedBroker, client: Client, several: str, concurrency: int) -> None:
    if several == "partitions":
        broker.create_partitioned_topic("t", 3)
        topics = [f"t-partition-{number}" for number in range(3)]
    else:
        topics = ["a", "b", "c"]
    subject = "t" if several == "partitions" else topics
    handlers, stop = Handlers(), trio.Event()
    async with client.subscribe(subject, "s", initial_position="earliest") as consumer:
        for topic in topics:
            await fill(client, topic, 4)
        await until(lambda: consumer.statistics().available == 12)
        async with in_background(lambda: consumer.run(handlers.handle, concurrency=concurrency, stop=stop)):
            await until(lambda: len(handlers.begun) == concurrency)
            stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            handlers.may_end.set()
        assert len(handlers.done) == concurrency
        assert await consumer_gets_nothing(consumer)
    async with client.subscribe(subject, "s") as consumer:
        with trio.fail_after(PATIENCE):
            again = [await consumer.receive() for _ in range(12 - concurrency)]
        assert {message.redelivery_count for message in again} == {0}
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert consumer.statistics().available == 0


async def test_a_receiver_queue_of_size_0(client: Client) -> None:
    handlers, stop = Handlers(), trio.Event()
    async with client.subscribe("t", "s", initial_position="earliest", receiver_queue_size=0) as consumer:
        await fill(client, "t", 3)
        async with in_background(lambda: consumer.run(handlers.handle, stop=stop)):
            await until(lambda: handlers.begun)
            stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            handlers.may_end.set()
        assert handlers.done == [0]
    assert await left(client) == fresh(1, 2)


async def test_with_an_acknowledgement_timeout(client: Client) -> None:
    handlers, stop = Handlers(), trio.Event()
    async with client.subscribe(
        "t", "s", initial_position="earliest", acknowledgement_timeout=30.0
    ) as consumer:
        await fill(client, "t", 3)
        async with in_background(lambda: consumer.run(handlers.handle, stop=stop)):
            await until(lambda: handlers.begun)
            stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            handlers.may_end.set()
        assert handlers.done == [0]
    assert await left(client) == fresh(1, 2)


async def test_a_reader_is_drained(client: Client) -> None:
    await fill(client, "t", 3)
    async with client.create_reader("t", "earliest") as reader:
        await reader.receive()
        await reader.drain()
        assert [message async for message in reader] == []


# --- topics that join after the drain -----------------------------------------------------------------


async def consumer_leaves_all(client: Client, consumer: Consumer, topic: str) -> None:
    """Another consumer of the subscription gets every message of a topic that `consumer` is subscribed to."""
    async with client.subscribe(topic, "s", initial_position="earliest") as other:
        await fill(client, topic, 10)
        with trio.fail_after(PATIENCE):
            assert [int((await other.receive()).data) for _ in range(10)] == [*range(10)]
    assert consumer.statistics().available == 0
    assert await consumer_gets_nothing(consumer)


@pytest.mark.parametrize("receiver_queue_size", [1, 1000])
async def test_topics_that_join_a_drained_pattern_consumer_deliver_nothing(
    broker: EmbeddedBroker, client: Client, receiver_queue_size: int
) -> None:
    broker.create_topic("log-1")
    async with client.subscribe(
        re.compile("log-.*"), "s", initial_position="earliest", receiver_queue_size=receiver_queue_size
    ) as consumer:
        await consumer.drain()
        broker.create_topic("log-2")
        await until(lambda: len(consumer.topics) == 2)
        await consumer_leaves_all(client, consumer, "log-2")


async def test_partitions_that_join_a_drained_consumer_deliver_nothing(
    broker: EmbeddedBroker, client: Client
) -> None:
    broker.create_partitioned_topic("t", 1)
    async with client.subscribe(
        "t", "s", initial_position="earliest", partitions_update_interval=0.01
    ) as consumer:
        await consumer.drain()
        broker.update_partitions("t", 2)
        await until(lambda: len(consumer.topics) == 2)
        await consumer_leaves_all(client, consumer, "t-partition-1")
