"""Handlers: `message.processing()`, `consumer.run`."""

import logging
import pickle
from typing import Any

import pytest
import trio
import trio.lowlevel
import trio.testing

from pulsar_sansio import InvalidConfiguration, LocalProtocolError, OutgoingMessage
from pulsar_trio import (
    BatchingPolicy,
    Client,
    Consumer,
    EmbeddedBroker,
    Message,
    Raise,
    ResourceClosed,
)
from pulsar_trio.client.options import Kind
from tests.patience import PATIENCE
from tests.trio.consuming.test_consumer import fill, filled, numbers_left
from tests.trio.waiting import until


async def test_processed_messages_are_acknowledged(client: Client) -> None:
    async with filled(client, 3) as consumer:
        for _ in range(2):
            message = await consumer.receive()
            async with message.processing() as same:
                assert same is message
    assert await numbers_left(client) == [2]


async def test_a_message_whose_processing_fails_is_negatively_acknowledged(client: Client) -> None:
    async with client.subscribe("t", "s", negative_acknowledgement_delay=0.01) as consumer:
        await fill(client, "t", 1)
        message = await consumer.receive()
        with pytest.raises(ZeroDivisionError):
            async with message.processing():
                raise ZeroDivisionError
        again = await consumer.receive()
        assert (again.message_id, again.redelivery_count) == (message.message_id, 1)


async def test_a_message_whose_processing_is_cancelled_is_left_alone(client: Client) -> None:
    async with client.subscribe(
        "t", "s", initial_position="earliest", negative_acknowledgement_delay=0.0
    ) as consumer:
        await fill(client, "t", 1)
        message = await consumer.receive()
        with trio.CancelScope() as scope:
            async with message.processing():
                scope.cancel()
                await trio.sleep_forever()
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert consumer.statistics().available == 0
    assert await numbers_left(client) == [0]


async def test_messages_of_batches_are_processed_one_by_one(client: Client) -> None:
    async with client.subscribe("t", "s", "exclusive", initial_position="earliest") as consumer:
        await fill(client, "t", 5, BatchingPolicy())
        for message in await consumer.receive_many():
            async with message.processing():
                pass
    assert await numbers_left(client) == []


async def test_what_came_out_of_a_pickle_is_not_processed(client: Client) -> None:
    async with filled(client, 1) as consumer:
        message: Message = pickle.loads(pickle.dumps(await consumer.receive()))
        with pytest.raises(LocalProtocolError, match="pickle"):
            message.processing()
        consumer.acknowledge(message)


async def test_a_consumer_that_was_closed_meanwhile_says_so(client: Client) -> None:
    async with filled(client, 2) as consumer:
        first, second = await consumer.receive(), await consumer.receive()
        with pytest.raises(ResourceClosed):
            async with first.processing():
                await consumer.aclose()
        with pytest.raises(ZeroDivisionError):
            async with second.processing():
                raise ZeroDivisionError
    assert await numbers_left(client) == [0, 1]


async def test_a_handler_gets_every_message_in_order(broker: EmbeddedBroker, client: Client) -> None:
    """Rules CONS-38, LSNR-01, LSNR-02 and CFG-218."""
    async with filled(client, 100, "exclusive") as consumer:
        handled: list[int] = []

        async def handle(message: Message) -> None:
            handled.append(int(message.data))

        broker.terminate("t")
        with trio.fail_after(PATIENCE):
            await consumer.run(handle)
        assert handled == list(range(100))


async def test_an_error_is_logged_and_its_message_is_redelivered(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """LSNR-03: the others go on."""
    async with client.subscribe(
        "t", "s", initial_position="earliest", negative_acknowledgement_delay=0.01
    ) as consumer:
        await fill(client, "t", 5)
        handled: list[tuple[int, int]] = []

        async def handle(message: Message) -> None:
            number = int(message.data)
            handled.append((number, message.redelivery_count))
            if number == 2 and not message.redelivery_count:
                raise ZeroDivisionError

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.run, handle)
            await until(lambda: len(handled) == 6)
            nursery.cancel_scope.cancel()
        assert handled == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (2, 1)]
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert await numbers_left(client) == []


