"""`pulsar-trio demo`: messages through a real protocol, counted, timed and checked.

First as many as possible per second, then one at a time for the latency. Each message carries its number, so
that one that is lost, repeated or out of order is seen.
"""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from secrets import token_hex
from struct import Struct
from time import perf_counter

import trio

from pulsar_trio.broker.server import open_broker
from pulsar_trio.client.client import Client

from .console import Bar, CommandFailed, Output, number
from .options.arguments import byte_count, positive
from .options.connecting import reporting_client
from .options.connection import ConnectionArguments, connection

NUMBER = Struct(">Q")
"""Begins each message."""

ROUND_TRIPS = 300
"""Messages sent one at a time for the latency."""

PATIENCE = 20.0
"""Seconds without any message after which the rest counts as lost."""

SHOW_EVERY = 0.1
"""Seconds between two drawings of the bar."""


class Check:
    """A count of messages that arrived, out of those numbered 0, 1, 2, …"""

    def __init__(self) -> None:
        self.seen = self.repeated = self.reordered = 0
        self._next = 0
        self._missing: set[int] = set()

    @property
    def lost(self) -> int:
        """Numbers that were skipped and have not come since."""
        return len(self._missing)

    def see(self, value: int) -> None:
        if value == self._next:
            self._next += 1
        elif value > self._next:
            self._missing.update(range(self._next, value))
            self._next = value + 1
        elif value in self._missing:
            self._missing.remove(value)
            self.reordered += 1
        else:
            self.repeated += 1
            return
        self.seen += 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `demo`."""
    parser.add_argument("--count", type=positive, default=100_000, help="messages (default %(default)s)")
    parser.add_argument(
        "--size", type=byte_count, default=100, help="bytes of a message (default %(default)s)"
    )


async def run(given: argparse.Namespace, output: Output) -> None:
    size = max(given.size, NUMBER.size)
    topic = f"demo-{token_hex(4)}"
    async with _pulsar(given) as pulsar, reporting_client(pulsar, output) as client:
        output.note(f"{given.count} messages of {size} B through {pulsar.url}, topic {topic}")
        with output.bar("messages", given.count) as bar:
            check, seconds = await _throughput(client, topic, given.count, size, bar)
        latencies = sorted(await _latency(client, topic, size, check, given.count))
    rate = given.count / seconds
    p50, p99 = (latencies[len(latencies) * percent // 100] * 1000 for percent in (50, 99))
    output.result(
        f"{number(rate)} messages/s, sent, confirmed, received and acknowledged in order\n"
        f"latency of one message p50 {p50:.2f} ms, p99 {p99:.2f} ms\n"
        f"lost {check.lost}, repeated {check.repeated}, reordered {check.reordered}",
        messages=given.count,
        size=size,
        rate=round(rate, 1),
        p50_ms=round(p50, 3),
        p99_ms=round(p99, 3),
        lost=check.lost,
        repeated=check.repeated,
        reordered=check.reordered,
    )
    if check.lost or check.repeated or check.reordered:
        raise CommandFailed("messages were lost, repeated or out of order", "this is a bug, please report it")


@asynccontextmanager
async def _pulsar(given: argparse.Namespace) -> AsyncIterator[ConnectionArguments]:
    """The Pulsar of the options, or a broker that runs in this process meanwhile.

    $PULSAR_SERVICE_URL does not count: a demonstration must not fill a topic by surprise.
    """
    if given.url is not None or given.client_conf is not None:
        yield connection(given)
    else:
        async with open_broker() as broker:
            yield ConnectionArguments(broker.url, {}, ())


async def _throughput(client: Client, topic: str, count: int, size: int, bar: Bar) -> tuple[Check, float]:
    """Produce and consume at once, as fast as it goes; gives what arrived and the seconds it took."""
    check = Check()
    filling = bytes(size - NUMBER.size)
    async with (
        client.subscribe(topic, "demo", "exclusive", receiver_queue_size=10_000) as consumer,
        client.create_producer(topic, max_pending_messages=10_000) as producer,
    ):
        began = perf_counter()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(producer.send_many, (NUMBER.pack(index) + filling for index in range(count)))
            shown = began
            while check.seen < count:
                with trio.move_on_after(PATIENCE) as patience:
                    messages = await consumer.receive_many()
                if patience.cancelled_caught:
                    raise CommandFailed(
                        f"{count - check.seen} messages have not arrived", "is the broker overloaded?"
                    )
                for message in messages:
                    check.see(NUMBER.unpack_from(message.data)[0])
                consumer.acknowledge(messages)
                now = perf_counter()
                if now - shown >= SHOW_EVERY:
                    shown = now
                    bar.show(check.seen, f"{number(check.seen / (now - began))}/s")
        await consumer.flush()
        seconds = perf_counter() - began
        bar.show(check.seen, f"{number(check.seen / seconds)}/s")
    return check, seconds


async def _latency(client: Client, topic: str, size: int, check: Check, first: int) -> list[float]:
    """Seconds from giving a message to the producer until the consumer has it, one message at a time."""
    seconds: list[float] = []
    filling = bytes(size - NUMBER.size)
    async with (
        client.subscribe(topic, "demo", "exclusive") as consumer,
        client.create_producer(topic, batching=None) as producer,
    ):
        for index in range(first, first + ROUND_TRIPS):
            began = perf_counter()
            await producer.enqueue(NUMBER.pack(index) + filling)
            message = await consumer.receive()
            seconds.append(perf_counter() - began)
            check.see(NUMBER.unpack_from(message.data)[0])
            consumer.acknowledge(message)
    return seconds
