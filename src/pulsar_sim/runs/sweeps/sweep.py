"""Sweeps: the same short conversation again and again, each time with one thing different.

Owns the runs over all points of a scenario. *Cut* (`cuts`): a wire ends. *Timers* (`timers`): all machines
are woken too early, or too late. *Credentials* (`expiries`): those of a connection expire. *Restarts*
(`restarts`): a broker is killed and starts again, or a coordinator of transactions is disturbed.
*Interleavings* (`interleavings`): another event than the earliest happens next. Everything is checked as in
any world, so a point passes or names the invariant that is broken; its text is enough to run it again.
"""

from collections.abc import Callable, Sequence

from ...engine.failures import Outcome
from ...world.world import SeedReport
from ..scenarios import SCENARIOS, Scenario
from .cuts import Cut, CutWorld, cuts
from .expiries import ExpiringWorld, Expiry, expiries
from .interleavings import DEPTH, DEVIATIONS, Order, Orders, OrderWorld
from .restarts import WORDS, RestartWorld, parse, restarts
from .sweep_report import SweepReport
from .timers import Nudge, NudgedWorld, nudges

KINDS = ("cut", "timers", "credentials", "restarts", "interleavings")


def find(name: str) -> Scenario:
    """Raises `ValueError` where there is no such scenario."""
    found = SCENARIOS.get(name)
    if found is None:
        raise ValueError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return found


def run_point(scenario: Scenario, point: str, keep_trace: bool = False) -> SeedReport:
    """One point again, by its text. Raises `ValueError` for a text that names none."""
    word = point.partition(" ")[0]
    if word == "wire":
        return CutWorld(scenario, Cut.parse(point), keep_trace).run()
    if word == "expiry":
        return ExpiringWorld(scenario, Expiry.parse(point), keep_trace).run()
    if word == "step":
        return NudgedWorld(scenario, Nudge.parse(point), keep_trace).run()
    if word in WORDS:
        return RestartWorld(scenario, parse(point), keep_trace).run()
    if word == "order":
        return OrderWorld(scenario, Order.parse(point), keep_trace=keep_trace).run()
    raise ValueError(f"no point: {point!r}")


def sweep(
    scenario: Scenario,
    kind: str,
    every: int = 1,
    first: int = 0,
    enough: Callable[[], bool] = lambda: False,
    depth: int = DEPTH,
    deviations: int = DEVIATIONS,
    watch: Callable[[SweepReport, int], None] = lambda report, chosen: None,
) -> SweepReport:
    """Sweep one scenario in one way: every `every`th point from `first` on, until it is enough.

    For interleavings it runs all orders with at most `deviations` among the first `depth` choices. Then
    `points` is the number of orders found so far, since each run shows more of them.

    It calls `watch` after each point, with the number of points to run, as far as that is known.
    """
    report = SweepReport(scenario.name, kind)
    if kind == "interleavings":
        orders = Orders(scenario, depth, deviations)
        for order, result in orders:
            report.points = report.runs + 1 + orders.waiting
            _count(report, str(order), result)
            watch(report, report.points)
            if orders.waiting and enough():
                return report
    else:
        points = POINTS[kind](scenario)
        report.points = len(points)
        chosen = points[first::every]
        for point in chosen:
            if enough():
                return report
            _count(report, str(point), run_point(scenario, str(point)))
            watch(report, len(chosen))
    report.complete = report.runs == report.points
    return report


POINTS: dict[str, Callable[[Scenario], Sequence[object]]] = {
    "cut": cuts,
    "timers": nudges,
    "credentials": expiries,
    "restarts": restarts,
}
"""The points of each kind of sweep; those of interleavings are found one by one."""


def _count(report: SweepReport, point: str, result: SeedReport) -> None:
    report.runs += 1
    report._traces.add(result.trace_hash)
    if result.outcome is not Outcome.PASSED:
        report.failures.append((point, result))
