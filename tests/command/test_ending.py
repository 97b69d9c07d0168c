"""The command's end: by signals at any time, and with standard streams that are closed or full."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import trio
import trio.testing

from pulsar_sim import Case, Outcome, SeedReport, World
from pulsar_sim.runs.shrink import Shrinker
from pulsar_trio_command.command import main
from pulsar_trio_command.signals import interruption, until_signal
from tests.patience import PATIENCE

COMMAND = [sys.executable, "-c", "from pulsar_trio_command import main; raise SystemExit(main())"]
"""The command as the installed script runs it."""

WHILE_IMPORTING = """
import os, signal, sys

class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupter())
from pulsar_trio_command import main
raise SystemExit(main())
"""


# --- signals ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("pulsar_trio_command.command", "broker"),
        ("pulsar_trio", "broker"),
        ("trio", "broker"),
        ("pulsar_sim.command.sweep", "simulate"),
    ],
)
def test_ctrl_c_while_the_command_is_imported(module: str, command: str) -> None:
    script = [sys.executable, "-c", WHILE_IMPORTING.format(module=module), command, "--help"]
    done = subprocess.run(script, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.slow
def test_a_command_that_ignores_ctrl_c_goes_on() -> None:
    """Commands ignore it under nohup, and behind `&` in a script."""
    script = [sys.executable, "-c", WHILE_IMPORTING.format(module="trio"), "--version"]
    done = subprocess.run(
        script,
        capture_output=True,
        timeout=PATIENCE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"pulsar-trio ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["run", "--seconds", "1000"],
        ["run", "--seconds", "1000", "--jobs", "2"],
        ["recall"],
        ["recall", "--jobs", "2"],
        ["sweep"],
        ["sweep", "--jobs", "2"],
    ],
)
def test_ctrl_c_at_a_terminal_prints_what_there_is(command: list[str]) -> None:
    """A terminal sends it to all processes of the command."""
    process = subprocess.Popen(
        [*COMMAND, "simulate", *command, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    _wait_until_busy(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert err == b""
    assert json.loads(out)["interrupted"] is True
    assert process.returncode == 130


def _wait_until_busy(pid: int) -> None:
    """Until the process has a handler for SIGINT that is its own, as its mask of caught signals says."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    while True:
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        caught = int(fields["SigCgt"], 16)
        if caught & 1 << (signal.SIGTERM - 1):  # nothing but the simulator's commands listens to it
            return
        os.sched_yield()


