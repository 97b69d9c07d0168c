"""Worlds with credentials and TLS: each fate of a question happens, and nothing is lost or doubled."""

from typing import Any

import pytest

from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.model.errors import CredentialsFailed
from pulsar_sim import Outcome, World
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.network import Wire
from pulsar_sim.engine.profile import BrokerPlan, CredentialsPlan, Profile
from pulsar_sim.engine.security.issuer import MARK
from pulsar_sim.runs.scenarios import quiet_profile


def profile_of(messages: int = 20, **plan: Any) -> Profile:
    """Two clients, two brokers, and credentials."""
    profile = quiet_profile(consumers=1, clients=2, messages=messages)
    profile.brokers = [BrokerPlan(), BrokerPlan()]
    profile.credentials = CredentialsPlan(**plan)
    profile.run_time = 4 * SECOND
    return profile


def passed(profile: Profile, seed: int = 1) -> tuple[World, str]:
    """Run a world that has to pass; return it with its transcript."""
    world = World(seed, profile, keep_trace=True)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    return world, "\n".join(report.transcript)


def test_credentials_go_out_in_connect_and_are_renewed_when_they_expire() -> None:
    profile = profile_of(messages=300, lifetime=150 * MILLISECOND)
    _, transcript = passed(profile)
    assert transcript.count("<- AUTH_CHALLENGE") == transcript.count("<- AUTH_RESPONSE") > 2
    assert transcript.count("<- CONNECT ") == transcript.count("<- CONNECTED")


def test_a_method_of_three_steps() -> None:
    _, transcript = passed(profile_of(challenges=2))
    assert transcript.count("<- AUTH_CHALLENGE") == 2 * transcript.count("<- CONNECT ")


def test_no_credentials_are_in_a_transcript() -> None:
    _, transcript = passed(profile_of(messages=60, lifetime=250 * MILLISECOND, challenges=1))
    assert "auth_data=***" in transcript
    assert MARK not in transcript


@pytest.mark.parametrize("fate", ["failing", "forged", "expired"])
def test_refusals_turn_to_acceptance(fate: str) -> None:
    """Before healing most answers are of no use; then everything is delivered."""
    permille: dict[str, Any] = {f"{fate}_permille": 700}
    world, transcript = passed(profile_of(**permille), seed=3)
    assert world.faults[f"credentials_{fate}"]
    assert f": {fate}" in transcript


def test_answers_that_come_when_the_link_is_gone() -> None:
    renewal: dict[str, Any] = {"lifetime": 150 * MILLISECOND, "refresh_interval": 0.05}
    world, _ = passed(profile_of(messages=300, slow_permille=500, **renewal))
    assert world.faults["credentials_late"]


def test_certificates_that_have_expired() -> None:
    world, _ = passed(profile_of(tls=True, bad_certificates_permille=500))
    assert world.faults["certificate_expired"]


@pytest.mark.parametrize("sni_proxy", [False, True])
def test_clients_connect_by_tls(sni_proxy: bool) -> None:
    profile = profile_of(tls=True, sni_proxy=sni_proxy)
    profile.redirect_permille = 1000
    _, transcript = passed(profile)
    assert "brokerServiceUrlTls=pulsar+ssl://broker-" in transcript


@pytest.mark.parametrize("fault", ["lookup_to_a_stranger", "lookup_downgraded"])
@pytest.mark.parametrize("tls", [False, True])
def test_a_misleading_broker_gets_nothing(fault: str, tls: bool) -> None:
    world = World(1, profile_of(tls=tls), keep_trace=True)
    world.misbehaviour.arm(fault, 2)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    assert world.faults[fault] == 2
    assert "open to stranger" not in "\n".join(report.transcript)


def test_an_output_that_shows_credentials_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    close = Connection.close

    def tell(self: Connection, cause: Any, **options: Any) -> None:
        close(self, CredentialsFailed(f"not good: {MARK}7"), **options)

    monkeypatch.setattr(Connection, "close", tell)
    report = World(1, profile_of(failing_permille=500)).run()
    assert report.rule == "INV-X1"


def test_expired_credentials_of_a_wire_lead_to_one_challenge() -> None:
    profile = profile_of(messages=40)
    world = World(1, profile, keep_trace=True)
    expired: list[bool] = []

    def expire() -> None:
        for wire in list(world.network.wires.values()):
            expired.append(_expires(wire))
            expired.append(_expires(wire))

    world.clock.after(60 * MILLISECOND, expire)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    assert expired.count(True) == sum(" <- AUTH_CHALLENGE" in line for line in report.transcript) > 0
    assert False in expired, "the second time a challenge is outstanding"


def _expires(wire: Wire) -> bool:
    broker: Any = wire.broker
    return bool(broker.expire_credentials(wire.broker_link))
