"""Close and cancel at every step: a part of them here, all by `python -m tests.triosim --sweep`."""

from unittest.mock import patch

import pytest

from tests.triosim.__main__ import main
from tests.triosim.sweep import KINDS, run_at, sweep
from tests.triosim.test_triosim import BUGS

EVERY = 12
"""Steps from one run to the next, with another first one for each kind."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_disturbed_at_some_step(kind: str) -> None:
    swept = sweep(0, kind, EVERY, first=1 + KINDS.index(kind))
    assert swept.failures == ()
    assert 0 < swept.hits <= swept.runs


def test_the_same_step_is_the_same_run() -> None:
    (first, _), (second, _), (other, _) = (run_at(0, "cancel client", step) for step in (40, 40, 60))
    assert first == second
    assert first.trace_hash != other.trace_hash


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["receive takes before its last checkpoint", "enqueue takes before its last checkpoint"]
)
def test_a_planted_bug_is_found_at_some_step(name: str) -> None:
    bug = BUGS[name]
    with patch.object(bug.owner, bug.method, bug.instead):
        for step in range(30, 140):
            report, _ = run_at(0, "cancel calls", step)
            if report.failure:
                assert report.failure.startswith(bug.found_by), report.failure
                return
    pytest.fail("not found")


def test_by_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--sweep", "--kind", "close client", "--step", "40", "--trace"]) == 0
    said = capsys.readouterr().out
    assert "sweep" in said
    assert "passed" in said
    assert main(["--sweep", "--kind", "close client", "--every", "100"]) == 0
    assert "2 of " in capsys.readouterr().out
