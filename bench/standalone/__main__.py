"""`python -m bench.standalone`: `pulsar-trio broker`, in memory and with data, beside a standalone Pulsar.

One broker after the other, each in a process of its own, with the same clients of this project. The rows are:

* the time from the start of the process until it serves, and its memory;
* entries of one message that producers send at the same time, each with a connection, and the processor time
  of the broker for each entry;
* a producer and a message for each of many topics;
* idle connections, and the latency of a producer beside them;
* connections that never say CONNECT, that send half of a frame, or that ask for messages and read none;
* a backlog that is there when the broker starts again after SIGKILL, until its first message and its last.

Needs Java 17 and Maven, but for `--ours`. Exit status 0, or 1 with one line that says what failed.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

from bench.our_broker import OurBroker, cpu_of, memory_of
from bench.standalone import abuse, clients
from bench.standalone.brokers import RealStandalone, Standalone
from pulsar_trio import PulsarError
from tests.real_pulsar import Unavailable


def row(name: str, text: str) -> None:
    print(f"  {name:<34}{text}", flush=True)


def attempt(name: str, measure: Callable[[], None]) -> None:
    """A row that cannot be measured costs that row and a line."""
    try:
        measure()
    except* (PulsarError, OSError, RuntimeError, trio.TooSlowError) as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        row(name, f"left out: {type(error).__name__}: {error}")


def run(timeout: float, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Run a client; `trio.TooSlowError` after so many seconds."""

    async def main() -> Any:
        with trio.fail_after(timeout):
            return await call(*arguments, **options)

    return trio.run(main)


class Comparison:
    """The rows of one broker."""

    def __init__(self, broker: Standalone, sizes: argparse.Namespace) -> None:
        self._broker = broker
        self._sizes = sizes

    def start(self) -> None:
        began = time.perf_counter()
        self._broker.start()
        seconds = time.perf_counter() - began
        row("start", f"{seconds:.2f} s, {memory_of(self._broker.pid)} MB")

    def publish(self) -> None:
        entries = self._sizes.entries
        topics = [f"{clients.NAMESPACE}/publish-{number}" for number in range(self._sizes.producers)]
        run(60, clients.publish, self._broker.url, topics, entries // 10)
        cpu = -cpu_of(self._broker.pid)
        seconds = run(300, clients.publish, self._broker.url, topics, entries, warm=1)
        cpu += cpu_of(self._broker.pid)
        row(
            f"{entries:,} entries, {len(topics)} producers",
            f"{entries / seconds:,.0f}/s, {cpu / entries * 1e6:.0f} µs each",
        )

    def topics(self) -> None:
        before = memory_of(self._broker.pid)
        seconds = run(300, clients.publish_to_each, self._broker.url, self._sizes.topics)
        row(
            f"{self._sizes.topics:,} topics, a message each",
            f"{seconds:.1f} s, {memory_of(self._broker.pid) - before} MB more",
        )

    def connections(self) -> None:
        count = self._sizes.connections
        self._beside(f"{count:,} idle connections", abuse.idle, count)

    def abuse(self) -> None:
        count = self._sizes.abusers
        self._beside(f"{count:,} silent connections", abuse.silent, count)
        self._beside(f"{count:,} halves of a frame", abuse.half_frames, count)
        self._beside(f"{count // 10:,} consumers that do not read", abuse.slow_readers, count // 10)

    def _beside(
        self, name: str, context: Callable[[str, int], AbstractAsyncContextManager[None]], count: int
    ) -> None:
        """Measure one message after another of a producer, alone and beside these clients."""
        url = self._broker.url

        async def measure() -> tuple[float, tuple[float, float], tuple[float, float], int]:
            alone = await clients.latencies(url, 200)
            before = memory_of(self._broker.pid)
            began = time.perf_counter()
            async with context(url, count):
                seconds = time.perf_counter() - began
                return seconds, alone, await clients.latencies(url, 200), memory_of(self._broker.pid) - before

        seconds, alone, crowded, memory = run(120, measure)
        row(
            name,
            f"{seconds:.1f} s, {memory} MB more; a message alone {alone[0]:.1f} ms (p99 {alone[1]:.1f}), "
            f"beside them {crowded[0]:.1f} ms (p99 {crowded[1]:.1f})",
        )

    def backlog(self) -> None:
        broker, topic, count = self._broker, f"{clients.NAMESPACE}/backlog", self._sizes.backlog
        run(30, clients.subscribe, broker.url, topic)
        run(900, clients.publish, broker.url, [topic], count, warm=1)
        broker.kill()
        began = time.perf_counter()
        broker.start()
        ready, memory = time.perf_counter() - began, memory_of(broker.pid)
        first, last = run(900, clients.drain, broker.url, topic, count)
        row(
            f"{count:,} entries after SIGKILL",
            f"ready in {ready:.1f} s with {memory} MB, first message {first:.2f} s later, "
            f"{count / last:,.0f}/s, {memory_of(broker.pid)} MB then",
        )

    def run(self, only: list[str], *, durable: bool) -> None:
        print(f"{self._broker.name}:", flush=True)
        self.start()
        for name in ("publish", "topics", "connections", "abuse", *(["backlog"] if durable else [])):
            if not only or name in only:
                attempt(name, getattr(self, name))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.standalone")
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--producers", type=int, default=4)
    parser.add_argument("--topics", type=int, default=1_000)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--abusers", type=int, default=500, help="connections of each kind of abuse")
    parser.add_argument("--backlog", type=int, default=1_000_000, help="entries of one topic")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=["publish", "topics", "connections", "abuse", "backlog"],
    )
    parser.add_argument("--ours", action="store_true", help="without Apache Pulsar")
    parser.add_argument("--folder", type=Path, help="where to write; default is a temporary folder")
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, payloads of {len(clients.PAYLOAD)} B")
    with TemporaryDirectory(dir=given.folder) as temporary:
        brokers: list[tuple[Callable[[], Standalone], bool]] = [
            (partial(OurBroker, "ours, in memory", None, None), False),
            (partial(OurBroker, "ours, --sync always", Path(temporary) / "always", "always"), True),
        ]
        if not given.ours:
            brokers.append((RealStandalone, True))
        for make, durable in brokers:
            try:
                with make() as broker:
                    Comparison(broker, given).run(given.only, durable=durable)
            except Unavailable as error:
                print(f"Apache Pulsar left out: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
