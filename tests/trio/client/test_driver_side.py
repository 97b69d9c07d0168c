"""`Outage`: how long an endpoint has no connection, and why."""

from pulsar_sansio import ConnectionLost
from pulsar_trio.client.driver_side import Outage

FIRST, SECOND = ConnectionLost("first"), ConnectionLost("second")


def test_an_outage_begins_once_and_keeps_the_last_cause() -> None:
    outage = Outage()
    outage.begin(FIRST, 10.0)
    outage.begin(SECOND, 12.0)
    assert outage.cause is SECOND
    assert outage.end(15.0) == 5.0


def test_an_outage_that_has_ended_leaves_nothing() -> None:
    outage = Outage()
    outage.begin(FIRST, 10.0)
    outage.end(11.0)
    assert outage.cause is None
    assert outage.end(20.0) is None


def test_a_connection_that_was_never_lost_has_no_outage() -> None:
    assert Outage().end(20.0) is None
