"""The official client's side of every workload, in the calls its users write.

Its options make it fast: batching, batches as large as ours, a large window and a large receiver queue. The
window blocks when it is full instead of failing.
"""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pulsar
import pulsar.asyncio
from pulsar.schema import Array, AvroSchema, Boolean, BytesSchema, Double, JsonSchema, Long, Record, String

from bench.jobs import (
    BATCH_BYTES,
    BATCH_DELAY,
    BATCH_MESSAGES,
    CUMULATIVE_EVERY,
    KEY_NAME,
    KEY_SHARED_CONSUMERS,
    KEYS,
    MAX_PENDING_MESSAGES,
    Job,
    Measurement,
    Progress,
    Stopwatch,
    serve,
)
from bench.orders import order


class Line(Record):  # type: ignore[misc]
    """`bench.orders.Line` in the official client's types."""

    article = String(required=True)
    count = Long(required=True)
    price = Double(required=True)


class Order(Record):  # type: ignore[misc]
    """`bench.orders.Order` in the official client's types."""

    id = String(required=True)
    customer = String(required=True)
    express = Boolean(required=True)
    total = Double(required=True)
    note = String()
    lines = Array(Line(), required=True)


SCHEMAS = {"Avro": AvroSchema, "JSON": JsonSchema}


def run(job: Job) -> Measurement:
    client = _client(job)
    try:
        return WORKLOADS[job.workload](client, job)
    finally:
        client.close()


def _client(job: Job) -> Any:
    return pulsar.Client(
        job.url,
        tls_trust_certs_file_path=job.trust or None,
        tls_validate_hostname=bool(job.trust),
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
    )


def prepare(client: Any, job: Job) -> Measurement:
    for subscription in job.subscriptions:
        client.subscribe(
            job.topic,
            subscription,
            consumer_type=pulsar.ConsumerType.KeyShared
            if "key_shared" in subscription
            else pulsar.ConsumerType.Exclusive,
            initial_position=pulsar.InitialPosition.Earliest,
        ).close()
    return Measurement(0, 0.0, 0.0)


def fill(client: Any, job: Job) -> Measurement:
    """Without callbacks: the fastest way it has, because this is not what is measured. For fill_keyed every
    batch is of one key."""
    producer = _producer(client, job)
    payload = _payload(job)
    keys: Sequence[str | None] = [None] if job.workload == "fill" else job.keys
    stopwatch = Stopwatch()
    with stopwatch:
        for number in range(job.messages + job.warm):
            producer.send_async(payload, None, partition_key=keys[number % len(keys)])
        producer.flush()
    return stopwatch.measurement(job.messages + job.warm)


def send(client: Any, job: Job) -> Measurement:
    producer = _producer(client, job)
    payload = _payload(job)
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


def _payload(job: Job) -> Any:
    """Return what is sent: bytes, or a value of the schema."""
    return Order(**asdict(order(job.size))) if job.typed else job.payload


def _send(producer: Any, payload: Any, messages: int, keys: Sequence[str] = ()) -> None:
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
    consumer = client.subscribe(
        job.topic,
        job.subscription,
        receiver_queue_size=job.receiver_queue_size,
        batch_index_ack_enabled=job.workload == "receive_index",
        schema=_schema(job),
        crypto_key_reader=_key_reader(job),
    )
    stopwatch = Stopwatch()
    work = _receive_values if job.typed else _receive
    work(consumer, job.warm)
    with stopwatch:
        work(consumer, job.messages)
    return stopwatch.measurement(job.messages)


def _receive_values(consumer: Any, messages: int) -> None:
    for _ in range(messages):
        message = consumer.receive()
        assert message.value().express
        consumer.acknowledge(message)


def _receive(consumer: Any, messages: int) -> None:
    for _ in range(messages):
        message = consumer.receive()
        consumer.acknowledge(message)


def receive_cumulative(client: Any, job: Job) -> Measurement:
    consumer = client.subscribe(job.topic, job.subscription, receiver_queue_size=job.receiver_queue_size)
    stopwatch = Stopwatch()
    _receive_cumulative(consumer, job.warm)
    with stopwatch:
        _receive_cumulative(consumer, job.messages)
    return stopwatch.measurement(job.messages)


