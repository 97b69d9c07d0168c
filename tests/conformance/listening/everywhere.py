"""The checker over every test that drives a client or a broker: a plugin that `tests/conftest.py` adds.

The plugin listens at the machines themselves (`listening`), in the tests' own process and in those that they
start (`processes`). A client answers for what it writes, given what it was given; so does a broker. A test
that plays the other side by hand may break any rule there. Where the other side is a real broker or the
official client, it answers for itself too.

A test that passes and shows a violation fails. A test marks what it does on purpose, behind the machine's
back: `@pytest.mark.breaks("WIRE-21", why="the version in CONNECTED is a lie")`. A test that measures what the
checker would change is marked `@pytest.mark.unwatched(why="memory is measured")`. A process that outlives a
test, a worker of Spark say, is heard in the next test, too.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Generator
from pathlib import Path
from typing import Any

import pytest

from pulsar_sansio.conformance import Side, Violation
from tests.conformance.listening.machines import listen
from tests.conformance.listening.processes.sitecustomize import HEARD

NOT_HERE = {
    "tests/conformance/": "the checker itself is tested there",
    "tests/sim/": "every world has a checker at both ends of every wire",
    "tests/triosim/": "every run has a checker at both ends of every wire",
    "tests/fuzz/": "peers break the rules there, applications too, and memory and time are measured",
    "tests/bench/": "what is measured is speed",
}
"""Folders whose tests are left alone, and why."""

REAL_PEERS = {"real", "official"}
"""Marks of tests whose other side is a program of its own."""

OF_REAL_BROKERS = {"GAP-27", "INV-C14"}
"""Rules that a real Pulsar breaks: it looks at permits before it reads, and sends all that it has read. One
thread writes messages and another answers CLOSE_CONSUMER, so some messages may follow that answer. They are
delivered to another consumer too."""

_violations: list[tuple[Side, Violation]] = []
"""With the side whose machine was listened at."""
_listening = False


listen(lambda me, violation: _violations.append((me, violation)), lambda: _listening)


def pytest_configure(config: pytest.Config) -> None:
    """Every process that a test starts from now on is listened at."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        return  # pytest-xdist: tests run in its workers
    here = Path(__file__).parent
    root = here.parents[2]
    paths = [here / "processes", root / "src", root, os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, map(str, paths)))
    os.environ[HEARD] = tempfile.mkdtemp(prefix="pulsar-trio-heard-")


def pytest_unconfigure() -> None:
    if HEARD in os.environ:
        shutil.rmtree(os.environ.pop(HEARD))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    global _listening
    _violations.clear()
    in_processes(Path(os.environ[HEARD]))  # of a process that the test before has left to end by itself
    _listening = not (item.nodeid.startswith(tuple(NOT_HERE)) or item.get_closest_marker("unwatched"))
    try:
        result = yield
    finally:
        heard = in_processes(Path(os.environ[HEARD]))
        if _listening:
            _violations.extend(heard)
        _listening = False
    excused = {rule for mark in item.iter_markers("breaks") for rule in mark.args}
    both_sides = any(item.get_closest_marker(name) for name in REAL_PEERS)
    if item.get_closest_marker("real"):
        excused |= OF_REAL_BROKERS
    unexpected = found(excused, both_sides)
    assert not unexpected, "\n".join(map(str, unexpected[:20]))
    return result


def found(excused: Collection[str], both_sides: bool) -> list[Violation]:
    """Violations since the test began, of the machines alone or of both sides, but for `excused` rules."""
    return [
        violation
        for me, violation in _violations
        if (both_sides or violation.side is me) and violation.rule_id not in excused
    ]


def in_processes(folder: Path) -> list[tuple[Side, Violation]]:
    """Return the violations that started processes have written down since the last call."""
    heard = []
    for file in sorted(folder.glob("*.jsonl")):
        taken = file.rename(file.with_suffix(".taken"))  # a later writer makes another
        for line in taken.read_text(encoding="utf-8").splitlines():
            me, rule_id, side, number, text, connection = json.loads(line)
            violation = Violation(rule_id, Side(side), int(number), text, int(connection))
            heard.append((Side(me), violation))
        taken.unlink()
    return heard
