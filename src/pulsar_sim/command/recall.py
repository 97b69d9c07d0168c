"""`pulsar-trio simulate recall`: how many seeds the simulator needs to notice each bug of the bank.

This module owns the processes, the progress and the output; the bank and `runs.recall` know no clock. Each
process gets one bug at a time. The command reports bugs in the order of the bank, whichever is done first.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from pulsar_trio_command.options.arguments import positive, seconds, whole
from pulsar_trio_command.signals import interruption

from ..bug_bank import BANK
from ..runs.recall import SAMPLE, SEEDS, Recall, Recalled, recall_one
from .progress import ProgressLine
from .watchdog import STUCK_AFTER, limited
from .workers import in_order, workers

SURVIVED = 5
"""Exit code where a bug was not noticed: a fault or a check is missing."""


def add_recall(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The action `recall`."""
    parser = actions.add_parser(
        "recall",
        help="plant known bugs, one after the other, and report which the simulator notices",
        description="Each bug of the bank is planted and seeds are run. Exit code: 0 all were noticed, "
        f"{SURVIVED} some were not, 130 ended by Ctrl-C, and 143 by SIGTERM, while all were; what was "
        "found by then is printed.",
    )
    parser.add_argument(
        "--bug", action="append", metavar="NAME", help="only this bug; may be repeated; a name or BUG-nnn"
    )
    parser.add_argument(
        "--sample", type=positive, default=SAMPLE, metavar="N", help=f"seeds for each bug (default {SAMPLE})"
    )
    parser.add_argument(
        "--seeds",
        type=positive,
        default=SEEDS,
        metavar="N",
        help=f"seeds at most, for a bug that the sample does not show (default {SEEDS})",
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="the first seed (default 0)")
    parser.add_argument("--seconds", type=seconds, metavar="S", help="begin with no bug after S seconds")
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


def _try(
    limit: float | None, work: tuple[str, int, int, int], end: Callable[[], bool] = lambda: False
) -> Recalled | None:
    """Return None when the time is over, or when the end came before anything was known of the bug."""
    if end() or (limit is not None and time.monotonic() >= limit):
        return None
    with limited(STUCK_AFTER + work[1]):  # a second for each seed, which is far more than they take
        found = recall_one(*work, end)
    return None if end() and not found.caught else found


def _results(names: list[str], arguments: argparse.Namespace, end: Callable[[], bool]) -> Iterator[Recalled]:
    work = [(name, arguments.seeds, arguments.seed, arguments.sample) for name in names]
    limit = None if arguments.seconds is None else time.monotonic() + arguments.seconds
    one = partial(_try, limit)
    if arguments.jobs == 1:
        yield from filter(None, (one(each, end) for each in work))
        return
    with workers(arguments.jobs) as pool:
        yield from filter(None, in_order(pool, one, work, end))


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
    line = ProgressLine(not arguments.json)
    found = Recall([])
    if not arguments.json:
        print(f"{'bug':52} {'origin':8} {'first':>5}  {'noticed':9} by")
    with interruption() as asked:
        for each in _results(names, arguments, asked.__bool__):
            found.bugs.append(each)
            line.clear()
            if not arguments.json:
                print(_line(each), flush=True)
            line.show(lambda: f"{len(found.bugs)} of {len(names)} bugs")
    line.clear()
    elapsed = time.monotonic() - started
    if arguments.json:
        result = {**found.as_json(), "seconds": round(elapsed, 3), "interrupted": bool(asked)}
        print(json.dumps(result, sort_keys=True))
    else:
        if asked:
            print(f"interrupted after {len(found.bugs)} of {len(names)} bugs")
        _print_summary(found, elapsed)
    if found.survivors:
        return SURVIVED
    return asked.exit_code if asked else 0


def _line(bug: Recalled) -> str:
    """First seed to notice counted from 1, seeds that noticed of those tried, and the invariants; what is not
    expected has a question mark."""
    rules = " ".join(
        f"{rule}{'' if rule in bug.caught_by else '?'}×{times}" for rule, times in bug.rules.items()
    )
    first = str(bug.seeds) if bug.caught else "-"
    return f"{bug.name:52} {bug.origin:8} {first:>5}  {f'{len(bug.notices)}/{bug.tried}':9} {rules}".rstrip()


def _print_summary(found: Recall, elapsed: float) -> None:
    result = found.as_json()
    print(
        f"{result['planted']} planted, {result['caught']} caught, {result['right']} of them by an "
        f"invariant that is right; seeds to detection: median {result['median_seeds']:g}, at most "
        f"{result['most_seeds']}; {elapsed:.0f} s"
    )
    for each in found.survivors:
        print(f"not caught: {each.name}: {each.broken or each.text}")
