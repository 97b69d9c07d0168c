"""Automatic failover: when the client leaves a cluster, where it goes, and when it comes back."""

from typing import Any

import pytest

from pulsar_sansio.client.outputs import RequestDone, ServiceUrlSwitched
from pulsar_sansio.model.config import AutoFailover, ClientConfig, ProducerSpec
from pulsar_sansio.model.errors import (
    ConnectionLost,
    InvalidConfiguration,
    InvalidServiceUrl,
    LocalProtocolError,
)
from pulsar_sansio.model.service_url import Address
from tests.client.failover.failover_script import FIRST, SECOND, THIRD, URLS, script
from tests.client.script import Command, frame_producer_success


def test_a_cluster_that_is_available_stays() -> None:
    world = script(FIRST)
    world.pass_time(11.0)
    assert world.probed == [FIRST] * 5
    assert world.switched() == []
    assert world.client.links == ()


def test_nothing_is_probed_before_an_interval_is_over() -> None:
    world = script()
    world.pass_time(1.9)
    assert world.probed == []


def test_failures_shorter_than_the_delay_change_nothing() -> None:
    world = script()
    world.pass_time(6.5)
    world.up.add(FIRST)
    world.pass_time(2.0)
    world.up.clear()
    world.pass_time(5.9)
    assert set(world.probed) == {FIRST}
    assert world.switched() == []


def test_after_the_delay_the_first_available_cluster_is_used() -> None:
    world = script(SECOND, THIRD)
    world.pass_time(7.9)
    assert world.switched() == []
    world.pass_time(0.2)
    assert world.switched() == [(URLS[FIRST], URLS[SECOND])]
    assert world.probed == [FIRST, FIRST, FIRST, FIRST, SECOND]
    assert world.client.links == ()


def test_a_secondary_that_is_not_available_is_left_out() -> None:
    world = script(THIRD)
    world.pass_time(8.1)
    assert world.switched() == [(URLS[FIRST], URLS[THIRD])]


def test_the_reason_of_a_change_is_told() -> None:
    world = script(SECOND)
    world.pass_time(8.1)
    (notice,) = [each for each in world.notices if isinstance(each, ServiceUrlSwitched)]
    assert notice.reason.startswith("no probe of pulsar://first:6650 has succeeded for 6.0 s: ")
    assert "refused" in notice.reason


def test_no_cluster_is_available() -> None:
    world = script()
    world.pass_time(8.1)
    (error,) = world.failures()
    assert isinstance(error, ConnectionLost)
    assert "no other cluster is available" in str(error)
    world.up.add(THIRD)
    world.pass_time(2.0)
    assert world.switched() == [(URLS[FIRST], URLS[THIRD])]


def test_the_primary_is_used_again_when_it_was_available_for_long_enough() -> None:
    world = script(SECOND)
    world.pass_time(8.1)
    assert world.switched() == [(URLS[FIRST], URLS[SECOND])]
    world.up.add(FIRST)
    world.pass_time(11.8)
    assert world.switched() == []
    world.pass_time(0.2)
    assert world.switched() == [(URLS[SECOND], URLS[FIRST])]
    world.pass_time(10)
    assert world.switched() == []


def test_a_primary_that_comes_and_goes_is_not_used() -> None:
    world = script(SECOND)
    world.pass_time(8.1)
    assert len(world.switched()) == 1
    for _ in range(4):
        world.up.add(FIRST)
        world.pass_time(9.0)
        world.up.remove(FIRST)
        world.pass_time(2.0)
    assert world.switched() == []


def test_a_secondary_that_fails_is_left_for_any_other() -> None:
    world = script(SECOND)
    world.pass_time(8.1)
    assert world.switched() == [(URLS[FIRST], URLS[SECOND])]
    world.up = {THIRD}
    world.pass_time(8.1)
    assert world.switched() == [(URLS[SECOND], URLS[THIRD])]
    world.up = {SECOND, FIRST}
    world.pass_time(8.1)
    assert world.switched() == [(URLS[THIRD], URLS[FIRST])]


def test_another_scheme_of_a_secondary_is_kept() -> None:
    world = script(Address("second", 6651), failover=AutoFailover(("pulsar+ssl://second",), 1.0, 1.0, 1.0))
    world.pass_time(2.1)
    assert world.switched() == [(URLS[FIRST], "pulsar+ssl://second:6651")]
    assert world.encrypted[-1] == "second"


def test_the_application_does_not_change_the_url_too() -> None:
    world = script(FIRST)
    with pytest.raises(LocalProtocolError, match="failover"):
        world.client.update_service_url(world.now, URLS[SECOND])
    assert world.said() == []


def test_a_client_that_is_closed_by_a_change_is_quiet() -> None:
    """The broker in use does not answer the close of a producer, so the change ends the last link."""
    world = script(FIRST)
    world.client.open_producer(world.now, ProducerSpec("t"))
    world.drain()
    (link,) = world.client.links
    world.check_partitions(link)
    world.find_topic(link, URLS[FIRST])
    world.feed(link, frame_producer_success(world.sent(link, Command.PRODUCER).request_id))
    closing = world.client.close(world.now)
    world.up = {SECOND}
    world.pass_time(8.1)
    assert len(world.switched()) == 1
    assert RequestDone(closing, None) in world.outputs
    assert world.client.next_deadline() is None


# --- options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("secondaries", [(), [URLS[SECOND]], URLS[SECOND], None])
def test_secondaries_are_a_tuple(secondaries: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="secondaries"):
        AutoFailover(secondaries)


def test_a_secondary_is_a_service_url() -> None:
    with pytest.raises(InvalidServiceUrl):
        AutoFailover(("ftp://second",))


@pytest.mark.parametrize("name", ["failover_delay", "switch_back_delay", "check_interval"])
@pytest.mark.parametrize("value", [0, -1.0, "5", True])
def test_durations_are_positive(name: str, value: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=name):
        AutoFailover((URLS[SECOND],), **{name: value})


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("pulsar+ssl://first", {"authentication_method": "token"}, "credentials"),
        ("pulsar+ssl://first", {"sni_proxy": "pulsar+ssl://proxy"}, "sni_proxy"),
        ("pulsar://first", {"failover": "pulsar://second"}, "AutoFailover"),
    ],
)
def test_clusters_that_a_client_must_not_change_to(url: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        ClientConfig(url, **{"failover": AutoFailover((URLS[SECOND],)), **options})
