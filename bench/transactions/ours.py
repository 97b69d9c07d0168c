"""Our client's side: jobs from standard input, seconds and processor seconds to standard output."""

import sys

import trio

from bench.jobs import Stopwatch
from bench.transactions.jobs import (
    BATCH_BYTES,
    BATCH_DELAY,
    BATCH_MESSAGES,
    MAX_PENDING_MESSAGES,
    RECEIVER_QUEUE_SIZE,
    SIZE,
    TIMEOUT,
    Job,
)
from pulsar_trio import BatchingPolicy, Client, Message, Producer, open_client

PAYLOAD = b"x" * SIZE
BATCHING = BatchingPolicy(BATCH_MESSAGES, BATCH_BYTES, BATCH_DELAY)


async def run(job: Job) -> Stopwatch:
    stopwatch = Stopwatch()
    async with (
        open_client(job.url, transactions=True) as client,
        client.create_producer(
            job.topic if job.workload == "fill" else job.output,
            batching=BATCHING,
            max_pending_messages=MAX_PENDING_MESSAGES,
            send_timeout=0,
        ) as producer,
    ):
        async with client.transaction():  # The coordinators are found, and the topic is loaded.
            await producer.send(PAYLOAD)
        await WORKLOADS[job.workload](client, producer, job, stopwatch)
    return stopwatch


async def fill(client: Client, producer: Producer, job: Job, _stopwatch: Stopwatch) -> None:
    async with client.subscribe(job.topic, "bench", "shared"):
        pass
    await producer.send_many(PAYLOAD for _ in range(job.messages * job.transactions))


async def send(client: Client, producer: Producer, job: Job, stopwatch: Stopwatch) -> None:
    with stopwatch:
        for _ in range(job.transactions):
            async with client.transaction(timeout=TIMEOUT) as transaction:
                for _ in range(job.messages):
                    await producer.enqueue(PAYLOAD, transaction=transaction)


async def pipeline(client: Client, producer: Producer, job: Job, stopwatch: Stopwatch) -> None:
    async with client.subscribe(
        job.topic,
        "bench",
        "shared",
        receiver_queue_size=RECEIVER_QUEUE_SIZE,
        batch_index_acknowledgement=True,
    ) as consumer:
        with stopwatch:
            for _ in range(job.transactions):
                async with client.transaction(timeout=TIMEOUT) as transaction:
                    for _ in range(job.messages):
                        message: Message = await consumer.receive()
                        await producer.enqueue(message.data, transaction=transaction)
                        consumer.acknowledge(message, transaction=transaction)


WORKLOADS = {"fill": fill, "send": send, "pipeline": pipeline}


def main() -> None:
    for line in sys.stdin:
        try:
            stopwatch = trio.run(run, Job.of(line))
            answer = f"{stopwatch.seconds}\t{stopwatch.cpu_seconds}"
        except Exception as error:  # Whatever a client raises is the answer; the parent shows it.
            answer = f"failed\t{type(error).__name__}: {error}"
        print(answer, flush=True)


if __name__ == "__main__":
    main()
