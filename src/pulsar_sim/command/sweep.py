"""`pulsar-trio simulate sweep` and `shrink`: one scenario with something different at every point, and one
failing seed made small.

This module owns the time limits and the output; the sweeps and the shrinker themselves know no clock.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from pulsar_trio_command.options.arguments import positive, seconds, whole
from pulsar_trio_command.signals import Interruption, interruption

from .. import KINDS, SCENARIOS, Outcome, SweepReport
from ..runs.shrink import MAX_RUNS, Shrinker, Shrunk, readable, shrink
from ..runs.sweeps.interleavings import DEPTH, DEVIATIONS
from ..runs.sweeps.sweep import find, run_point, sweep
from .progress import ProgressLine
from .workers import in_order, workers

Limits: TypeAlias = tuple[int, int, Callable[[], bool], int, int]
"""The limits of a sweep: every so many points, the first point, the test for enough, depth, deviations."""


def add_sweep(actions: "argparse._SubParsersAction[Any]") -> None:
    """The action `sweep`."""
    parser = actions.add_parser(
        "sweep",
        help="repeat short conversations: cut at every byte, brokers killed at every event, other orders",
        description="cut: a wire ends after every byte, in both directions, by a reset, in silence or in "
        "good order. timers: after every event all timers fire early, or are held back. credentials: those "
        "of a connection expire after every byte, and are renewed. restarts: after every event a broker is "
        "killed, with and without the write in progress, and starts again up to 6 s later, or all topics are "
        "unloaded; and every frame of a transaction coordinator is lost, late or refused. interleavings (of "
        "the small scenarios): every order of events with few deviations. Exit code as of run; Ctrl-C prints "
        "what was found by then.",
    )
    parser.add_argument("--scenario", default="all", metavar="NAME", help="all (default) or one of --list")
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="cut", help="default cut")
    parser.add_argument("--every", type=positive, default=1, metavar="N", help="only every Nth point")
    parser.add_argument("--first", type=whole, default=0, metavar="N", help="leave out the first N points")
    parser.add_argument("--depth", type=positive, default=DEPTH, metavar="N", help="choices that are varied")
    parser.add_argument(
        "--deviations", type=whole, default=DEVIATIONS, metavar="N", help="choices that are not the earliest"
    )
    parser.add_argument("--seconds", type=seconds, metavar="S", help="begin no run after S seconds")
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="processes (default 1), a scenario each"
    )
    parser.add_argument("--point", metavar="TEXT", help="run one point of one scenario, print its transcript")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_sweep)


def add_shrink(actions: "argparse._SubParsersAction[Any]") -> None:
    """The action `shrink`."""
    parser = actions.add_parser(
        "shrink",
        help="make a failing seed small enough to read",
        description="Leave out faults, applications, messages and features while the same invariant is "
        "broken, and print what is left. Exit code: that of the seed; 0 where it passes. Ctrl-C prints the "
        "smallest case that was found by then.",
    )
    parser.add_argument("--seed", type=whole, required=True, metavar="N")
    parser.add_argument("--seconds", type=seconds, default=60.0, metavar="S", help="stop then (default 60)")
    parser.add_argument(
        "--save", type=Path, metavar="FILE", help="write the case to a file, for replay and tests"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_shrink)


def _until(limit: float | None) -> Callable[[], bool]:
    """Build the test for the end of the time. Other processes get it, too, so it knows nothing of signals."""
    return partial(_over, None if limit is None else time.monotonic() + limit)


def _over(end: float | None) -> bool:
    return end is not None and time.monotonic() >= end


def _either(first: Callable[[], bool], second: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: first() or second()


def _wrong(error: ValueError) -> int:
    print(f"pulsar-trio simulate: {error}", file=sys.stderr)
    return 2


def _sweep(arguments: argparse.Namespace) -> int:
    if arguments.list:
        for each in SCENARIOS.values():
            print(f"{each.name:28} {each.text}{' (small)' if each.small else ''}")
        return 0
    try:
        scenarios = list(SCENARIOS.values()) if arguments.scenario == "all" else [find(arguments.scenario)]
        if arguments.point is not None:
            return _point(arguments)
    except ValueError as error:
        return _wrong(error)
    started = time.monotonic()
    reports: list[SweepReport] = []
    line = ProgressLine(not arguments.json)
    with interruption() as asked:
        for report in _results(arguments, [each.name for each in scenarios], line, asked):
            reports.append(report)
            line.clear()
            if not arguments.json:
                _print(report)
    line.clear()
    failures = [report for report in reports if report.failures]
    runs = sum(report.runs for report in reports)
    elapsed = time.monotonic() - started
    if arguments.json:
        found: dict[str, Any] = {"sweeps": [report.as_json() for report in reports]}
        found |= {"scenarios": len({report.scenario for report in reports}), "runs": runs}
        found |= {"points": sum(report.points for report in reports), "seconds": round(elapsed, 3)}
        found["violations"] = sum(len(report.failures) for report in reports)
        found["distinct"] = sum(report.distinct for report in reports)
        found["interrupted"] = bool(asked)
        print(json.dumps(found, sort_keys=True))
    else:
        ended = "interrupted: " if asked else ""
        number = sum(len(each.failures) for each in failures)
        print(f"{ended}{runs} runs in {elapsed:.1f} s, {number} failures")
    if asked and not failures:
        return asked.exit_code
    return int(min((report.outcome for report in failures), default=Outcome.PASSED))


def _results(
    arguments: argparse.Namespace, names: list[str], line: ProgressLine, asked: Interruption
) -> Iterator[SweepReport]:
    """Give reports in the order of kinds and scenarios, without scenarios for which no time was left.

    The order does not depend on which process is faster. This process does not know the progress of other
    processes: with those, only whole scenarios count as progress.
    """
    small = {name for name in names if SCENARIOS[name].small or len(names) == 1}
    work = [
        (kind, name)
        for kind in (KINDS if arguments.kind == "all" else (arguments.kind,))
        for name in names
        if kind != "interleavings" or name in small
    ]
    over = _until(arguments.seconds)
    if arguments.jobs == 1:
        one = partial(_one, _limits(arguments, _either(over, asked.__bool__)))
        started = time.monotonic()
        for number, each in enumerate(work, 1):
            of_all = f"sweep {number} of {len(work)}"
            watch = partial(_watch, line, of_all, started, arguments.seconds)
            if (report := one(each, watch)) is not None:
                yield report
        return
    with workers(arguments.jobs) as pool:
        one = partial(_one, _limits(arguments, over))
        yield from filter(None, in_order(pool, one, work, asked.__bool__))


def _limits(arguments: argparse.Namespace, enough: Callable[[], bool]) -> Limits:
    return arguments.every, arguments.first, enough, arguments.depth, arguments.deviations


def _one(
    limits: Limits,
    work: tuple[str, str],
    watch: Callable[[SweepReport, int], None] = lambda report, chosen: None,
) -> SweepReport | None:
    every, first, enough, depth, deviations = limits
    kind, name = work
    return None if enough() else sweep(find(name), kind, every, first, enough, depth, deviations, watch)


def _watch(
    line: ProgressLine, of_all: str, started: float, seconds: float | None, report: SweepReport, chosen: int
) -> None:
    elapsed = time.monotonic() - started
    line.show(lambda: f"{of_all}, {sweep_progress(report, chosen, elapsed, seconds)}")


def sweep_progress(report: SweepReport, chosen: int, elapsed: float, seconds: float | None) -> str:
    """The progress of a scenario's sweep, as text. It counts only the orders that were found so far."""
    known = "at least " if report.kind == "interleavings" else ""
    return ", ".join(
        [
            f"{report.scenario} {report.kind}",
            f"{report.runs} of {known}{chosen} points",
            f"{len(report.failures)} failures",
            *([f"{max(0.0, seconds - elapsed):.0f} s left"] if seconds is not None else []),
        ]
    )


