"""A seed gives the same trace in every process, with every hash seed, on every version of Python that is
there and has what the project needs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_sim import Campaign, run_seeds
from pulsar_sim.runs.scenarios import SCENARIOS, ScenarioWorld

SOURCES = str(Path(__file__).parents[3] / "src")

SEEDS = range(20, 26)

CODE = """
import json, sys
from pulsar_sim import SCENARIOS, World
from pulsar_sim.runs.scenarios import ScenarioWorld
hashes = [World(seed).run().trace_hash for seed in range(20, 26)]
scenarios = [ScenarioWorld(each).run().trace_hash for each in SCENARIOS.values()]
print(json.dumps([list(sys.version_info[:2]), hashes, scenarios]))
"""

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def hashes_here() -> list[object]:
    seeds = [report.trace_hash for report in run_seeds(SEEDS)]
    return [seeds, [ScenarioWorld(each).run().trace_hash for each in SCENARIOS.values()]]


def run(python: str, hash_seed: str, path: str = SOURCES) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    return subprocess.run([python, "-c", CODE], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_processes_and_hash_seeds_do_not_matter() -> None:
    """Rule INV-D1."""
    here = hashes_here()
    for hash_seed in ("0", "1", "4294967295"):
        done = run(sys.executable, hash_seed)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)[1:] == here


def others() -> list[str]:
    """Interpreters that may have what is needed: on the path, and in PULSAR_TRIO_PYTHONS (paths, separated as
    in PATH)."""
    named = [each for each in os.environ.get("PULSAR_TRIO_PYTHONS", "").split(os.pathsep) if each]
    there = (shutil.which(f"python{version}") for version in VERSIONS)
    return named + [each for each in there if each is not None]


@pytest.mark.slow
def test_versions_of_python_do_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    """Says which were compared. One that lacks a package is left out; any other failure is one."""
    here: list[object] | None = None
    compared: set[str] = set()
    current = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for python in others():
        done = run(python, "random")
        if done.returncode:
            assert "ModuleNotFoundError" in done.stderr or "command not found" in done.stderr, done.stderr
            continue
        version, *found = json.loads(done.stdout)
        here = here or hashes_here()
        assert found == here, python
        compared.add(f"{version[0]}.{version[1]}")
    missing = sorted(set(VERSIONS) - compared - {current})
    with capsys.disabled():
        print(f"\n{current} agrees with {sorted(compared)}; without its packages: {missing}")
    if not compared - {current}:
        pytest.skip(f"no other Python with the packages it needs: {', '.join(missing)}")


def test_a_campaign_is_the_sum_of_its_seeds() -> None:
    """The hash of many seeds is that of their hashes, in their order."""
    reports = list(run_seeds(range(51, 54)))
    campaign, again, other = Campaign(), Campaign(), Campaign()
    for report in reports:
        campaign.add(report)
        again.add(report)
    for report in reversed(reports):
        other.add(report)
    assert campaign.as_json()["trace_hash"] == again.as_json()["trace_hash"]
    assert campaign.as_json()["trace_hash"] != other.as_json()["trace_hash"]
