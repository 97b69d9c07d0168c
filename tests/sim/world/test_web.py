"""Worlds with lookups over HTTP: each fate of an answer happens, and nothing is lost or doubled."""

from typing import Any

import pytest

from pulsar_sansio.client.lookup.http_exchange import HttpExchange
from pulsar_sansio.client.lookup.lookup import Lookup
from pulsar_sansio.model.service_url import Address
from pulsar_sim import Outcome, World
from pulsar_sim.bug_bank import BANK
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.profile import BrokerPlan, PartitionedPlan, Profile, WebPlan
from pulsar_sim.engine.web.web_server import WebServer
from pulsar_sim.runs.scenarios import quiet_profile


def profile_of(messages: int = 20, **plan: Any) -> Profile:
    """Two clients and two brokers with web servers."""
    profile = quiet_profile(consumers=1, clients=2, messages=messages)
    profile.brokers = [BrokerPlan(), BrokerPlan()]
    profile.all_addresses = True
    profile.web = WebPlan(**plan)
    profile.run_time = 4 * SECOND
    return profile


def passed(profile: Profile, seed: int = 1) -> tuple[World, str]:
    """Run a world that has to pass; return it with its transcript."""
    world = World(seed, profile, keep_trace=True)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    return world, "\n".join(report.transcript)


def test_clients_ask_web_servers_and_no_broker() -> None:
    _, transcript = passed(profile_of())
    assert "GET /lookup/v2/topic/persistent/public/default/t0?authoritative=false" in transcript
    assert "GET /admin/v2/persistent/public/default/t0/partitions?checkAllowAutoCreation=true" in transcript
    assert "<- LOOKUP" not in transcript
    assert "<- PARTITIONED_METADATA" not in transcript


def test_a_web_server_sends_clients_to_the_owner_of_a_topic() -> None:
    profile = profile_of()
    profile.redirect_permille = 1000
    _, transcript = passed(profile, seed=2)
    assert "answers 307: right" in transcript


def test_the_number_of_partitions_comes_over_http() -> None:
    profile = profile_of()
    profile.partitioned = [PartitionedPlan(3)]
    profile.producers[0].partitioned = 0
    _, transcript = passed(profile)
    assert "GET /lookup/v2/topic/persistent/public/default/p0-partition-2?" in transcript


@pytest.mark.parametrize(
    ("fate", "permille"),
    [
        ("slow", "slow_permille"),
        ("redirected", "redirect_permille"),
        ("failing", "failing_permille"),
        ("missing", "missing_permille"),
        ("garbled", "garbage_permille"),
        ("cut", "cut_permille"),
    ],
)
def test_bad_answers_turn_to_right_ones(fate: str, permille: str) -> None:
    """Before healing most answers are of no use; then everything is delivered."""
    plan: dict[str, Any] = {permille: 700}
    world, _ = passed(profile_of(**plan), seed=3)
    assert world.faults[f"http_{fate}"]


def test_most_of_a_crowd_of_questions_waits_for_its_turn() -> None:
    """INV-N16: a client asks sixteen questions at a time."""
    world, transcript = passed(profile_of(crowd=40))
    (app,) = world.apps.asking
    assert app.done
    assert "GET /admin/v2/namespaces/public/empty-39/topics?mode=PERSISTENT" in transcript
    with BANK["requests-do-not-wait-for-their-turn"].planted():
        assert "has 17 requests over HTTP" in broken(profile_of(crowd=40))


def broken(profile: Profile) -> str:
    report = World(1, profile).run()
    assert report.rule == "INV-N16", str(report)
    return report.text


def test_a_client_that_asks_for_another_host_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = HttpExchange._ask

    def misname(self: HttpExchange, credentials: Any) -> None:
        self.physical = Address("other", 8080)
        ask(self, credentials)

    monkeypatch.setattr(HttpExchange, "_ask", misname)
    assert "as other:8080" in broken(profile_of())


def test_a_client_that_asks_twice_over_one_link_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    send = HttpExchange.data_to_send
    monkeypatch.setattr(HttpExchange, "data_to_send", lambda self: 2 * send(self))
    assert "writes no HTTP" in broken(profile_of())


def test_a_client_with_too_many_links_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsar_sim.engine.web.web_server.MOST_LINKS", 0)
    assert "has 1 requests over HTTP" in broken(profile_of())


def test_a_client_that_asks_over_the_binary_protocol_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The links of brokers are open already when the client forgets its scheme."""
    monkeypatch.setattr("pulsar_sim.engine.web.web_answers.WEB_PORT", 0)
    monkeypatch.setattr("pulsar_sim.engine.nodes.client_node.WEB_PORT", 0)
    monkeypatch.setattr(Lookup, "_means", property(lambda self: self._binary))
    assert "asks broker-" in broken(profile_of())


def test_a_server_ends_a_link_whose_client_is_gone() -> None:
    """A request and the end of its link are lost: the server learns of neither."""
    world = World(1, profile_of(), keep_trace=True)
    lost: list[int] = []

    def lose() -> None:
        wires = [each for each in world.network.wires.values() if isinstance(each.broker, WebServer)]
        for wire in wires:
            if not lost and not wire.to_broker.arrived:
                wire.half_open(to_broker=True, to_client=True)
                lost.append(wire.number)
        if not lost:
            world.clock.after(MILLISECOND // 5, lose)

    world.clock.after(0, lose)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    assert lost
