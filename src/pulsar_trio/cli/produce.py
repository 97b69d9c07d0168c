"""`pulsar-trio produce`: generated messages, or lines of standard input."""

import argparse
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

import trio

from ..client import open_client
from ..producer import Producer
from ..receipts import Receipt
from .console import Bar, Output, number

READ = 65536
"""Bytes read from standard input at a time."""

SHOW_EVERY = 1000
"""Messages between two drawings of the bar."""


async def run(given: argparse.Namespace, output: Output) -> None:
    async with open_client(given.url) as client, client.create_producer(given.topic) as producer:
        began = trio.current_time()
        pace = Pace(given.rate)
        if given.count is None:
            async with aclosing(_lines()) as chunks:
                async for lines in chunks:
                    await _send(producer, lines, pace)
        else:
            with output.bar("producing", given.count) as bar:
                await _send(producer, _shown(generated(given.count, given.size), bar), pace)
        await pace.settled()
        seconds = trio.current_time() - began
    rate = pace.sent / seconds if seconds else 0.0
    output.result(
        f"produced {pace.sent} messages to {producer.topic} in {seconds:.2f} s, {number(rate)}/s",
        topic=producer.topic,
        produced=pace.sent,
        seconds=round(seconds, 6),
        rate=round(rate, 1),
    )


async def _send(producer: Producer, messages: Iterable[bytes], pace: "Pace") -> None:
    if pace.rate is None:
        pace.sent += len(await producer.send_many(messages))
        return
    for message in messages:
        await pace.due()
        pace.add(await producer.enqueue(message))


class Pace:
    """Keeps a rate, message n being due n / rate seconds after the first, and the receipts."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self.sent = 0
        self._began = trio.current_time()
        self._receipts: deque[Receipt] = deque()

    async def due(self) -> None:
        """Wait until the next message is due. Raises what an earlier one failed with."""
        assert self.rate is not None
        when = self._began + self.sent / self.rate
        if when > trio.current_time():
            await trio.sleep_until(when)
        while self._receipts and self._receipts[0].done():
            self._receipts.popleft().result()

    def add(self, receipt: Receipt) -> None:
        self.sent += 1
        self._receipts.append(receipt)

    async def settled(self) -> None:
        """Wait until all are confirmed. Raises what the first that failed did with."""
        while self._receipts:
            await self._receipts.popleft().wait()


async def _lines() -> AsyncGenerator[list[bytes], None]:
    """The lines of standard input without their ends, as many at a time as have come."""
    rest = b""
    source = sys.stdin.fileno()
    while data := await trio.to_thread.run_sync(os.read, source, READ, abandon_on_cancel=True):
        *lines, rest = (rest + data).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def generated(count: int, size: int) -> Iterator[bytes]:
    """`count` payloads of `size` bytes that begin with their number, as far as it fits."""
    for index in range(count):
        yield (b"%d " % index).ljust(size, b".")[:size]


def _shown(messages: Iterable[bytes], bar: Bar) -> Iterator[bytes]:
    for index, message in enumerate(messages, 1):
        yield message
        if index % SHOW_EVERY == 0:
            bar.show(index)
