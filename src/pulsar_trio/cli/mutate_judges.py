"""The judges of mutants, each in a process of its own: the simulation first, then the unit tests.

Owns what is imported anew for a mutant, the limit of a world that hangs, and the talk with the child. A child
says `> world` in front of each world and ends with `= what was noticed`. Without that line it did not end.
"""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pulsar_sansio.sim.mutants import Mutant, Probes, Reach, Source, forget, import_mutant, import_probed
from pulsar_sansio.sim.mutants.hook import belongs

from .children import Ended, Say

HANG = 10.0
"""Seconds of processor time for one world; the longest of a thousand takes a fifth of one."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is mutated, and how it is judged."""

    name: str
    packages: tuple[str, ...]
    """Whose modules are mutated."""
    without: tuple[str, ...]
    """Modules that are left out."""
    forgotten: tuple[str, ...]
    """Packages that are imported anew with a mutant."""
    kept: tuple[str, ...]
    """Of these, what no mutant is in and what imports nothing that is mutated."""
    judge: str
    """The module that has `worlds()` and `broken_by(world)`."""
    needed: tuple[str, ...]
    """The folders that say what a world is."""
    tests: tuple[str, ...]
    """Folders of unit tests."""


MACHINES = Target(
    "machines",
    ("pulsar_sansio.client", "pulsar_sansio.broker"),
    (),
    ("pulsar_sansio", "pulsar_trio", "tests"),
    ("pulsar_sansio.core", "pulsar_sansio.model", "pulsar_sansio.wire"),
    "pulsar_sansio.sim.mutants.worlds",
    ("src/pulsar_sansio",),
    ("tests/client", "tests/broker", "tests/conversations"),
)

ADAPTER = Target(
    "adapter",
    ("pulsar_trio",),
    ("pulsar_trio.cli", "pulsar_trio.admin", "pulsar_trio.__main__"),
    ("pulsar_trio", "tests"),
    (),
    "tests.triosim.judging",
    ("src/pulsar_sansio", "src/pulsar_trio", "tests/triosim"),
    ("tests/trio",),
)

TARGETS = {each.name: each for each in (MACHINES, ADAPTER)}


def judge(target: Target) -> Any:
    """The module of a target's judge. Raises `ImportError`: that of the adapter is in a checkout alone."""
    return import_module(target.judge)


def sources(target: Target) -> Iterator[Source]:
    """The modules that are mutated, in the order of packages and files."""
    for package in target.packages:
        spec = find_spec(package)
        assert spec is not None, package
        assert spec.origin is not None, package
        folder = Path(spec.origin).parent
        for file in sorted(folder.rglob("*.py")):
            name = ".".join([package, *file.relative_to(folder).with_suffix("").parts])
            name = name.removesuffix(".__init__")
            if not belongs(name, target.without):
                yield Source(name, file.read_text(encoding="utf-8"))


# --- the simulation ---------------------------------------------------------------------------------------


def simulate(target: Target, mutant: Mutant, worlds: Iterable[str], seconds: float, say: Say) -> None:
    """Run worlds with the mutant inside, until one notices or the processor time is over."""
    forget(target.forgotten, target.kept)
    with import_mutant(mutant):
        broken_by = judge(target).broken_by
        for world in worlds:
            if time.process_time() >= seconds:
                break
            say(f"> {world}")
            signal.setitimer(signal.ITIMER_PROF, HANG)
            found = broken_by(world)
            signal.setitimer(signal.ITIMER_PROF, 0)
            if found:
                say(f"= {found}")
                return
    say("=")


def measure(target: Target, worlds: Iterable[str], say: Say) -> None:
    """Run worlds of the code as it is, and say which statements each runs, and which fails."""
    probes = Probes()
    forget(target.forgotten, target.kept)
    with import_probed(target.packages, probes):
        broken_by = judge(target).broken_by
        for world in worlds:
            probes.clear()
            failure = broken_by(world)
            _say_reached(world, probes, say)
            if failure:
                say(f"! {world}: {failure}")


