"""A consumer's requests for messages: a queue of size 0, pausing, a queue that scales."""

import pytest
import trio
import trio.testing

from pulsar_sansio import InvalidConfiguration
from pulsar_trio import (
    BatchingPolicy,
    BatchReceivePolicy,
    Client,
    Consumer,
    EmbeddedBroker,
    Message,
    ResourceClosed,
)
from tests.patience import PATIENCE
from tests.trio.consuming.test_consumer import fill, numbers_left
from tests.trio.waiting import until


async def nothing_comes(consumer: Consumer) -> bool:
    with trio.move_on_after(0.05) as scope:
        await consumer.receive()
    return scope.cancelled_caught


async def test_nothing_is_fetched_in_advance(client: Client) -> None:
    async with (
        client.subscribe("t", "s", receiver_queue_size=0) as one,
        client.subscribe("t", "s", receiver_queue_size=0) as other,
    ):
        await fill(client, "t", 4)
        for number, consumer in enumerate([one, one, other, one]):
            message = await consumer.receive()
            assert int(message.data) == number
            consumer.acknowledge(message)
        assert one.statistics().available == other.statistics().available == 0


@pytest.mark.parametrize("batching", [None, BatchingPolicy(10, max_delay=1.0)])
async def test_every_task_that_waits_at_a_queue_of_size_0_gets_its_message(
    client: Client, batching: BatchingPolicy | None
) -> None:
    async with client.subscribe("t", "s", receiver_queue_size=0) as consumer:
        received: list[int] = []

        async def receive_one() -> None:
            received.append(int((await consumer.receive()).data))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(receive_one)
            await trio.testing.wait_all_tasks_blocked()
            await fill(client, "t", 20, batching)
        assert sorted(received) == list(range(20))


async def test_receive_many_and_receive_nowait_at_a_queue_of_size_0(client: Client) -> None:
    async with client.subscribe("t", "s", receiver_queue_size=0) as consumer:
        await fill(client, "t", 2)
        assert [int(message.data) for message in await consumer.receive_many()] == [0]
        with pytest.raises(trio.WouldBlock):
            consumer.receive_nowait()  # which asks for one
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert int(consumer.receive_nowait().data) == 1


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancelled_receive_at_a_queue_of_size_0_loses_nothing(client: Client, steps: int) -> None:
    async with client.subscribe("t", "s", receiver_queue_size=0, initial_position="earliest") as consumer:
        await fill(client, "t", 3)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def receive() -> None:
                    consumer.acknowledge(await consumer.receive())

                nursery.start_soon(receive)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked(0.01)
        with trio.fail_after(PATIENCE):
            message = await consumer.receive()
            consumer.acknowledge(message)
    left = await numbers_left(client)
    assert left in ([1, 2], [2])
    assert int(message.data) == left[0] - 1


async def test_pause_and_resume(client: Client) -> None:
    async with client.subscribe("t", "s", "exclusive", receiver_queue_size=2) as consumer:
        consumer.pause()
        await fill(client, "t", 6)
        assert [int((await consumer.receive()).data) for _ in range(2)] == [0, 1]
        assert await nothing_comes(consumer)
        consumer.resume()
        assert [int((await consumer.receive()).data) for _ in range(4)] == [2, 3, 4, 5]


async def test_paused_from_the_beginning(client: Client) -> None:
    async with client.subscribe("t", "s", start_paused=True) as consumer:
        await fill(client, "t", 1)
        assert await nothing_comes(consumer)
        consumer.resume()
        assert (await consumer.receive()).data == b"0"


async def test_a_queue_that_scales_delivers_everything(client: Client) -> None:
    async with client.subscribe(
        "t", "s", "exclusive", receiver_queue_size=100, auto_scaled_receiver_queue_size=True
    ) as consumer:
        await fill(client, "t", 300)
        received = 0
        largest = 0
        while received < 300:
            messages = await consumer.receive_many()
            received += len(messages)
            largest = max(largest, len(messages))
            consumer.acknowledge(messages)
        assert 8 <= largest <= 100


