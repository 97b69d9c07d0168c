"""`python -m bench.transactions`: transactions of 1, 100 and 10,000 messages, ours and the Java client's.

A real Pulsar is started unless `--url` names one. A round runs every row once with each client, in turn; each
is first in every second round, over topics of its own. The first `WARM_UP` rounds are thrown away, because
the broker and the Java client compile in them. Shown are medians over `--rounds` rounds.

Exit status 0, or 1 with one line that says what failed.
"""

import argparse
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from typing import NamedTuple, Protocol

from bench.jobs import Measurement
from bench.processes import Failed
from bench.transactions.jobs import Job
from bench.transactions.process import java_client, our_client
from tests.real_pulsar import RealPulsar, Unavailable

WARM_UP = 2

WORKLOADS = ("send", "pipeline")
MESSAGES = {1: 400, 100: 60, 10_000: 3}
"""Messages of a transaction -> the number of transactions in one job."""


class Row(NamedTuple):
    workload: str
    messages: int


ROWS = [Row(workload, messages) for workload in WORKLOADS for messages in MESSAGES]


class Client(Protocol):
    """A client's process."""

    def run(self, job: Job) -> Measurement: ...


class Bench:
    """One run: both clients' processes, and what was measured so far."""

    def __init__(self, url: str, ours: Client, java: Client) -> None:
        self._url = url
        self._clients: dict[str, Client] = {"ours": ours, "Java": java}
        self._run = uuid.uuid4().hex[:8]
        self.measured: dict[Row, dict[str, list[Measurement]]] = {
            row: {name: [] for name in self._clients} for row in ROWS
        }

    def round(self, number: int, *, counts: bool) -> None:
        """Measure every row once with each client."""
        names = list(self._clients)
        for row in ROWS:
            for name in names if number % 2 else reversed(names):
                topic = f"bench-{self._run}-{number}-{row.workload}-{row.messages}-{name}"
                job = Job(self._url, row.workload, topic, row.messages, MESSAGES[row.messages])
                if row.workload == "pipeline":
                    self._clients["ours"].run(replace(job, workload="fill"))
                measurement = self._clients[name].run(job)
                if counts:
                    self.measured[row][name].append(measurement)


def table(measured: dict[Row, dict[str, list[Measurement]]]) -> str:
    head = f"{'workload':<10}{'messages':>10}{'ours/s':>10}{'Java/s':>10}{'ratio':>8}"
    head += f"{'ours µs':>10}{'Java µs':>10}{'ratio':>8}"
    lines = [head, "-" * len(head)]
    for row, by_client in measured.items():
        ours, java = (median(each.rate for each in by_client[name]) for name in ("ours", "Java"))
        ours_us, java_us = (median(each.cpu_us for each in by_client[name]) for name in ("ours", "Java"))
        lines.append(
            f"{row.workload:<10}{row.messages:>10,}{ours:>10,.0f}{java:>10,.0f}{ours / java:>7.1f}×"
            f"{ours_us:>10.1f}{java_us:>10.1f}{java_us / ours_us:>7.1f}×"
        )
    return "\n".join(
        [
            *lines,
            "",
            "messages of one transaction; messages per second by the clock; µs of processor time per",
            "message, of all threads; both ratios are above 1 where ours is faster",
        ]
    )


@contextmanager
def broker(url: str | None) -> Iterator[str]:
    """Give the URL, or that of a real Pulsar that is started."""
    if url is not None:
        yield url
        return
    with RealPulsar(long_running=True) as pulsar:
        yield pulsar.url


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.transactions")
    parser.add_argument("--url", help="a running broker's service URL")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("at least one round")
    try:
        with broker(options.url) as url, our_client() as ours, java_client() as java:
            bench = Bench(url, ours, java)
            for number in range(1, WARM_UP + options.rounds + 1):
                bench.round(number, counts=number > WARM_UP)
    except (Failed, Unavailable) as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    print(table(bench.measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