def _say_reached(name: str, probes: Probes, say: Say) -> None:
    reach = Reach()
    reach.add(name, probes.taken())
    for module, bits in reach.as_json()[name].items():
        say(f"{module} {bits} {name}")


def reached(lines: Iterable[str]) -> tuple[Reach, list[str]]:
    """What `measure` said, and the failures."""
    found: dict[str, dict[str, str]] = {}
    failures = []
    for line in lines:
        if line.startswith("! "):
            failures.append(line[2:])
        else:
            module, bits, name = line.split(" ", 2)
            found.setdefault(name, {})[module] = bits
    return Reach.from_json(found), failures


def noticed(ended: Ended[Any]) -> tuple[str, str, int]:
    """By which rule, where, and how many worlds (or tests) there were; no rule where nothing was noticed."""
    places = [line[2:] for line in ended.lines if line.startswith("> ")]
    where = places[-1] if places else "import"
    last = ended.lines[-1] if ended.lines else ""
    if last.startswith("="):
        return last[2:], where if last[2:] else "", len(places)
    if last.startswith("! "):
        return f"exception: {last[2:]}", where, len(places)
    return "hang" if ended.late or ended.signal else "exception: the process ended", where, len(places)


# --- unit tests -------------------------------------------------------------------------------------------


class _Measuring:
    """Asks which statements each test runs."""

    def __init__(self, probes: Probes, say: Say) -> None:
        self._probes = probes
        self._say = say

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._probes.clear()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._say(f"! {report.nodeid}: {report.when} failed")

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        _say_reached(nodeid, self._probes, self._say)


class _Chosen:
    """Runs some tests alone, and says which one failed."""

    def __init__(self, tests: frozenset[str], say: Say) -> None:
        self._tests = tests
        self._say = say

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [each for each in items if each.nodeid in self._tests]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._say(f"= {report.nodeid}")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._say(f"> {nodeid}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._say(f"= {report.nodeid}")


def _pytest(root: Path, paths: Iterable[str], *options: str, plugin: object) -> int:
    import pytest

    os.chdir(root)
    return int(pytest.main(["-q", "-p", "no:cacheprovider", *options, *paths], plugins=[plugin]))


def measure_tests(target: Target, root: Path, folders: Iterable[str], say: Say) -> None:
    """Run the unit tests of the code as it is, and say which statements each runs, and which fails."""
    probes = Probes()
    forget(target.forgotten, target.kept)
    with import_probed(target.packages, probes):
        _pytest(root, folders, plugin=_Measuring(probes, say))


def in_order(tests: Iterable[str], module: str) -> list[str]:
    """Those of the module's own test file first, then those of its folder, then the others."""
    *_, room, name = module.split(".")

    def distance(test: str) -> int:
        file = test.partition("::")[0]
        return 0 if file.endswith(f"/test_{name}.py") else 1 if f"/{room}/" in file else 2

    return sorted(tests, key=distance)


def run_tests(target: Target, mutant: Mutant, root: Path, tests: list[str], say: Say) -> None:
    """Run unit tests with the mutant inside, until one fails."""
    forget(target.forgotten, target.kept)
    files = dict.fromkeys(test.partition("::")[0] for test in in_order(tests, mutant.module))
    with import_mutant(mutant):
        code = _pytest(root, files, "-x", plugin=_Chosen(frozenset(tests), say))
    say("=" if code in (0, 5) else f"= pytest ends with {code}")


def failed_test(ended: Ended[Any]) -> str:
    """The first test that failed, or that did not come back; "" where all passed."""
    for line in ended.lines:
        if line.startswith("= ") and not line.startswith("= pytest ends"):
            return line[2:]
    rule, where, _ = noticed(ended)
    return f"{where} ({rule})" if rule else ""
