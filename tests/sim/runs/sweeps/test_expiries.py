"""The sweep of credentials: a sample of its points passes, and each can be run again by its text."""

import pytest

from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sim import SCENARIOS, Outcome
from pulsar_sim.bug_bank import BANK
from pulsar_sim.runs.sweeps.expiries import ExpiringWorld, Expiry, expiries
from pulsar_sim.runs.sweeps.sweep import find, run_point, sweep


@pytest.mark.slow
def test_a_sample_of_all_expiries_passes() -> None:
    for number, scenario in enumerate(SCENARIOS.values()):
        report = sweep(scenario, "credentials", every=499, first=number)
        assert report.failures == []
        assert 0 < report.runs < report.points


def test_every_byte_of_both_directions_is_a_point() -> None:
    scenario = find("produce-single")
    world = ExpiringWorld(scenario, None)
    world.run()
    (wire,) = [each for each in world.wires if not each.client.name.startswith("auditor")]
    points = {(each.to_broker, each.byte) for each in expiries(scenario)}
    assert points == {
        (pipe.to_broker, byte)
        for pipe in (wire.to_broker, wire.to_client)
        for byte in range(pipe.arrived + 1)
    }


@pytest.mark.parametrize(("byte", "times"), [(0, 0), (50, 0), (300, 1), (400, 1)])
def test_credentials_expire_once_the_client_is_connected(byte: int, times: int) -> None:
    world = ExpiringWorld(find("produce-single"), Expiry(1, to_broker=True, byte=byte), keep_trace=True)
    report = world.run()
    assert str(report) == "seed 1 passed"
    assert world.expired == times
    assert sum(" <- AUTH_RESPONSE" in line for line in report.transcript) == times


def test_a_point_can_be_run_again_by_its_text() -> None:
    scenario = find("produce-single")
    for point in expiries(scenario)[::97]:
        assert Expiry.parse(str(point)) == point
    text = "expiry wire 1 to broker byte 400"
    world = ExpiringWorld(scenario, Expiry.parse(text))
    assert run_point(scenario, text).trace_hash == world.run().trace_hash


@pytest.mark.parametrize(
    "text", ["expiry", "expiry wire 1 at broker byte 4", "expiry wire x to broker byte 4"]
)
def test_a_text_that_is_no_point(text: str) -> None:
    with pytest.raises(ValueError):
        run_point(find("produce-single"), text)


def test_a_planted_bug_is_found() -> None:
    with BANK["challenges-are-ignored"].planted():
        report = run_point(find("produce-single"), "expiry wire 1 to broker byte 400")
    assert (report.outcome, report.rule) == (Outcome.INVARIANT, "INV-N10")
    assert vars(Connection)["_on_auth_challenge"].__name__ == "_on_auth_challenge"
