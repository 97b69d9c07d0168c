"""Our client's side of every workload, in the calls its users write, with the official side's sizes."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

import trio

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
from bench.orders import Order, order
from pulsar_sansio.schemas import AvroSchema, JsonSchema
from pulsar_trio import (
    BatchingPolicy,
    Client,
    Consumer,
    ExclusiveConsumer,
    Message,
    OutgoingMessage,
    Producer,
    TlsConfig,
    open_client,
)

T = TypeVar("T")

SCHEMAS: dict[str, Any] = {"Avro": AvroSchema(Order), "JSON": JsonSchema(Order)}


def run(job: Job) -> Measurement:
    return trio.run(_run, job)


async def _run(job: Job) -> Measurement:
    stopwatch = Stopwatch()
    async with _open(job) as client:
        if job.workload in SENDING:
            return await _send(client, job, stopwatch)
        return await RECEIVING[job.workload](client, job, stopwatch)


def _open(job: Job) -> AbstractAsyncContextManager[Client]:
    return open_client(job.url, tls=TlsConfig(trust=job.trust or None))


async def _send(client: Client, job: Job, stopwatch: Stopwatch) -> Measurement:
    batching = BatchingPolicy(BATCH_MESSAGES, BATCH_BYTES, BATCH_DELAY) if job.batched else None
    async with client.create_producer(
        job.topic,
        batching=batching,
        max_pending_messages=MAX_PENDING_MESSAGES,
        send_timeout=job.send_timeout,
        chunking=job.workload == "send_chunked",
        schema=_schema(job),
        encryption_keys=(KEY_NAME,) if job.key_pair else (),
        crypto_key_reader=job.public_key if job.key_pair else None,
    ) as producer:
        work = SENDING[job.workload]
        payload = order(job.size) if job.typed else job.payload
        await work(producer, payload, job.warm)
        with stopwatch:
            await work(producer, payload, job.messages)
    return stopwatch.measurement(job.messages)


async def send(producer: Producer[T], payload: T, messages: int) -> None:
    receipts = [await producer.enqueue(payload) for _ in range(messages)]
    for receipt in receipts:
        await receipt.wait()


async def send_many(producer: Producer, payload: bytes, messages: int) -> None:
    message_ids = await producer.send_many(payload for _ in range(messages))
    assert len(message_ids) == messages


async def send_keyed(producer: Producer, payload: bytes, messages: int) -> None:
    keys = KEYS
    receipts = [
        await producer.enqueue(OutgoingMessage(payload, key=keys[number % len(keys)]))
        for number in range(messages)
    ]
    for receipt in receipts:
        await receipt.wait()


async def send_one(producer: Producer, payload: bytes, messages: int) -> None:
    for _ in range(messages):
        await producer.send(payload)


SENDING: dict[str, Callable[[Any, Any, int], Awaitable[None]]] = {
    "send": send,
    "send_many": send_many,
    "send_keyed": send_keyed,
    "send_partitioned": send,
    "send_chunked": send,
    "send_one": send_one,
}


def _subscribe(client: Client, job: Job) -> AbstractAsyncContextManager[ExclusiveConsumer[Any]]:
    consumer: AbstractAsyncContextManager[ExclusiveConsumer[Any]] = client.subscribe(
        job.topic,
        job.subscription,
        "exclusive",
        receiver_queue_size=job.receiver_queue_size,
        batch_index_acknowledgement=job.workload == "receive_index",
        schema=_schema(job),
        crypto_key_reader=job.private_key if job.key_pair else None,
    )
    return consumer


def _schema(job: Job) -> Any:
    """Return None for payloads of bytes: the fast path of those has no schema."""
    return SCHEMAS.get(job.form)


async def receive(client: Client, job: Job, stopwatch: Stopwatch) -> Measurement:
    async with _subscribe(client, job) as consumer:
        work = _receive_values if job.typed else _receive
        await work(consumer, job.warm)
        with stopwatch:
            await work(consumer, job.messages)
    return stopwatch.measurement(job.messages)


async def _receive_values(consumer: Consumer[Order], messages: int) -> None:
    if not messages:
        return
    received = 0
    async for message in consumer:
        value = message.value
        assert value is not None
        assert value.express
        consumer.acknowledge(message)
        received += 1
        if received == messages:
            break


async def _receive(consumer: Consumer, messages: int) -> None:
    if not messages:
        return
    received = 0
    async for message in consumer:
        consumer.acknowledge(message)
        received += 1
        if received == messages:
            break


async def receive_cumulative(client: Client, job: Job, stopwatch: Stopwatch) -> Measurement:
    async with _subscribe(client, job) as consumer:
        await _receive_cumulative(consumer, job.warm)
        with stopwatch:
            await _receive_cumulative(consumer, job.messages)
    return stopwatch.measurement(job.messages)


async def _receive_cumulative(consumer: ExclusiveConsumer, messages: int) -> None:
    if not messages:
        return
    received = 0
    async for message in consumer:
        received += 1
        if not received % CUMULATIVE_EVERY:
            consumer.acknowledge_cumulative(message)
            if received == messages:
                break


async def receive_many(client: Client, job: Job, stopwatch: Stopwatch) -> Measurement:
    async with _subscribe(client, job) as consumer:
        warm = await _receive_many(consumer, job.warm)
        with stopwatch:
            timed = await _receive_many(consumer, job.messages + job.warm - warm)
    return stopwatch.measurement(timed)


async def _receive_many(consumer: Consumer, messages: int) -> int:
    received = 0
    while received < messages:
        together = await consumer.receive_many(1000)
        for _message in together:  # each is made when it is looked at, so each is looked at
            received += 1
        consumer.acknowledge(together)
    return received


async def receive_listener(client: Client, job: Job, stopwatch: Stopwatch) -> Measurement:
    async with _subscribe(client, job) as consumer:
        with trio.CancelScope() as scope:
            progress = Progress(job, stopwatch, scope.cancel)

            async def handle(message: Message) -> None:
                progress.note()

            await consumer.run(handle)
    return stopwatch.measurement(job.messages)


async def receive_key_shared(client: Client, job: Job, stopwatch: Stopwatch) -> Measurement:
    async with AsyncExitStack() as consumers, trio.open_nursery() as nursery:
        progress = Progress(job, stopwatch, nursery.cancel_scope.cancel)

        async def work(consumer: Consumer) -> None:
            async for message in consumer:
                consumer.acknowledge(message)
                progress.note()

        for _ in range(KEY_SHARED_CONSUMERS):
            consumer = await consumers.enter_async_context(
                client.subscribe(
                    job.topic,
                    job.subscription,
                    kind="key_shared",
                    receiver_queue_size=job.receiver_queue_size,
                )
            )
            nursery.start_soon(work, consumer)
    return stopwatch.measurement(job.messages)


async def load_table(_client: Client, job: Job, stopwatch: Stopwatch) -> Measurement:
    for _ in range(job.tables):
        async with _open(job) as client:
            stopwatch.start()
            async with client.create_table_view(job.topic) as table:
                stopwatch.stop()
                assert len(table) == len(job.keys)
    return stopwatch.measurement(job.messages * job.tables)


RECEIVING = {
    "receive": receive,
    "receive_asyncio": receive,
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
