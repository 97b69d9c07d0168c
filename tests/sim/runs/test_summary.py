"""A campaign's summary in lines: little at a glance, and all of it where that is asked for."""

from pulsar_sim import Campaign, Outcome, SeedReport
from pulsar_sim.faults.catalogue import FAULTS
from pulsar_sim.runs.summary import SUMMARY_LINES, brief, details, summary

TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1, in f\n    f()\nKeyError: 7\n'


def campaign(failures: int) -> Campaign:
    made = Campaign()
    made.add(SeedReport(0, faults={name: number for number, name in enumerate(FAULTS, 1)}, messages=9))
    for seed in range(1, failures + 1):
        made.add(SeedReport(seed, Outcome.EXCEPTION, "exception", TRACEBACK, "run"))
    return made


def test_a_summary_has_few_lines_whatever_happened() -> None:
    for failures in (0, 1, 5, 6, 500):
        lines = summary(campaign(failures), 2.0)
        assert len(lines) < SUMMARY_LINES, "one line more says that the run was interrupted"
        assert all("\n" not in line for line in lines)
        assert f"{failures} violations" in lines


def test_a_summary_says_which_seed_to_look_at() -> None:
    lines = summary(campaign(7), 2.0)
    assert "  seed 1 failed in phase run: exception: KeyError: 7" in lines
    assert "  and 2 more, named by --json and --report" in lines
    assert "to look at one: pulsar-trio simulate shrink --seed 1" in lines
    assert not any("shrink" in line for line in summary(campaign(0), 2.0))


def test_a_summary_names_the_most_frequent_faults() -> None:
    last, first = list(FAULTS)[-1], next(iter(FAULTS))
    (line,) = [line for line in summary(campaign(0), 2.0) if line.startswith("faults: ")]
    assert f" kinds, {len(FAULTS)} {last}, " in line
    assert f" {first}" not in line


def test_the_details_name_everything() -> None:
    text = "\n".join(details(campaign(6)))
    assert all(f" {name}\n" in text for name in FAULTS)
    assert text.count("KeyError: 7") == 6
    assert text.count('File "x.py"') == 6
    assert "never: coverage point window full" in text


def test_a_long_failure_is_cut() -> None:
    line = brief(SeedReport(3, Outcome.INVARIANT, "INV-P1", "x" * 1000, "drain"))
    assert line.startswith("seed 3 failed in phase drain: INV-P1: xxx")
    assert line.endswith("x…")
    assert len(line) == 240
