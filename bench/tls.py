"""TLS beside plain connections: each client with both, over topics of one broker.

A round measures every row four times, each way in turn, and begins with another way than the round before. So
what else runs on the machine falls on all ways alike. Both clients verify the broker's certificate and name.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.jobs import RECEIVER_QUEUE_SIZES, WARM_QUEUES, Job, Measurement
from bench.processes import ClientProcess
from bench.rows import SIZES, Row


@dataclass(frozen=True, slots=True)
class TlsBroker:
    """A broker that listens with TLS and without."""

    plain_url: str
    tls_url: str
    trust: str
    """The PEM file of the authorities that sign its certificate."""


WAYS = (("ours", False), ("official", False), ("ours", True), ("official", True))
"""A client, and True for its connections with TLS."""

TLS_ROWS = tuple(
    Row(workload, size, batched)
    for batched in (True, False)
    for size in SIZES
    for workload in ("send", "receive")
)


class TlsBench:
    """The clients' processes, and what was measured of each row in each way so far."""

    def __init__(
        self, broker: TlsBroker, ours: ClientProcess, official: ClientProcess, messages: int
    ) -> None:
        self.broker = broker
        self.messages = messages
        self.clients = {"ours": ours, "official": official}
        self.measured: dict[Row, dict[tuple[str, bool], list[Measurement]]] = {}
        self._run = uuid.uuid4().hex[:8]

    def round(self, number: int, rows: Sequence[Row]) -> None:
        first = number % len(WAYS)
        ways = WAYS[first:] + WAYS[:first]
        for row in rows:
            topic = f"bench-tls-{self._run}-{number}-{row.workload}-{row.size}-{row.batched}"
            if row.workload == "receive":  # all ways read the same messages
                subscriptions = tuple(_text(way) for way in ways)
                self._run_job(("official", False), topic, row, "prepare", subscriptions=subscriptions)
                self._run_job(("official", False), topic, row, "fill")
            for way in ways:
                here = topic if row.workload == "receive" else f"{topic}-{_text(way)}"
                measured = self._run_job(way, here, row, row.workload, subscription=_text(way))
                self.measured.setdefault(row, {each: [] for each in WAYS})[way].append(measured)

    def _run_job(
        self,
        way: tuple[str, bool],
        topic: str,
        row: Row,
        workload: str,
        subscription: str = "",
        subscriptions: tuple[str, ...] = (),
    ) -> Measurement:
        client, tls = way
        messages = row.messages(self.messages)
        job = Job(
            self.broker.tls_url if tls else self.broker.plain_url,
            workload,
            topic,
            row.size,
            row.batched,
            messages,
            min(messages, WARM_QUEUES * RECEIVER_QUEUE_SIZES[row.batched]),
            subscription,
            subscriptions,
            self.broker.trust if tls else "",
        )
        return self.clients[client].run(job)


def _text(way: tuple[str, bool]) -> str:
    client, tls = way
    return f"{client}-tls" if tls else client


@dataclass(frozen=True, slots=True)
class Ratios:
    """One quantity of a row: microseconds per message in each way, and what they say of TLS."""

    ours: float
    ours_tls: float
    official: float
    official_tls: float

    @property
    def of_ours(self) -> float:
        """Ours with TLS / ours without."""
        return self.ours_tls / self.ours

    @property
    def of_official(self) -> float:
        """The official client with TLS / without."""
        return self.official_tls / self.official

    @property
    def of_tls(self) -> float:
        """Ours / the official client, both with TLS."""
        return self.ours_tls / self.official_tls


@dataclass(frozen=True, slots=True)
class TlsLine:
    """A row of the report: medians of the rounds."""

    workload: str
    size: int
    clock: Ratios
    processor: Ratios

    @classmethod
    def of(cls, row: Row, measured: dict[tuple[str, bool], list[Measurement]]) -> "TlsLine":
        ways = (("ours", False), ("ours", True), ("official", False), ("official", True))
        clock = [median(1e6 / each.rate for each in measured[way]) for way in ways]
        processor = [median(each.cpu_us for each in measured[way]) for way in ways]
        return cls(row.name, row.size, Ratios(*clock), Ratios(*processor))

    def record(self) -> dict[str, object]:
        """Return the line for the report in JSON."""
        found: dict[str, object] = {"workload": f"{self.workload}, TLS", "size": self.size}
        for name, each in (("clock", self.clock), ("processor", self.processor)):
            found[name] = {
                "ours_us": round(each.ours, 3),
                "ours_tls_us": round(each.ours_tls, 3),
                "official_us": round(each.official, 3),
                "official_tls_us": round(each.official_tls, 3),
                "ours_tls_by_ours": round(each.of_ours, 3),
                "official_tls_by_official": round(each.of_official, 3),
                "ours_by_official_with_tls": round(each.of_tls, 3),
            }
        return found


def tls_table(lines: Sequence[TlsLine]) -> str:
    quantity = f"{'TLS: ours':>9}{'official':>10}{'ours':>8}{'official':>10}{'TLS':>8}"
    head = f"{'TLS beside plain':<20}{'size':>6}" + 2 * f"  |{quantity}"
    body = []
    for line in lines:
        text = f"{line.workload:<20}{line.size:>6}"
        for each in (line.clock, line.processor):
            text += f"  |{each.ours_tls:>9.2f}{each.official_tls:>10.2f}"
            text += f"{each.of_ours:>7.2f}×{each.of_official:>9.2f}×{each.of_tls:>7.2f}×"
        body.append(text)
    return "\n".join(
        [
            f"{'':<26}  |{'µs by the clock':^{len(quantity)}}  |{'µs of processor time':^{len(quantity)}}",
            head,
            "-" * len(head),
            *body,
            "",
            "µs per message with TLS; then ratios of such times (below 1 the first is faster):",
            "  ours with TLS / plain, official with TLS / plain, ours / official with TLS",
        ]
    )
