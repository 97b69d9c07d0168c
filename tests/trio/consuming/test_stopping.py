"""`run(stop=…)` stops gracefully, and a run notices cancellation at its next message."""

from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from pulsar_sansio import InvalidConfiguration, OutgoingMessage
from pulsar_trio import (
    Client,
    EmbeddedBroker,
    Kind,
    Message,
    ResourceClosed,
)
from tests.patience import PATIENCE
from tests.trio.consuming.stopping_script import Handlers, consumer_gets_nothing, fresh, in_background, left
from tests.trio.consuming.test_consumer import fill, filled, numbers_left
from tests.trio.waiting import until

# --- cancellation -------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 3, 100])
async def test_a_handler_that_never_waits_does_not_swallow_a_cancellation(
    client: Client, concurrency: int
) -> None:
    async with client.subscribe(
        "t", "s", initial_position="earliest", negative_acknowledgement_delay=60.0
    ) as consumer:
        await fill(client, "t", 100)
        await until(lambda: consumer.statistics().available == 100)
        handled: list[int] = []

        async def handle(message: Message) -> None:
            handled.append(int(message.data))
            if len(handled) == 5:
                scope.cancel()

        with trio.CancelScope() as scope:
            await consumer.run(handle, concurrency=concurrency)
        assert scope.cancelled_caught
        assert len(handled) == 5
        assert concurrency > 1 or handled == list(range(5))
    assert await numbers_left(client) == sorted({*range(100)} - {*handled})


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_nothing_is_handled_in_a_cancelled_scope(client: Client, concurrency: int) -> None:
    async with filled(client, 3) as consumer:
        await until(lambda: consumer.statistics().available == 3)

        async def handle(message: Message) -> None:
            raise AssertionError

        with trio.CancelScope() as scope:
            scope.cancel()
            await consumer.run(handle, concurrency=concurrency)
    assert await numbers_left(client) == [0, 1, 2]


# --- run(stop=…) --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shared", "exclusive"])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_stopped_run_finishes_what_runs_and_takes_nothing_new(
    client: Client, kind: Kind, concurrency: int
) -> None:
    """Acknowledgements are confirmed when `run` returns; the other messages are redelivered as never
    tried."""
    handlers, stop = Handlers(), trio.Event()
    async with client.subscribe(
        "t", "s", kind, initial_position="earliest", acknowledgement_group_time=60.0
    ) as consumer:
        await fill(client, "t", 20)
        async with in_background(
            lambda: consumer.run(handlers.handle, concurrency=concurrency, stop=stop)
        ) as over:
            await until(lambda: len(handlers.begun) == concurrency)
            stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert not over.is_set()
            handlers.may_end.set()
        assert sorted(handlers.done) == sorted(handlers.begun) == list(range(concurrency))
        assert consumer.statistics().acknowledgements_sent == concurrency
        assert await consumer_gets_nothing(consumer)
    assert await left(client) == fresh(*range(concurrency, 20))


@pytest.mark.parametrize("concurrency", [1, 3, 100])
async def test_a_handler_that_never_waits_sets_the_stop(client: Client, concurrency: int) -> None:
    stop = trio.Event()
    async with filled(client, 300) as consumer:
        await until(lambda: consumer.statistics().available == 300)
        handled: list[int] = []

        async def handle(message: Message) -> None:
            handled.append(int(message.data))
            if len(handled) == 5:
                stop.set()

        with trio.fail_after(PATIENCE):
            await consumer.run(handle, concurrency=concurrency, stop=stop)
        assert len(handled) == 5
        assert await consumer_gets_nothing(consumer)
    assert await left(client) == fresh(*sorted({*range(300)} - {*handled}))


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_an_event_that_is_set_already(client: Client, concurrency: int) -> None:
    stop = trio.Event()
    stop.set()
    async with filled(client, 3) as consumer:
        await until(lambda: consumer.statistics().available == 3)

        async def handle(message: Message) -> None:
            raise AssertionError

        await consumer.run(handle, concurrency=concurrency, stop=stop)
    assert await left(client) == fresh(0, 1, 2)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_run_that_waits_for_messages_is_stopped(client: Client, concurrency: int) -> None:
    stop = trio.Event()
    async with client.subscribe("t", "s") as consumer:

        async def handle(message: Message) -> None:
            raise AssertionError

        async with in_background(lambda: consumer.run(handle, concurrency=concurrency, stop=stop)) as over:
            await trio.testing.wait_all_tasks_blocked()
            assert not over.is_set()
            stop.set()


async def test_what_waits_behind_its_key_goes_back_as_never_tried(client: Client) -> None:
    handlers, stop = Handlers(), trio.Event()
    async with client.subscribe("t", "s", "key_shared", initial_position="earliest") as consumer:
        async with client.create_producer("t", batching=None) as producer:
            await producer.send_many(OutgoingMessage(b"%d" % n, key="k") for n in range(6))
        async with in_background(lambda: consumer.run(handlers.handle, concurrency=3, stop=stop)):
            await until(lambda: handlers.begun)
            await trio.testing.wait_all_tasks_blocked(0.01)
            stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            handlers.may_end.set()
        assert handlers.done == [0]
    assert await left(client) == fresh(1, 2, 3, 4, 5)


