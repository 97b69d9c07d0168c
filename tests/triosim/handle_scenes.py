"""Short conversations about handles: their ends, their checkpoints, their counters, and their handlers.

Each tries all calls of a kind: what one call promises, the next one may have forgotten.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import pairwise
from logging import getLogger
from typing import Any

import trio
from trio.testing import assert_checkpoints

from pulsar_sansio import (
    BatchingPolicy,
    BatchReceivePolicy,
    ClosedError,
    DeadLetterPolicy,
    InvalidConfiguration,
    Message,
    ProducerQueueIsFull,
)
from pulsar_sim.engine.clock import SECOND
from pulsar_trio import Client, Consumer, DeadLetter, NegativeAcknowledge, Producer, Raise, Reader
from pulsar_trio.client.endpoint import TURN
from pulsar_trio.errors import ResourceClosed
from tests.triosim.profile import HOST
from tests.triosim.scenes import Stage

Calls = dict[str, Callable[[], Any]]
"""Calls by name; the result of an asynchronous one is awaited."""


async def _result(call: Callable[[], Any]) -> Any:
    result = call()
    return await result if isinstance(result, Awaitable) else result


def producer_calls(producer: Producer[bytes]) -> Calls:
    """The calls to a producer."""
    return {
        "send": lambda: producer.send(b"1"),
        "send with a key": lambda: producer.send(b"1", key="k"),
        "enqueue": lambda: producer.enqueue(b"1"),
        "enqueue with a key": lambda: producer.enqueue(b"1", key="k"),
        "enqueue_nowait": lambda: producer.enqueue_nowait(b"1"),
        "send_many": lambda: producer.send_many([b"1", b"2"]),
        "flush": producer.flush,
        "partitions": lambda: producer.partitions,
        "partition_statistics": producer.partition_statistics,
    }


def reading_calls(source: Consumer[bytes] | Reader[bytes]) -> Calls:
    """The calls that consumers and readers have in common."""

    async def handler(message: Message[bytes]) -> None:
        raise AssertionError(f"{message} comes after the end")

    return {
        "receive": source.receive,
        "receive_nowait": source.receive_nowait,
        "receive_many": source.receive_many,
        "anext": source.__anext__,
        "run": lambda: source.run(handler),
        "seek": lambda: source.seek("earliest"),
        "last_message_id": source.last_message_id,
        "last_message_ids": source.last_message_ids,
        "has_message_available": source.has_message_available,
        "positions": source.positions,
    }


def consumer_calls(consumer: Consumer[bytes], message: Message[bytes]) -> Calls:
    """The calls to a consumer."""
    return {
        **reading_calls(consumer),
        "acknowledge": lambda: consumer.acknowledge(message),
        "acknowledge several": lambda: consumer.acknowledge([message]),
        "negative_acknowledge": lambda: consumer.negative_acknowledge(message),
        "redeliver_unacknowledged": consumer.redeliver_unacknowledged,
        "dead_letter": lambda: consumer.dead_letter(message),
        "pause": consumer.pause,
        "resume": consumer.resume,
        "flush": consumer.flush,
        "unsubscribe": consumer.unsubscribe,
        "drain": consumer.drain,
    }


async def _refused(calls: Calls, text: str) -> None:
    """Each call says with the same words that its handle is closed."""
    for name, call in calls.items():
        try:
            await _result(call)
        except ResourceClosed as error:
            if str(error) == text:
                continue
            raise
        raise AssertionError(f"{name} is possible after the end")


# --- ends -------------------------------------------------------------------------------------------------


async def closed_handles_refuse_everything(stage: Stage) -> None:
    """Every call of a closed producer, consumer, reader or table view raises `ResourceClosed`."""
    letters = DeadLetterPolicy(max_redeliver_count=3, topic="dead")
    async with stage.client() as client:
        async with (
            client.subscribe("t", "s", "exclusive", dead_letter=letters) as consumer,
            client.create_producer("t") as producer,
        ):
            message_id = await producer.send(b"1", key="k")
            message = await consumer.receive()
            async with client.create_reader("t", "earliest") as reader:
                assert (await reader.receive()).message_id == message_id
            async with client.create_table_view("t") as view:
                assert dict(view) == {"k": b"1"}
            assert (producer.connected, consumer.connected) == (True, True)
            last = producer.last_sequence_id
        await _refused(producer_calls(producer), producer.explain())
        await _refused(consumer_calls(consumer, message), consumer.explain())
        await _refused(reading_calls(reader), reader.explain())
        await _refused({"refresh": view.refresh}, view.explain())
        for request in (
            producer.flush,
            consumer.flush,
            consumer.last_message_ids,
            consumer.has_message_available,
            reader.last_message_id,
            view.refresh,
        ):
            with trio.CancelScope() as scope:
                scope.cancel()
                await request()
            assert scope.cancelled_caught, f"{request} of a closed handle is no checkpoint"
        assert dict(view) == view.snapshot() == {"k": b"1"}
        assert (producer.connected, consumer.connected, reader.connected) == (False, False, False)
        assert producer.last_sequence_id == last >= 0
        assert consumer.topics == []
        for handle in (producer, consumer, reader, view):
            for _ in range(2):
                await handle.aclose()
            assert "closed" in handle.explain()
        counted = producer.statistics()
        assert (counted.confirmed, counted.failed, counted.pending, counted.waiting) == (1, 0, 0, 0)
        assert consumer.statistics().messages_received == 1
        assert client.statistics().producers == client.statistics().consumers == 0
    await _refused(
        {
            "create_producer": lambda: client.create_producer("t").__aenter__(),
            "subscribe": lambda: client.subscribe("t", "s").__aenter__(),
            "create_reader": lambda: client.create_reader("t", "earliest").__aenter__(),
            "create_table_view": lambda: client.create_table_view("t").__aenter__(),
            "partitions": lambda: client.partitions("t"),
            "topics": lambda: client.topics("public/default"),
            "schema": lambda: client.schema("t"),
        },
        "the client is closed",
    )
    await client.aclose()


async def waiting_tasks_learn_of_the_end(stage: Stage) -> None:
    """Each task that waits in a call when its handle is closed gets `ResourceClosed`, at once."""
    async with stage.client() as client, trio.open_nursery() as nursery:
        policy = BatchReceivePolicy(max_messages=5, timeout=30.0)
        batching = BatchingPolicy(max_messages=10, max_delay=30.0)
        ended: list[str] = []

        async def wait(name: str, call: Callable[[], Any]) -> None:
            with suppress(ClosedError):
                await _result(call)
                raise AssertionError(f"{name} does not wait")
            ended.append(name)

        async with (
            client.subscribe("t", "one") as one,
            client.subscribe("t", "many", batch_receive=policy) as many,
            client.create_reader("t", "latest") as reader,
            client.create_producer("u", max_pending_messages=1, batching=batching) as producer,
        ):
            calls: Calls = {
                "receive": one.receive,
                "receive again": one.receive,
                "receive_many": many.receive_many,
                "read": reader.receive,
                "next": reader.__anext__,
            }
            for name, call in calls.items():
                nursery.start_soon(wait, name, call)
            await trio.sleep(1.0)
            assert (one.statistics().waiting, many.statistics().waiting) == (2, 1)
            assert "2 tasks wait" in one.explain()
            assert producer.statistics().pending == 0
        await trio.sleep(0.1)
        assert sorted(ended) == sorted(calls)


async def closing_sends_what_was_taken(stage: Stage) -> None:
    """A producer that is closed sends its open batch, and confirms all of it, as soon as it can."""
    batching = BatchingPolicy(max_messages=100, max_delay=30.0)
    async with stage.client() as client:
        producer: Producer[bytes]
        async with client.create_producer("t", batching=batching) as producer:
            receipts = [await producer.enqueue(b"%d" % number) for number in range(3)]
            began = trio.current_time()
        assert trio.current_time() - began < 0.1
        assert [receipt.done() for receipt in receipts] == [True] * 3
        assert len({await receipt.wait() for receipt in receipts}) == 3
        assert (producer.statistics().confirmed, producer.statistics().failed) == (3, 0)
        async with client.create_reader("t", "earliest") as reader:
            assert [message.data async for message in reader.until_latest()] == [b"0", b"1", b"2"]


# --- checkpoints ------------------------------------------------------------------------------------------


async def each_call_is_a_checkpoint(stage: Stage) -> None:
    """Calls that ask the broker, or wait, are checkpoints; cancelled before they begin, they do nothing."""
    async with (
        stage.client() as client,
        client.create_producer("t") as producer,
        client.subscribe("t", "s", "exclusive") as consumer,
        client.create_reader("t", "earliest") as reader,
        client.create_table_view("t") as view,
    ):
        message_id = await producer.send(b"0", key="k")
        message = await consumer.receive()
        consumer.acknowledge(message)
        receipt = await producer.enqueue(b"1")
        assert await receipt.wait() > message_id
        calls: Calls = {
            "send_many": lambda: producer.send_many([b"2", b"3"]),
            "send_many of nothing": lambda: producer.send_many([]),
            "producer's flush": producer.flush,
            "flush": consumer.flush,
            "seek": lambda: consumer.seek("latest"),
            "last_message_id": consumer.last_message_id,
            "reader's seek": lambda: reader.seek("earliest"),
            "reader's last_message_id": reader.last_message_id,
            "refresh": view.refresh,
            "partitions": lambda: client.partitions("t"),
            "topics": lambda: client.topics("public/default"),
        }
        for name, call in calls.items():
            stored = stage.broker.stats("persistent://public/default/t")["msgInCounter"]
            with trio.CancelScope() as scope:
                scope.cancel()
                await _result(call)
            assert scope.cancelled_caught, f"{name} is no checkpoint"
            await trio.sleep(0.1)
            now_stored = stage.broker.stats("persistent://public/default/t")["msgInCounter"]
            assert now_stored == stored, f"{name} was cancelled, and does something"
            with assert_checkpoints():
                await _result(call)


async def known_receipts_yield(stage: Stage) -> None:
    """Other tasks have a turn after every `TURN` receipts that are known already."""
    async with stage.client() as client, client.create_producer("t") as producer:
        receipt = await producer.enqueue(b"1")
        await receipt.wait()
        turns: list[int] = []
        for number in range(4 * TURN):
            steps = stage.canceller.steps
            await receipt.wait()
            if stage.canceller.steps != steps:
                turns.append(number)
        assert {after - before for before, after in pairwise(turns)} == {TURN}


async def cancelled_sends_send_nothing(stage: Stage) -> None:
    """A task that is cancelled while it waits for room sends nothing, and the next one gets the room."""
    async with (
        stage.client(connect_timeout=30.0) as client,
        client.create_producer("t", max_pending_messages=2, send_timeout=0.0) as producer,
    ):
        stage.net.network.conditions.silent[HOST] = 60 * SECOND
        for wire in list(stage.net.network.wires.values()):
            wire.reset()
        await trio.sleep(0.1)
        receipts = [await producer.enqueue(b"%d" % number) for number in range(2)]
        counted = producer.statistics()
        assert (counted.pending, counted.confirmed, counted.waiting) == (2, 0, 0)
        try:
            producer.enqueue_nowait(b"no room")
        except ProducerQueueIsFull:
            pass
        else:
            raise AssertionError("there is no room")
        with trio.move_on_after(0.5):
            await producer.enqueue(b"never")
            raise AssertionError("there is no room")
        assert producer.statistics().waiting == 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.send, b"2")
            await trio.sleep(0.1)
            assert producer.statistics().waiting == 1
            assert "1 tasks wait for room" in producer.explain()
            try:
                producer.enqueue_nowait(b"out of turn")
            except ProducerQueueIsFull:
                pass
            else:
                raise AssertionError("another task waits for room")
            stage.net.network.heal()
        assert len({await receipt.wait() for receipt in receipts}) == 2
        async with client.create_reader("t", "earliest") as reader:
            assert [message.data async for message in reader.until_latest()] == [b"0", b"1", b"2"]
        assert producer.statistics().confirmed == 3


# --- handlers ---------------------------------------------------------------------------------------------


@asynccontextmanager
async def _numbers(
    stage: Stage, count: int, keys: int, kind: Any, **options: Any
) -> AsyncIterator[tuple[Client, Consumer[bytes]]]:
    """A consumer of numbered messages, each with one of `keys` keys."""
    async with (
        stage.client() as client,
        client.subscribe("t", "s", kind, **options) as consumer,
        client.create_producer("t", batching=None) as producer,
    ):
        for number in range(count):
            await producer.send(b"%d" % number, key=f"k{number % keys}")
        yield client, consumer


async def handlers_run_together(stage: Stage) -> None:
    """`concurrency` says how many handlers run at a time; those of a key run one after the other."""
    for kind, concurrency in (("shared", 1), ("shared", 3), ("key_shared", 1), ("key_shared", 4)):
        async with _numbers(stage, 12, 3, kind) as (_, consumer):
            stop = trio.Event()
            running: list[str] = []
            most = 0
            handled: list[int] = []

            async def handler(message: Message[bytes]) -> None:
                nonlocal most
                assert kind == "shared" or message.key not in running  # noqa: B023
                running.append(message.key or "")  # noqa: B023
                most = max(most, len(running))  # noqa: B023
                await trio.sleep(0.1)
                running.remove(message.key or "")  # noqa: B023
                handled.append(int(message.data))  # noqa: B023
                if len(handled) == 12:  # noqa: B023
                    stop.set()  # noqa: B023

            began = trio.current_time()
            await consumer.run(handler, concurrency=concurrency, stop=stop)
            together = min(concurrency, 3) if kind == "key_shared" else concurrency
            assert most == together, (kind, concurrency, most)
            assert sorted(handled) == [*range(12)]
            if concurrency == 1:
                assert handled == [*range(12)]
            for key in range(3) if kind == "key_shared" else ():
                assert [each for each in handled if each % 3 == key] == [*range(key, 12, 3)]
            assert 12 * 0.1 / together <= trio.current_time() - began < 12 * 0.1 / together + 0.1
            assert stage._backlog("t", "s") == 0
            await consumer.unsubscribe()


@contextmanager
def _unlogged_failures() -> Iterator[None]:
    """Keep the log of failed handlers out of what tests print."""
    log = getLogger("pulsar_trio.failures")
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False


async def failures_go_their_ways(stage: Stage) -> None:
    """The exception of a handler decides over its message, and over the run with `Raise`."""
    letters = DeadLetterPolicy(max_redeliver_count=3, topic="dead")
    options: dict[str, Any] = {"dead_letter": letters, "negative_acknowledgement_delay": 0.1}
    for concurrency in (1, 2):
        for policy, expected in ((DeadLetter(), 1), (NegativeAcknowledge(), 2), (Raise(), 1)):
            async with (
                _numbers(stage, 3, 3, "shared", **options) as (client, consumer),
                client.subscribe("dead", "s") as dead,
            ):
                calls: dict[int, int] = {}
                stop = trio.Event()

                async def handler(message: Message[bytes]) -> None:
                    number = int(message.data)
                    calls[number] = calls.get(number, 0) + 1  # noqa: B023
                    if number == 1 and calls[number] == 1:  # noqa: B023
                        raise ValueError("not this one")

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_stop_later, stop)
                    try:
                        with _unlogged_failures():
                            await consumer.run(handler, concurrency=concurrency, stop=stop, on_failure=policy)
                    except ValueError:
                        assert isinstance(policy, Raise)
                        stop.set()
                    else:
                        assert not isinstance(policy, Raise)
                        assert calls == {0: 1, 1: expected, 2: 1}, (policy, calls)
                        assert stage._backlog("t", "s") == 0
                if isinstance(policy, DeadLetter):
                    assert (await dead.receive()).data == b"1"
                await dead.unsubscribe()
                await consumer.unsubscribe()


async def _stop_later(stop: trio.Event) -> None:
    await trio.sleep(1.0)
    stop.set()


async def a_run_ends_with_its_consumer(stage: Stage) -> None:
    """`run` raises the end of its consumer, also where several handlers may run."""
    for concurrency in (1, 3):
        async with _numbers(stage, 2, 2, "shared") as (_, consumer), trio.open_nursery() as nursery:
            ends: list[str] = []

            async def handler(message: Message[bytes]) -> None:
                await trio.sleep(0.01)

            async def run() -> None:
                try:
                    await consumer.run(handler, concurrency=concurrency)  # noqa: B023
                except ResourceClosed as error:
                    ends.append(str(error))  # noqa: B023

            nursery.start_soon(run)
            await trio.sleep(1.0)
            await consumer.aclose()
            await trio.sleep(0.1)
            assert ends == [consumer.explain()], concurrency


async def a_cancelled_run_returns_messages(stage: Stage) -> None:
    """Messages whose handlers have not begun are redelivered soon, the one that was handled is not."""
    options: dict[str, Any] = {"negative_acknowledgement_delay": 0.1}
    async with _numbers(stage, 4, 1, "key_shared", **options) as (_, consumer):
        begun: list[int] = []

        async def handler(message: Message[bytes]) -> None:
            begun.append(int(message.data))
            await trio.sleep_forever()

        with trio.move_on_after(1.0) as scope:
            await consumer.run(handler, concurrency=3)
        assert scope.cancelled_caught
        assert begun == [0]
        with trio.fail_after(1.0):
            assert [int((await consumer.receive()).data) for _ in range(3)] == [1, 2, 3]
        with trio.move_on_after(1.0):
            raise AssertionError(f"{await consumer.receive()} was being handled")


async def the_active_consumer_changes(stage: Stage) -> None:
    """A Failover consumer learns that it is active, and that another one is; the wait ends with it."""
    async with stage.client() as client:
        async with client.subscribe("t", "s", "failover", consumer_name="b") as one:
            await trio.sleep(0.5)
            assert one.active is True
            async with trio.open_nursery() as nursery:
                changes: list[bool] = []

                async def watch() -> None:
                    with suppress(ResourceClosed):
                        while True:
                            changes.append(await one.active_changed())

                nursery.start_soon(watch)
                await trio.sleep(0.1)
                async with client.subscribe("t", "s", "failover", consumer_name="a") as other:
                    await trio.sleep(0.5)
                    assert {one.active, other.active} == {True, False}
                await trio.sleep(0.5)
                assert one.active is True
                assert changes in ([], [False, True])
                await one.aclose()
        with assert_checkpoints(), suppress(ResourceClosed):
            await one.active_changed()


async def a_run_has_the_messages_alone(stage: Stage) -> None:
    """While `run` handles messages, no other task receives them, and a second `run` is refused."""
    async with _numbers(stage, 2, 2, "shared") as (_, consumer), trio.open_nursery() as nursery:
        handled: list[int] = []

        async def handler(message: Message[bytes]) -> None:
            handled.append(int(message.data))
            for call in (
                consumer.receive,
                consumer.receive_nowait,
                consumer.receive_many,
                consumer.__anext__,
                lambda: consumer.run(handler),
                consumer.drain,
            ):
                try:
                    await _result(call)
                except InvalidConfiguration:
                    continue
                raise AssertionError(f"{call} is possible within a handler")

        nursery.start_soon(consumer.run, handler)
        await trio.sleep(1.0)
        assert handled == [0, 1]
        await consumer.drain()
    async with _numbers(stage, 0, 1, "shared") as (_, consumer), trio.open_nursery() as nursery:
        nursery.start_soon(consumer.receive)
        await trio.sleep(0.1)
        try:
            await consumer.run(handler)
        except InvalidConfiguration:
            nursery.cancel_scope.cancel()
        else:
            raise AssertionError("another task receives")


HANDLE_SCENES: dict[str, Callable[[Stage], Awaitable[None]]] = {
    scene.__name__: scene
    for scene in (
        closed_handles_refuse_everything,
        waiting_tasks_learn_of_the_end,
        closing_sends_what_was_taken,
        each_call_is_a_checkpoint,
        known_receipts_yield,
        cancelled_sends_send_nothing,
        handlers_run_together,
        failures_go_their_ways,
        a_run_ends_with_its_consumer,
        a_cancelled_run_returns_messages,
        the_active_consumer_changes,
        a_run_has_the_messages_alone,
    )
}
