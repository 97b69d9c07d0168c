"""The sweep of restarts: a sample of its points passes, each can be run again by its text, bugs are found."""

from collections import Counter

import pytest

from pulsar_sim import SCENARIOS, Outcome
from pulsar_sim.bug_bank import BANK
from pulsar_sim.faults.catalogue import COORDINATOR_FAULTS
from pulsar_sim.runs.scenarios import ScenarioWorld
from pulsar_sim.runs.sweeps.restarts import (
    AWAY,
    STORED,
    TOLD,
    CoordinatorFault,
    Restart,
    RestartWorld,
    Unloading,
    parse,
    restarts,
)
from pulsar_sim.runs.sweeps.sweep import find, run_point, sweep

SIMPLE, TRANSACTION = find("produce-single"), find("commit-a-transaction")


@pytest.mark.slow
def test_a_sample_of_all_restarts_passes() -> None:
    for number, scenario in enumerate(SCENARIOS.values()):
        report = sweep(scenario, "restarts", every=251, first=number)
        assert report.failures == []
        assert 0 < report.runs < report.points


# --- the points -------------------------------------------------------------------------------------------


def test_every_step_is_a_point() -> None:
    points = restarts(SIMPLE)
    kills = [each for each in points if isinstance(each, Restart)]
    unloadings = [each for each in points if isinstance(each, Unloading)]
    steps = {each.step for each in kills}
    assert steps == {each.step for each in unloadings} == set(range(len(steps)))
    assert {each.told for each in kills} == set(TOLD)
    assert {each.away for each in kills} == set(AWAY)
    lost, kept = ({each.step for each in kills if each.stored == stored} for stored in STORED)
    assert lost == steps
    assert 0 < len(kept) < len(steps), "something is being written"
    assert len(kills) == (len(lost) + len(kept)) * len(TOLD) * len(AWAY)
    assert len(points) == len(kills) + len(unloadings), "there is no coordinator"


def test_every_frame_of_a_coordinator_is_a_point() -> None:
    found = [each for each in restarts(TRANSACTION) if isinstance(each, CoordinatorFault)]
    frames = {each.frame for each in found}
    assert frames == set(range(1, len(frames) + 1))
    assert {each.fault for each in found} == set(COORDINATOR_FAULTS)
    assert set(Counter((each.frame, each.times) for each in found).values()) == {3}


def test_several_brokers_are_killed_each() -> None:
    kills = [each for each in restarts(find("stale-owner")) if isinstance(each, Restart)]
    assert {each.broker for each in kills} == {"broker-0", "broker-1"}


def test_points_are_run_again_by_their_text() -> None:
    calm = ScenarioWorld(TRANSACTION).run().trace_hash
    for point in restarts(TRANSACTION)[::151]:
        assert parse(str(point)) == point
        first, second = run_point(TRANSACTION, str(point)), run_point(TRANSACTION, str(point))
        assert first == second
        assert first.trace_hash != calm


@pytest.mark.parametrize(
    "text",
    [
        "restart",
        "restart step 3 broker-0 lost told 9s",
        "restart step 3 broker-0 found told 0ms",
        "restart step x broker-0 lost told 0ms",
        "restart step 3 broker-1 lost told 0ms",
        "unload step",
        "coordinator frame 1 coordinator_asleep 1",
    ],
)
def test_a_text_that_is_no_point(text: str) -> None:
    with pytest.raises(ValueError):
        run_point(SIMPLE, text)


# --- what happens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("away", AWAY)
def test_a_broker_comes_back_in_time(told: str, away: str) -> None:
    world = RestartWorld(SIMPLE, Restart(20, "broker-0", "lost", told, away), keep_trace=True)
    assert str(world.run()) == "seed 1 passed"
    found = [line.split(" ", 2) for line in world.trace.lines]
    killed, back = (
        next(int(when) for when, _, what in found if what.startswith(start))
        for start in ("killed keep=False", "boots 2")
    )
    assert back - killed == AWAY[away]


def test_a_write_is_kept_or_lost() -> None:
    writing = next(each for each in restarts(SIMPLE) if isinstance(each, Restart) and each.stored == "kept")
    faults = {}
    for stored in STORED:
        point = Restart(writing.step, writing.broker, stored, writing.told, writing.away)
        faults[stored] = RestartWorld(SIMPLE, point).run().faults
    assert faults == {"lost": {"store_lost_unsynced": 1}, "kept": {"store_kept_unreported": 1}}


def test_all_topics_are_unloaded() -> None:
    report = RestartWorld(find("consume-exclusive"), Unloading(20), keep_trace=True).run()
    assert report.outcome is Outcome.PASSED
    assert sum(" unload persistent" in line for line in report.transcript) == 1
    assert not any("boots 2" in line for line in report.transcript)


@pytest.mark.parametrize("fault", COORDINATOR_FAULTS)
@pytest.mark.parametrize("times", [1, 3])
def test_so_many_frames_of_a_coordinator_suffer(fault: str, times: int) -> None:
    point = next(
        each
        for each in restarts(TRANSACTION)
        if isinstance(each, CoordinatorFault) and (each.fault, each.times) == (fault, times)
    )
    report = RestartWorld(TRANSACTION, point).run()
    assert str(report) == "seed 1 passed"
    assert report.faults == {fault: times}


# --- planted bugs -------------------------------------------------------------------------------------------


def test_a_coordinator_that_forgets_is_found() -> None:
    with BANK["transactions-end-with-their-broker"].planted():
        reports = [
            run_point(TRANSACTION, f"restart step {step} broker-0 lost told 0ms") for step in (52, 100)
        ]
    assert {report.rule for report in reports} <= {"INV-N5", "INV-T7"}


def test_a_receipt_before_its_message_is_durable_is_found() -> None:
    with BANK["receipts-before-messages-are-durable"].planted():
        report = sweep(find("produce-batch-compressed"), "restarts", every=7)
    assert "INV-P2" in {failure.rule for _, failure in report.failures}
