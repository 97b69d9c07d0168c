"""Helpers for tests of consumers that stop: handlers that wait, and looks at what is left."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.lowlevel
import trio.testing

from pulsar_trio import (
    Client,
    Consumer,
    Message,
)
from tests.patience import PATIENCE


async def left(client: Client, topic: str = "t") -> list[tuple[int, int]]:
    """Return what the subscription delivers to a new consumer: numbers, and how often each was delivered
    before."""
    async with client.subscribe(topic, "s", "shared") as consumer, client.create_producer("t") as producer:
        end = await producer.send(b"-1")
        found: list[tuple[int, int]] = []
        async for message in consumer:
            if message.message_id == end:
                consumer.acknowledge(message)
                return sorted(found)
            found.append((int(message.data), message.redelivery_count))
        raise AssertionError("the topic ended")


def fresh(*numbers: int) -> list[tuple[int, int]]:
    return [(number, 0) for number in numbers]


class Handlers:
    """Handlers that begin, and end when they are let."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.done: list[int] = []
        self.may_end = trio.Event()

    async def handle(self, message: Message) -> None:
        self.begun.append(int(message.data))
        await self.may_end.wait()
        self.done.append(int(message.data))


@asynccontextmanager
async def in_background(call: Callable[[], Awaitable[object]]) -> AsyncIterator[trio.Event]:
    """Run the call while the block runs, and until the call has ended; the event is set then."""
    over = trio.Event()

    async def run() -> None:
        await call()
        over.set()

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            yield over


async def consumer_gets_nothing(consumer: Consumer) -> bool:
    with pytest.raises(trio.EndOfChannel):
        await consumer.receive()
    with pytest.raises(trio.EndOfChannel):
        consumer.receive_nowait()
    with pytest.raises(trio.EndOfChannel):
        await consumer.receive_many()
    return [message async for message in consumer] == []
