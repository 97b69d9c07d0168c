"""The simulator's own speed: seeds and messages per second of one process on one core, every check on.

Owns what is counted. A message counts when it was both delivered to an application and acknowledged. Checked
is what `pulsar-trio simulate run` checks: the reference model, both watches, the rules at both ends of every
wire, the trace's hash. Rates are by processor time, which is what one core would give that does nothing else;
the rate by the clock stands beside it.
"""

import time
from dataclasses import dataclass

from pulsar_sim import World
from pulsar_sim.engine.failures import Outcome

MESSAGES_WANTED = 5_000
"""A second."""
SEEDS_WANTED = 20
"""A second."""
BATCH_WANTED = 5.0
"""Messages in an entry, on average, at most: larger batches would make more messages of the same work."""

WARM_UP = 3
"""Seeds before the clock starts."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result of a run of seeds."""

    seeds: int
    messages: int
    """Messages that were delivered and acknowledged."""
    entries: int
    """Entries of all logs."""
    stored: int
    """Messages in those entries."""
    failures: int
    seconds: float
    cpu_seconds: float

    @property
    def seeds_a_second(self) -> float:
        return self.seeds / self.cpu_seconds

    @property
    def messages_a_second(self) -> float:
        return self.messages / self.cpu_seconds

    @property
    def mean_batch(self) -> float:
        return self.stored / max(1, self.entries)

    def text(self) -> str:
        """Lines for people."""
        failed = f", {self.failures} of them FAILED" if self.failures else ""
        return "\n".join(
            [
                f"simulator, one process, every check on: {self.seeds} seeds{failed}, {self.messages:,} "
                "messages delivered and acknowledged",
                f"  {'':<22}{'measured':>10}{'target':>10}{'by the clock':>14}",
                f"  {'seeds a second':<22}{self.seeds_a_second:>10.1f}{SEEDS_WANTED:>10}"
                f"{self.seeds / self.seconds:>14.1f}",
                f"  {'messages a second':<22}{self.messages_a_second:>10,.0f}{MESSAGES_WANTED:>10,}"
                f"{self.messages / self.seconds:>14,.0f}",
                f"  {'mean batch':<22}{self.mean_batch:>10.2f}{f'≤ {BATCH_WANTED:g}':>10}",
            ]
        )

    def record(self) -> dict[str, object]:
        """A record for build/bench.json: the fields of the other rows, empty where they say nothing here, and
        some of its own."""
        return {
            "workload": "simulate",
            "size": None,
            "ours": round(self.messages_a_second),
            "official": None,
            "ratio": None,
            "ours_cpu_us": round(self.cpu_seconds / max(1, self.messages) * 1e6, 3),
            "official_cpu_us": None,
            "seeds_a_second": round(self.seeds_a_second, 2),
            "mean_batch": round(self.mean_batch, 2),
            "seeds": self.seeds,
            "failures": self.failures,
            "targets": {"ours": MESSAGES_WANTED, "seeds_a_second": SEEDS_WANTED, "mean_batch": BATCH_WANTED},
        }


def simulate(seconds: float, first_seed: int = 1_000) -> Simulated:
    """Run seeds from `first_seed` on for about `seconds` of processor time, at least one."""
    for seed in range(WARM_UP):
        World(seed).run()
    messages = entries = stored = failures = seeds = 0
    start, cpu_start = time.perf_counter(), time.process_time()
    while not seeds or time.process_time() - cpu_start < seconds:
        world = World(first_seed + seeds)
        report = world.run()
        seeds += 1
        messages += report.messages
        failures += report.outcome is not Outcome.PASSED
        for topic in world.model.topics.values():
            entries += len(topic.log)
            stored += topic.messages
    return Simulated(
        seeds,
        messages,
        entries,
        stored,
        failures,
        time.perf_counter() - start,
        time.process_time() - cpu_start,
    )
