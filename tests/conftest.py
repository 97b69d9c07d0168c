"""The choice of the sets of tests that run, and what the run says about those that did not."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import canary
from tests.conformance.listening import everywhere
from tests.real_pulsar import told

NEEDS = {
    "real": ("against a real Apache Pulsar", "Java 17 and Maven"),
    "cluster": ("against a real cluster", "Java 17 and Maven"),
    "browser": ("in a browser", "Chromium"),
}
"""Marker of tests that run only by `make test-MARKER` -> what they are, and what they need."""

_not_run = pytest.StashKey[dict[str, int]]()
"""Marker -> the number of its tests that do not run."""

_not_imported = pytest.StashKey[int]()

_NEEDS_SPARK = re.compile(r"^pytestmark = .*\bmark\.spark\b", re.MULTILINE)
"""A module that says this imports PySpark, which only `make test-spark` installs."""

settings.register_profile(
    "same",
    deadline=None,  # how long an example takes is the machine's affair
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.register_profile("explore", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(everywhere)
    config.pluginmanager.register(canary)
    config.pluginmanager.register(told)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules that need Spark are imported only when they are asked for by `-m spark`."""
    if "spark" in config.option.markexpr or collection_path.suffix != ".py":
        return None
    if not _NEEDS_SPARK.search(collection_path.read_text(encoding="utf-8")):
        return None
    config.stash[_not_imported] = config.stash.get(_not_imported, 0) + 1
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of `NEEDS` run only by their markers; those against a real Pulsar that need Spark too, by
    `-m spark`."""
    asked = config.option.markexpr
    config.stash[_not_run] = {}
    left_out: set[pytest.Item] = set()
    for marker in NEEDS:
        if marker in asked:
            continue
        marked = {item for item in items if item.get_closest_marker(marker)}
        if marker == "real" and "spark" in asked:
            marked = {item for item in marked if not item.get_closest_marker("spark")}
        config.stash[_not_run][marker] = len(marked)
        left_out |= marked
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells the process that reports, which collects nothing."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["left out"] = (
            config.stash.get(_not_run, {}),
            config.stash.get(_not_imported, 0),
        )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    left_out = getattr(node, "workeroutput", {}).get("left out")
    if left_out is not None:
        node.config.stash[_not_run], node.config.stash[_not_imported] = left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for marker, count in terminalreporter.config.stash.get(_not_run, {}).items():
        what, needed = NEEDS[marker]
        if count:
            terminalreporter.write_line(
                f"not run: {count} tests {what}; `make test-{marker}` runs them (needs {needed})"
            )
    modules = terminalreporter.config.stash.get(_not_imported, 0)
    if modules:
        terminalreporter.write_line(
            f"not run: {modules} modules of tests with Apache Spark; `make test-spark` runs them "
            "(needs Java 17 and Maven)"
        )