@pytest.mark.parametrize("concurrency", [1, 2, 5])
async def test_so_many_are_handled_at_a_time(client: Client, concurrency: int) -> None:
    """Rules LSNR-04 and CFG-008."""
    async with filled(client, 20) as consumer:
        handled: list[int] = []
        at_a_time = most = 0

        async def handle(message: Message) -> None:
            nonlocal at_a_time, most
            at_a_time += 1
            most = max(most, at_a_time)
            await trio.lowlevel.checkpoint()
            await trio.sleep(0.001)
            at_a_time -= 1
            handled.append(int(message.data))

        async with trio.open_nursery() as nursery:

            async def run() -> None:
                await consumer.run(handle, concurrency=concurrency)

            nursery.start_soon(run)
            await until(lambda: len(handled) == 20)
            nursery.cancel_scope.cancel()
        assert most == concurrency
        assert sorted(handled) == list(range(20))
    assert await numbers_left(client) == []


async def test_messages_of_one_key_are_handled_one_after_the_other(client: Client) -> None:
    async with client.subscribe("t", "s", "key_shared", initial_position="earliest") as consumer:
        async with client.create_producer("t", batching=None) as producer:
            await producer.send_many(OutgoingMessage(b"%d" % n, key=f"k{n % 3}") for n in range(30))
        handled: dict[str, list[int]] = {"k0": [], "k1": [], "k2": []}
        now: list[str] = []
        together: set[int] = set()

        async def handle(message: Message) -> None:
            assert message.key is not None
            assert message.key not in now
            now.append(message.key)
            together.add(len(now))
            await trio.sleep(0.001 if message.key == "k0" else 0)
            now.remove(message.key)
            handled[message.key].append(int(message.data))

        async def run() -> None:
            await consumer.run(handle, concurrency=4)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await until(lambda: sum(map(len, handled.values())) == 30)
            nursery.cancel_scope.cancel()
        assert handled == {f"k{key}": list(range(key, 30, 3)) for key in range(3)}
        assert max(together) > 1
    assert await numbers_left(client) == []


async def test_messages_without_a_key_wait_for_none(client: Client) -> None:
    async with client.subscribe("t", "s", "key_shared") as consumer:
        await fill(client, "t", 6)
        going = trio.Event()
        begun: list[int] = []

        async def handle(message: Message) -> None:
            begun.append(int(message.data))
            await going.wait()

        async def run() -> None:
            await consumer.run(handle, concurrency=6)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await until(lambda: len(begun) == 6)
            going.set()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["shared", "key_shared"])
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_cancelled_run_loses_nothing(client: Client, kind: Kind, concurrency: int) -> None:
    """Messages in a handler are redelivered when the consumer closes; messages that waited behind them were
    negatively acknowledged."""
    async with client.subscribe(
        "t", "s", kind, initial_position="earliest", negative_acknowledgement_delay=0.01
    ) as consumer:
        async with client.create_producer("t", batching=None) as producer:
            await producer.send_many(OutgoingMessage(b"%d" % n, key="k") for n in range(6))
        begun: list[int] = []

        async def handle(message: Message) -> None:
            begun.append(int(message.data))
            await trio.sleep_forever()

        async def run() -> None:
            await consumer.run(handle, concurrency=concurrency)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
        by_key = kind == "key_shared"
        assert sorted(begun) == list(range(1 if by_key else concurrency))
        received: list[int] = []
        with trio.fail_after(PATIENCE):
            while len(received) < 6 - len(begun):
                received.append(int((await consumer.receive()).data))
        assert sorted(received) == list(range(len(begun), 6))
    assert await numbers_left(client) == list(range(6))


async def test_a_handler_that_is_interrupted_by_the_end_of_the_consumer(client: Client) -> None:
    async with filled(client, 3) as consumer:

        async def handle(message: Message) -> None:
            await consumer.aclose()

        with pytest.raises(ResourceClosed):
            await consumer.run(handle, concurrency=3)
    assert await numbers_left(client) == [0, 1, 2]


async def test_a_run_that_waits_ends_with_the_consumer(client: Client) -> None:
    for concurrency in (1, 4):
        async with client.subscribe("t", "s") as consumer:

            async def handle(message: Message) -> None:
                raise AssertionError

            async def run(consumer: Consumer = consumer, concurrency: int = concurrency) -> None:
                with pytest.raises(ResourceClosed):
                    await consumer.run(handle, concurrency=concurrency)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                await trio.testing.wait_all_tasks_blocked()
                await consumer.aclose()


