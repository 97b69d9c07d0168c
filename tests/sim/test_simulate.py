"""`pulsar-trio simulate`: what it prints, its JSON, its exit codes."""

import io
import json
import signal
from pathlib import Path

import pytest

from pulsar_sansio.sim import Campaign, Outcome, SeedReport, World
from pulsar_trio.cli import main
from pulsar_trio.cli import simulate as simulate_module


def simulate(*arguments: str) -> int:
    return main(["simulate", *arguments])


def test_run_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("run", "--seed", "0", "--seeds", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seeds"] == 3
    assert (found["first_seed"], found["last_seed"]) == (0, 2)
    assert found["violations"] == 0
    assert found["messages"] > 0
    assert found["virtual_seconds"] > 0
    assert found["faults"]
    assert len(found["trace_hash"]) == 32
    coverage = found["coverage"]
    assert coverage["maps"]["connection"]["cells"]["Opening"]["OPENED"] > 0
    assert coverage["marks"]["frame in pieces"].keys() == {"times", "seeds"}
    assert 0 < coverage["fault_pairs"]["seen"] < coverage["fault_pairs"]["possible"]
    assert all(f"mark {name}" in coverage["gaps"] for name in coverage["marks_missing"])


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


def test_a_world_that_never_comes_back_is_a_failure_that_names_the_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No event ends, so the simulator itself cannot notice."""

    def turn_in_circles(self: World) -> None:
        while True:
            pass

    monkeypatch.setattr(World, "_run", turn_in_circles)
    monkeypatch.setattr(simulate_module, "STUCK_AFTER", 0.05)
    assert simulate("run", "--seed", "1", "--seeds", "2") == 3
    told = capsys.readouterr().err
    assert "seed 2 failed" in told
    assert "INV-N6: takes more than 0.05 s of processor time, now in" in told
    assert "turn_in_circles" in told
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


@pytest.fixture
def nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "run", lambda self: SeedReport(self.seed, messages=30))


@pytest.mark.usefixtures("nothing_happens")
def test_a_report_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    assert simulate("run", "--seed", "1", "--seeds", "2", "--report", str(folder)) == 0
    assert "Seeds 1 to 2" in (folder / "report.html").read_text(encoding="utf-8")
    assert (folder / "attachment.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.usefixtures("nothing_happens")
def test_a_report_that_cannot_be_written_has_a_code_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert simulate("run", "--seed", "1", "--seeds", "1", "--report", str(tmp_path / "file")) == 6
    assert "the report cannot be written" in capsys.readouterr().err


@pytest.mark.usefixtures("nothing_happens")
def test_what_was_not_reached_fails_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate("run", "--seed", "1", "--seeds", "1", "--require-coverage") == 5
    shown = capsys.readouterr().out
    assert "never: mark window full" in shown
    assert "never: move connection: OPENED in Opening" in shown
    assert "never: fault reset" in shown


@pytest.mark.usefixtures("nothing_happens")
def test_progress_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    simulate("run", "--seed", "1", "--seeds", "3")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(simulate_module, "PROGRESS_EVERY", 0.0)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    simulate("run", "--seed", "1", "--seeds", "3")
    assert "2 of 3 seeds" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")  # nothing of it is left
    monkeypatch.setattr("sys.stderr", quiet := Terminal())
    simulate("run", "--seed", "1", "--seeds", "3", "--json")
    assert quiet.getvalue() == ""


def test_progress_says_how_fast_it_goes_and_what_was_found() -> None:
    campaign = Campaign()
    for seed in range(10):
        campaign.add(SeedReport(seed, messages=500, virtual_ns=360 * 10**9))
    campaign.add(SeedReport(10, Outcome.LIVENESS))
    line = simulate_module.progress(campaign, 2.0, 110, None)
    assert line.startswith(
        "11 of 110 seeds (5.5/s), 5,000 messages (2,500/s), 1.0 virtual hours, 1 violations, "
    )
    assert line.endswith(", 18 s left")
    assert simulate_module.progress(campaign, 2.0, None, 12.0).endswith(", 10 s left")
    assert simulate_module.progress(campaign, 2.0, 12, 600.0).endswith(", 0 s left")


@pytest.mark.parametrize(
    "wrong", [["--seeds", "0"], ["--seed", "x"], ["--seconds", "-1"], ["--jobs", "none"]]
)
def test_wrong_options_are_one_line(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        simulate("run", *wrong)
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
