"""The choice of the sets of tests that run, and what the run says about those that did not."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import canary
from tests.conformance.listening import everywhere

_not_run = pytest.StashKey[tuple[int, int]]()
"""The tests that need a real Pulsar, and those that need a real cluster."""

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


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Modules that need Spark are imported only when they are asked for by `-m spark`."""
    if "spark" in config.option.markexpr or collection_path.suffix != ".py":
        return None
    if not _NEEDS_SPARK.search(collection_path.read_text(encoding="utf-8")):
        return None
    config.stash[_not_imported] = config.stash.get(_not_imported, 0) + 1
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need a real Pulsar or a real cluster run only by `-m real` and `-m cluster`; those that need
    Spark too, by `-m spark`."""
    asked = config.option.markexpr
    clustered = {item for item in items if item.get_closest_marker("cluster") and "cluster" not in asked}
    real = (
        set()
        if "real" in asked
        else {
            item
            for item in items
            if item.get_closest_marker("real") and not ("spark" in asked and item.get_closest_marker("spark"))
        }
    )
    config.stash[_not_run] = len(real), len(clustered)
    if left_out := real | clustered:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells the process that reports, which collects nothing."""
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["left out"] = (
            config.stash.get(_not_run, (0, 0)),
            config.stash.get(_not_imported, 0),
        )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    left_out = getattr(node, "workeroutput", {}).get("left out")
    if left_out is not None:
        node.config.stash[_not_run], node.config.stash[_not_imported] = left_out


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = terminalreporter.config.stash.get(_not_run, (0, 0))
    for count, what, command in zip(counts, ("Apache Pulsar", "cluster"), ("real", "cluster"), strict=True):
        if count:
            terminalreporter.write_line(
                f"not run: {count} tests against a real {what}; `make test-{command}` runs them "
                "(needs Java 17 and Maven)"
            )
    modules = terminalreporter.config.stash.get(_not_imported, 0)
    if modules:
        terminalreporter.write_line(
            f"not run: {modules} modules of tests with Apache Spark; `make test-spark` runs them "
            "(needs Java 17 and Maven)"
        )
