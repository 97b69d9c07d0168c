"""`LinkFailures`: each kind of failure is logged once in a while, and the others are counted."""

import logging

import pytest
import trio.testing

from pulsar_trio import open_broker
from pulsar_trio.transport.link_failures import LinkFailures

ONCE = "a connection failed and is closed; the others are unaffected"


class Broken(Exception):
    """The error with which the links here fail."""


def records(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


async def test_failures_of_many_links_are_logged_once_for_each_kind(
    caplog: pytest.LogCaptureFixture, mock_clock: trio.testing.MockClock
) -> None:
    """The last count is told at the driver's end: no further failure may come that could tell it."""
    async with open_broker() as broker:
        failures = broker._driver._link_failures
        for _ in range(1000):
            assert "planted" in failures.log(Broken("planted"))
        failures.log(ExceptionGroup("of a link's nursery", [Broken("planted")]))
        failures.log(ExceptionGroup("of a link's nursery", [ValueError("another")]))
        assert len(caplog.records) == 2
        mock_clock.jump(11)
        for _ in range(6):
            failures.log(Broken("planted"))
    assert [record.getMessage() for record in caplog.records] == [
        ONCE,
        f"{ONCE} (1000 records were left out before this one)",
        ONCE,
        "5 more connections failed, and were not logged",
    ]


async def test_nothing_is_said_at_the_end_when_each_failure_was_logged(
    caplog: pytest.LogCaptureFixture, mock_clock: trio.testing.MockClock
) -> None:
    failures = LinkFailures()
    failures.log_rest()
    error = Broken("planted")
    assert failures.log(error) == "a failure of the connection: Broken('planted')"
    failures.log_rest()
    assert records(caplog) == [(logging.ERROR, ONCE)]
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is error


@pytest.mark.parametrize(
    ("error", "same"),
    [
        (Broken("another text"), True),
        (ExceptionGroup("one", [Broken("inside")]), True),
        (ExceptionGroup("one", [ExceptionGroup("of one", [Broken("inside")])]), True),
        (ExceptionGroup("two", [Broken("first"), Broken("second")]), False),
        (ValueError("planted"), False),
    ],
)
async def test_the_type_of_the_one_exception_is_the_kind(
    error: Exception, same: bool, caplog: pytest.LogCaptureFixture, mock_clock: trio.testing.MockClock
) -> None:
    """A group of one stands for its exception; a group of several is a kind of its own."""
    failures = LinkFailures()
    failures.log(Broken("planted"))
    failures.log(error)
    failures.log_rest()
    second = "1 more connections failed, and were not logged" if same else ONCE
    assert records(caplog) == [(logging.ERROR, ONCE), (logging.ERROR, second)]
