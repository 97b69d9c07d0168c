"""`ClosedHandles`: the causes and final counts of the latest ends, and errors that name them."""

from pulsar_sansio.client.closed_handles import REMEMBERED_ENDS, ClosedHandles
from pulsar_sansio.client.statistics import ProducerStatistics
from pulsar_sansio.model.errors import ClosedError, TimedOut


def test_an_error_names_the_cause() -> None:
    closed = ClosedHandles()
    cause = TimedOut("it took too long")
    closed.add(7, cause)
    error = closed.error("producer", 7)
    assert type(error) is ClosedError
    assert (str(error), error.__cause__) == ("producer 7 is closed: it took too long", cause)
    assert closed.explain(7) == "7: closed: it took too long"


def test_an_end_that_the_application_asked_for_has_no_cause() -> None:
    closed = ClosedHandles()
    closed.add(8, None)
    error = closed.error("consumer", 8)
    assert (str(error), error.__cause__) == ("consumer 8 is closed", None)
    assert closed.explain(8) == "8: closed"


def test_of_the_oldest_ends_only_the_cause_is_forgotten() -> None:
    closed = ClosedHandles()
    for handle in range(REMEMBERED_ENDS + 1):
        closed.add(handle, TimedOut("over"))
    assert len(closed) == REMEMBERED_ENDS
    assert str(closed.error("consumer", 0)) == "consumer 0 is closed"
    assert closed.error("consumer", 1).__cause__ is not None


def test_final_counts_are_kept_of_as_many() -> None:
    closed = ClosedHandles()
    for handle in range(REMEMBERED_ENDS + 1):
        closed.add_statistics(handle, ProducerStatistics(confirmed=handle))
    assert closed.statistics(0) is None
    found = closed.statistics(1)
    assert isinstance(found, ProducerStatistics)
    assert found.confirmed == 1
