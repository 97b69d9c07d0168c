"""`python -m bench.durability`: entries per second that a broker confirms, in memory and with each `--sync`.

The broker is a process; the producers are clients in this one, each with a connection of its own. They send
entries of one message. One more row is the store by itself, without a broker. Then a broker starts over a
folder with many entries, and over one with many topics. The processor time for each entry is that
of the broker, or of the store; a busy machine changes it less than the rates.

Exit status 0, or 1 with one line that says what failed.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from bench.our_broker import OurBroker, cpu_of, memory_of
from bench.standalone.clients import PAYLOAD, WARM, publish
from pulsar_sansio import broker_records as records
from pulsar_store import SYNCS, SqliteStore, Sync

from . import restart

TOPIC = "persistent://public/default/durable"

WRITE = 1_000
"""Entries of one write to the store by itself: what a loaded broker gathers while a write is under way."""


def broker(folder: Path | None, sync: Sync | None) -> OurBroker:
    """The broker of one row; it does not run yet."""
    return OurBroker("ours", folder, sync)


def beginning() -> list[records.Record]:
    return [
        records.BrokerStarted(1),
        records.TopicSaved(TOPIC, None, None),
        records.LedgerOpened(TOPIC, 0, 0, 0),
        records.CursorSaved(TOPIC, "s", -1, (), ()),
    ]


def entry(number: int) -> records.EntryAdded:
    data = b"\x0e\x01" + PAYLOAD + b"metadata of about forty bytes, as usual"
    return records.EntryAdded(TOPIC, 0, number, 1, 1_700_000_000_000, data, last_index=number)


def fill(folder: Path, entries: int, sync: Sync) -> float:
    """Write entries to a store without a broker; gives the seconds."""
    store = SqliteStore(folder, sync=sync)
    store.load()
    store.write(beginning())
    began = time.perf_counter()
    for first in range(0, entries, WRITE):
        store.write([entry(number) for number in range(first, first + WRITE)])
    seconds = time.perf_counter() - began
    store.close()
    return seconds


def row(name: str, entries: int, seconds: float, cpu: float) -> None:
    print(f"{name:<40}{entries / seconds:>12,.0f}{cpu / entries * 1e6:>12.1f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.durability")
    parser.add_argument("--entries", type=int, default=200_000, help="of each row")
    parser.add_argument("--producers", type=int, default=4)
    parser.add_argument("--stored", type=int, default=1_000_000, help="entries in the store of the start")
    parser.add_argument("--topics", type=int, default=10_000, help="topics in the store of another start")
    parser.add_argument("--folder", type=Path, help="where to write; default is a temporary folder")
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, entries of {len(PAYLOAD)} B")
    print(f"{'row':<40}{'entries/s':>12}{'broker, µs':>12}")
    with TemporaryDirectory(dir=given.folder) as temporary:
        folder = Path(temporary)
        for sync in (None, *SYNCS):
            with broker(None if sync is None else folder / f"broker-{sync}", sync) as ours:
                ours.start()
                cpu = -cpu_of(ours.pid)
                topics = [f"{TOPIC}-{number}" for number in range(given.producers)]
                seconds = trio.run(publish, ours.url, topics, given.entries)
                cpu += cpu_of(ours.pid)
                cpu *= given.entries / (given.entries + given.producers * WARM)
            what = "in memory" if sync is None else f"--data, --sync {sync}"
            row(f"{given.producers} producers, {what}", given.entries, seconds, cpu)
        for sync in SYNCS:
            before = time.process_time()
            seconds = fill(folder / f"store-{sync}", given.entries, sync)
            row(f"the store alone, sync {sync}", given.entries, seconds, time.process_time() - before)
        print(f"a start with {given.stored:,} entries in one topic:")
        restart.fill(folder / "entries", PAYLOAD, 1, given.stored)
        restart.measure(broker(folder / "entries", "none"), given.stored)
        print(f"a start with {given.topics:,} topics of 10 entries:")
        restart.fill(folder / "topics", PAYLOAD, given.topics, 10)
        restart.measure(broker(folder / "topics", "none"), 10)
        began = time.perf_counter()
        with broker(None, None) as ours:
            ours.start()
            seconds = time.perf_counter() - began
            print(
                f"a start without: {seconds:.1f} s, {cpu_of(ours.pid):.1f} s of the processor, "
                f"{memory_of(ours.pid)} MB"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
