"""Worlds with non-persistent topics are drawn and pass, and the checks notice impossible messages."""

from typing import Any

import pytest

from pulsar_sansio.client.arrival.arrival import Arrival
from pulsar_sim import Streams, World, draw
from pulsar_sim.engine.failures import Outcome, ViolationError
from pulsar_sim.engine.profile import NonPersistentPlan, Profile
from pulsar_sim.runs.scenarios import quiet_profile

MILLISECOND = 10**6


def whispering(**plan: Any) -> Profile:
    """A profile with nothing but one application on a non-persistent topic."""
    profile = quiet_profile(messages=1)
    profile.run_time = 2_000 * MILLISECOND
    profile.lingers = True
    found = {"client": 0, "reads": True, "queue": 10, "pause": 50 * MILLISECOND, "close_permille": 0, **plan}
    profile.nonpersistent_apps = [NonPersistentPlan(**found)]
    return profile


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("queue", [1, 100])
def test_what_is_sent_is_received(reads: bool, queue: int) -> None:
    world = World(3, whispering(reads=reads, queue=queue), keep_trace=True)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    frames = [
        line for line in report.transcript if "<- MESSAGE" in line and "ledger_id=0 entry_id=0 " in line
    ]
    assert frames
    assert not [line for line in report.transcript if "<- ACK" in line]


def test_they_are_drawn_and_pass() -> None:
    found = [(seed, profile) for seed in range(200) if (profile := draw(Streams(seed))).nonpersistent_apps]
    assert found
    for seed, profile in found[:2]:
        report = World(seed, profile).run()
        assert report.outcome is Outcome.PASSED, str(report)


def test_a_consumer_that_receives_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arrival, "receive", lambda *_: None)
    monkeypatch.setattr(Arrival, "receive_uniform", lambda *_: True)
    report = World(3, whispering()).run()
    assert (report.rule, report.phase) == ("INV-N5", "drain")


def test_unsent_messages_and_repeated_messages_are_noticed() -> None:
    world = World(3, whispering())
    assert world.run().outcome is Outcome.PASSED
    (app,) = world.apps.nonpersistent
    with pytest.raises(ViolationError, match="receives 1000000"):
        app._check(1_000_000)
    with pytest.raises(ViolationError, match="receives 1 after"):
        app._check(1)
    app.may_resend()
    app._sent += 1
    for number in (app._sent, 1, 2):
        app._check(number)
    with pytest.raises(ViolationError, match="receives 2 after 2"):
        app._check(2)
    app.may_resend()
    app._sent = later = app._sent + 1
    app._check(later)
    with pytest.raises(ViolationError, match=f"receives {later} after {later}"):
        app._check(later)  # it was sent after the messages that may arrive again
