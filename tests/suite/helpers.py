"""Small things several tests of the suite do."""

from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio

from pulsar_trio import Consumer, Message
from tests.real_pulsar.admin import topic_path
from tests.suite.brokers import BrokerUnderTest
from tests.suite.line import Line

QUIET = 0.4
"""Seconds without a message after which we believe that there is none."""


def payloads(count: int, start: int = 0) -> list[bytes]:
    """`b"0"`, `b"1"`, …"""
    return [b"%d" % number for number in range(start, start + count)]


async def receive(consumer: Consumer, count: int) -> list[Message]:
    """The next `count` messages, not acknowledged."""
    messages: list[Message] = []
    while len(messages) < count:
        messages += await consumer.receive_many(count - len(messages))
    return messages


async def receive_and_acknowledge(consumer: Consumer, count: int) -> list[Message]:
    messages = await receive(consumer, count)
    consumer.acknowledge(messages)
    return messages


async def rest(consumer: Consumer, quiet: float = QUIET) -> list[Message]:
    """Collect messages until `quiet` seconds pass without one: to show that none arrives. A test awaits the
    messages that must arrive, however long that takes, with `receive` and `gather`."""
    messages: list[Message] = []
    while True:
        with trio.move_on_after(quiet) as scope:
            messages += await consumer.receive_many(1000)
        if scope.cancelled_caught:
            return messages


async def gather(
    consumers: Sequence[Consumer], count: int, *, acknowledge: bool = True
) -> list[list[Message]]:
    """The next `count` messages of several consumers together, however they share them, by consumer."""
    found: list[list[Message]] = [[] for _ in consumers]
    all_there = trio.Event()

    async def take(consumer: Consumer, mine: list[Message]) -> None:
        while True:
            messages = await consumer.receive_many(count)
            mine += messages
            if acknowledge:
                consumer.acknowledge(messages)
            if sum(map(len, found)) >= count:
                all_there.set()

    async with trio.open_nursery() as nursery:
        for consumer, mine in zip(consumers, found, strict=True):
            nursery.start_soon(take, consumer, mine)
        await all_there.wait()
        nursery.cancel_scope.cancel()
    return found


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """For what a real Pulsar does a little later: ask until it is so, or the test's deadline is over."""
    while not await condition():  # noqa: ASYNC110
        await trio.sleep(0.02)


async def grow(broker: BrokerUnderTest, topic: str, partitions: int) -> None:
    """Give a partitioned topic more of them, by its administration."""
    status, reason = await broker.request("POST", f"{topic_path(topic)}/partitions", partitions)
    assert status == 204, reason


def values(messages: Iterable[Message]) -> list[bytes | None]:
    return [message.value for message in messages]


def numbers(messages: Iterable[Message]) -> list[int]:
    """Payloads as the numbers they spell."""
    return [int(message.data) for message in messages]


def first_occurrences(numbers: Sequence[int]) -> list[int]:
    """Return the numbers in order, without repetitions."""
    return list(dict.fromkeys(numbers))


async def cut(line: Line, topic: str) -> None:
    line.cut()


async def unload(line: Line, topic: str) -> None:
    await line.broker.unload(topic)


async def kill_and_start(line: Line, topic: str) -> None:
    await line.broker.kill()
    await line.broker.start()


Interruption = Callable[[Line, str], Awaitable[None]]
"""A way in which a topic goes away and comes back while it is in use."""
