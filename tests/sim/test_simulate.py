"""`pulsar-trio simulate`: what it prints, its JSON, its exit codes."""

import json

import pytest

from pulsar_sansio.sim import Outcome, SeedReport, World
from pulsar_trio.cli import main
from pulsar_trio.cli import simulate as simulate_module


def simulate(*arguments: str) -> int:
    return main(["simulate", *arguments])


def test_run_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("run", "--seed", "3", "--seeds", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 2
    assert (found["first_seed"], found["last_seed"]) == (3, 4)
    assert found["violations"] == 0
    assert found["messages"] > 0
    assert found["virtual_seconds"] > 0
    assert found["faults"]
    assert len(found["trace_hash"]) == 32


def test_no_seed_is_left_out_between_portions() -> None:
    """More seeds than are handed to the processes at a time."""

    class InOrder:
        def imap(self, function: object, seeds: list[int], chunk: int) -> list[int]:
            return seeds

    assert list(simulate_module._bounded(InOrder(), iter(range(100)), 2)) == list(range(100))  # type: ignore[arg-type,comparison-overlap]


@pytest.mark.slow
def test_processes_do_not_change_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    simulate("run", "--seeds", "6", "--json")
    alone = json.loads(capsys.readouterr().out)
    simulate("run", "--seeds", "6", "--jobs", "2", "--json")
    together = json.loads(capsys.readouterr().out)
    del alone["seconds"], together["seconds"]
    assert alone == together


def test_run_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("run", "--seed", "4", "--seeds", "1") == 0
    text = capsys.readouterr().out
    assert "1 seeds in" in text
    assert "0 violations" in text
    assert "trace hash" in text


def test_seconds_end_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("run", "--seconds", "0.2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] >= 1
    assert found["seconds"] < 30


def test_replay_prints_the_transcript(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("replay", "--seed", "3", "--lines", "50") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 51
    assert lines[-1] == "seed 3 passed"
    assert simulate("replay", "--seed", "3", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "passed"


def test_a_failure_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: World) -> SeedReport:
        return SeedReport(self.seed, Outcome.LIVENESS, "INV-N5", "it never came back", "drain")

    monkeypatch.setattr(World, "run", run)
    assert simulate("run", "--seed", "1", "--seeds", "2") == 3
    shown = capsys.readouterr()
    assert "2 violations" in shown.out
    assert "seed 1 failed in phase drain: INV-N5: it never came back" in shown.err


@pytest.mark.parametrize(
    "wrong", [["--seeds", "0"], ["--seed", "x"], ["--seconds", "-1"], ["--jobs", "none"]]
)
def test_wrong_options_are_one_line(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        simulate("run", *wrong)
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