async def test_an_event_that_is_set_after_a_run_changes_nothing(client: Client) -> None:
    stop = trio.Event()
    async with filled(client, 2) as consumer:

        async def handle(message: Message) -> None:
            await trio.sleep_forever()

        with trio.move_on_after(0.01):
            await consumer.run(handle, stop=stop)
        stop.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert (await consumer.receive()).data == b"1"


async def test_a_run_that_ends_with_its_topic_has_drained_nothing(
    broker: EmbeddedBroker, client: Client
) -> None:
    async with filled(client, 2) as consumer:

        async def handle(message: Message) -> None:
            pass

        broker.terminate("t")
        with trio.fail_after(PATIENCE):
            await consumer.run(handle, stop=trio.Event())
        consumer.resume()


@pytest.mark.parametrize("wrong", [True, "yes", object()])
async def test_what_is_no_event(client: Client, wrong: Any) -> None:
    async def handle(message: Message) -> None:
        raise AssertionError

    async with client.subscribe("t", "s") as consumer:
        with pytest.raises(InvalidConfiguration, match=r"stop: a trio\.Event"):
            await consumer.run(handle, stop=wrong)


async def test_a_handler_that_fails_while_the_run_is_stopped(client: Client) -> None:
    stop = trio.Event()
    async with filled(client, 2) as consumer:

        async def handle(message: Message) -> None:
            stop.set()
            await trio.testing.wait_all_tasks_blocked()
            raise ZeroDivisionError

        with trio.fail_after(PATIENCE):
            await consumer.run(handle, stop=stop)
    assert [number for number, _ in await left(client)] == [0, 1]


async def test_run_of_a_closed_consumer(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer:
        pass
    await client.aclose()
    with pytest.raises(ResourceClosed):
        await consumer.run(Handlers().handle, stop=trio.Event())


async def test_the_end_of_the_consumer_ends_a_stopped_run(client: Client) -> None:
    handlers, stop = Handlers(), trio.Event()
    async with filled(client, 2) as consumer:

        async def run() -> None:
            with pytest.raises(ResourceClosed):
                await consumer.run(handlers.handle, stop=stop)

        async with in_background(run):
            await until(lambda: handlers.begun)
            stop.set()
            await consumer.aclose()
            handlers.may_end.set()


# --- readers ------------------------------------------------------------------------------------------


async def test_a_reader_runs_a_handler_in_order(broker: EmbeddedBroker, client: Client) -> None:
    await fill(client, "t", 100)
    broker.terminate("t")
    read: list[int] = []

    async def handle(message: Message) -> None:
        read.append(int(message.data))

    async with client.create_reader("t", "earliest") as reader:
        with trio.fail_after(PATIENCE):
            await reader.run(handle)
    assert read == list(range(100))


async def test_a_failure_of_a_readers_handler_is_raised(client: Client) -> None:
    """The position is behind the message; `seek` goes back to it."""
    await fill(client, "t", 10)
    failure = ZeroDivisionError()
    read: list[int] = []

    async def handle(message: Message) -> None:
        read.append(int(message.data))
        if read == [0, 1, 2]:
            bad.append(message)
            raise failure

    bad: list[Message] = []
    async with client.create_reader("t", "earliest") as reader:
        with pytest.raises(ZeroDivisionError) as caught:
            await reader.run(handle)
        assert caught.value is failure
        assert int((await reader.receive()).data) == 3
        await reader.seek(bad[0], inclusive=True)
        assert int((await reader.receive()).data) == 2


async def test_a_reader_that_is_stopped_knows_where_to_go_on(client: Client) -> None:
    await fill(client, "t", 200)
    handlers, stop = Handlers(), trio.Event()

    async def handle(message: Message) -> None:
        if int(message.data) == 70:
            await handlers.handle(message)

    async with client.create_reader("t", "earliest") as reader:
        async with in_background(lambda: reader.run(handle, stop=stop)):
            await until(lambda: handlers.begun)
            stop.set()
            await trio.testing.wait_all_tasks_blocked(0.01)
            handlers.may_end.set()
        checkpoint = reader.checkpoint()
        with pytest.raises(trio.EndOfChannel):
            await reader.receive()
        assert [message async for message in reader.until_latest()] == []
    async with client.create_reader("t", checkpoint) as reader:
        assert (await reader.receive()).data == b"71"


async def test_no_other_task_reads_while_a_handler_does(client: Client) -> None:
    await fill(client, "t", 2)
    async with client.create_reader("t", "earliest") as reader:

        async def handle(message: Message) -> None:
            with pytest.raises(InvalidConfiguration, match="run"):
                await reader.receive()
            with pytest.raises(InvalidConfiguration, match="stop"):
                await reader.drain()
            scope.cancel()

        with trio.CancelScope() as scope:
            await reader.run(handle)
        assert (await reader.receive()).data == b"1"
