"""The report of a failed test shows what the real brokers logged meanwhile.

A plugin of pytest. A failure that comes once in a hundred runs is explained by the broker's log or not at
all, and the log is gone with the broker.
"""

import re
from collections.abc import Generator

import pytest

from tests.real_pulsar.java_process import JavaProcess

TELLING = re.compile(r" (WARN|ERROR) |Exception|CloseProducer|[Uu]nload|[Ff]enc")

LINES = 60
"""The lines of one process that a report shows, the last ones."""

_began = pytest.StashKey[dict[JavaProcess, int]]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_began] = {process: process.logged for process in JavaProcess.running}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.when == "call":
        for process in JavaProcess.running:
            lines = telling(process.log_from(item.stash[_began].get(process, 0)))
            report.sections.append((f"log of Java process {process.pid}", "\n".join(lines)))
    return report


def telling(log: str) -> list[str]:
    """Return the last lines that tell of trouble, without stack traces."""
    lines = [
        line[:400] for line in log.splitlines() if TELLING.search(line) and not line.startswith(("\t", " "))
    ]
    return lines[-LINES:] or ["no warning"]
