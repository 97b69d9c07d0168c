"""`python -m bench`: measures, prints a table and writes build/bench.json.

A round measures every row once: ours and the official client in turn, each first in every second round, over
topics of its own. The first round warms everything up, the broker's compiler above all, and is thrown away.
Shown are the medians of the rounds, and the ratio of the medians.

Before that it measures the simulator, in this process, for `--simulator` seconds (0: not at all).

Options, or environment:

* `--url`/URL, a broker; without it our own is started.
* `--admin`/ADMIN, its administration over HTTP, which makes the partitioned topic; without it that row is
  left out.
* `--tls-url`/TLS_URL, that broker with TLS, and `--trust`/TRUST, the PEM file of its authority; without
  them the rows of TLS are left out.
* `--rounds`/ROUNDS.
* `--only`, a workload, or `tls` for the rows of TLS; it may be repeated.
* `--form`, `bytes` or one of `bench.rows.FORMS`; it may be repeated. These rows have no TLS.
* `--messages`/MESSAGES of 100 B in batches; the other rows take a fraction of it.

The exit status is 0, or 1 with one line that says what failed. A row of one size that the broker cannot take
is left out, with a line that says why.
"""

import argparse
import contextlib
import json
import os
import sys
import urllib.request
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench.certificates import certificates, key_pair
from bench.forms import forms_table
from bench.jobs import RECEIVER_QUEUE_SIZES, WARM_QUEUES, Job, Measurement
from bench.processes import ClientProcess, Failed, OurBroker
from bench.rows import FORMS, SIZES, SPECIAL, Row
from bench.simulator import simulate
from bench.tls import TLS_ROWS, TlsBench, TlsBroker, TlsLine, tls_table

CALLS = {
    "send": ("enqueue, receipt.wait of each", "send_async, callback of each"),
    "send_many": ("send_many", "send_async, callback of each"),
    "receive": ("async for, acknowledge each", "receive, acknowledge each"),
    "receive_many": ("receive_many(1000), acknowledge", "batch_receive(1000), acknowledge each"),
    "receive_asyncio": ("async for, acknowledge each", "asyncio: receive, acknowledge each"),
    "receive_listener": ("run(handler)", "message_listener, acknowledge each"),
    "receive_cumulative": ("async for, cumulative every 100th", "receive, cumulative every 100th"),
    "receive_index": ("batch-index: async for, acknowledge", "batch-index: receive, acknowledge"),
    "receive_key_shared": ("4 tasks: async for, acknowledge", "4 threads: receive, acknowledge"),
    "load_table": ("create_table_view", "create_table_view"),
    "load_large_table": ("create_table_view", "create_table_view"),
    "send_keyed": ("enqueue, receipt.wait of each", "send_async, callback of each"),
    "send_partitioned": ("enqueue, receipt.wait of each", "send_async, callback of each"),
    "send_chunked": ("enqueue, receipt.wait of each", "send_async, callback of each"),
    "send_one": ("send, one after the other", "send, one after the other"),
}
"""The calls that each row times: ours, and the official client's. Received values are also looked at."""

EVERY_SIZE = ("send", "send_many", "receive", "receive_many")
"""MeasuredBroker with every size, in batches and without."""

WITH_FORMS = ("send", "receive")
"""MeasuredBroker with every size and every form, in batches and without."""

RECEIVING_ONCE = ("receive_asyncio", "receive_listener", "receive_cumulative", "receive_index")
"""MeasuredBroker with 100 B in batches only, from the topic of the others."""

PARTITIONS = 8

REPORT = Path("build/bench.json")


FILLED = {
    "receive_key_shared": "fill_keyed",
    "load_table": "fill_keyed",
    "load_large_table": "fill_large_table",
}
"""Workloads that have a topic of their own to read, and what sends the messages."""


