"""Our client's side of every workload, in the calls its users write, with the official side's sizes."""

import trio

from pulsar_trio import BatchingPolicy, Consumer, OutgoingMessage, Producer, open_client

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
    return trio.run(_run, job)


async def _run(job: Job) -> Measurement:
    stopwatch = Stopwatch()
    async with open_client(job.url) as client:
        if job.workload in SENDING:
            batching = BatchingPolicy(BATCH_MESSAGES, BATCH_BYTES, BATCH_DELAY) if job.batched else None
            async with client.create_producer(
                job.topic,
                batching=batching,
                max_pending_messages=MAX_PENDING_MESSAGES,
                send_timeout=0,
                chunking=job.workload == "send_chunked",
            ) as producer:
                work = SENDING[job.workload]
                payload = job.payload
                await work(producer, payload, job.warm)
                with stopwatch:
                    await work(producer, payload, job.messages)
            return stopwatch.measurement(job.messages)
        async with client.subscribe(
            job.topic, job.subscription, kind="exclusive", receiver_queue_size=job.receiver_queue_size
        ) as consumer:
            take = receive if job.workload == "receive" else receive_many
            warm = await take(consumer, job.warm)
            with stopwatch:
                timed = await take(consumer, job.messages + job.warm - warm)
        return stopwatch.measurement(timed)


async def send(producer: Producer, payload: bytes, messages: int) -> None:
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


SENDING = {
    "send": send,
    "send_many": send_many,
    "send_keyed": send_keyed,
    "send_partitioned": send,
    "send_chunked": send,
    "send_one": send_one,
}


async def receive(consumer: Consumer, messages: int) -> int:
    if not messages:
        return 0
    received = 0
    async for message in consumer:
        consumer.acknowledge(message)
        received += 1
        if received == messages:
            break
    return received


async def receive_many(consumer: Consumer, messages: int) -> int:
    received = 0
    while received < messages:
        together = await consumer.receive_many(1000)
        for _message in together:  # each is made when it is looked at, so each is looked at
            received += 1
        consumer.acknowledge(together)
    return received


if __name__ == "__main__":
    serve(run)
