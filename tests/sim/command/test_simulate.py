"""`pulsar-trio simulate`: what it prints, its JSON, its exit codes."""

import io
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pulsar_sim import Campaign, Case, Outcome, SeedReport, SweepReport, World
from pulsar_sim.command import progress as progress_module
from pulsar_sim.command import simulate as simulate_module
from pulsar_sim.command.sweep import shrink_progress, sweep_progress
from pulsar_sim.runs.case import Strike
from pulsar_sim.runs.scenarios import quiet_profile
from pulsar_sim.runs.shrink import Shrinker
from pulsar_trio_command.command import main
from tests.sim.processes import found_by_one_or_two


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
    assert coverage["coverage_points"]["frame in pieces"].keys() == {"times", "seeds"}
    assert 0 < coverage["fault_pairs"]["seen"] < coverage["fault_pairs"]["possible"]
    assert all(f"coverage point {name}" in coverage["gaps"] for name in coverage["coverage_points_missing"])


def test_no_seed_is_left_out_between_portions() -> None:
    """More seeds than are handed to the processes at a time."""

    class Results:
        def __init__(self, results: list[list[int]]) -> None:
            self._results = iter(results)

        def next(self, _: float) -> list[int]:
            return next(self._results)

    class InOrder:
        def imap(self, _: object, portions: list[list[int]]) -> Results:
            return Results(portions)

    def bounded(end: Callable[[], bool]) -> list[int]:
        return list(simulate_module._bounded(InOrder(), iter(range(100)), 2, end))  # type: ignore[arg-type]

    assert bounded(lambda: False) == list(range(100))
    looks = iter([False, False, True, True, True, True, True])
    assert bounded(lambda: next(looks)) == list(range(8)), "two portions of four"


@pytest.mark.slow
def test_processes_do_not_change_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert found_by_one_or_two(capsys, "run", "--seeds", "6")["seeds"] == 6


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


def test_replay_takes_a_world_that_was_written_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(7, quiet_profile(messages=2), [])
    (file := tmp_path / "case.json").write_text(json.dumps(case.as_json()))
    assert simulate("replay", "--file", str(file), "--lines", "5") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[-1] == "seed 7 passed"
    assert simulate("replay", "--file", str(file), "--json") == 0
    assert json.loads(capsys.readouterr().out)["trace_hash"] == case.run().trace_hash


def test_a_failure_of_a_world_that_was_written_down_is_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(World, "run", lambda self: SeedReport(self.seed, Outcome.LIVENESS, "INV-N5"))
    (file := tmp_path / "case.json").write_text(json.dumps(Case(7, quiet_profile()).as_json()))
    assert simulate("replay", "--file", str(file)) == 3
    assert "seed 7 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file"),
        (b"seed: 7", "holds no world: Expecting value"),
        (b"\xff\xfe", "holds no world: "),
        (b"[]", "world is [], not an object"),
        (b"{}", "world has no seed"),
        (b'{"seed": 1}', "world has no profile"),
        (b'{"seed": "1"}', "world.seed is '1', not a whole number"),
        (b'{"seed": 1, "profile": 3}', "world.profile is 3, not an object"),
        (b'{"seed": 1, "profile": {"x": 1}}', "Profile has no field 'x'"),
        (b'{"seed": 1, "profile": {"topics": true}}', "world.profile.topics is True, not a whole number"),
        (b'{"seed": 1, "profile": {"faults": "cut"}}', "world.profile.faults is 'cut', not a list"),
        (
            b'{"seed": 1, "profile": {"subscriptions": [{"topic": 0, "kind": "BEST"}]}}',
            "world.profile.subscriptions[0].kind is 'BEST', not one of EXCLUSIVE, SHARED",
        ),
        (b'{"seed": 1, "strikes": [{"draws": [[1]]}]}', "world.strikes[0].draws[0] has 1 values, not 2"),
    ],
)
def test_a_file_that_is_no_world_is_one_line(
    content: bytes | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "case.json").write_bytes(content)
    assert simulate("replay", "--file", str(tmp_path / "case.json")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pulsar-trio simulate: ")
    assert "case.json" in line
    assert told in line


@pytest.mark.parametrize("wrong", [[], ["--seed", "1", "--file", "case.json"]])
def test_replay_takes_a_seed_or_a_file(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        simulate("replay", *wrong)
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--seed" in line
    assert "--file" in line


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.EXCEPTION, 1),
        (Outcome.INVARIANT, 2),
        (Outcome.LIVENESS, 3),
        (Outcome.NONDETERMINISM, 4),
    ],
)
def test_a_failure_is_the_exit_code(
    outcome: Outcome, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: World) -> SeedReport:
        return SeedReport(self.seed, outcome, "INV-N5", "it never came back", "drain")

    monkeypatch.setattr(World, "run", run)
    assert simulate("run", "--seed", "1", "--seeds", "2") == code
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
    assert simulate("run", "--seed", "1", "--seeds", "1", "--require-coverage", "--verbose") == 5
    shown = capsys.readouterr().out
    assert "never: coverage point window full" in shown
    assert "never: move connection: OPENED in Opening" in shown
    assert "never: fault reset" in shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("nothing_happens")
