"""The clients of each row. Each function returns what it measured."""

import statistics
import time

import trio

from pulsar_trio import Client, open_client

NAMESPACE = "persistent://public/default"

PAYLOAD = b"x" * 100

WARM = 1_000
"""Entries that each producer sends before the clock starts."""

OPENING = 100
"""Producers that are opened at the same time."""


async def publish(url: str, topics: list[str], entries: int, *, warm: int = WARM) -> float:
    """Send entries of one message, divided among the topics, each with a client and a connection of its own;
    gives the seconds until the last receipt."""

    async def one(topic: str, task_status: trio.TaskStatus[None]) -> None:
        async with (
            open_client(url) as client,
            client.create_producer(topic, batching=None, max_pending_messages=2_000) as producer,
        ):
            await producer.send_many([PAYLOAD] * warm)  # everything is imported and open
            task_status.started()
            await started.wait()
            await producer.send_many([PAYLOAD] * (entries // len(topics)))

    started = trio.Event()
    async with trio.open_nursery() as nursery:
        for topic in topics:
            await nursery.start(one, topic)
        began = time.perf_counter()
        started.set()
    return time.perf_counter() - began


async def publish_to_each(url: str, count: int) -> float:
    """Open a producer for each of so many topics, and send one message with each; gives the seconds."""

    async def one(client: Client, number: int) -> None:
        async with limit, client.create_producer(f"{NAMESPACE}/each-{number}") as producer:
            await producer.send(PAYLOAD)

    limit = trio.CapacityLimiter(OPENING)
    began = time.perf_counter()
    async with open_client(url) as client, trio.open_nursery() as nursery:
        for number in range(count):
            nursery.start_soon(one, client, number)
    return time.perf_counter() - began


async def latencies(url: str, messages: int) -> tuple[float, float]:
    """Send one message after another; gives the median and the 99th percentile in milliseconds."""
    taken = []
    async with open_client(url) as client, client.create_producer(f"{NAMESPACE}/one") as producer:
        for _ in range(messages):
            began = time.perf_counter()
            await producer.send(PAYLOAD)
            taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


async def subscribe(url: str, topic: str) -> None:
    """Leave a subscription at the beginning of a topic."""
    async with open_client(url) as client, client.subscribe(topic, "s", initial_position="earliest"):
        pass


async def drain(url: str, topic: str, messages: int) -> tuple[float, float]:
    """Receive and acknowledge; gives the seconds until the first message, and until the last one."""
    received, first = 0, 0.0
    began = time.perf_counter()
    async with open_client(url) as client, client.subscribe(topic, "s") as consumer:
        while received < messages:
            batch = await consumer.receive_many()
            first = first or time.perf_counter() - began
            received += len(batch)
            consumer.acknowledge(batch)
    return first, time.perf_counter() - began
