"""`python -m bench.spark`: measures, prints a table and writes build/bench-spark.json.

A real Pulsar is started unless `--url` and `--admin` name one, and a topic is filled with `--messages`
messages of 100 B in batches of 1000. Everything is done `--rounds` times after `WARM_UP` rounds that are
thrown away; shown are medians. The JVM connector reads the same topic, where it can be had
(`--no-connector`: not at all). Exit status 0, or 1 with one line that says what failed.
"""

import argparse
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlparse

from bench.jobs import Job
from bench.processes import ClientProcess, Failed
from bench.spark import connector
from bench.spark.rows import MICRO_BATCH, Setting
from tests.real_pulsar import Admin, RealPulsar, Unavailable

REPORT = Path("build/bench-spark.json")

WARM_UP = 3
"""Rounds before those that count: JVMs compile for about twelve million rows, the connector's as Spark's."""

EXTRA_TOPICS = 32
"""Topics that one batch reads, to measure the cost of one more topic."""

EXTRA_MESSAGES = 1000
"""Messages in each of the extra topics."""

MICRO_BATCHES = 30
"""Micro-batches of `MICRO_BATCH` messages, one after the other."""


class Spark:
    """A process of `bench.spark.rows` with the given number of slots."""

    def __init__(self, slots: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.spark.rows", f"local[{slots},4]"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, workload: str, url: str, topics: list[str], rows: int) -> dict[str, Any]:
        """Raises `Failed`."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asdict(Setting(workload, url, tuple(topics), rows))) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "its process has ended"}
        if "error" in answer:
            raise Failed(f"{workload}: {answer['error']}")
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@contextmanager
def spark_of(slots: int) -> Iterator[Spark]:
    spark = Spark(slots)
    try:
        yield spark
    finally:
        spark.close()


class Bench:
    """One run over one broker."""

    def __init__(self, url: str, admin: Admin, messages: int, rounds: int) -> None:
        self._url = url
        self._admin = admin
        self._messages = messages
        self._rounds = rounds
        self._namespace = f"public/bench-{uuid.uuid4().hex[:8]}"
        self.rows: dict[str, dict[str, float]] = {}

    def run(self, with_connector: bool) -> None:
        self._admin.create_namespace(self._namespace)
        self._admin.set_namespace_policy(self._namespace, "deduplication", True)
        topic, small = self._topic("full"), self._topic("small")
        extra = [self._topic(f"extra-{n}") for n in range(EXTRA_TOPICS)]
        sizes = {topic: self._messages, small: MICRO_BATCHES * MICRO_BATCH}
        with ClientProcess("bench.official") as filler:
            for name, count in (sizes | dict.fromkeys(extra, EXTRA_MESSAGES)).items():
                filler.run(Job(self._url, "fill", name, 100, True, count, 0))
        with spark_of(2) as spark:
            self._reads(spark, 2, topic)
            if with_connector:  # close in time to what it is compared with
                self._connector(topic)
            self._others(spark, small, extra)
            self._typed(spark)
        with spark_of(1) as spark:
            self._reads(spark, 1, topic)

    def run_writes(self) -> None:
        """The guarantees of writes beside each other."""
        self._admin.create_namespace(self._namespace)
        self._admin.set_namespace_policy(self._namespace, "deduplication", True)
        small = self._topic("small")
        with ClientProcess("bench.official") as filler:
            filler.run(Job(self._url, "fill", small, 100, True, MICRO_BATCHES * MICRO_BATCH, 0))
        with spark_of(2) as spark:
            self._writes(spark, small)

    def run_typed(self) -> None:
        """Typed values beside bytes: each topic is written, and read both ways."""
        self._admin.create_namespace(self._namespace)
        with spark_of(2) as spark:
            self._typed(spark)

    def _typed(self, spark: Spark) -> None:
        some = self._messages // 4
        for form in ("text", "json", "avro"):
            found = [
                spark.run(f"write_{form}", self._url, [self._topic(f"{form}-{round_}")], some)
                for round_ in range(self._rounds + WARM_UP)
            ]
            self._note(f"write {form}, 2 slots", found[WARM_UP:])
        for form in ("json", "avro"):
            self._ratio(f"write {form}", f"write {form}, 2 slots", "write text, 2 slots")
            topics = [self._topic(f"{form}-{round_}") for round_ in range(self._rounds + WARM_UP)]
            rows = some * len(topics)
            self._measure(spark, f"read {form} as bytes, 2 slots", "read_value", topics, rows)
            self._measure(spark, f"read {form} as structs, 2 slots", "read_typed", topics, rows)
            self._ratio(f"read {form}", f"read {form} as structs, 2 slots", f"read {form} as bytes, 2 slots")

    def _ratio(self, name: str, typed: str, plain: str) -> None:
        rates = [self.rows[each]["rows_per_second"] for each in (typed, plain)]
        self._say(f"{name}, typed beside bytes", {"of_the_rate": rates[0] / rates[1]})

    def _topic(self, name: str) -> str:
        return f"persistent://{self._namespace}/{name}"

    def _reads(self, spark: Spark, slots: int, topic: str) -> None:
        for workload in ("read_value", "read_all", "stream_value"):
            self._measure(spark, f"{workload}, {slots} slots", workload, [topic], self._messages)

    def _others(self, spark: Spark, small: str, extra: list[str]) -> None:
        self._measure(spark, "Spark's own rate source, 2 slots", "stream_rate", [], self._messages)
        self._measure(spark, "the same batches from memory, 2 slots", "read_memory", [], self._messages)
        self._writes(spark, small)
        one, many = (
            median(each["seconds"] for each in self._again(spark, "stream_value", some_topics, 0))
            for some_topics in (extra[:1], extra)
        )
        self._say("a topic more in a stream", {"milliseconds": 1000 * (many - one) / (len(extra) - 1)})

    def _writes(self, spark: Spark, small: str) -> None:
        """Each guarantee: many rows, and small batches. `small`: a topic with the rows of those."""
        for workload in ("write_at_least_once", "write_exactly_once", "write_in_transactions"):
            found = [
                spark.run(workload, self._url, [self._topic(f"{workload}-{round_}")], self._messages // 4)
                for round_ in range(self._rounds + WARM_UP)
            ]
            self._note(f"{workload}, 2 slots", found[WARM_UP:])
        for workload in ("micro_batches", "micro_batches_exactly_once", "micro_batches_in_transactions"):
            batch = self._again(spark, workload, [small], MICRO_BATCHES * MICRO_BATCH)
            milliseconds = median(each["rows"] for each in batch) / 1000
            self._say(f"{workload}, median", {"milliseconds": milliseconds})

    def _connector(self, topic: str) -> None:
        try:
            connector.fetch()
            found = connector.read(
                self._url, self._admin.url, topic, 2, self._rounds + WARM_UP, self._messages
            )
        except connector.NotToBeHad as reason:
            print(reason, file=sys.stderr)
            return
        self._note("JVM connector on Spark 3.5, value, 2 slots", found[WARM_UP:])

    def _measure(self, spark: Spark, name: str, workload: str, topics: list[str], rows: int) -> None:
        self._note(name, self._again(spark, workload, topics, rows))

    def _again(self, spark: Spark, workload: str, topics: list[str], rows: int) -> list[dict[str, Any]]:
        """Every round but those that warm up."""
        return [spark.run(workload, self._url, topics, rows) for _ in range(self._rounds + WARM_UP)][WARM_UP:]

    def _note(self, name: str, rounds: list[dict[str, Any]]) -> None:
        values = {
            "rows_per_second": median(each["rows"] / each["seconds"] for each in rounds),
            "cpu_us_per_row": median(1e6 * each["cpu_seconds"] / each["rows"] for each in rounds),
        }
        largest = max(each.get("worker_bytes", 0) for each in rounds)
        self._say(name, values | ({"worker_mb": largest / 1e6} if largest else {}))

    def _say(self, name: str, values: dict[str, float]) -> None:
        """Noted at once, so that a run that is cut off leaves what it has found."""
        self.rows[name] = values
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(json.dumps(self.rows, indent=2) + "\n")
        shown = ", ".join(f"{value:,.2f} {what.replace('_', ' ')}" for what, value in values.items())
        print(f"{name:45} {shown}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description="Pulsar in Spark, measured.")
    parser.add_argument("--url", help="a broker; without it a real Pulsar is started")
    parser.add_argument("--admin", help="its administration over HTTP, http://host:port")
    parser.add_argument("--messages", type=int, default=4_000_000, help="a multiple of 1000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-connector", action="store_true")
    parser.add_argument("--writes", action="store_true", help="guarantees of writes, and nothing else")
    parser.add_argument("--typed", action="store_true", help="typed values beside bytes, and nothing else")
    arguments = parser.parse_args()
    if (arguments.url is None) != (arguments.admin is None):
        parser.error("--url and --admin go together")
    try:
        with ExitStack() as stack:
            if arguments.url is None:
                pulsar = stack.enter_context(RealPulsar(long_running=True))
                url, admin = pulsar.url, pulsar.admin
            else:
                place = urlparse(arguments.admin)
                url, admin = arguments.url, Admin(place.hostname or "localhost", place.port or 8080)
            bench = Bench(url, admin, arguments.messages, arguments.rounds)
            if arguments.typed:
                bench.run_typed()
            elif arguments.writes:
                bench.run_writes()
            else:
                bench.run(not arguments.no_connector)
    except (Failed, Unavailable) as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