def test_progress_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate("run", "--seed", "1", "--seeds", "3")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress_module, "PROGRESS_EVERY", 0.0)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    simulate("run", "--seed", "1", "--seeds", "3")
    assert "2 of 3 seeds" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")  # nothing of it is left
    monkeypatch.setattr("sys.stderr", quiet := Terminal())
    simulate("run", "--seed", "1", "--seeds", "3", "--json")
    assert quiet.getvalue() == ""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            ["sweep", "--scenario", "produce-single", "--every", "500"],
            "sweep 1 of 1, produce-single cut, 1 of ",
        ),
        (["shrink", "--seed", "1"], " of at most 400 worlds; still in it: "),
    ],
)
def test_progress_of_sweeps_and_of_the_shrinker_is_for_terminals(
    command: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if command[0] == "shrink":
        failed = SeedReport(1, Outcome.LIVENESS, "INV-N5", transcript=["0 world phase run"])
        monkeypatch.setattr(World, "run", lambda self: failed)
    simulate(*command)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress_module, "PROGRESS_EVERY", 0.0)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    simulate(*command)
    assert told in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")  # nothing of it is left
    monkeypatch.setattr("sys.stderr", quiet := Terminal())
    simulate(*command, "--json")
    assert quiet.getvalue() == ""


def test_progress_of_a_sweep_says_how_many_points_there_are() -> None:
    report = SweepReport("ping", "cut", points=900, runs=20)
    assert sweep_progress(report, 90, 2.0, None) == "ping cut, 20 of 90 points, 0 failures"
    report.kind = "interleavings"
    line = sweep_progress(report, 90, 2.0, 12.0)
    assert line == "ping interleavings, 20 of at least 90 points, 0 failures, 10 s left"


def test_progress_of_the_shrinker_says_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "run", lambda self: SeedReport(self.seed, Outcome.LIVENESS))
    seen: list[str] = []
    strike = Strike(1, "reset", ())
    case = Case(1, quiet_profile(messages=8), [strike, strike])

    def watch(shrinker: Shrinker) -> None:
        seen.append(shrink_progress(shrinker, 20.0, 60.0))

    Shrinker(case, limit=3, watch=watch)._faults()
    producers, consumers = len(case.profile.producers), len(case.profile.consumers)
    others = f"{producers} producers, {consumers} consumers, 8 messages; 40 s left"
    assert seen[0] == f"2 of at most 400 worlds; still in it: 2 faults, {others}"
    assert seen[1] == f"3 of at most 400 worlds; still in it: 0 faults, {others}"


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