async def test_receive_many_waits_for_as_many_as_the_policy_says(
    client: Client, autojump_clock: trio.testing.MockClock
) -> None:
    policy = BatchReceivePolicy(max_messages=5, timeout=10.0)
    async with client.subscribe("t", "s", "exclusive", batch_receive=policy) as consumer:
        await fill(client, "t", 4)
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def receive() -> None:
                messages = await consumer.receive_many()
                assert [int(message.data) for message in messages] == [0, 1, 2, 3, 0]
                assert trio.current_time() - begun < 10

            nursery.start_soon(receive)
            await trio.sleep(5)
            await fill(client, "t", 1)
        await fill(client, "t", 12)
        sizes = [len(await consumer.receive_many()) for _ in range(2)]
        begun = trio.current_time()
        sizes.append(len(await consumer.receive_many()))
        assert trio.current_time() - begun >= 10
        assert sizes == [5, 5, 2]


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancelled_batch_receive_loses_nothing(client: Client, steps: int) -> None:
    policy = BatchReceivePolicy(max_messages=3, timeout=0.0)
    async with client.subscribe(
        "t", "s", "exclusive", initial_position="earliest", batch_receive=policy
    ) as consumer:
        received: list[int] = []

        async def receive(scope: trio.CancelScope) -> None:
            with scope:
                received.extend(int(message.data) for message in await consumer.receive_many())

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(receive, scope)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(fill, client, "t", 6)
            for _ in range(2**steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        with trio.fail_after(PATIENCE):
            while len(received) < 6:
                await receive(trio.CancelScope())
        assert received == list(range(6))


async def test_a_cancelled_call_leaves_what_was_enough_to_the_next(client: Client) -> None:
    """The machine says at once that it is enough, and cancellation keeps the task from taking it."""
    policy = BatchReceivePolicy(max_messages=1, timeout=0.0)
    async with (
        client.subscribe("t", "s", batch_receive=policy) as consumer,
        client.create_producer("t") as producer,
    ):
        await producer.send(b"1")
        await until(lambda: consumer.statistics().available)
        with trio.CancelScope() as scope:
            scope.cancel()
            await consumer.receive_many()
        assert scope.cancelled_caught
        with trio.fail_after(PATIENCE):
            assert [message.data for message in await consumer.receive_many()] == [b"1"]


async def test_closing_wakes_a_batch_receive(client: Client) -> None:
    async with (
        client.subscribe("t", "s", batch_receive=BatchReceivePolicy(5, timeout=0.0)) as consumer,
        trio.open_nursery() as nursery,
    ):

        async def receive() -> None:
            with pytest.raises(ResourceClosed):
                await consumer.receive_many()

        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        await consumer.aclose()


async def test_the_end_of_the_topic_wakes_a_batch_receive(broker: EmbeddedBroker, client: Client) -> None:
    async with client.subscribe("t", "s", batch_receive=BatchReceivePolicy(5, timeout=0.0)) as consumer:

        async def receive() -> None:
            with pytest.raises(trio.EndOfChannel):
                await consumer.receive_many()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            nursery.start_soon(receive)
            await trio.testing.wait_all_tasks_blocked()
            broker.terminate("t")


async def test_run_is_refused_during_a_batch_receive(client: Client) -> None:
    """CONS-19."""

    async def handle(message: Message) -> None:
        raise AssertionError

    policy = BatchReceivePolicy(max_messages=5, timeout=10.0)
    async with (
        client.subscribe("t", "s", "exclusive", batch_receive=policy) as consumer,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(consumer.receive_many)
        await trio.testing.wait_all_tasks_blocked()
        assert consumer.statistics().waiting == 1
        with pytest.raises(InvalidConfiguration, match="a task waits"):
            await consumer.run(handle)
        nursery.cancel_scope.cancel()
