"""`Pool`: requests for one address share one attempt; a failed attempt is discarded."""

from typing import Any

from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.connecting.pool import Pool, Waiter
from pulsar_sansio.client.outputs import Connect
from pulsar_sansio.model.errors import PulsarError
from pulsar_sansio.model.service_url import Address
from tests.client.script import Script, frame_connected

HERE, THERE = Address("here", 6650), Address("there", 6650)


class Requests:
    """A pool's requests and their outcomes."""

    def __init__(self, **config: Any) -> None:
        self.script = Script(**config)
        self.pool: Pool = self.script.client._services.pool
        self.all = self.script.client._services.links
        self.ready: list[Connection] = []
        self.failed: list[PulsarError] = []

    def get(self, logical: Address = HERE, physical: Address = HERE) -> Waiter:
        return self.pool.get(logical, physical, self.ready.append, self.failed.append)

    def links(self) -> list[int]:
        """Links that the driver was asked for since the last call."""
        return [output.link for output in self.script.said() if isinstance(output, Connect)]

    def accept(self, link: int) -> None:
        self.script.open(link)
        self.script.feed(link, frame_connected())


def test_two_requests_share_one_attempt() -> None:
    requests = Requests()
    requests.get()
    requests.get()
    (link,) = requests.links()
    assert requests.ready == []
    requests.accept(link)
    assert [connection.link for connection in requests.ready] == [link, link]


def test_a_ready_connection_is_passed_at_once() -> None:
    requests = Requests()
    requests.get()
    requests.accept(*requests.links())
    requests.get()
    assert requests.links() == []
    assert requests.ready[0] is requests.ready[1]


def test_a_broker_behind_a_proxy_has_a_connection_of_its_own() -> None:
    requests = Requests()
    requests.get(HERE, HERE)
    requests.get(THERE, HERE)
    first, second = requests.links()
    requests.accept(second)
    assert [(each.logical, each.physical) for each in requests.ready] == [(THERE, HERE)]
    assert requests.all.is_ready(HERE)
    assert not requests.all.is_ready(THERE), "that address is not connected to"
    assert set(requests.all.open) == {first, second}


def test_a_failed_attempt_fails_every_waiter_and_the_next_request_makes_a_new_one() -> None:
    requests = Requests()
    requests.get()
    requests.get()
    (link,) = requests.links()
    requests.script.lose(link, "refused")
    assert len(requests.failed) == 2
    assert requests.all.open == {}
    requests.get()
    (other,) = requests.links()
    assert other != link


def test_a_cancelled_request_has_no_outcome_and_the_connection_stays() -> None:
    requests = Requests()
    waiter = requests.get()
    requests.get()
    (link,) = requests.links()
    waiter.cancel()
    requests.accept(link)
    assert len(requests.ready) == 1
    assert requests.all.open[link].ready


def test_several_connections_per_broker_are_used() -> None:
    requests = Requests(connections_per_broker=3)
    for _ in range(60):
        requests.get()
    assert len(requests.links()) == 3


def test_closing_ends_every_connection() -> None:
    requests = Requests()
    requests.get(HERE, HERE)
    requests.get(THERE, THERE)
    requests.accept(requests.links()[0])
    cause = PulsarError("over")
    requests.all.close_all(cause)
    assert requests.all.open == {}
    assert requests.failed == [cause], "the connection that was ready had no waiter"
