"""The official client, in the few things tests ask of it.

Its calls block, so under trio they are made in threads: `await in_thread(produce, url, topic, …)`. Every wait
has a limit. It says nothing: its own log goes nowhere. No process is forked here once it is imported, because
its threads do not survive that.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import pulsar
import trio

from tests.patience import PATIENCE

OPERATION_TIMEOUT = 60
"""Seconds for connecting, looking up, creating."""

RECEIVE_TIMEOUT = 60_000
"""Milliseconds for one message."""

Parameters = ParamSpec("Parameters")
ResultT = TypeVar("ResultT")

CODECS = {
    "none": pulsar.CompressionType.NONE,
    "lz4": pulsar.CompressionType.LZ4,
    "zlib": pulsar.CompressionType.ZLib,
    "zstd": pulsar.CompressionType.ZSTD,
    "snappy": pulsar.CompressionType.SNAPPY,
}
"""Its names for the codecs, by ours."""


@dataclass(frozen=True)
class Letter:
    """A message as both clients can tell it. `value` None is a null value."""

    value: bytes | None
    key: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    event_time: int = 0


@contextmanager
def official_client(url: str) -> Iterator[Any]:
    """A silent client, closed at the end."""
    client = silent_client(url)
    try:
        yield client
    finally:
        client.close()


def silent_client(url: str) -> Any:
    """Return a client that connects when something needs it, so making it does not block."""
    return pulsar.Client(
        url,
        operation_timeout_seconds=OPERATION_TIMEOUT,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
    )


@asynccontextmanager
async def open_official_client(url: str) -> AsyncIterator[Any]:
    """Open a client for a test that is trio's: a thread closes it, because the broker is in this one."""
    client = silent_client(url)
    try:
        yield client
    finally:
        with trio.CancelScope(shield=True):
            await in_thread(client.close)


def produce(url: str, topic: str, letters: Sequence[Letter], **options: Any) -> None:
    """Send everything and wait until it is confirmed."""
    with official_client(url) as client:
        send_all(client.create_producer(topic, **options), letters)


def send_all(producer: Any, letters: Sequence[Letter]) -> None:
    """`send_async` for each, so that batches form, and a look at each result.

    The client's `flush` may return a moment before the last callback is called.
    """
    results: list[Any] = []
    for letter in letters:
        producer.send_async(
            letter.value,
            lambda result, _: results.append(result),
            partition_key=letter.key,
            properties=letter.properties,
            event_timestamp=letter.event_time or None,
        )
    producer.flush()
    deadline = time.monotonic() + PATIENCE
    while len(results) < len(letters) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert results == [pulsar.Result.Ok] * len(letters)


def readable_by_the_official_client(letters: Sequence[Letter], codec: str, batched: bool) -> list[Letter]:
    """Without what its consumer drops as corrupt although it is not: an empty payload under ZLIB."""
    return [letter for letter in letters if letter.value or codec != "zlib" or batched]


def consume(url: str, topic: str, count: int, subscription: str = "official", **options: Any) -> list[Letter]:
    """Receive and acknowledge `count` messages from the earliest on."""
    with official_client(url) as client:
        consumer = client.subscribe(
            topic, subscription, initial_position=pulsar.InitialPosition.Earliest, **options
        )
        return take(consumer, count)


def take(consumer: Any, count: int) -> list[Letter]:
    """Receive and acknowledge `count` messages."""
    letters = []
    for _ in range(count):
        message = consumer.receive(RECEIVE_TIMEOUT)
        letters.append(letter(message))
        consumer.acknowledge(message)
    return letters


def letter(message: Any) -> Letter:
    value = None if message.has_null_value() else message.data()
    return Letter(value, message.partition_key() or None, message.properties(), message.event_timestamp())


def nothing_comes(consumer: Any, milliseconds: int = 300) -> bool:
    try:
        consumer.receive(milliseconds)
    except pulsar.Timeout:
        return True
    return False


async def in_thread(
    call: Callable[Parameters, ResultT], *arguments: Parameters.args, **options: Parameters.kwargs
) -> ResultT:
    """Run a blocking call in a thread; it cannot be cancelled, and ends by its own limits."""
    return await trio.to_thread.run_sync(lambda: call(*arguments, **options))