class Bench:
    """One run: two clients' processes, one broker, and what was measured so far."""

    def __init__(
        self,
        url: str,
        admin: str | None,
        ours: ClientProcess,
        official: ClientProcess,
        messages: int,
        keys: str,
    ) -> None:
        """`keys`: the folder of the key pair for encrypted rows."""
        self.url = url
        self.admin = admin
        self.keys = keys
        self.messages = messages
        self.clients = {"ours": ours, "official": official}
        self.measured: dict[Row, dict[str, list[Measurement]]] = {}
        self.left_out: dict[Row, str] = {}
        """Rows that this broker or a client cannot take, with the reason. None is tried again."""
        self._run = uuid.uuid4().hex[:8]

    def round(self, number: int, rows: list[Row]) -> None:
        names = ["ours", "official"] if number % 2 else ["official", "ours"]
        everywhere = [row for row in rows if row not in SPECIAL]
        for size, batched, form in sorted({(r.size, r.batched, r.form) for r in everywhere}, reverse=True):
            here = [row for row in everywhere if (row.size, row.batched, row.form) == (size, batched, form)]
            topic = f"bench-{self._run}-{number}-{size}-{'batched' if batched else 'unbatched'}-{form}"
            self._sending(f"{topic}-send", [row for row in here if row.workload.startswith("send")], names)
            self._receiving(
                f"{topic}-receive", [row for row in here if row.workload.startswith("receive")], names
            )

        for row in rows:
            if row in SPECIAL and row not in self.left_out:
                try:
                    self._special(f"bench-{self._run}-{number}-{row.workload}", row, names)
                except Failed as failure:
                    self._leave_out(row, failure)

    def _leave_out(self, row: Row, failure: Failed) -> None:
        self.left_out[row] = str(failure)
        self.measured.pop(row, None)
        for client in self.clients.values():  # either may be at it still
            client.renew()
        print(f"{row.name} is left out: {failure}", file=sys.stderr)

    def _special(self, topic: str, row: Row, names: list[str]) -> None:
        """Raises `Failed`: not every broker has partitions, tables and large messages."""
        measured: dict[str, Measurement] = {}
        for name in names:
            if row.workload == "send_partitioned":
                assert self.admin is not None
                make_partitioned(self.admin, f"{topic}-{name}", PARTITIONS)
            elif row.workload in FILLED:
                subscriptions = (row.workload,)  # it keeps the messages, for a table too
                self._measure("official", f"{topic}-{name}", row, "prepare", subscriptions=subscriptions)
                self._measure("official", f"{topic}-{name}", row, FILLED[row.workload])
            measured[name] = self._measure(name, f"{topic}-{name}", row, row.workload, row.workload)
        self._keep(row, measured["ours"], measured["official"])

    def _sending(self, topic: str, rows: list[Row], names: list[str]) -> None:
        if not rows:
            return
        measured: dict[str, Measurement] = {}
        for name in names:
            for workload in ["send"] if name == "official" else [row.workload for row in rows]:
                measured[f"{name} {workload}"] = self._measure(
                    name, f"{topic}-{name}-{workload}", rows[0], workload
                )
        for row in rows:  # the official client has one way to know of each result, beside both of ours
            self._keep(row, measured[f"ours {row.workload}"], measured["official send"])

    def _receiving(self, topic: str, rows: list[Row], names: list[str]) -> None:
        """All consumers of a round read the same messages, sent by the official client."""
        if not rows:
            return
        subscriptions = [f"{name}-{row.workload}" for row in rows for name in names]
        self._measure("official", topic, rows[0], "prepare", subscriptions=tuple(subscriptions))
        self._measure("official", topic, rows[0], "fill")
        for row in rows:
            measured = {
                name: self._measure(name, topic, row, row.workload, subscription=f"{name}-{row.workload}")
                for name in names
            }
            self._keep(row, measured["ours"], measured["official"])

    def _measure(
        self,
        name: str,
        topic: str,
        row: Row,
        workload: str,
        subscription: str = "",
        subscriptions: tuple[str, ...] = (),
    ) -> Measurement:
        messages = row.messages(self.messages)
        warm = min(messages, WARM_QUEUES * RECEIVER_QUEUE_SIZES[row.batched])
        if row.workload.startswith("load"):  # it has no half that could be left out
            warm = 0
        job = Job(
            self.url,
            workload,
            topic,
            row.size,
            row.batched,
            messages,
            warm,
            subscription,
            subscriptions,
            form=row.form,
            key_pair=self.keys if row.form == "encrypted" else "",
        )
        if workload == "load_large_table" and name == "official":
            # The official client's table view needs more of the stack the more there is, and dies of it.
            return self.clients[name].run_apart(job)
        return self.clients[name].run(job)

    def _keep(self, row: Row, ours: Measurement, official: Measurement) -> None:
        kept = self.measured.setdefault(row, {"ours": [], "official": []})
        kept["ours"].append(ours)
        kept["official"].append(official)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the report: messages per second, and microseconds of processor time per message."""

    workload: str
    size: int
    ours: float
    official: float
    ratio: float
    ours_cpu_us: float
    official_cpu_us: float

    @classmethod
    def of(cls, row: Row, measured: dict[str, list[Measurement]]) -> "Line":
        ours, official = (median(each.rate for each in measured[name]) for name in ("ours", "official"))
        cpu = [median(each.cpu_us for each in measured[name]) for name in ("ours", "official")]
        return cls(
            row.name,
            row.size,
            round(ours, 2),
            round(official, 2),
            round(ours / official, 2),
            round(cpu[0], 3),
            round(cpu[1], 3),
        )


def table(lines: list[Line]) -> str:
    head = f"{'workload':<30}{'size':>9}{'ours/s':>12}{'official/s':>12}{'ratio':>8}"
    head += f"{'ours µs':>10}{'official µs':>13}{'ratio':>8}"
    body = [
        f"{each.workload:<30}{each.size:>9}{each.ours:>12,.0f}{each.official:>12,.0f}{each.ratio:>7.1f}×"
        f"{each.ours_cpu_us:>10.2f}{each.official_cpu_us:>13.2f}"
        f"{each.official_cpu_us / each.ours_cpu_us:>7.1f}×"
        for each in lines
    ]
    calls = [f"  {name:<20}{ours:<37}{official}" for name, (ours, official) in CALLS.items()]
    return "\n".join(
        [
            head,
            "-" * len(head),
            *body,
            "",
            "messages per second by the clock; µs of processor time per message, of all threads;",
            "both ratios are above 1 where ours is faster",
            f"  {'calls timed':<20}{'ours':<37}official",
            *calls,
            "  send_many stands beside the same measurement as send: the official client has no bulk call",
        ]
    )


@dataclass(frozen=True, slots=True)
class MeasuredBroker:
    """A broker: its service URL, its administration over HTTP, and where it listens with TLS."""

    url: str
    admin: str | None
    tls: TlsBroker | None


@contextlib.contextmanager
def broker(named: MeasuredBroker | None) -> Iterator[MeasuredBroker]:
    """Give the named broker, or one that is started."""
    if named is not None:
        yield named
        return
    with certificates() as files, OurBroker(files) as ours:
        yield MeasuredBroker(ours.url, ours.admin_url, TlsBroker(ours.url, ours.tls_url, str(files.trust)))


def make_partitioned(admin: str, topic: str, partitions: int) -> None:
    request = urllib.request.Request(
        f"{admin}/admin/v2/persistent/public/default/{topic}/partitions",
        data=b"%d" % partitions,
        method="PUT",
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30):
            pass
    except OSError as error:
        raise Failed(f"{admin} does not make a partitioned topic: {error}") from None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="our client beside the official one")
    parser.add_argument("--url", default=os.environ.get("URL"), help="a running broker's service URL")
    parser.add_argument("--admin", default=os.environ.get("ADMIN"), help="its administration, http://…")
    parser.add_argument("--tls-url", default=os.environ.get("TLS_URL"), help="its service URL with TLS")
    parser.add_argument("--trust", default=os.environ.get("TRUST"), help="the PEM file of its authority")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", "3")))
    parser.add_argument("--messages", type=int, default=int(os.environ.get("MESSAGES", "200000")))
    parser.add_argument(
        "--only", choices=sorted([*CALLS, "tls"]), action="append", help="this workload; may be repeated"
    )
    parser.add_argument(
        "--form", choices=["bytes", *FORMS], action="append", help="this form; may be repeated"
    )
    parser.add_argument("--size", type=int, choices=SIZES, action="append", help="this size; may be repeated")
    parser.add_argument("--simulator", type=float, default=15.0, help="seconds of the simulator's row")
    options = parser.parse_args()
    if options.rounds < 1 or options.messages < 1000:
        parser.error("at least one round and 1000 messages")
    if bool(options.tls_url) != bool(options.trust) or (options.tls_url and not options.url):
        parser.error("--tls-url and --trust go together, and with --url")
    rows = chosen(options.only or CALLS, options.size or SIZES, options.form or ["bytes", *FORMS])
    if options.url and not options.admin and any(row.workload == "send_partitioned" for row in rows):
        rows = [row for row in rows if row.workload != "send_partitioned"]
        print("send_partitioned is left out: it needs --admin", file=sys.stderr)
    tls_rows = [row for row in TLS_ROWS if row.size in (options.size or SIZES)]
    if "tls" not in (options.only or ["tls"]) or "bytes" not in (options.form or ["bytes"]):
        tls_rows = []
    named = None
    if options.url:
        tls = TlsBroker(options.url, options.tls_url, options.trust) if options.tls_url else None
        named = MeasuredBroker(options.url, options.admin, tls)
        if tls is None and tls_rows:
            tls_rows = []
            print("TLS is left out: it needs --tls-url and --trust", file=sys.stderr)
    records: list[dict[str, object]] = []
    if options.simulator > 0:
        simulated = simulate(options.simulator)
        records.append(simulated.record())
        print(simulated.text())
    try:
        lines, tls_lines = measure(named, options.rounds, options.messages, rows, tls_rows)
    except Failed as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    REPORT.parent.mkdir(exist_ok=True)
    records = [*map(asdict, lines.values()), *(line.record() for line in tls_lines), *records]
    REPORT.write_text(json.dumps(records, indent=1) + "\n")
    print(
        f"\n{options.url or 'our broker'}, {os.cpu_count()} processors, "
        f"{options.rounds} rounds, {options.messages:,} messages of 100 B\n"
    )
    if lines:
        print(table([*lines.values()]))
        if beside := forms_table(lines):
            print(f"\n{beside}")
    if tls_lines:
        print(f"\n{tls_table(tls_lines)}")
    print(f"\nwritten to {REPORT}")
    return 0


def chosen(workloads: Collection[str], sizes: Sequence[int], forms: Collection[str]) -> list[Row]:
    """Return the rows of these workloads, sizes and forms. Rows of one size have it whatever `sizes` says."""
    rows = [
        Row(workload, size, batched)
        for batched in (True, False)
        for size in sizes
        for workload in EVERY_SIZE + (RECEIVING_ONCE if batched and size == 100 else ())
    ] + [*SPECIAL]
    with_forms = [
        Row(workload, size, batched, form)
        for form in FORMS
        for batched in (True, False)
        for size in sizes
        for workload in WITH_FORMS
    ]
    return [row for row in rows + with_forms if row.workload in workloads and (row.form or "bytes") in forms]


def measure(
    named: MeasuredBroker | None, rounds: int, messages: int, rows: list[Row], tls_rows: list[Row]
) -> tuple[dict[Row, Line], list[TlsLine]]:
    with (
        broker(named) as found,
        key_pair() as keys,
        ClientProcess("bench.ours") as ours,
        ClientProcess("bench.official") as official,
    ):
        bench = Bench(found.url, found.admin, ours, official, messages, str(keys))
        tls_bench = TlsBench(found.tls, ours, official, messages) if found.tls else None
        for number in range(rounds + 1):
            what = f"round {number} of {rounds}" if number else "warming up"
            print(f"{what} (load {os.getloadavg()[0]:.1f})", file=sys.stderr)
            bench.round(number, rows)
            if tls_bench is not None:
                tls_bench.round(number, tls_rows)
            if not number:
                bench.measured.clear()
                if tls_bench is not None:
                    tls_bench.measured.clear()
        tls_measured = tls_bench.measured if tls_bench is not None else {}
        if not bench.measured and not tls_measured:
            raise Failed("no row could be measured")
        lines = {row: Line.of(row, bench.measured[row]) for row in rows if row in bench.measured}
        return lines, [TlsLine.of(row, each) for row, each in tls_measured.items()]


if __name__ == "__main__":
    sys.exit(main())
