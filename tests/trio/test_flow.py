"""How much is asked for: a queue of size 0, pausing, a queue that scales."""

import pytest
import trio
import trio.testing

from pulsar_trio import BatchingPolicy, Client, Consumer

from .test_consumer import fill, numbers_left


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
async def test_who_gives_up_at_a_queue_of_size_0_loses_nothing(client: Client, steps: int) -> None:
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
        with trio.fail_after(5):
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
