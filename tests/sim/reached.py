"""Coverage of the fixed seeds: faults, coverage points, and inputs by state.

`reached.txt` lists what several seeds reach, so that a change of the draws cannot lose it by chance. `python
-m tests.sim.reached` writes it anew.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pulsar_sim import Campaign, Coverage, Recorder, SeedReport, observe_seed

FIXED_SEEDS = range(200)

OFTEN = 8
"""Seeds that must reach a line of `reached.txt`, at least."""

FILE = Path(__file__).with_name("reached.txt")


def reached(report: SeedReport, coverage: Coverage) -> Iterator[str]:
    """Yield what one seed has reached, or many."""
    yield from (f"fault {name}" for name in report.faults)
    yield from (f"coverage point {name}" for name in coverage.points)
    yield from (f"{machine}: {column} in {row}" for machine, row, column in coverage.cells)


def run_fixed_seeds() -> tuple[Campaign, Counter[str]]:
    """Return the campaign of all fixed seeds, and the number of seeds that reached each line."""
    campaign, seeds = Campaign(), Counter[str]()
    with Recorder() as recorder:
        for seed in FIXED_SEEDS:
            report, coverage = observe_seed(seed, recorder)
            campaign.add(report, coverage)
            seeds.update(reached(report, coverage))
    return campaign, seeds


def main() -> None:
    _, seeds = run_fixed_seeds()
    FILE.write_text("".join(f"{name}\n" for name in sorted(seeds) if seeds[name] >= OFTEN))


if __name__ == "__main__":
    main()
