"""Seeds that must pass, the same hash in every process, and exit codes that tell failures apart."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_sim import (
    Campaign,
    Coverage,
    Outcome,
    Recorder,
    SeedReport,
    World,
    observe_seed,
    run_seed,
)
from pulsar_sim.engine.clock import MILLISECOND
from pulsar_sim.runs.campaign import ENOUGH_SEEDS
from pulsar_sim.runs.scenarios import quiet_profile
from tests.sim import reached

SOURCES = str(Path(__file__).parents[3] / "src")


def test_one_message_at_a_time_and_a_slow_store_are_slow_and_not_stuck() -> None:
    """INV-N5: each message fills the client's memory until its receipt, and waits for the store alone."""
    profile = quiet_profile(messages=250)
    profile.memory_limit, profile.store_delay = 100, 300 * MILLISECOND
    profile.producers[0].largest = 200
    assert str(World(1, profile).run()) == "seed 1 passed"


@pytest.mark.slow
def test_fixed_seeds_pass_and_reach_what_they_reached() -> None:
    campaign, seeds = reached.run_fixed_seeds()
    assert [str(report) for report in campaign.failures] == []
    found = campaign.as_json()
    assert found["seeds"] == len(reached.FIXED_SEEDS)
    assert found["violations"] == 0
    assert campaign.outcome is Outcome.PASSED
    assert [name for name in reached.FILE.read_text().splitlines() if name not in seeds] == []


def test_the_same_seed_gives_the_same_world_in_one_process() -> None:
    first, second = World(3).run(), World(3).run()
    assert first == second
    assert first.trace_hash != World(4).run().trace_hash


def test_keeping_the_trace_changes_nothing() -> None:
    kept = World(5, keep_trace=True).run()
    assert kept.trace_hash == World(5).run().trace_hash
    assert any("SEND" in line for line in kept.transcript)


@pytest.mark.slow
def test_the_same_seeds_give_the_same_hashes_in_other_processes() -> None:
    code = (
        "import sys, json; from pulsar_sim import World\n"
        "print(json.dumps([World(seed).run().trace_hash for seed in range(4)]))"
    )
    here = [World(seed).run().trace_hash for seed in range(4)]
    for hash_seed in ("0", "1", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": SOURCES}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == here


def failed(outcome: Outcome, seed: int = 1) -> SeedReport:
    return SeedReport(seed, outcome, rule="R", text="why", phase="run")


def test_the_worst_failure_names_the_exit_code() -> None:
    campaign = Campaign()
    for outcome in (Outcome.NONDETERMINISM, Outcome.LIVENESS, Outcome.INVARIANT):
        campaign.add(failed(outcome))
        assert campaign.outcome is outcome
    campaign.add(failed(Outcome.EXCEPTION))
    assert int(campaign.outcome) == 1
    assert campaign.as_json()["failures"][0] == {
        "seed": 1,
        "outcome": "nondeterminism",
        "phase": "run",
        "rule": "R",
        "text": "why",
    }


def test_a_large_campaign_in_which_a_fault_never_happened_fails() -> None:
    campaign = Campaign()
    for seed in range(ENOUGH_SEEDS):
        campaign.add(SeedReport(seed, faults={"reset": 1}))
    assert campaign.outcome is Outcome.COVERAGE
    assert "unload" in campaign.missing_faults


def test_two_kinds_of_faults_in_one_world_are_a_pair() -> None:
    campaign = Campaign()
    campaign.add(SeedReport(1, faults={"stall": 3, "reset": 1, "unload": 1}))
    campaign.add(SeedReport(2, faults={"stall": 1, "reset": 1}))
    assert campaign.fault_seeds == {"stall": 2, "reset": 2, "unload": 1}
    assert campaign.fault_pairs == {("reset", "stall"): 2, ("reset", "unload"): 1, ("stall", "unload"): 1}
    assert campaign.as_json()["coverage"]["fault_pairs"]["seen"] == 3


def test_a_mark_has_a_seed_to_look_at() -> None:
    campaign = Campaign()
    campaign.add(SeedReport(4), Coverage())
    campaign.add(SeedReport(5), Coverage(points={"window full": 2}, seeds={"window full": 1}))
    campaign.add(SeedReport(6), Coverage(points={"window full": 1}, seeds={"window full": 1}))
    found = campaign.as_json()["coverage"]
    assert found["first_seeds"] == {"window full": 5}
    assert found["coverage_points"]["window full"] == {"times": 3, "seeds": 2}


def test_required_coverage_is_a_code_of_its_own_and_yields_to_failures() -> None:
    campaign = Campaign(require_coverage=True)
    campaign.add(SeedReport(1))
    assert "fault reset" in campaign.gaps
    assert int(campaign.outcome) == 5
    campaign.add(failed(Outcome.NONDETERMINISM, 2))
    assert int(campaign.outcome) == 4


@pytest.mark.slow
def test_what_is_run_again_is_not_counted_twice() -> None:
    with Recorder() as recorder:
        World(0).run()
        once = recorder.take()
        report, coverage = observe_seed(0, recorder)
        assert recorder.take() == Coverage()
    assert report.outcome is Outcome.PASSED
    assert coverage == once


def test_a_seed_that_differs_the_second_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = iter(("one", "other"))

    def run(self: World) -> SeedReport:
        return SeedReport(self.seed, trace_hash=next(hashes))

    monkeypatch.setattr(World, "run", run)
    report = run_seed(0)
    assert report.outcome is Outcome.NONDETERMINISM
    assert report.rule == "INV-D1"