async def test_nobody_else_receives_meanwhile(client: Client) -> None:
    """Rules LSNR-01 and CONS-19."""
    async with client.subscribe("t", "s", initial_position="earliest") as consumer:

        async def handle(message: Message) -> None:
            with pytest.raises(InvalidConfiguration, match="run"):
                await consumer.receive()
            with pytest.raises(InvalidConfiguration, match="run"):
                consumer.receive_nowait()
            with pytest.raises(InvalidConfiguration, match="run"):
                await consumer.receive_many()
            with pytest.raises(InvalidConfiguration, match="run"):
                async for _ in consumer:
                    pass
            with pytest.raises(InvalidConfiguration, match="run"):
                await consumer.run(handle)
            done.set()

        done = trio.Event()
        await fill(client, "t", 2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.run, handle)
            await done.wait()
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await fill(client, "t", 1)
        assert (await consumer.receive()).data == b"0"


async def test_a_run_does_not_begin_while_a_task_receives(client: Client) -> None:
    async with client.subscribe("t", "s") as consumer, trio.open_nursery() as nursery:
        nursery.start_soon(consumer.receive)
        await trio.testing.wait_all_tasks_blocked()

        async def handle(message: Message) -> None:
            raise AssertionError

        with pytest.raises(InvalidConfiguration, match="receive"):
            await consumer.run(handle)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("concurrency", [0, -1, True, 1.5, None])
async def test_a_wrong_concurrency(client: Client, concurrency: Any) -> None:
    async def handle(message: Message) -> None:
        raise AssertionError

    async with client.subscribe("t", "s") as consumer:
        with pytest.raises(InvalidConfiguration, match="concurrency"):
            await consumer.run(handle, concurrency=concurrency)


async def test_a_handler_that_never_waits_lets_others_run(client: Client) -> None:
    async with filled(client, 400, "exclusive") as consumer:
        handled = 0
        longest = since = 0

        async def handle(message: Message) -> None:
            nonlocal handled, longest, since
            handled += 1
            longest = max(longest, handled - since)

        async def look() -> None:
            nonlocal since
            while handled < 400:
                since = handled
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(look)
            nursery.start_soon(consumer.run, handle)
        assert longest <= 130


async def test_what_is_taken_back_is_not_handled(client: Client) -> None:
    """Messages that a handler would only have to take are not handled either. A message in a handler is
    redelivered, unless it is acknowledged before the broker has sent it."""
    async with filled(client, 50, "exclusive") as consumer:
        handled: list[int] = []

        async def handle(message: Message) -> None:
            handled.append(int(message.data))
            if len(handled) == 10:
                consumer.redeliver_unacknowledged()
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(consumer.run, handle)
            await until(lambda: len(handled) >= 10)
            async with client.create_producer("t") as producer:
                await producer.send(b"50")
            await until(lambda: 50 in handled)
            nursery.cancel_scope.cancel()
        assert handled in ([*range(10), *range(9, 51)], [*range(51)])


# --- exceptions that are not the consumer's -----------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 2])
@pytest.mark.parametrize("error", [trio.EndOfChannel, ZeroDivisionError, KeyboardInterrupt, SystemExit])
async def test_what_a_handler_raises_comes_out_as_itself(
    client: Client, error: type[BaseException], concurrency: int
) -> None:
    """`trio.EndOfChannel` of a channel of the application is not the end of the topic."""
    async with filled(client, 5) as consumer:

        async def handle(message: Message) -> None:
            raise error

        with trio.fail_after(PATIENCE), pytest.raises(error):
            await consumer.run(handle, concurrency=concurrency, on_failure=Raise())


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_an_exception_is_not_lost_where_the_run_is_cancelled(client: Client, concurrency: int) -> None:
    async with filled(client, 5) as consumer:
        with trio.CancelScope() as scope:

            async def handle(message: Message) -> None:
                scope.cancel()
                raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await consumer.run(handle, concurrency=concurrency, on_failure=Raise())
