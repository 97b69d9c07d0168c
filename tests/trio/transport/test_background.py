"""The hidden nursery never shows: what leaves `async with` is what the block raised, or our own error."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from pulsar_sansio import Client as Machine
from pulsar_sansio import MemoryStore
from pulsar_sansio.client.commands.producers import ProducerCommands
from pulsar_trio import (
    Client,
    InternalError,
    Producer,
    PulsarError,
    ResourceClosed,
    StoreFailed,
    open_broker,
    open_client,
)


class Mine(Exception):
    pass


async def test_an_exception_leaves_every_block_as_itself() -> None:
    """Rule CLIENT-07."""
    with pytest.raises(Mine) as raised:
        async with (
            open_broker() as broker,
            open_client(broker.url) as client,
            client.subscribe("t", "s"),
            client.create_producer("t") as producer,
        ):
            await producer.enqueue(b"1")
            raise Mine
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("steps", range(-1, 8))
async def test_an_exception_counts_when_an_outer_scope_is_cancelled_at_the_same_time(steps: int) -> None:
    """In the same tick, or while the blocks are being left."""
    with trio.CancelScope() as scope:

        async def cancel() -> None:
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()

        async with trio.open_nursery() as elsewhere:
            with pytest.raises(Mine):
                async with (
                    open_broker() as broker,
                    open_client(broker.url) as client,
                    client.subscribe("t", "s"),
                    client.create_producer("t") as producer,
                ):
                    await producer.enqueue(b"1")
                    if steps < 0:
                        scope.cancel()
                    else:
                        elsewhere.start_soon(cancel)
                    raise Mine


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
async def test_what_is_no_exception_leaves_as_itself_too(kind: type[BaseException]) -> None:
    with pytest.raises(kind):
        async with open_broker() as broker, open_client(broker.url) as client, client.create_producer("t"):
            raise kind


async def test_a_group_raised_by_the_block_is_left_alone() -> None:
    async def fail() -> None:
        raise Mine

    with pytest.raises(ExceptionGroup) as raised:
        async with open_broker() as broker, open_client(broker.url), trio.open_nursery() as nursery:
            nursery.start_soon(fail)
    assert [type(error) for error in raised.value.exceptions] == [Mine]


async def test_a_cancelled_block_is_left_at_once() -> None:
    """Rule CLIENT-06."""
    with trio.fail_after(25):
        async with open_broker() as broker:
            with trio.CancelScope() as scope:
                async with open_client(broker.url) as client, client.create_producer("t") as producer:
                    await producer.send(b"1")
                    scope.cancel()
                    await trio.sleep_forever()
            assert scope.cancelled_caught
        with pytest.raises(ResourceClosed):
            await producer.send(b"2")


async def test_cleaning_up_in_a_cancelled_scope_can_still_use_the_block() -> None:
    with trio.fail_after(25):
        async with open_broker() as broker:
            with trio.CancelScope() as scope:
                async with open_client(broker.url) as client, client.create_producer("t") as producer:
                    try:
                        scope.cancel()
                        await trio.sleep_forever()
                    finally:
                        with trio.CancelScope(shield=True):
                            message_id = await producer.send(b"1")
            assert message_id.entry_id == 0


async def test_opening_that_is_cancelled_leaves_nothing() -> None:
    async with open_broker() as broker, open_client(broker.url) as client:
        for steps in range(12):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:

                    async def cancel(scope: trio.CancelScope = scope, steps: int = steps) -> None:
                        for _ in range(steps):
                            await trio.lowlevel.checkpoint()
                        scope.cancel()

                    nursery.start_soon(cancel)
                    async with client.create_producer("t", name="one at a time"):
                        await trio.sleep_forever()
        with trio.fail_after(25):
            async with client.create_producer("t", name="one at a time"):
                pass
        assert client.statistics().producers == 0


async def test_closing_twice_is_silent_and_use_afterwards_is_not() -> None:
    async with open_broker() as broker, open_client(broker.url) as client:
        async with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
            await client.aclose()
            await client.aclose()
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: producer.send(b"1"),
                consumer.receive,
                lambda: client.partitions("t"),
                client.create_producer("t").__aenter__,
                client.subscribe("t", "s").__aenter__,
            ]
            for call in calls:
                with pytest.raises(trio.ClosedResourceError):
                    await call()


# --- a bug of our own -----------------------------------------------------------------------------------


def plant(monkeypatch: pytest.MonkeyPatch, method: str) -> Callable[[], None]:
    """A bug in a method of the machine, that shows from when the result is called."""
    owner: Any = Machine if hasattr(Machine, method) else ProducerCommands
    original: Callable[..., object] = getattr(owner, method)
    shows = False

    def broken(*arguments: object) -> object:
        if shows:
            raise ZeroDivisionError("planted")
        return original(*arguments)

    def show() -> None:
        nonlocal shows
        shows = True

    monkeypatch.setattr(owner, method, broken)
    return show


async def everything_raises(client: Client, producer: Producer) -> None:
    for call in (lambda: producer.send(b"1"), producer.flush, lambda: client.partitions("t")):
        with pytest.raises(InternalError):
            await call()


@pytest.mark.parametrize(
    "method", ["receive_data", "next_output", "data_to_send", "handle_deadline", "next_deadline", "push"]
)
async def test_a_bug_in_the_background_is_one_internal_error_at_the_next_call(
    method: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    show = plant(monkeypatch, method)
    with trio.fail_after(100), pytest.raises(InternalError, match="planted") as raised:
        async with (
            open_broker() as broker,
            open_client(broker.url) as client,
            client.subscribe("another", "s") as consumer,
            client.create_producer("t") as producer,
        ):
            async with trio.open_nursery() as nursery:

                async def receive() -> None:
                    with pytest.raises(InternalError):
                        await consumer.receive()

                nursery.start_soon(receive)
                await trio.testing.wait_all_tasks_blocked()
                show()
                with pytest.raises(InternalError):
                    await producer.send(b"1")
                    await trio.sleep(60)
                    await producer.send(b"2")
            await everything_raises(client, producer)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


async def test_a_bug_in_a_call_is_an_internal_error_of_that_call(monkeypatch: pytest.MonkeyPatch) -> None:
    show = plant(monkeypatch, "send")
    with pytest.raises(InternalError):
        async with (
            open_broker() as broker,
            open_client(broker.url) as client,
            client.subscribe("another", "s") as consumer,
            client.create_producer("t") as producer,
        ):
            show()
            async with trio.open_nursery() as nursery:

                async def receive() -> None:
                    with pytest.raises(InternalError):
                        await consumer.receive()

                nursery.start_soon(receive)
                await trio.testing.wait_all_tasks_blocked()
                with pytest.raises(InternalError):
                    producer.enqueue_nowait(b"1")
            await everything_raises(client, producer)


async def test_a_bug_that_no_task_met_is_raised_at_the_end() -> None:
    with pytest.raises(InternalError, match="planted"):
        async with open_broker() as broker, open_client(broker.url) as client:
            async with client.create_producer("t"):
                pass
            client._driver.crash(ZeroDivisionError("planted"))


async def test_the_exception_of_the_block_counts_more_than_a_bug() -> None:
    with pytest.raises(Mine):
        async with open_broker() as broker, open_client(broker.url) as client:
            client._driver.crash(ZeroDivisionError("planted"))
            raise Mine


async def test_a_store_that_cannot_write_ends_the_broker_and_its_connections() -> None:
    class Full(MemoryStore):
        full = False

        def write(self, records: object) -> None:
            if self.full:
                raise OSError("no space left")
            super().write(records)  # type: ignore[arg-type]

    store = Full()
    with pytest.raises(StoreFailed, match="no space left"):
        async with (
            open_broker(store=store) as broker,
            open_client(broker.url, operation_timeout=0.2) as client,
        ):
            async with client.create_producer("t", send_timeout=0.2) as producer:
                store.full = True
                with pytest.raises(PulsarError):
                    await producer.send(b"1")
            await broker.wait_failed()


async def test_closing_is_bounded_when_the_broker_is_gone(autojump_clock: trio.testing.MockClock) -> None:
    async with open_broker() as broker:
        url = broker.url
        opened = trio.Event()
        done = trio.Event()

        async def application() -> None:
            async with (
                open_client(url, operation_timeout=3.0) as client,
                client.subscribe("t", "s") as consumer,
                client.create_producer("t") as producer,
            ):
                await producer.send(b"1")
                message = await consumer.receive()
                opened.set()
                await trio.sleep(1.0)
                consumer.acknowledge(message)
                receipt = await producer.enqueue(b"2")
            with pytest.raises(PulsarError):
                await receipt.wait()
            assert trio.current_time() < 15
            done.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(application)
            await opened.wait()
            broker._driver.stop()
            await done.wait()


async def test_opening_in_a_cancelled_scope_does_not_hang(autojump_clock: trio.testing.MockClock) -> None:
    """Trio leaves a shielded task that was started in a cancelled scope with the scope that waits for it."""
    reached = False
    with trio.fail_after(5), trio.CancelScope() as scope:
        scope.cancel()
        async with open_client("pulsar://127.0.0.1:1"):
            reached = True
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert reached
