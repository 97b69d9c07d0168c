"""Many seeds: their reports added up, and the checks that need more than one run.

Owns the sum and the exit code. It has no clock: whoever runs a campaign for a number of seconds looks at its
own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from .faults import FAULTS
from .violations import Outcome
from .world import SeedReport, World

RERUN_EVERY = 50
"""One seed in so many is run twice, and must give the same trace."""

ENOUGH_SEEDS = 400
"""From so many seeds on, a fault kind that never happened is a failure of the simulator."""


def run_seed(seed: int) -> SeedReport:
    """One seed; every `RERUN_EVERY`th twice."""
    report = World(seed).run()
    if seed % RERUN_EVERY == 0 and report.outcome is Outcome.PASSED:
        again = World(seed).run()
        if again.trace_hash != report.trace_hash:
            report.outcome = Outcome.NONDETERMINISM
            report.rule = "INV-D1"
            report.text = f"trace {report.trace_hash} the first time, {again.trace_hash} the second"
    return report


def run_seeds(seeds: Iterable[int]) -> Iterator[SeedReport]:
    for seed in seeds:
        yield run_seed(seed)


@dataclass(slots=True)
class Campaign:
    """The sum of reports. Add them in the order of their seeds: the hash depends on it."""

    seeds: int = 0
    messages: int = 0
    sent: int = 0
    virtual_ns: int = 0
    events: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    failures: list[SeedReport] = field(default_factory=list)
    first_seed: int | None = None
    last_seed: int | None = None
    _hash: "blake2b" = field(default_factory=lambda: blake2b(digest_size=16))

    def add(self, report: SeedReport) -> None:
        self.seeds += 1
        self.messages += report.messages
        self.sent += report.sent
        self.virtual_ns += report.virtual_ns
        self.events += report.events
        for name, count in report.faults.items():
            self.faults[name] = self.faults.get(name, 0) + count
        if self.first_seed is None:
            self.first_seed = report.seed
        self.last_seed = report.seed
        self._hash.update(f"{report.seed} {report.trace_hash}\n".encode())
        if report.outcome is not Outcome.PASSED:
            self.failures.append(report)

    @property
    def missing_faults(self) -> list[str]:
        """Kinds of the catalogue that never happened."""
        return sorted(name for name in FAULTS if name not in self.faults)

    @property
    def outcome(self) -> Outcome:
        """The first failure's, in the order of the codes: what is worst comes first."""
        if self.failures:
            return min(report.outcome for report in self.failures)
        if self.seeds >= ENOUGH_SEEDS and self.missing_faults:
            return Outcome.COVERAGE
        return Outcome.PASSED

    def as_json(self) -> dict[str, Any]:
        """Plain values, the same for the same seeds."""
        return {
            "seeds": self.seeds,
            "first_seed": self.first_seed,
            "last_seed": self.last_seed,
            "messages": self.messages,
            "sent": self.sent,
            "virtual_seconds": round(self.virtual_ns / 1e9, 3),
            "events": self.events,
            "faults": dict(sorted(self.faults.items())),
            "fault_kinds": len(self.faults),
            "violations": len(self.failures),
            "failures": [
                {
                    "seed": report.seed,
                    "outcome": report.outcome.name.lower(),
                    "phase": report.phase,
                    "rule": report.rule,
                    "text": report.text,
                }
                for report in self.failures
            ],
            "outcome": self.outcome.name.lower(),
            "trace_hash": self._hash.hexdigest(),
        }