def interrupt_after(calls: int, number: int = signal.SIGINT) -> Callable[[World], SeedReport]:
    """Worlds in which nothing happens. During one of them the process gets a signal."""
    seen: list[int] = []

    def run(self: World) -> SeedReport:
        seen.append(self.seed)
        if len(seen) == calls:
            signal.raise_signal(number)
        return SeedReport(self.seed, messages=3)

    return run


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_prints_what_was_found_before_the_signal(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(World, "run", interrupt_after(3, number))
    assert main(["simulate", "run", "--seed", "1", "--seeds", "9"]) == code
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "interrupted"
    assert shown[1].startswith("3 seeds in ")
    assert len(shown) <= 15


def test_a_failure_counts_more_than_the_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: World) -> SeedReport:
        signal.raise_signal(signal.SIGINT)
        return SeedReport(self.seed, Outcome.LIVENESS, "INV-N5", "it never came back", "drain")

    monkeypatch.setattr(World, "run", run)
    assert main(["simulate", "run", "--seed", "1", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["interrupted"], found["violations"]) == (True, 1)


def test_a_second_signal_does_not_wait_for_the_world(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never_ends(self: World) -> SeedReport:
        if self.seed < 3:
            return SeedReport(self.seed)
        while True:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(World, "run", never_ends)
    assert main(["simulate", "run", "--seed", "1", "--seeds", "9", "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["seeds"] == 2


def test_the_handlers_of_before_are_back_after_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(ZeroDivisionError), interruption():
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), interruption():
        raise KeyboardInterrupt
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("ignored", [[signal.SIGINT], [signal.SIGINT, signal.SIGTERM]])
async def test_a_command_with_an_event_loop_goes_on_ignoring_signals(ignored: list[signal.Signals]) -> None:
    """A script starts a broker with `&`, and SIGINT is ignored."""
    done: list[str] = []

    async def work() -> None:
        for number in ignored:
            signal.raise_signal(number)
        await trio.testing.wait_all_tasks_blocked()
        done.append("work")

    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in ignored]
    try:
        await until_signal(work)
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    assert done == ["work"]


def test_recall_prints_the_bugs_that_were_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first bug gets all its seeds and is noticed. Of the second one too little is known by then."""

    def run(self: World) -> SeedReport:
        seeds.append(self.seed)
        if len(seeds) == 4:
            signal.raise_signal(signal.SIGINT)
        outcome = Outcome.INVARIANT if len(seeds) <= 3 else Outcome.PASSED
        return SeedReport(self.seed, outcome, "INV-P3", "out of order", "run")

    seeds: list[int] = []
    monkeypatch.setattr(World, "run", run)
    assert main(["simulate", "recall", "--sample", "3"]) == 130
    shown = capsys.readouterr().out
    assert len(seeds) == 4
    assert "interrupted after 1 of " in shown
    assert "1 planted, 1 caught" in shown


def test_sweep_prints_the_points_that_were_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(import_module("pulsar_sim.runs.sweeps.sweep"), "run_point", _interrupted_point(5))
    assert main(["simulate", "sweep", "--scenario", "produce-single"]) == 130
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].startswith("interrupted: 5 runs in ")


def _interrupted_point(calls: int) -> Callable[..., SeedReport]:
    seen: list[str] = []

    def run_point(_: object, point: str) -> SeedReport:
        seen.append(point)
        if len(seen) == calls:
            signal.raise_signal(signal.SIGINT)
        return SeedReport(0)

    return run_point


def test_shrink_prints_the_smallest_world_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: list[Case] = []

    def run(self: World) -> SeedReport:
        return SeedReport(self.seed, Outcome.LIVENESS, "INV-N5", transcript=["0 world phase run"])

    shrunk = Shrinker._try

    def tried(self: Shrinker, smaller: Case) -> bool:
        runs.append(smaller)
        if len(runs) == 3:
            signal.raise_signal(signal.SIGINT)
        return shrunk(self, smaller)

    monkeypatch.setattr(World, "run", run)
    monkeypatch.setattr(Shrinker, "_try", tried)
    assert main(["simulate", "shrink", "--seed", "1", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["complete"], found["rule"]) == (False, "INV-N5")
    assert found["runs"] == 3


def test_shrink_has_nothing_to_print_when_it_is_told_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never_ends(self: World) -> SeedReport:
        while True:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(World, "run", never_ends)
    assert main(["simulate", "shrink", "--seed", "1"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


# --- standard streams ---------------------------------------------------------------------------------------

CLOSED = [
    ["--version"],
    ["--help"],
    ["simulate", "run", "--seeds", "1"],
    ["simulate", "recall", "--list"],
    ["demo", "--count", "100"],
    ["broker", "--port", "0", "--host", "192.0.2.1"],
    ["produce", "a/b"],
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", CLOSED, ids=" ".join)
def test_closed_standard_streams_are_no_bug(arguments: list[str]) -> None:
    """`>&-` alone, and with `<&-` and `2>&-`."""
    expected = subprocess.run([*COMMAND, *arguments], capture_output=True, timeout=PATIENCE).returncode
    for closing in (">&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["/bin/sh", "-c", f'"$@" {closing}', "sh", *COMMAND, *arguments],
            capture_output=True,
            timeout=PATIENCE,
        )
        assert b"Traceback" not in done.stdout + done.stderr, done.stderr
        assert b"Exception ignored" not in done.stdout + done.stderr, done.stderr
        assert done.returncode == expected


@pytest.mark.slow
@pytest.mark.parametrize("arguments", CLOSED, ids=" ".join)
def test_a_pipe_that_was_closed_is_no_bug(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, timeout=PATIENCE)
    os.close(writing)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert done.returncode in (0, 1, 2, 141)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        command = [*COMMAND, "simulate", "recall", "--list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("pulsar-trio: ")
    assert "No space left" in line


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    name, version = capsys.readouterr().out.split()
    assert name == "pulsar-trio"
    assert version[0].isdigit()
