"""The pytest plugin: the fixture `pulsar_broker`, and what it shows when a test fails.

Nothing happens before a test asks for the fixture. One broker serves all tests of a run, or of a worker of
pytest-xdist; each test has a namespace of its own.
"""

from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from .broker_process import BrokerProcess
    from .control import PulsarBroker


class Used(NamedTuple):
    """The broker of a test, and the size of its log when the test began."""

    process: "BrokerProcess"
    broker: "PulsarBroker"
    log_start: int


_used = pytest.StashKey[Used]()


@pytest.fixture(scope="session")
def pulsar_broker_arguments() -> tuple[str, ...]:
    """Options of `pulsar-trio broker` for the broker of the tests; override it to change them."""
    return ()


@pytest.fixture(scope="session")
def pulsar_broker_process(pulsar_broker_arguments: tuple[str, ...]) -> Iterator["BrokerProcess"]:
    """The broker of all tests: a process that ends with this one."""
    from .broker_process import BrokerProcess

    with BrokerProcess(*pulsar_broker_arguments) as process:
        yield process


@pytest.fixture
def pulsar_broker(
    request: pytest.FixtureRequest, pulsar_broker_process: "BrokerProcess"
) -> Iterator["PulsarBroker"]:
    """A Pulsar broker with a namespace of this test's own, for any client, asynchronous or not."""
    log_start = pulsar_broker_process.log_size
    with pulsar_broker_process.namespace(request.node.name) as broker:
        request.node.stash[_used] = Used(pulsar_broker_process, broker, log_start)
        yield broker


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the broker's log, and its rules of faults, below a test that failed."""
    report = yield
    used = item.stash.get(_used, None)
    if used is not None and report.failed:
        shown = used.process.log(used.log_start)
        with suppress(Exception):  # the log tells why the broker does not answer
            shown += used.broker.faults.describe()
        report.sections.append((f"Pulsar broker ({report.when})", shown or "(it logged nothing)"))
    return report
