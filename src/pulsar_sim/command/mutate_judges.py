"""The judges of mutants, each in a process of its own: the simulation first, then the unit tests.

This module owns the limit of a world that hangs, the session of pytest that processes fork from, and the
talk with them. A child prints `> world` in front of each world and ends with `= what was noticed`.
"""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..mutants import ModuleSource, Mutant, Probes, Reach, plant
from .children import EndedChild, Say

HANG = 10.0
"""Seconds of processor time for one world; the longest of a thousand takes a fifth of one."""


@dataclass(frozen=True, slots=True)
class Target:
    """The code that is mutated, and the worlds and tests that may notice its mutants."""

    name: str
    packages: tuple[str, ...]
    """The packages whose modules are mutated."""
    without: tuple[str, ...]
    """The modules that are not mutated."""
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
    "pulsar_sim.mutants.worlds",
    ("src/pulsar_sansio", "src/pulsar_sim"),
    ("tests/client", "tests/broker", "tests/conversations"),
)

ADAPTER = Target(
    "adapter",
    ("pulsar_trio",),
    ("pulsar_trio.broker.admin",),
    "tests.triosim.judging",
    ("src/pulsar_sansio", "src/pulsar_sim", "src/pulsar_trio", "tests/triosim"),
    ("tests/trio",),
)

TARGETS = {each.name: each for each in (MACHINES, ADAPTER)}


def judge(target: Target) -> Any:
    """The module of a target's judge. Raises `ImportError`: that of the adapter is in a checkout alone."""
    return import_module(target.judge)


def sources(target: Target) -> Iterator[ModuleSource]:
    """The modules that are mutated, in the order of packages and files."""
    for package in target.packages:
        spec = find_spec(package)
        assert spec is not None, package
        assert spec.origin is not None, package
        folder = Path(spec.origin).parent
        for file in sorted(folder.rglob("*.py")):
            name = ".".join([package, *file.relative_to(folder).with_suffix("").parts])
            name = name.removesuffix(".__init__")
            if not any(name == each or name.startswith(f"{each}.") for each in target.without):
                yield ModuleSource(name, file.read_text(encoding="utf-8"))


# --- the simulation ---------------------------------------------------------------------------------------


def simulate(target: Target, mutant: Mutant, worlds: Iterable[str], seconds: float, say: Say) -> None:
    """Run worlds with the mutant inside, until one notices or the processor time is over."""
    broken_by = judge(target).broken_by
    plant(mutant)
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
    broken_by = judge(target).broken_by
    probes = Probes()
    probes.plant(sources(target))
    for world in worlds:
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
    """Parse the lines of `measure`: the reach, and the failures."""
    found: dict[str, dict[str, str]] = {}
    failures = []
    for line in lines:
        if line.startswith("! "):
            failures.append(line[2:])
        else:
            module, bits, name = line.split(" ", 2)
            found.setdefault(name, {})[module] = bits
    return Reach.from_json(found), failures


def noticed(ended: EndedChild[Any]) -> tuple[str, str, int]:
    """The rule that noticed the mutant, the place, and the number of worlds (or tests) run.

    The rule is empty where none noticed it.
    """
    places = [line[2:] for line in ended.lines if line.startswith("> ")]
    where = places[-1] if places else "import"
    last = ended.lines[-1] if ended.lines else ""
    if last.startswith("="):
        return last[2:], where if last[2:] else "", len(places)
    if last.startswith("! "):
        return f"exception: {last[2:]}", where, len(places)
    return "hang" if ended.late or ended.signal else "exception: the process ended", where, len(places)


# --- unit tests -------------------------------------------------------------------------------------------


class Collected:
    """A session of pytest that has collected tests. Processes are forked from it, and run some of them."""

    def __init__(self, items: Iterable[Any], hook: Any) -> None:
        self._items = {each.nodeid: each for each in items}
        self._hook = hook
        self._failed = ""

    @property
    def names(self) -> list[str]:
        return list(self._items)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self._failed:
            self._failed = f"{report.nodeid} ({report.when})"

    def measure(self, target: Target, say: Say) -> None:
        """Run all tests of the code as it is, and say which statements each runs, and which fails."""
        probes = Probes()
        probes.plant(sources(target))
        for name, item in self._items.items():
            self._hook.pytest_runtest_protocol(item=item, nextitem=None)
            _say_reached(name, probes, say)
            if self._failed:
                say(f"! {self._failed}")
                return

    def run(self, mutant: Mutant, names: Iterable[str], say: Say) -> None:
        """Run tests with the mutant inside, until one fails."""
        plant(mutant)
        for name in names:
            say(f"> {name}")
            self._hook.pytest_runtest_protocol(item=self._items[name], nextitem=None)
            if self._failed:
                say(f"= {self._failed}")
                return
        say("=")


class _Within:
    """Does something in a session of pytest in place of running the tests."""

    def __init__(self, work: Callable[[Collected], None]) -> None:
        self._work = work

    def pytest_sessionstart(self, session: Any) -> None:
        """Remove pytest's terminal reporter: it tells of tests that this command does not run."""
        session.config.pluginmanager.unregister(name="terminalreporter")

    def pytest_runtestloop(self, session: Any) -> bool:
        if session.testsfailed:
            raise RuntimeError("tests cannot be collected")
        collected = Collected(session.items, session.config.hook)
        session.config.pluginmanager.register(collected)
        self._work(collected)
        return True


def with_tests(target: Target, root: Path, work: Callable[[Collected], None]) -> None:
    """Collect the unit tests, and do the work with them. Raises `RuntimeError` where that fails."""
    import pytest

    options = ["-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(root)]
    failures: list[BaseException] = []

    def guarded(collected: Collected) -> None:
        try:
            work(collected)
        except BaseException as error:
            failures.append(error)

    folders = [str(root / each) for each in target.tests]
    code = pytest.main([*options, "-c", str(root / "pyproject.toml"), *folders], plugins=[_Within(guarded)])
    if failures:
        raise failures[0]
    if code not in (0, 5):
        raise RuntimeError(f"pytest cannot collect {', '.join(target.tests)}: it ends with {int(code)}")


def in_order(tests: Iterable[str], module: str) -> list[str]:
    """Sort tests: those of the module's own test file, then those of its folder, then the others."""
    *_, room, name = module.split(".")

    def distance(test: str) -> int:
        file = test.partition("::")[0]
        return 0 if file.endswith(f"/test_{name}.py") else 1 if f"/{room}/" in file else 2

    return sorted(tests, key=distance)


def failed_test(ended: EndedChild[Any]) -> str:
    """The first test that failed, or that did not come back; "" where all passed."""
    rule, where, _ = noticed(ended)
    return rule if rule.startswith("tests/") else f"{where} ({rule})" if rule else ""
