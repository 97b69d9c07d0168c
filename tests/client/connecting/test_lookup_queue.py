"""`LookupQueue`: a limited number of lookups in flight, and a limited number behind them."""

import pytest

from pulsar_sansio.client.connecting import lookup_queue
from pulsar_sansio.client.connecting.lookup_queue import LookupQueue
from pulsar_sansio.model.errors import ConnectionLost, PulsarError, TooManyRequests


class Lookups:
    """Lookups by number: those that were sent, and the errors of those that never were."""

    def __init__(self, limit: int) -> None:
        self.queue = LookupQueue(limit)
        self.sent: list[int] = []
        self.failed: list[tuple[int, type[PulsarError]]] = []
        self.gone: set[int] = set()

    def submit(self, *numbers: int) -> None:
        for number in numbers:
            self.queue.submit(
                lambda number=number: self._start(number),  # type: ignore[misc]
                lambda error, number=number: self.failed.append((number, type(error))),  # type: ignore[misc]
            )

    def _start(self, number: int) -> bool:
        if number in self.gone:
            return False
        self.sent.append(number)
        return True


def test_no_more_than_the_limit_are_in_flight_and_the_others_follow_in_order() -> None:
    """CONN-14: lookups of one connection wait for their turn."""
    lookups = Lookups(2)
    lookups.submit(1, 2, 3, 4)
    assert lookups.sent == [1, 2]
    lookups.queue.answered()
    assert lookups.sent == [1, 2, 3]
    lookups.queue.answered()
    lookups.queue.answered()
    assert lookups.sent == [1, 2, 3, 4]
    lookups.queue.answered()
    lookups.submit(5, 6, 7)
    assert lookups.sent == [1, 2, 3, 4, 5, 6]


def test_a_lookup_that_ended_while_it_waited_takes_no_turn() -> None:
    lookups = Lookups(1)
    lookups.submit(1, 2, 3)
    lookups.gone = {2}
    lookups.queue.answered()
    assert lookups.sent == [1, 3]
    lookups.gone = {4}
    lookups.queue.answered()
    lookups.submit(4, 5)
    assert lookups.sent == [1, 3, 5], "one that is not sent is not in flight"


def test_more_than_the_limit_may_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_queue, "MAX_WAITING_LOOKUPS", 2)
    lookups = Lookups(1)
    lookups.submit(1, 2, 3, 4)
    assert lookups.failed == [(4, TooManyRequests)]
    lookups.queue.answered()
    lookups.submit(5)
    assert lookups.failed == [(4, TooManyRequests)]


def test_a_connection_that_ends_fails_those_that_wait_once() -> None:
    lookups = Lookups(1)
    lookups.submit(1, 2, 3)
    lookups.queue.fail(ConnectionLost("gone"))
    lookups.queue.fail(ConnectionLost("gone"))
    assert lookups.failed == [(2, ConnectionLost), (3, ConnectionLost)]


def test_a_lookup_may_be_submitted_while_the_others_fail() -> None:
    queue = LookupQueue(1)
    sent: list[str] = []

    def start(name: str) -> bool:
        sent.append(name)
        return True

    queue.submit(lambda: start("first"), lambda error: None)
    queue.submit(
        lambda: start("second"), lambda error: queue.submit(lambda: start("again"), lambda error: None)
    )
    queue.fail(ConnectionLost("gone"))
    queue.answered()
    assert sent == ["first", "again"]
