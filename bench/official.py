"""The official client's side of every workload, in the calls its users write.

Its options are the ones that make it fast: batching on, batches as large as ours, a large window that blocks
when it is full instead of failing, a large receiver queue.
"""

import threading
from collections.abc import Sequence
from typing import Any

import pulsar

from .jobs import (
    BATCH_BYTES,
    BATCH_DELAY,
    BATCH_MESSAGES,
    KEYS,
    MAX_PENDING_MESSAGES,
    Job,
    Measurement,
    Stopwatch,
    serve,
)


def run(job: Job) -> Measurement:
    client = pulsar.Client(job.url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
    try:
        return WORKLOADS[job.workload](client, job)
    finally:
        client.close()


def prepare(client: Any, job: Job) -> Measurement:
    for subscription in job.subscriptions:
        client.subscribe(job.topic, subscription, initial_position=pulsar.InitialPosition.Earliest).close()
    return Measurement(0, 0.0, 0.0)


def fill(client: Any, job: Job) -> Measurement:
    """Without callbacks: the fastest way it has, because this is not what is measured."""
    producer = _producer(client, job)
    payload = job.payload
    stopwatch = Stopwatch()
    with stopwatch:
        for _ in range(job.messages + job.warm):
            producer.send_async(payload, None)
        producer.flush()
    return stopwatch.measurement(job.messages + job.warm)


def send(client: Any, job: Job) -> Measurement:
    producer = _producer(client, job)
    payload = job.payload
    keys = KEYS if job.workload == "send_keyed" else ()
    _send(producer, payload, job.warm, keys)
    stopwatch = Stopwatch()
    with stopwatch:
        _send(producer, payload, job.messages, keys)
    return stopwatch.measurement(job.messages)


def send_one(client: Any, job: Job) -> Measurement:
    producer = _producer(client, job)
    payload = job.payload
    stopwatch = Stopwatch()
    for _ in range(job.warm):
        producer.send(payload)
    with stopwatch:
        for _ in range(job.messages):
            producer.send(payload)
    return stopwatch.measurement(job.messages)


def _send(producer: Any, payload: bytes, messages: int, keys: Sequence[str] = ()) -> None:
    if not messages:
        return
    confirmed = 0
    failures = []
    all_done = threading.Event()

    def callback(result: Any, message_id: Any) -> None:
        nonlocal confirmed
        if result != pulsar.Result.Ok:
            failures.append(result)
        confirmed += 1
        if confirmed == messages:
            all_done.set()

    if keys:
        for number in range(messages):
            producer.send_async(payload, callback, partition_key=keys[number % len(keys)])
    else:
        for _ in range(messages):
            producer.send_async(payload, callback)
    producer.flush()
    all_done.wait()
    if failures:
        raise RuntimeError(f"{len(failures)} of {messages} sends failed: {failures[0]}")


def receive(client: Any, job: Job) -> Measurement:
    consumer = client.subscribe(job.topic, job.subscription, receiver_queue_size=job.receiver_queue_size)
    stopwatch = Stopwatch()
    _receive(consumer, job.warm)
    with stopwatch:
        _receive(consumer, job.messages)
    return stopwatch.measurement(job.messages)


def _receive(consumer: Any, messages: int) -> None:
    for _ in range(messages):
        message = consumer.receive()
        consumer.acknowledge(message)


def receive_many(client: Any, job: Job) -> Measurement:
    consumer = client.subscribe(
        job.topic,
        job.subscription,
        receiver_queue_size=job.receiver_queue_size,
        batch_receive_policy=pulsar.ConsumerBatchReceivePolicy(1000, -1, 100),
    )
    warm = _receive_many(consumer, job.warm)
    stopwatch = Stopwatch()
    with stopwatch:
        timed = _receive_many(consumer, job.messages + job.warm - warm)
    return stopwatch.measurement(timed)


def _receive_many(consumer: Any, messages: int) -> int:
    received = 0
    while received < messages:
        batch = consumer.batch_receive()
        for message in batch:
            consumer.acknowledge(message)
        received += len(batch)
    return received


def _producer(client: Any, job: Job) -> Any:
    return client.create_producer(
        job.topic,
        batching_enabled=job.batched,
        batching_max_messages=BATCH_MESSAGES,
        batching_max_allowed_size_in_bytes=BATCH_BYTES,
        batching_max_publish_delay_ms=round(BATCH_DELAY * 1000),
        max_pending_messages=MAX_PENDING_MESSAGES,
        block_if_queue_full=True,
        send_timeout_millis=0,
        chunking_enabled=job.workload == "send_chunked",
        message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
    )


WORKLOADS = {
    "prepare": prepare,
    "fill": fill,
    "send": send,
    "send_keyed": send,
    "send_partitioned": send,
    "send_chunked": send,
    "send_one": send_one,
    "receive": receive,
    "receive_many": receive_many,
}

if __name__ == "__main__":
    serve(run)
