"""`pulsar-trio simulate`: run the simulator from the command line.

Owns what the simulator itself must not have: a wall clock, processes, progress on a terminal. Each seed is a
world by itself, so seeds are handed out to as many processes as asked for; reports are added up in the order
of seeds, so that the result does not depend on who was faster.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from multiprocessing import get_context
from multiprocessing.pool import Pool
from typing import Any

from pulsar_sansio.sim import Campaign, Outcome, SeedReport, World, run_seed

from .arguments import positive, seconds, whole
from .recall import add_recall
from .sweep import add_shrink, add_sweep

CHUNK = 4
"""Seeds handed to a process at a time."""

PROGRESS_EVERY = 1.0
"""Seconds."""


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Add the command and what belongs to it; `handler(arguments)` gives the exit code."""
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
        "5 a fault kind that never happened in a large run.",
    )
    run.add_argument("--seed", type=whole, default=0, metavar="N", help="the first seed (default 0)")
    run.add_argument(
        "--seeds", type=positive, metavar="N", help="how many seeds (default 100, or as many as fit)"
    )
    run.add_argument("--seconds", type=seconds, metavar="S", help="stop handing out seeds after S seconds")
    run.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes (default 1)")
    run.add_argument("--json", action="store_true", help="print one JSON object")
    run.set_defaults(handler=_run)
    replay = actions.add_parser(
        "replay", help="run one seed and print its transcript", description="Print what happened in one seed."
    )
    replay.add_argument("--seed", type=whole, required=True, metavar="N")
    replay.add_argument(
        "--lines", type=positive, default=200, metavar="N", help="the last N lines (default 200)"
    )
    replay.add_argument("--json", action="store_true", help="print one JSON object")
    replay.set_defaults(handler=_replay)
    add_sweep(actions)
    add_shrink(actions)
    add_recall(actions)


def _seeds(first: int, number: int | None, until: float | None) -> Iterator[int]:
    """Seeds in order, until there are enough or the time is up."""
    for seed in count(first) if number is None else range(first, first + number):
        if until is not None and time.monotonic() >= until:
            return
        yield seed


def _reports(seeds: Iterable[int], jobs: int, stack: ExitStack) -> Iterable[SeedReport]:
    if jobs == 1:
        return map(run_seed, seeds)
    pool = stack.enter_context(get_context("spawn").Pool(jobs))
    return _bounded(pool, seeds, jobs)


def _bounded(pool: Pool, seeds: Iterable[int], jobs: int) -> Iterator[SeedReport]:
    """`imap` takes all seeds at once; portions keep a limit in seconds meaningful."""
    source = iter(seeds)
    while portion := list(islice(source, jobs * CHUNK * 4)):
        yield from pool.imap(run_seed, portion, CHUNK)


def _run(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    until = started + arguments.seconds if arguments.seconds is not None else None
    number = arguments.seeds if arguments.seeds is not None or until is not None else 100
    campaign = Campaign()
    show = sys.stderr.isatty() and not arguments.json
    next_progress = started + PROGRESS_EVERY
    with ExitStack() as stack:
        for report in _reports(_seeds(arguments.seed, number, until), arguments.jobs, stack):
            campaign.add(report)
            if report.outcome is not Outcome.PASSED and not arguments.json:
                print(report, file=sys.stderr)
            now = time.monotonic()
            if show and now >= next_progress:
                next_progress = now + PROGRESS_EVERY
                print(f"\r{campaign.seeds} seeds, {campaign.messages} messages", end="", file=sys.stderr)
    if show:
        print("\r", end="", file=sys.stderr)
    seconds = time.monotonic() - started
    if arguments.json:
        result = campaign.as_json()
        result["seconds"] = round(seconds, 3)
        print(json.dumps(result, sort_keys=True))
    else:
        _print_summary(campaign, seconds)
    return int(campaign.outcome)


def _print_summary(campaign: Campaign, seconds: float) -> None:
    print(
        f"{campaign.seeds} seeds in {seconds:.1f} s ({campaign.seeds / seconds:.1f}/s): "
        f"{campaign.messages} messages delivered and acknowledged ({campaign.messages / seconds:,.0f}/s), "
        f"{campaign.virtual_ns / 1e9:,.0f} virtual seconds, {campaign.events} events"
    )
    print(f"{sum(campaign.faults.values())} faults of {len(campaign.faults)} kinds:")
    for name, number in sorted(campaign.faults.items(), key=lambda item: (-item[1], item[0])):
        print(f"  {number:8} {name}")
    if campaign.missing_faults:
        print(f"never happened: {', '.join(campaign.missing_faults)}")
    print(f"{len(campaign.failures)} violations")
    for report in campaign.failures[:20]:
        print(f"  {report}")
    print(f"trace hash {campaign.as_json()['trace_hash']}")


def _replay(arguments: argparse.Namespace) -> int:
    report = World(arguments.seed, keep_trace=True).run()
    lines = report.transcript[-arguments.lines :]
    if arguments.json:
        found = {"seed": report.seed, "outcome": report.outcome.name.lower(), "rule": report.rule}
        found |= {"text": report.text, "phase": report.phase, "trace_hash": report.trace_hash}
        print(json.dumps({**found, "transcript": lines}, sort_keys=True))
    else:
        print("\n".join(lines))
        print(report)
    return int(report.outcome)
