"""Which sets of tests run, and what the run says about those that did not."""

import pytest

from tests.sim.checker import everywhere

_not_run = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(everywhere)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need a real Pulsar run only when they are asked for by `-m real`."""
    if "real" in config.option.markexpr:
        return
    real = [item for item in items if item.get_closest_marker("real")]
    config.stash[_not_run] = len(real)
    if real:
        items[:] = [item for item in items if not item.get_closest_marker("real")]
        config.hook.pytest_deselected(items=real)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    count = terminalreporter.config.stash.get(_not_run, 0)
    if count:
        terminalreporter.write_line(
            f"not run: {count} tests against a real Apache Pulsar; `make test-real` runs them "
            "(needs Java 17 and Maven)"
        )
