"""Many seeds: their reports and coverage added up, and the checks that need more than one run.

This module owns the sum, its gaps and the exit code. It has no clock: a caller that runs a campaign for a
number of seconds looks at its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from math import comb
from typing import Any

from ..engine.failures import Outcome
from ..faults.catalogue import FAULTS, SPECIAL_FAULTS
from ..world.world import SeedReport, World
from .coverage import Coverage, Recorder

RERUN_EVERY = 50
"""One seed in so many is run twice, and must give the same trace."""

ENOUGH_SEEDS = 800
"""The number of seeds from which on a missing fault kind is a failure of the simulator.

Apart from the kinds of worlds of their own, the rarest kinds happen some ten times in so many seeds.
"""


def run_seed(seed: int) -> SeedReport:
    """Run one seed; every `RERUN_EVERY`th twice."""
    report = World(seed).run()
    _repeat(report)
    return report


def observe_seed(seed: int, recorder: Recorder) -> tuple[SeedReport, Coverage]:
    """Run a seed as `run_seed` does, and give its coverage, too. The recorder has been entered."""
    report = World(seed).run()
    coverage = recorder.take()
    _repeat(report)
    recorder.take()
    return report, coverage


def _repeat(report: SeedReport) -> None:
    """INV-D1: the same seed gives the same trace."""
    if report.seed % RERUN_EVERY == 0 and report.outcome is Outcome.PASSED:
        again = World(report.seed).run()
        if again.trace_hash != report.trace_hash:
            report.outcome = Outcome.NONDETERMINISM
            report.rule = "INV-D1"
            report.text = f"trace {report.trace_hash} the first time, {again.trace_hash} the second"


def run_seeds(seeds: Iterable[int]) -> Iterator[SeedReport]:
    for seed in seeds:
        yield run_seed(seed)


@dataclass(slots=True)
class Campaign:
    """The sum of reports. Add them in the order of their seeds: the hash depends on it."""

    require_coverage: bool = False
    """When True, each gap is a failure of the campaign, with any number of seeds."""
    seeds: int = 0
    messages: int = 0
    sent: int = 0
    virtual_ns: int = 0
    events: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    fault_seeds: dict[str, int] = field(default_factory=dict)
    """Fault kind -> in how many seeds."""
    fault_pairs: dict[tuple[str, str], int] = field(default_factory=dict)
    """Two kinds, in the order of the alphabet -> in how many seeds both."""
    coverage: Coverage = field(default_factory=Coverage)
    first_reached: dict[str, int] = field(default_factory=dict)
    """Coverage point -> the first seed that reached it: one to replay."""
    failures: list[SeedReport] = field(default_factory=list)
    first_seed: int | None = None
    last_seed: int | None = None
    _hash: "blake2b" = field(default_factory=lambda: blake2b(digest_size=16))

    def add(self, report: SeedReport, coverage: Coverage | None = None) -> None:
        self.seeds += 1
        self.messages += report.messages
        self.sent += report.sent
        self.virtual_ns += report.virtual_ns
        self.events += report.events
        for name, count in report.faults.items():
            self.faults[name] = self.faults.get(name, 0) + count
            self.fault_seeds[name] = self.fault_seeds.get(name, 0) + 1
        for pair in combinations(sorted(report.faults), 2):
            self.fault_pairs[pair] = self.fault_pairs.get(pair, 0) + 1
        if coverage is not None:
            self.coverage.add(coverage)
            for name in coverage.points:
                self.first_reached.setdefault(name, report.seed)
        if self.first_seed is None:
            self.first_seed = report.seed
        self.last_seed = report.seed
        self._hash.update(f"{report.seed} {report.trace_hash}\n".encode())
        if report.outcome is not Outcome.PASSED:
            self.failures.append(report)

    @property
    def missing_faults(self) -> list[str]:
        """The fault kinds of the catalogue that never happened."""
        return sorted(name for name in FAULTS if name not in self.faults)

    @property
    def fault_kinds(self) -> list[str]:
        """The fault kinds of the catalogue, and others that were counted: the environment's doing."""
        return sorted({*FAULTS, *self.faults})

    @property
    def gaps(self) -> list[str]:
        """The fault kinds, coverage points and moves of the client's machines that no seed reached."""
        return [
            *(f"fault {name}" for name in self.missing_faults),
            *(f"coverage point {name}" for name in self.coverage.missing_points),
            *(f"move {move}" for move in self.coverage.missing_moves),
        ]

    @property
    def outcome(self) -> Outcome:
        """The outcome of the worst failure: the first one in the order of the codes."""
        if self.failures:
            return min(report.outcome for report in self.failures)
        if self.seeds >= ENOUGH_SEEDS and set(self.missing_faults) - set(SPECIAL_FAULTS):
            return Outcome.COVERAGE
        if self.require_coverage and self.gaps:
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
            "coverage": {
                **self.coverage.as_json(),
                "first_seeds": dict(sorted(self.first_reached.items())),
                "fault_pairs": {"seen": len(self.fault_pairs), "possible": comb(len(self.fault_kinds), 2)},
                "gaps": self.gaps,
            },
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
