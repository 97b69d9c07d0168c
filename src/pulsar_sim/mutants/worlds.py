"""The simulator's trial of a mutant: worlds by name, broadest first, and how one of them fails.

Owns the choice: the scenarios of the sweeps as they are, drawn worlds, then points of the sweeps. The names
are texts, so that processes can hand them to each other and a report can name the one that failed.
"""

from collections.abc import Iterator

from ..engine.failures import Outcome
from ..runs.case import Case
from ..runs.scenarios import SCENARIOS
from ..runs.sweeps.cuts import cuts
from ..runs.sweeps.sweep import find, run_point
from ..runs.sweeps.timers import nudges
from ..world.world import SeedReport

DRAWN = 1000
"""Drawn worlds, unless told otherwise: what a minute of processor time holds."""

POINTS = 16
"""Points of each scenario and kind of sweep."""

IN_ORDER = "order of time"


def worlds(drawn: int = DRAWN, points: int = POINTS) -> Iterator[str]:
    """Names for `broken_by`: all scenarios, the drawn worlds from seed 0 on, points of the sweeps.

    The points lie evenly over a scenario. The first has another distance in each scenario.
    """
    for name in SCENARIOS:
        yield f"{name}: {IN_ORDER}"
    for seed in range(drawn):
        yield f"seed {seed}"
    if points:
        for number, (name, scenario) in enumerate(SCENARIOS.items()):
            for all_points in (cuts(scenario), nudges(scenario)):
                every = max(1, len(all_points) // points)
                for point in all_points[number * 7 % every :: every][:points]:
                    yield f"{name}: {point}"


def broken_by(world: str) -> str:
    """The invariant that the world breaks, or "exception", with what was found; "" where it passes."""
    report = _run(world)
    if report.outcome is Outcome.PASSED:
        return ""
    return f"{report.rule}: {report.text.strip().splitlines()[-1]}"


def _run(world: str) -> SeedReport:
    name, _, point = world.partition(": ")
    if point:
        return run_point(find(name), point)
    return Case.of_seed(int(world.removeprefix("seed "))).run()
