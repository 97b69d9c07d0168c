"""A workload of the official client in several processes, while connections end and topics move.

The broker is a process of its own, and so is each producer and each consumer, as in an application.
"""

import multiprocessing
import queue
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pulsar
import pytest

from pulsar_trio_pytest import BrokerProcess, PulsarBroker
from tests.official.client import official_client
from tests.patience import PATIENCE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.unwatched(why="the checker cannot tell which connections are of one process"),
]

PRODUCERS = 3
CONSUMERS = 3
EACH = 400
"""Messages of a producer on each topic."""
KEYS = 20
SECONDS = 3.0
"""The time in which a producer sends."""

Received = tuple[str, str, int]
"""The topic's local name, the message's key, and its number among those of the key."""

processes = multiprocessing.get_context("spawn")
"""A process that is forked would have the client, but not its threads."""


def produce(url: str, topics: dict[str, str], producer: int) -> None:
    """Send numbers of keys of its own to each topic, with batches, and wait until all are confirmed."""
    with official_client(url) as client:
        kinds = {"keyed": pulsar.BatchingType.KeyBased}
        senders = [
            client.create_producer(
                topic,
                batching_enabled=True,
                batching_type=kinds.get(name, pulsar.BatchingType.Default),
                compression_type=pulsar.CompressionType.LZ4,
                block_if_queue_full=True,
                send_timeout_millis=0,
            )
            for name, topic in topics.items()
        ]
        began = time.monotonic()
        results: list[Any] = []
        for number in range(EACH):
            time.sleep(max(0.0, began + SECONDS * number / EACH - time.monotonic()))
            key = f"{producer}-{number % KEYS}"
            for sender in senders:
                sender.send_async(
                    b"%d" % (number // KEYS), lambda result, _: results.append(result), partition_key=key
                )
        for sender in senders:
            sender.flush()
        assert results == [pulsar.Result.Ok] * (EACH * len(senders))


def consume(url: str, topics: dict[str, str], received: "Queue[Received]", ended: Event) -> None:
    """Receive from each topic until told to end; refuse every tenth message when it comes first."""
    kinds = {
        "shared": pulsar.ConsumerType.Shared,
        "keyed": pulsar.ConsumerType.KeyShared,
        "failover": pulsar.ConsumerType.Failover,
    }
    with official_client(url) as client:
        consumers = {
            name: client.subscribe(
                topic,
                "s",
                kinds[name],
                initial_position=pulsar.InitialPosition.Earliest,
                negative_ack_redelivery_delay_ms=200,
            )
            for name, topic in topics.items()
        }
        while not ended.is_set():
            for name, consumer in consumers.items():
                for message in available(consumer):
                    number = int(message.data())
                    if name == "shared" and number % 10 == 0 and message.redelivery_count() == 0:
                        consumer.negative_acknowledge(message)
                    else:
                        received.put((name, message.partition_key(), number))
                        consumer.acknowledge(message)


def available(consumer: Any) -> Iterator[Any]:
    """Receive messages, 200 at most, until none comes for 10 ms."""
    for _ in range(200):
        try:
            yield consumer.receive(10)
        except pulsar.Timeout:
            return


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with BrokerProcess() as process, process.namespace("workload") as broker:
        yield broker


def unload(broker: PulsarBroker, topic: str) -> None:
    name = topic.removeprefix("persistent://")
    namespace, _, local = name.rpartition("/")
    url = f"{broker.admin_url}/admin/v2/persistent/{namespace}/{quote(local)}/unload"
    urlopen(Request(url, method="PUT"), timeout=PATIENCE).close()


def test_processes_of_the_official_client_lose_nothing_while_topics_move(broker: PulsarBroker) -> None:
    topics = {name: broker.topic(name) for name in ("shared", "keyed", "failover")}
    received: Queue[Received] = processes.Queue()
    ended = processes.Event()
    consumers = [
        processes.Process(target=consume, args=(broker.url, topics, received, ended))
        for _ in range(CONSUMERS)
    ]
    producers = [
        processes.Process(target=produce, args=(broker.url, topics, number)) for number in range(PRODUCERS)
    ]
    everyone = [*consumers, *producers]
    try:
        for process in consumers:
            process.start()
        broker.until(consumers=CONSUMERS * len(topics), subscription="s", timeout=PATIENCE)
        for process in producers:
            process.start()
        broker.until(producers=PRODUCERS * len(topics), timeout=PATIENCE)
        cuts = [broker.faults.add("SEND", "close", after=30, times=3)]
        cuts += [broker.faults.add("MESSAGE", "half frame", after=40, times=3)]
        for topic in 2 * list(topics.values()):
            time.sleep(SECONDS / 10)
            unload(broker, topic)
        seen = distinct(received, PRODUCERS * EACH * len(topics))
        broker.until(backlog=0, subscription="s", timeout=PATIENCE)
        ended.set()
        for process in everyone:
            process.join(PATIENCE)
        assert [process.exitcode for process in everyone] == [0] * len(everyone)
        assert all(rule.fired for rule in cuts)
    finally:
        for process in everyone:
            if process.is_alive():
                process.kill()
    of_each_key = set(range(EACH // KEYS))
    keys = {f"{producer}-{key}" for producer in range(PRODUCERS) for key in range(KEYS)}
    for name in topics:
        assert {key for topic, key in seen if topic == name} == keys
    assert all(numbers == of_each_key for numbers in seen.values())


def distinct(received: "Queue[Received]", count: int) -> dict[tuple[str, str], set[int]]:
    """Wait for `count` distinct messages; return the numbers of each topic's keys."""
    seen: dict[tuple[str, str], set[int]] = {}
    deadline = time.monotonic() + PATIENCE
    while sum(map(len, seen.values())) < count:
        try:
            name, key, number = received.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"{sum(map(len, seen.values()))} of {count} messages came") from None
        seen.setdefault((name, key), set()).add(number)
    return seen