def _print(report: SweepReport) -> None:
    print(
        f"{report.scenario:28} {report.kind:14} {report.runs:6} of {report.points:6} points, "
        f"{len(report.failures)} failures",
        flush=True,
    )
    for point, failure in report.failures[:5]:
        print(f"  {point!r}: {failure.rule} in phase {failure.phase}: {failure.text}")


def _point(arguments: argparse.Namespace) -> int:
    report = run_point(find(arguments.scenario), arguments.point, keep_trace=True)
    lines = readable(report.transcript)
    if arguments.json:
        found = {"scenario": arguments.scenario, "point": arguments.point, "rule": report.rule}
        found |= {"outcome": report.outcome.name.lower(), "text": report.text, "phase": report.phase}
        print(json.dumps({**found, "transcript": lines}, sort_keys=True))
    else:
        print("\n".join(lines))
        print(f"{report.outcome.name.lower()} {report.rule} {report.text}".strip())
    return int(report.outcome)


def shrink_progress(shrinker: Shrinker, elapsed: float, seconds: float) -> str:
    """The progress of a shrinker, as text: the worlds tried, and the rest of the one that fails."""
    profile = shrinker.case.profile
    left = [
        f"{len(shrinker.case.strikes or ())} faults",
        f"{len(profile.producers)} producers",
        f"{len(profile.consumers)} consumers",
        f"{profile.messages} messages",
    ]
    tried = f"{shrinker.runs} of at most {MAX_RUNS} worlds"
    return f"{tried}; still in it: {', '.join(left)}; {max(0.0, seconds - elapsed):.0f} s left"


def _shrink(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    line = ProgressLine(not arguments.json)

    def watch(shrinker: Shrinker) -> None:
        elapsed = time.monotonic() - started
        line.show(lambda: shrink_progress(shrinker, elapsed, arguments.seconds))

    found: Shrunk | None = None
    with interruption() as asked:
        try:
            enough = _either(_until(arguments.seconds), asked.__bool__)
            found = shrink(arguments.seed, enough, watch=watch)
        except ValueError as error:
            print(error)
            return 0
        finally:
            line.clear()
    if found is None:  # a second signal came before the end of one world
        print("interrupted", file=sys.stderr)
        return asked.exit_code
    if arguments.save is not None:
        arguments.save.write_text(json.dumps(found.case.as_json(), indent=1, sort_keys=True) + "\n")
    if arguments.json:
        plain = {"case": found.case.as_json(), "runs": found.runs, "complete": found.complete}
        plain |= {"rule": found.report.rule}
        plain |= {"text": found.report.text, "transcript": found.transcript}
        print(json.dumps(plain, sort_keys=True))
    else:
        print(found)
    return int(found.report.outcome)
