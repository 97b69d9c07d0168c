"""Seeds that must pass, the same hash in every process, and exit codes that tell failures apart."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_sansio.sim import Campaign, Outcome, SeedReport, World, run_seed, run_seeds
from pulsar_sansio.sim.campaign import ENOUGH_SEEDS

SOURCES = str(Path(__file__).parents[2] / "src")

FIXED_SEEDS = range(60)


@pytest.mark.slow
def test_fixed_seeds_pass() -> None:
    campaign = Campaign()
    for report in run_seeds(FIXED_SEEDS):
        campaign.add(report)
    assert [str(report) for report in campaign.failures] == []
    found = campaign.as_json()
    assert found["seeds"] == len(FIXED_SEEDS)
    assert found["violations"] == 0
    assert found["messages"] > 10_000
    assert found["virtual_seconds"] > 500
    assert found["fault_kinds"] > 35
    assert campaign.outcome is Outcome.PASSED


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
        "import sys, json; from pulsar_sansio.sim import World\n"
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


def test_a_seed_that_differs_the_second_time_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = iter(("one", "other"))

    def run(self: World) -> SeedReport:
        return SeedReport(self.seed, trace_hash=next(hashes))

    monkeypatch.setattr(World, "run", run)
    report = run_seed(0)
    assert report.outcome is Outcome.NONDETERMINISM
    assert report.rule == "INV-D1"