def _receive_cumulative(consumer: Any, messages: int) -> None:
    for received in range(1, messages + 1):
        message = consumer.receive()
        if not received % CUMULATIVE_EVERY:
            consumer.acknowledge_cumulative(message)


def receive_asyncio(_client: Any, job: Job) -> Measurement:
    """Receive with a client of its own: the asyncio API has another one."""
    return asyncio.run(_asyncio(job))


async def _asyncio(job: Job) -> Measurement:
    client = pulsar.asyncio.Client(job.url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
    consumer = await client.subscribe(
        job.topic, job.subscription, receiver_queue_size=job.receiver_queue_size
    )
    stopwatch = Stopwatch()
    await _receive_asyncio(consumer, job.warm)
    with stopwatch:
        await _receive_asyncio(consumer, job.messages)
    await client.close()
    return stopwatch.measurement(job.messages)


async def _receive_asyncio(consumer: Any, messages: int) -> None:
    for _ in range(messages):
        message = await consumer.receive()
        await consumer.acknowledge(message)


def receive_listener(client: Any, job: Job) -> Measurement:
    stopwatch = Stopwatch()
    done = threading.Event()
    progress = Progress(job, stopwatch, done.set)

    def listen(consumer: Any, message: Any) -> None:
        consumer.acknowledge(message)
        progress.note()

    client.subscribe(
        job.topic,
        job.subscription,
        receiver_queue_size=job.receiver_queue_size,
        message_listener=listen,
    )
    done.wait()
    return stopwatch.measurement(job.messages)


def receive_key_shared(client: Any, job: Job) -> Measurement:
    """A thread for each consumer."""
    stopwatch = Stopwatch()
    done = threading.Event()
    one_at_a_time = threading.Lock()
    progress = Progress(job, stopwatch, done.set)

    def work(consumer: Any) -> None:
        while not done.is_set():
            try:
                message = consumer.receive(timeout_millis=100)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            with one_at_a_time:
                progress.note()

    consumers = [
        client.subscribe(
            job.topic,
            job.subscription,
            consumer_type=pulsar.ConsumerType.KeyShared,
            receiver_queue_size=job.receiver_queue_size,
        )
        for _ in range(KEY_SHARED_CONSUMERS)
    ]
    threads = [threading.Thread(target=work, args=[consumer]) for consumer in consumers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return stopwatch.measurement(job.messages)


def load_table(_: Any, job: Job) -> Measurement:
    stopwatch = Stopwatch()
    for _ in range(job.tables):
        client = _client(job)
        with stopwatch:
            table = client.create_table_view(job.topic)
        assert len(table) == len(job.keys)
        table.close()
        client.close()
    return stopwatch.measurement(job.messages * job.tables)


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
        send_timeout_millis=round(job.send_timeout * 1000),
        chunking_enabled=job.workload == "send_chunked",
        batching_type=pulsar.BatchingType.KeyBased
        if job.workload == "fill_keyed"
        else pulsar.BatchingType.Default,
        message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
        schema=_schema(job),
        encryption_key=KEY_NAME if job.key_pair else None,
        crypto_key_reader=_key_reader(job),
    )


def _schema(job: Job) -> Any:
    """Return a schema of this job alone: it keeps the client that it was used with."""
    return SCHEMAS[job.form](Order) if job.typed else BytesSchema()


def _key_reader(job: Job) -> Any:
    return pulsar.CryptoKeyReader(str(job.public_key), str(job.private_key)) if job.key_pair else None


WORKLOADS = {
    "prepare": prepare,
    "fill": fill,
    "fill_keyed": fill,
    "fill_large_table": fill,
    "send": send,
    "send_keyed": send,
    "send_partitioned": send,
    "send_chunked": send,
    "send_one": send_one,
    "receive": receive,
    "receive_asyncio": receive_asyncio,
    "receive_index": receive,
    "receive_cumulative": receive_cumulative,
    "receive_many": receive_many,
    "receive_listener": receive_listener,
    "receive_key_shared": receive_key_shared,
    "load_table": load_table,
    "load_large_table": load_table,
}

if __name__ == "__main__":
    serve(run)
