"""`Probe`: one of the hosts of a service URL accepts a connection."""

import pytest

from pulsar_sansio.client.outputs import Connect, CredentialsWanted, Detached, Disconnect
from pulsar_sansio.model.config import AutoFailover
from pulsar_sansio.model.secret import Secret
from pulsar_sansio.model.service_url import Address
from tests.client.failover.failover_script import FAILOVER, FIRST, SECOND, URLS, script
from tests.client.lookup.http_script import response
from tests.client.script import Command, Script, frame_connected, kinds


def test_one_available_host_of_several_is_enough() -> None:
    world = script(SECOND, url="pulsar://first,second")
    world.pass_time(20.0)
    assert world.probed[:2] == [FIRST, SECOND]
    assert world.switched() == []


def test_a_probe_ends_its_links_and_those_of_the_client_after_a_change() -> None:
    """Producers reconnect by the new URL."""
    world = Script(failover=FAILOVER)
    producer, link = world.ready_producer()
    for _ in range(4):
        world.advance(2.0)
        (connect,) = world.said()
        assert isinstance(connect, Connect)
        world.lose(connect.link)
    connect = world.expect_one(Connect)
    assert connect.address == SECOND
    world.open(connect.link)
    world.sent(connect.link, Command.CONNECT)
    world.feed(connect.link, frame_connected())
    outputs = world.said()
    assert kinds(outputs) == ["Disconnect", "Detached", "Disconnect"]
    assert {each.link for each in outputs if isinstance(each, Disconnect)} == {link, connect.link}
    assert [each.id for each in outputs if isinstance(each, Detached)] == [producer]
    world.advance(0.2)
    assert world.expect_one(Connect).address == SECOND


def test_a_probe_that_is_never_answered_has_a_time() -> None:
    world = Script(service_url=URLS[FIRST], failover=FAILOVER, connect_timeout=1.0)
    world.advance(2.0)
    connect = world.expect_one(Connect)
    world.open(connect.link)
    world.advance(1.0)
    assert kinds(world.said()) == ["Disconnect"]
    world.advance(1.9)
    assert world.said() == []
    world.advance(0.1)
    world.expect_one(Connect)


def test_a_probe_shows_the_credentials() -> None:
    failover = AutoFailover(("pulsar+ssl://second",), check_interval=2.0)
    world = Script(service_url="pulsar+ssl://first", failover=failover, authentication_method="token")
    world.advance(2.0)
    connect = world.expect_one(Connect)
    assert connect.tls_name == "first"
    world.open(connect.link)
    wanted = world.expect_one(CredentialsWanted)
    world.client.provide_credentials(world.now, wanted.link, Secret(b"abc"))
    assert world.sent(connect.link, Command.CONNECT).auth_data == b"abc"


@pytest.mark.parametrize(("status", "available"), [(200, True), (404, True), (503, False)])
def test_a_cluster_by_http_is_asked_over_http(status: int, available: bool) -> None:
    web = Address("web", 8080)
    world = script(SECOND, url="http://web:8080")
    world.answers[web] = response(b"OK", status)
    world.pass_time(9.0)
    assert web in world.probed
    assert bool(world.switched()) is not available


@pytest.mark.parametrize("probing", [False, True])
def test_closing_the_client_ends_the_probes(probing: bool) -> None:
    world = Script(service_url=URLS[FIRST], failover=FAILOVER)
    world.advance(2.0 if probing else 1.0)
    assert len(world.said()) == probing
    world.client.close(world.now)
    assert kinds(world.said()) == ["Disconnect", "RequestDone"][not probing :]
    assert world.client.links == ()
    world.advance(100.0)
    assert world.said() == []
    assert world.client.next_deadline() is None
