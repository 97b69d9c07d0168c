"""A broker that starts over a folder: the time until it listens and delivers, its memory, and the drain."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import trio

from bench.our_broker import OurBroker, cpu_of, memory_of
from pulsar_sansio import broker_records as records
from pulsar_sansio.wire import MessageMetadata, encode_message_metadata, pack_payload
from pulsar_store import SqliteStore
from pulsar_trio import open_client

PUBLISHED = 1_700_000_000_000
"""The publish time of the first entry, in ms; each later one is a millisecond younger."""

LEDGER = 50_000
"""Entries of a ledger, as by the broker's default."""

BATCH = 1_000
"""Entries of one write."""


def name_of(number: int) -> str:
    return f"persistent://public/default/stored-{number}"


def stored(topic: str, payload: bytes, entries: int, first_ledger: int) -> Iterator[records.Record]:
    """Yield the records of a topic with a subscription `s` that has received nothing."""
    yield records.TopicSaved(topic, None, None)
    yield records.CursorSaved(topic, "s", -1, (), ())
    for number in range(entries):
        ledger = first_ledger + number // LEDGER
        if number % LEDGER == 0:
            yield records.LedgerOpened(topic, ledger, number, PUBLISHED, number)
        metadata = encode_message_metadata(MessageMetadata("p", number, PUBLISHED + number))
        data = b"".join(pack_payload(metadata, payload))
        yield records.EntryAdded(
            topic, ledger, number % LEDGER, 1, PUBLISHED + number, data, last_index=number
        )


def fill(folder: Path, payload: bytes, topics: int, entries: int) -> None:
    """Make a store with so many topics, and entries in each."""
    store = SqliteStore(folder, sync="none")
    store.load()
    batch: list[records.Record] = [records.BrokerStarted(1)]
    for number in range(topics):
        for record in stored(name_of(number), payload, entries, number * (1 + entries // LEDGER)):
            batch.append(record)
            if len(batch) >= BATCH:
                store.write(batch)
                batch = []
    store.write(batch)
    store.close()


async def receive(url: str, entries: int, first: Callable[[], None]) -> None:
    """Receive and acknowledge all entries of the first topic; `first` is called at the first one."""
    async with open_client(url) as client, client.subscribe(name_of(0), "s", "exclusive") as consumer:
        left = entries
        while left:
            messages = await consumer.receive_many(1000)
            if left == entries:
                first()
            left -= len(messages)
            consumer.acknowledge_cumulative(messages[-1])
        await consumer.flush()


def measure(broker: OurBroker, entries: int) -> None:
    """Start a broker over a filled folder, and receive what its first topic has."""
    began = time.perf_counter()
    with broker:
        broker.start()
        listens, cpu, memory = time.perf_counter() - began, cpu_of(broker.pid), memory_of(broker.pid)
        print(f"  listens after {listens:.1f} s, {cpu:.1f} s of the processor, {memory} MB", flush=True)

        def first() -> None:
            print(f"  delivers after {time.perf_counter() - began:.1f} s", flush=True)

        began_to_receive, cpu = time.perf_counter(), cpu_of(broker.pid)
        trio.run(receive, broker.url, entries, first)
        seconds, cpu = time.perf_counter() - began_to_receive, cpu_of(broker.pid) - cpu
        print(
            f"  {entries:,} entries received in {seconds:.1f} s, {cpu / entries * 1e6:.1f} µs of the broker "
            f"for each, {memory_of(broker.pid)} MB, at most {memory_of(broker.pid, 'VmHWM')} MB",
            flush=True,
        )
