"""`pulsar-trio simulate mutate`: small mistakes put into the source, and whether anything notices.

This module owns the drawing, the files of results and the output. It needs a checkout, which has tests, and
a system that can fork.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pulsar_trio_command.options.arguments import positive, seconds, whole

from ..mutants import FateTable, Judged, Mutant, Reach, drawn, parse_equivalents
from ..mutants.drawing import reachable
from ..mutants.judged import EQUIVALENT, SIMULATOR, SURVIVED, TESTS
from .children import Children, EndedChild, Say
from .mutate_judges import (
    HANG,
    TARGETS,
    Collected,
    failed_test,
    in_order,
    judge,
    measure,
    noticed,
    reached,
    simulate,
    sources,
    with_tests,
)
from .progress import ProgressLine

UNNOTICED = 5
"""Exit code where a mutant was noticed by nothing: a check, a fault or a test is missing."""

MUTANTS = 100

SECONDS = 60.0
"""Processor time of the simulator for one mutant."""

TEST_SECONDS = 180
"""Processor time of the unit tests for one mutant; all of them take a sixth of it."""

CLOCK = 10
"""A process that takes so many times its processor time by the clock is ended: it waits for something."""

PORTION = 50
"""Worlds that a process measures."""

SOURCE = Path(__file__).resolve().parents[2]
ROOT = SOURCE.parent

KEPT = ROOT / "build" / "mutants"
"""The folder of measured reaches, each good for as long as no source changes."""

EQUIVALENTS = Path("tests") / "sim" / "equivalent_mutants.txt"


def add_mutate(actions: "argparse._SubParsersAction[Any]") -> None:
    """The action `mutate`."""
    parser = actions.add_parser(
        "mutate",
        help="put small mistakes into the source, one after the other, and report which are noticed",
        description="Mutants are drawn over all lines that simulated worlds reach: a comparison, a bound, a "
        "condition or a constant is changed, a statement, a reset or a return is dropped, branches are "
        "swapped. The simulator judges each, then the unit tests. For a checkout of the source. Exit code: "
        f"0 all were noticed or are marked equivalent, {UNNOTICED} some were not, 1 the code fails as it is.",
    )
    parser.add_argument(
        "--of", choices=TARGETS, default="machines", help="client and broker (default), or the adapter"
    )
    parser.add_argument(
        "--mutants", type=positive, default=MUTANTS, metavar="N", help=f"how many (default {MUTANTS})"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="which (default 0)")
    parser.add_argument(
        "--module", default="", metavar="TEXT", help="only of modules with this in their names"
    )
    parser.add_argument("--mutant", metavar="TEXT", help="instead of drawing: all with this in their names")
    parser.add_argument(
        "--worlds", type=positive, metavar="N", help="drawn worlds for each mutant, of those that reach it"
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=SECONDS,
        metavar="S",
        help=f"processor time of the simulator for each mutant (default {SECONDS:g})",
    )
    parser.add_argument("--jobs", type=positive, default=1, metavar="N", help="processes (default 1)")
    parser.add_argument("--no-tests", action="store_true", help="run the simulator only")
    parser.add_argument(
        "--equivalents",
        type=Path,
        default=ROOT / EQUIVALENTS,
        metavar="FILE",
        help=f"mutants that are left out, with reasons (default {EQUIVALENTS})",
    )
    parser.add_argument(
        "--judge-equivalents", action="store_true", help="run these too: one that is noticed is no equivalent"
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="append each result here as a line of JSON, and skip mutants that it has",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="instead of drawing: run mutants of --results again that the simulator did not notice",
    )
    parser.add_argument("--list", action="store_true", help="name the mutants")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(handler=_mutate)


class _RefusedError(Exception):
    """The command cannot do what its arguments ask for; the text says why."""


def _mutate(arguments: argparse.Namespace) -> int:
    try:
        return _Campaign(arguments).run()
    except _RefusedError as error:
        print(f"pulsar-trio simulate: {error}", file=sys.stderr)
        return 1


class _Campaign:
    """One call of the command."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        if not hasattr(os, "fork"):
            raise _RefusedError("mutate needs a system that can fork")
        self._arguments = arguments
        self._target = TARGETS[arguments.of]
        self._line = ProgressLine(not arguments.json)
        self._started = time.monotonic()
        sys.path.insert(0, str(ROOT))
        try:
            self._judge = judge(self._target)
        except ImportError as error:
            raise _RefusedError(f"mutate --of {self._target.name} needs a checkout: {error}") from error
        self._equivalents = self._read_equivalents()
        self._before = self._read_results()

    def run(self) -> int:
        arguments = self._arguments
        names = list(self._judge.worlds(*([arguments.worlds] if arguments.worlds else [])))
        worlds = self._measured("worlds", names, self._measure_worlds)
        mutants = self._chosen(worlds)
        if arguments.list:
            print("\n".join(each.name for each in mutants))
            return 0
        known = dict(self._before)
        todo = [each for each in mutants if each.name not in known]
        if arguments.again:
            todo = [each for each in mutants if known[each.name].fate != SIMULATOR]
        self._judge_all(todo, known, partial(self._start_worlds, worlds), self._simulated)
        untested = [
            each for each in mutants if known[each.name].fate == SURVIVED and not known[each.name].tested
        ]
        if untested and not arguments.no_tests:
            try:
                with_tests(self._target, ROOT, partial(self._run_tests, untested, known))
            except ImportError as error:
                raise _RefusedError(f"the unit tests need pytest, see --no-tests: {error}") from error
            except RuntimeError as error:
                raise _RefusedError(str(error)) from error
        return self._finish([known[each.name] for each in mutants])

    def _run_tests(self, mutants: list[Mutant], known: dict[str, Judged], collected: Collected) -> None:
        names = collected.names
        tests = self._measured("tests", names, partial(self._measure_tests, collected))
        self._judge_all(mutants, known, partial(self._start_tests, tests, collected), _tested)

    def _judge_all(
        self,
        mutants: list[Mutant],
        known: dict[str, Judged],
        start: Callable[[Any, Mutant], None],
        judged: Callable[[Mutant, Any], Judged],
    ) -> None:
        """Try each mutant in a process. The results are added to `known`, and to the file of results."""
        todo = list(reversed(mutants))
        done = 0
        with Children[Any](self._arguments.jobs) as children:
            while todo or children.busy:
                while todo and not children.full:
                    mutant = todo.pop()
                    if mutant.name in self._equivalents and not self._arguments.judge_equivalents:
                        known[mutant.name] = self._unnoticed(mutant)
                        self._keep(known[mutant.name])
                    else:
                        start(children, mutant)
                if children.busy:
                    ended = children.wait()
                    known[ended.key.name] = judged(ended.key, ended)
                    self._keep(known[ended.key.name])
                done += 1
                self._line.show(partial("{} of {} mutants".format, done, len(mutants)))
        self._line.clear()

    def _keep(self, judged: Judged) -> None:
        file: Path | None = self._arguments.results
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(judged.as_json()) + "\n")
        if not self._arguments.json and judged.fate != SIMULATOR:
            self._line.clear()
            print(f"{judged.fate:10} {judged.name}{f' ({judged.by})' if judged.by else ''}", flush=True)

    def _finish(self, judged: list[Judged]) -> int:
        table = FateTable.of(judged)
        elapsed = time.monotonic() - self._started
        if self._arguments.json:
            found = {**table.as_json(), "of": self._target.name, "seed": self._arguments.seed}
            found |= {"results": [each.as_json() for each in judged], "seconds": round(elapsed, 3)}
            print(json.dumps(found, sort_keys=True))
        else:
            print(table.as_markdown(), end="")
            total = table.total
            print(
                f"{sum(total.values())} mutants: "
                f"{FateTable.percent(total, SIMULATOR):.1f} % noticed by the simulation, "
                f"{FateTable.percent(total, SIMULATOR, TESTS):.1f} % with unit tests; {elapsed:.0f} s"
            )
        return UNNOTICED if table.total[SURVIVED] else 0

    # --- what there is ---

    def _read_equivalents(self) -> dict[str, str]:
        file: Path = self._arguments.equivalents
        try:
            return parse_equivalents(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if file == ROOT / EQUIVALENTS:
                return {}
            raise _RefusedError(f"{file} cannot be read") from None
        except ValueError as error:
            raise _RefusedError(f"{file}: {error}") from error

    def _read_results(self) -> dict[str, Judged]:
        """Read the results of an earlier call; the last line of a mutant counts."""
        file: Path | None = self._arguments.results
        found: dict[str, Judged] = {}
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                each = Judged(**json.loads(line))
                found[each.name] = each
        return found

    def _chosen(self, worlds: Reach) -> list[Mutant]:
        arguments = self._arguments
        chosen = [each for each in sources(self._target) if arguments.module in each.module]
        if arguments.again:
            return [each for each in reachable(chosen, worlds) if each.name in self._before]
        if arguments.mutant is not None:
            return [each for each in reachable(chosen, worlds) if arguments.mutant in each.name]
        return drawn(chosen, worlds, arguments.seed, arguments.mutants)

    # --- the code as it is ---

    def _measured(
        self, what: str, names: list[str], measure: Callable[[list[str]], tuple[Reach, list[str]]]
    ) -> Reach:
        """Find the statements that each world, or test, runs."""
        folders = {ROOT / each for each in self._target.needed}
        if what == "tests":
            folders |= {SOURCE / "pulsar_trio", ROOT / "tests"}
        digest = blake2b("\n".join(names).encode(), digest_size=8)
        for file in sorted({each for folder in folders for each in folder.rglob("*.py")}):
            if "cli" not in file.parts:
                digest.update(file.read_bytes())
        kept = KEPT / f"{self._target.name}-{what}-{digest.hexdigest()}.json"
        if kept.exists():
            return Reach.from_json(json.loads(kept.read_text(encoding="utf-8")))
        reach, failures = measure(names)
        if failures:
            raise _RefusedError(f"the code fails as it is: {failures[0]}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(reach.as_json()), encoding="utf-8")
        return reach

    def _measure_worlds(self, names: list[str]) -> tuple[Reach, list[str]]:
        portions = [names[start : start + PORTION] for start in range(0, len(names), PORTION)]
        work = [partial(measure, self._target, portion) for portion in portions]
        return self._measure("worlds", names, work, int(PORTION * HANG))

    def _measure_tests(self, collected: Collected, names: list[str]) -> tuple[Reach, list[str]]:
        return self._measure("tests", names, [partial(collected.measure, self._target)], 10 * TEST_SECONDS)

    def _measure(
        self, what: str, names: list[str], work: Sequence[Callable[[Say], None]], limit: int
    ) -> tuple[Reach, list[str]]:
        found, failures = Reach(), list[str]()
        with Children[Any](self._arguments.jobs) as children:
            for number, each in enumerate(work):
                if children.full:
                    self._add(children.wait(), found, failures)
                children.start(number, each, limit, float(CLOCK * limit))
                self._line.show(partial("{} as they are: {} of {}".format, what, number, len(work)))
            while children.busy:
                self._add(children.wait(), found, failures)
        return Reach({name: found.worlds.get(name, {}) for name in names}), failures

    def _add(self, ended: EndedChild[Any], found: Reach, failures: list[str]) -> None:
        if ended.signal:
            failures.append(f"a process was ended by signal {ended.signal}")
        reach, failed = reached(ended.lines)
        found.worlds.update(reach.worlds)
        failures += failed

    # --- judging ---

    def _start_worlds(self, worlds: Reach, children: Any, mutant: Mutant) -> None:
        assert mutant.statement is not None
        chosen = worlds.of(mutant.module, mutant.statement)
        limit = self._arguments.seconds
        work = partial(simulate, self._target, mutant, chosen, limit)
        children.start(mutant, work, int(limit) + 30, CLOCK * (limit + 30))

    def _start_tests(self, tests: Reach, collected: Collected, children: Any, mutant: Mutant) -> None:
        assert mutant.statement is not None
        chosen = in_order(tests.of(mutant.module, mutant.statement), mutant.module)
        work = partial(collected.run, mutant, chosen)
        children.start(mutant, work, TEST_SECONDS, float(CLOCK * TEST_SECONDS))

    def _unnoticed(self, mutant: Mutant, worlds: int = 0) -> Judged:
        reason = self._equivalents.get(mutant.name, "")
        fate = EQUIVALENT if reason else SURVIVED
        return Judged(mutant.name, mutant.module, mutant.line, fate, reason, "", worlds)

    def _simulated(self, mutant: Mutant, ended: EndedChild[Any]) -> Judged:
        rule, where, ran = noticed(ended)
        before = self._before.get(mutant.name)
        if not rule:
            if before is not None and before.fate == TESTS:
                return before
            return self._unnoticed(mutant, ran)
        if not ran:
            return Judged(mutant.name, mutant.module, mutant.line, SURVIVED, f"not planted: {rule}")
        return Judged(mutant.name, mutant.module, mutant.line, SIMULATOR, rule, where, ran)


def _tested(mutant: Mutant, ended: EndedChild[Any]) -> Judged:
    test = failed_test(ended)
    fate = TESTS if test else SURVIVED
    return Judged(mutant.name, mutant.module, mutant.line, fate, test, tested=True)
