"""The console's output, without a process around it."""

import json

import pytest

from pulsar_sansio import ConnectionLost, InvalidConfiguration, TimedOut
from pulsar_trio_command.console import Bar, CommandFailed, Output, hint_for, number, one_line, printable
from pulsar_trio_command.demo import Check


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1500, "1.5 k"), (2_345_678, "2.35 M"), (0.5, "0.5")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert printable("a\x1b[2Jb\r\n\u202e") == "a\\x1b[2Jb\\r\\n\\u202e"
    assert printable("grüße 東京") == "grüße 東京"
    assert one_line("two\nlines\twith \x07 bell") == "two lines with \\x07 bell"


def test_results_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json in (False, True):
        output = Output(as_json)
        output.result("three messages", messages=3)
        output.note("by the way")
        output.error(CommandFailed("it failed", "try again"))
        output.error(KeyError())
    captured = capsys.readouterr()
    assert captured.out == 'three messages\n{"messages": 3}\n'
    lines = captured.err.splitlines()
    assert lines[:3] == ["by the way", "pulsar-trio: it failed (hint: try again)", "pulsar-trio: KeyError"]
    assert json.loads(lines[3]) == {"error": "it failed", "hint": "try again"}
    assert len(lines) == 5


def test_hints() -> None:
    assert hint_for(InvalidConfiguration("x")) == "see --help"
    assert "broker" in hint_for(TimedOut("x"))
    assert "broker" in hint_for(ConnectionLost("x"))
    assert "--port" in hint_for(OSError("x"))
    assert hint_for(ValueError("x")) == ""


@pytest.mark.parametrize(("visible", "colour"), [(True, True), (True, False), (False, True)])
def test_a_bar_is_drawn_only_when_it_can_be_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, visible: bool, colour: bool
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    with Bar("messages", 100, visible) as bar:
        bar.show(50, "5 k/s")
    printed = capsys.readouterr().err
    assert ("50/100" in printed) == visible
    assert ("\x1b[38" in printed or "\x1b[3" in printed) == (visible and colour)


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(False).bar("messages", 10) as bar:
        bar.show(5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("values", "seen", "lost", "repeated", "reordered"),
    [
        ([0, 1, 2], 3, 0, 0, 0),
        ([0, 2], 2, 1, 0, 0),
        ([0, 2, 1], 3, 0, 0, 1),
        ([0, 1, 1, 0], 2, 0, 2, 0),
        ([3], 1, 3, 0, 0),
    ],
)
def test_the_demo_sees_what_is_wrong(
    values: list[int], seen: int, lost: int, repeated: int, reordered: int
) -> None:
    check = Check()
    for value in values:
        check.see(value)
    assert (check.seen, check.lost, check.repeated, check.reordered) == (seen, lost, repeated, reordered)
