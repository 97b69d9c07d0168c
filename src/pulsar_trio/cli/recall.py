"""`pulsar-trio simulate recall`: how many seeds the simulator needs to notice each bug of the bank.

Owns the processes, the progress and what is printed; the bank and the trying of seeds know no clock. Bugs are
handed out one by one, and reported in the order of the bank, whoever is faster.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from multiprocessing import get_context

from pulsar_sansio.sim.bank import BANK
from pulsar_sansio.sim.recall import SEEDS, Recall, Recalled, recall_one

from .arguments import positive, whole

SURVIVED = 5
"""Exit code where a bug was not noticed: a fault or a check is missing."""


def add_recall(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The action `recall`."""
    parser = actions.add_parser(
        "recall",
        help="plant known bugs, one after the other, and see whether the simulator notices",
        description="Each bug of the bank is planted and seeds are run until one fails. Exit code: 0 all "
        f"were noticed, {SURVIVED} some were not.",
    )
    parser.add_argument(
        "--bug", action="append", metavar="NAME", help="only this one, or these; a name or BUG-nnn"
    )
    parser.add_argument(
        "--seeds", type=positive, default=SEEDS, metavar="N", help=f"for each bug, at most (default {SEEDS})"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="the first seed (default 0)")
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--list", action="store_true", help="name the bugs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_recall)


def _chosen(wanted: list[str] | None) -> list[str]:
    """The names of the bugs that are meant. Raises `ValueError` for what is no bug's name."""
    if not wanted:
        return list(BANK)
    for each in wanted:
        if each not in BANK and all(bug.origin != each for bug in BANK.values()):
            raise ValueError(f"no bug is called {each!r}; --list names them")
    return [name for name, bug in BANK.items() if name in wanted or bug.origin in wanted]


def _try(work: tuple[str, int, int]) -> Recalled:
    return recall_one(*work)


def _results(names: list[str], seeds: int, first: int, jobs: int) -> Iterator[Recalled]:
    work = [(name, seeds, first) for name in names]
    if jobs == 1:
        yield from map(_try, work)
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_try, work)


def _recall(arguments: argparse.Namespace) -> int:
    if arguments.list:
        for bug in BANK.values():
            print(f"{bug.name:52} {bug.origin:8} {bug.text}")
        return 0
    try:
        names = _chosen(arguments.bug)
    except ValueError as error:
        print(f"pulsar-trio simulate: {error}", file=sys.stderr)
        return 2
    started = time.monotonic()
    found = Recall([])
    for each in _results(names, arguments.seeds, arguments.seed, arguments.jobs):
        found.bugs.append(each)
        if not arguments.json:
            print(_line(each), flush=True)
    elapsed = time.monotonic() - started
    if arguments.json:
        print(json.dumps({**found.as_json(), "seconds": round(elapsed, 3)}, sort_keys=True))
    else:
        result = found.as_json()
        print(
            f"{result['planted']} planted, {result['caught']} caught, {result['right']} of them by the "
            f"invariant that is right; seeds to detection: median {result['median_seeds']:g}, at most "
            f"{result['most_seeds']}; {elapsed:.0f} s"
        )
        for each in found.survivors:
            print(f"not caught: {each.name}: {each.text}")
    return SURVIVED if found.survivors else 0


def _line(bug: Recalled) -> str:
    if not bug.caught:
        return f"{bug.name:52} {bug.origin:8} not caught in {bug.seeds} seeds"
    mark = "" if bug.right else "  (expected " + ", ".join(bug.caught_by) + ")"
    return f"{bug.name:52} {bug.origin:8} {bug.seeds:4} seeds  {bug.rule}{mark}"
