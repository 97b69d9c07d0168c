"""`pulsar-trio simulate`: run the simulator from the command line.

This module owns the parts that the simulator itself must not have: a wall clock, processes, progress on a
terminal, files. Each seed is a world by itself, so the seeds are spread over the processes asked for. Reports
are added up in the order of seeds, so that the result does not depend on which process is faster.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, count, islice
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, TypeAlias

from pulsar_trio_command.console import one_line
from pulsar_trio_command.options.arguments import positive, seconds, whole
from pulsar_trio_command.signals import Interruption, interruption

from .. import Campaign, Case, Coverage, Outcome, Recorder, SeedReport, observe_seed
from ..runs.report import files
from ..runs.summary import SHOWN_FAILURES, brief, details, summary
from .mutate import add_mutate
from .progress import ProgressLine
from .recall import add_recall
from .sweep import add_shrink, add_sweep
from .watchdog import STUCK_AFTER, limited
from .workers import in_order, workers

CHUNK = 4
"""Seeds that a process gets at a time."""

UNWRITTEN = 6
"""Exit code where all is well but the report, which could not be written."""

Observed: TypeAlias = tuple[SeedReport, Coverage]

_recorder = Recorder()
"""The recorder of this process. It is entered for as long as seeds are run here."""


def add_parser(subparsers: "argparse._SubParsersAction[Any]", _: object) -> None:
    """Add the command and its actions; each sets `handler(arguments)`, which gives the exit code."""
    parser = subparsers.add_parser(
        "simulate",
        help="run client and broker against each other in simulated worlds full of faults",
        description="Deterministic simulation: the same seed gives the same world, in every process.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run = actions.add_parser(
        "run",
        help="run many seeds and check every invariant",
        description="Exit code: 0 all passed, 1 an exception, 2 an invariant, 3 liveness, 4 nondeterminism, "
        "5 coverage: a fault kind never happened in a large run, or see --require-coverage, "
        f"{UNWRITTEN} the report could not be written, 130 ended by Ctrl-C, and 143 by SIGTERM, while all "
        "passed. A first signal ends the run after the seed, a second at once; either prints what was found.",
    )
    run.add_argument("--seed", type=whole, default=0, metavar="N", help="the first seed (default 0)")
    run.add_argument(
        "--seeds", type=positive, metavar="N", help="how many seeds (default 100, or as many as fit)"
    )
    run.add_argument("--seconds", type=seconds, metavar="S", help="begin no seed after S seconds")
    run.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes (default 1)")
    run.add_argument(
        "--report", type=Path, metavar="FOLDER", help="write report.html: which situations were reached"
    )
    run.add_argument(
        "--require-coverage",
        action="store_true",
        help="fail where a fault kind, a coverage point or a move of a client's machine was never reached",
    )
    run.add_argument("--verbose", action="store_true", help="print every count by its name")
    run.add_argument("--json", action="store_true", help="print one JSON object")
    run.set_defaults(handler=_run)
    replay = actions.add_parser(
        "replay",
        help="run one seed, or the world of a file, and print its transcript",
        description="Print what happened in one seed, or in the world of a file that `shrink --save` wrote. "
        "Exit code as of run.",
    )
    which = replay.add_mutually_exclusive_group(required=True)
    which.add_argument("--seed", type=whole, metavar="N")
    which.add_argument("--file", type=Path, metavar="FILE", help="a case, such as those in tests/sim/seeds")
    replay.add_argument(
        "--lines", type=positive, default=200, metavar="N", help="the last N lines (default 200)"
    )
    replay.add_argument("--json", action="store_true", help="print one JSON object")
    replay.set_defaults(handler=_replay)
    add_sweep(actions)
    add_shrink(actions)
    add_recall(actions)
    add_mutate(actions)


def _seeds(first: int, number: int | None, end: Callable[[], bool]) -> Iterator[int]:
    """Seeds in order, until there are enough or it is time to end."""
    for seed in count(first) if number is None else range(first, first + number):
        if end():
            return
        yield seed


def _observe(seed: int) -> Observed:
    with limited(STUCK_AFTER):
        return observe_seed(seed, _recorder)


def _observe_all(seeds: list[int]) -> list[Observed]:
    return [_observe(seed) for seed in seeds]


def _begin() -> None:
    """A process of the pool: it records until it ends."""
    _recorder.__enter__()


def _results(seeds: Iterable[int], jobs: int, stack: ExitStack, asked: Interruption) -> Iterable[Observed]:
    if jobs == 1:
        stack.enter_context(_recorder)
        return map(_observe, seeds)
    return _bounded(stack.enter_context(workers(jobs, _begin)), seeds, jobs, asked.__bool__)


def _bounded(pool: Pool, seeds: Iterable[int], jobs: int, end: Callable[[], bool]) -> Iterator[Observed]:
    """A pool takes all work at once; portions keep a limit in seconds meaningful."""
    source = iter(seeds)
    while portion := list(islice(source, jobs * CHUNK * 4)):
        chunks = [portion[first : first + CHUNK] for first in range(0, len(portion), CHUNK)]
        yield from chain.from_iterable(in_order(pool, _observe_all, chunks, end))


def progress(campaign: Campaign, elapsed: float, seeds: int | None, seconds: float | None) -> str:
    """The progress of a running campaign, as text; `seeds` and `seconds` are its limits, None is no limit."""
    of = f" of {seeds}" if seeds is not None else ""
    left = [seconds - elapsed] if seconds is not None else []
    if seeds is not None and campaign.seeds:
        left.append((seeds - campaign.seeds) * elapsed / campaign.seeds)
    return ", ".join(
        [
            f"{campaign.seeds}{of} seeds ({campaign.seeds / elapsed:.1f}/s)",
            f"{campaign.messages:,} messages ({campaign.messages / elapsed:,.0f}/s)",
            f"{campaign.virtual_ns / 3_600e9:,.1f} virtual hours",
            f"{len(campaign.failures)} violations",
            f"{len(campaign.gaps)} gaps",
            *([f"{max(0.0, min(left)):.0f} s left"] if left else []),
        ]
    )


def _run(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    until = started + arguments.seconds if arguments.seconds is not None else None
    number = arguments.seeds if arguments.seeds is not None or until is not None else 100
    campaign = Campaign(require_coverage=arguments.require_coverage)
    line = ProgressLine(not arguments.json)
    with ExitStack() as stack, interruption() as asked:

        def end() -> bool:
            return bool(asked) or (until is not None and time.monotonic() >= until)

        seeds = _seeds(arguments.seed, number, end)
        for report, coverage in _results(seeds, arguments.jobs, stack, asked):
            campaign.add(report, coverage)
            if report.outcome is not Outcome.PASSED and not arguments.json:
                _print_failure(line, report, campaign, arguments.verbose)
            elapsed = time.monotonic() - started
            line.show(partial(progress, campaign, elapsed, number, arguments.seconds))
    line.clear()
    elapsed = time.monotonic() - started
    if arguments.json:
        found = {**campaign.as_json(), "seconds": round(elapsed, 3), "interrupted": bool(asked)}
        print(json.dumps(found, sort_keys=True))
    else:
        extra = details(campaign) if arguments.verbose else []
        print("\n".join([*(["interrupted"] if asked else []), *extra, *summary(campaign, elapsed)]))
    written = arguments.report is None or _write(files(campaign, elapsed), arguments.report)
    if asked and not campaign.failures:
        return asked.exit_code
    return int(campaign.outcome) or (0 if written else UNWRITTEN)


def _print_failure(line: ProgressLine, report: SeedReport, campaign: Campaign, verbose: bool) -> None:
    """Print a failure as it happens, so long as there are few."""
    if verbose:
        line.print(str(report))
    elif len(campaign.failures) <= SHOWN_FAILURES:
        line.print(brief(report))


def _write(files_by_name: dict[str, str], folder: Path) -> bool:
    """Make the folder and write the files; False where that failed, after an error message."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files_by_name.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"pulsar-trio simulate: the report cannot be written: {error}", file=sys.stderr)
        return False
    return True


def _written_down(file: Path) -> Case:
    """The world of a file. Raises `ValueError` where there is no such file, or no world in it."""
    try:
        return Case.from_json(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{file} holds no world: {error}") from error


def _replay(arguments: argparse.Namespace) -> int:
    try:
        case = Case.of_seed(arguments.seed) if arguments.file is None else _written_down(arguments.file)
    except ValueError as error:
        print(f"pulsar-trio simulate: {one_line(str(error))}", file=sys.stderr)
        return 2
    report = case.run(keep_trace=True)
    lines = report.transcript[-arguments.lines :]
    if arguments.json:
        found = {"seed": report.seed, "outcome": report.outcome.name.lower(), "rule": report.rule}
        found |= {"text": report.text, "phase": report.phase, "trace_hash": report.trace_hash}
        print(json.dumps({**found, "transcript": lines}, sort_keys=True))
    else:
        print("\n".join(lines))
        print(report)
    return int(report.outcome)
