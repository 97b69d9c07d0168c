"""Tasks that receive from one consumer: which of them is woken, and what ends their waiting."""

import pytest
import trio
import trio.testing

from pulsar_sansio import InvalidConfiguration
from pulsar_trio import Client, Consumer, ResourceClosed
from pulsar_trio.consuming.receiving import Receiving
from tests.patience import PATIENCE
from tests.trio.waiting import until


def receiving_of(consumer: Consumer) -> Receiving[bytes]:
    return consumer._receiving


async def test_a_woken_task_wakes_the_next_one_if_it_leaves_something(client: Client) -> None:
    """Two tasks wait when two messages arrive together."""
    async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
        found: list[bytes] = []

        async def receive() -> None:
            found.append((await consumer.receive()).data)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(receive)
                nursery.start_soon(receive)
                await until(lambda: receiving_of(consumer).waiting == 2)
                await producer.send_many([b"a", b"b"])
        assert sorted(found) == [b"a", b"b"]
        assert receiving_of(consumer).waiting == 0


async def test_a_cancelled_task_loses_nothing(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer, client.create_producer("t") as producer:
        with trio.move_on_after(0.01):
            await consumer.receive()
        assert receiving_of(consumer).waiting == 0
        await producer.send(b"a")
        with trio.fail_after(PATIENCE):
            assert (await consumer.receive()).data == b"a"


async def test_a_run_and_a_waiting_task_exclude_each_other(client: Client) -> None:
    """Rule CONS-19."""
    async with client.subscribe("t", "s") as consumer:
        receiving = receiving_of(consumer)
        with receiving.by_run():
            with pytest.raises(InvalidConfiguration, match="while run gets"):
                await consumer.receive()
            with pytest.raises(InvalidConfiguration, match="while run gets"), receiving.by_run():
                pass
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.receive)
            await until(lambda: receiving.waiting == 1)
            with pytest.raises(InvalidConfiguration, match="while a task waits"), receiving.by_run():
                pass
            nursery.cancel_scope.cancel()
        with receiving.by_run():
            pass


async def test_the_end_of_the_consumer_reaches_each_task(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer:
        receiving = receiving_of(consumer)
        errors: list[BaseException] = []

        async def receive() -> None:
            try:
                await consumer.receive()
            except ResourceClosed as error:
                errors.append(error)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(receive)
                nursery.start_soon(receive)
                await until(lambda: receiving.waiting == 2)
                await consumer.aclose()
        assert len(errors) == 2
        with pytest.raises(ResourceClosed), receiving.by_run():
            pass
        with pytest.raises(ResourceClosed):
            receiving.take_whole_batches(1)
