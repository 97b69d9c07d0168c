"""Tests of `pulsar-trio simulate mutate`: mutants are imported, tested and kept. Their fates are those of a
sample package; the simulator tests one mutant of the machines themselves."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pulsar_sim.command import mutate, mutate_judges
from pulsar_sim.command.children import Children, EndedChild
from pulsar_sim.command.mutate_judges import ADAPTER, MACHINES, noticed, simulate, sources
from pulsar_sim.mutants import Mutant, Probes, broken_by, parse_equivalents, plant, worlds
from pulsar_trio_command.command import main
from tests.sim.mutants.sample.__main__ import EQUIVALENT, SAMPLE, TARGET
from tests.sim.mutants.sample.counting import Limitless, Sum


def mutant_of(target: mutate_judges.Target, text: str) -> Mutant:
    (found,) = [
        each
        for source in sources(target)
        if text.startswith(source.module)
        for each in source.mutants()
        if each.name.startswith(text)
    ]
    return found


# --- planting ---------------------------------------------------------------------------------------------


def test_a_mutant_is_planted_in_a_fork_alone() -> None:
    """A reference to the function calls the mutant, too; the process that forks has the code as it is."""
    add = Sum(10).add
    mutant = mutant_of(TARGET, f"{SAMPLE}.counting Sum.add comparison: if self.total + number > self.limit:")

    def work(say: Callable[[str], None]) -> None:
        plant(mutant)
        say(f"{add(10)} {Sum(10).add(10)}")

    assert ended(work).lines == ["False False"]
    assert Sum(10).add(10)


def test_a_mutant_that_drops_super_is_planted() -> None:
    """Its method has one variable less."""
    mutant = mutant_of(TARGET, f"{SAMPLE}.counting Limitless.__init__ dropped: super().__init__")

    def work(say: Callable[[str], None]) -> None:
        plant(mutant)
        say(str(hasattr(Limitless(), "total")))

    assert ended(work).lines == ["False"]


def test_what_runs_at_import_cannot_be_planted() -> None:
    mutant = mutant_of(TARGET, f"{SAMPLE}.counting module bound: LIMIT = 10 => LIMIT = 11")
    with pytest.raises(ValueError, match="LIMIT = 11 is in no function"):
        plant(mutant)


def test_probes_note_which_statements_were_begun() -> None:
    name = f"{SAMPLE}.counting"

    def work(say: Callable[[str], None]) -> None:
        probes = Probes()
        probes.plant(sources(TARGET))
        found = Sum(1)
        say(str(sum(probes.taken()[name])))
        found.add(1)
        say(str(sum(probes.taken()[name])))
        say(str(probes.taken()))

    # Three assignments; then the condition, the sum and the return.
    assert ended(work).lines == ["3", "3", "{}"]


# --- processes --------------------------------------------------------------------------------------------


def ended(
    work: Callable[[Callable[[str], None]], None], processor: int = 30, clock: float = 60
) -> EndedChild[int]:
    with Children[int](1) as children:
        children.start(1, work, processor, clock)
        assert children.full
        found = children.wait()
        assert not children.busy
        return found


def test_what_a_child_says_arrives() -> None:
    found = ended(_talk)
    assert (found.key, found.lines, found.signal, found.late) == (1, ["one", "two lines"], 0, False)


def _talk(say: Callable[[str], None]) -> None:
    say("one")
    say("two\nlines")


def _raise(say: Callable[[str], None]) -> None:
    say("> world")
    raise MemoryError("enough")


def _loop(say: Callable[[str], None]) -> None:
    say("> world")
    while True:
        pass


def _wait(say: Callable[[str], None]) -> None:
    say("> world")
    signal.pause()


def test_an_exception_a_loop_and_a_wait_are_noticed() -> None:
    assert noticed(ended(_raise)) == ("exception: MemoryError: enough", "world", 1)
    assert noticed(ended(_loop, processor=1)) == ("hang", "world", 1)
    assert noticed(ended(_wait, clock=0.5))[0] == "hang"


def test_leaving_ends_children_that_run() -> None:
    with Children[int](2) as children:
        children.start(1, _loop, 60, 60)
        children.start(2, _loop, 60, 60)
    assert not children.busy


# --- judging ----------------------------------------------------------------------------------------------


def test_the_simulator_notices_a_mutant_of_the_machines() -> None:
    mutant = mutant_of(
        MACHINES, "pulsar_sansio.client.delivery.permits Permits.attach dropped: self.give_back"
    )
    chosen = ["produce-batch-compressed: order of time"]
    rule, where, count = noticed(ended(partial(simulate, MACHINES, mutant, chosen, 20.0)))
    assert rule
    assert (where, count) == (chosen[0], 1)


def test_worlds_have_names_that_run_them() -> None:
    names = list(worlds(2, 1))
    assert names[0] == "produce-single: order of time"
    assert "seed 1" in names
    assert "seed 2" not in names
    assert sum(": wire" in name for name in names) == sum(": step" in name for name in names) > 0
    assert [broken_by(name) for name in (names[0], "seed 1", names[-1])] == ["", "", ""]


def test_the_adapter_has_a_judge_of_its_own() -> None:
    judge = mutate_judges.judge(ADAPTER)
    names = list(judge.worlds(1, 2))
    seed = names.index("seed 0")
    assert all(name.startswith("scene ") for name in names[:seed])
    assert names[seed + 1] == "close client: 1"
    assert [judge.broken_by(name) for name in (names[0], names[seed], names[-1])] == ["", "", ""]


def simulate_mutate(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The command for the sample, in a process of its own, since it has a session of pytest: its exit code,
    its output and its complaints."""
    found = subprocess.run(
        [sys.executable, "-m", f"{SAMPLE}", str(folder), *arguments],
        cwd=mutate.ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return found.returncode, found.stdout, found.stderr


@pytest.mark.slow
def test_every_mutant_has_the_fate_that_it_must_have(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    code, out, complaint = simulate_mutate(tmp_path, "--json", "--jobs", "2", "--results", str(results))
    assert complaint == ""
    found = json.loads(out)
    fates = {each["name"].partition(" ")[2]: each for each in found["results"]}
    assert not any("Sum.never" in name for name in fates), "no world reaches it"
    refused = fates["Sum.add dropped: self.refused += 1 => pass"]
    assert refused["fate"] == "tests"
    assert refused["by"].endswith("/test_counting.py::test_what_was_refused_is_counted (call)")
    limit = fates[
        "Sum.add comparison: if self.total + number > self.limit: => if self.total + number >= self.limit:"
    ]
    assert (limit["fate"], limit["by"], limit["where"]) == (
        "simulator",
        "RULE-1: told [True, False, True]",
        "world 0",
    )
    forever = fates["Sum.halve arithmetic: self.total -= 1 => self.total += 1"]
    assert (forever["fate"], forever["by"], forever["where"]) == ("simulator", "hang", "world 1")
    assert fates[EQUIVALENT.partition(" ")[2]]["fate"] == "equivalent"
    assert found["survived"] == 0
    assert found["tests"] == sum(each["fate"] == "tests" for each in found["results"])
    assert code == 0
    lines = results.read_text().splitlines()
    assert len(lines) == found["mutants"] + found["tests"], "with tests: first without, then judged by them"
    # Nothing is judged again but what the simulator has not noticed. It notices the equivalent one.
    # What tests have noticed stays noticed.
    code, out, _ = simulate_mutate(
        tmp_path, "--again", "--judge-equivalents", "--no-tests", "--results", str(results)
    )
    assert code == 0
    assert len(results.read_text().splitlines()) == len(lines) + found["tests"] + found["equivalent"]
    assert f"| {SAMPLE}.counting | {found['mutants']} | {found['simulator'] + 1} |" in out


@pytest.mark.slow
def test_the_mutants_are_listed(tmp_path: Path) -> None:
    code, out, _ = simulate_mutate(tmp_path, "--list", "--mutants", "3")
    assert code == 0
    assert len(out.splitlines()) == 3
    _, out, _ = simulate_mutate(tmp_path, "--list", "--mutant", "dropped: self.refused")
    assert out == f"{SAMPLE}.counting Sum.add dropped: self.refused += 1 => pass\n"


@pytest.mark.slow
def test_code_that_fails_as_it_is_is_refused(tmp_path: Path) -> None:
    code, out, complaint = simulate_mutate(tmp_path, "--worlds", "3")
    assert (code, out) == (1, "")
    assert (
        complaint
        == "pulsar-trio simulate: the code fails as it is: world 2: RULE-3: there is no such world\n"
    )


def test_a_file_of_equivalents_that_is_wrong_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "equivalents.txt"
    assert main(["simulate", "mutate", "--equivalents", str(file)]) == 1
    file.write_text("m f: a => b\n")
    assert main(["simulate", "mutate", "--equivalents", str(file)]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].endswith("cannot be read")
    assert errors[1].endswith("no reason is given for 'm f: a => b'")


def test_every_equivalent_mutant_is_one() -> None:
    """A line of a mutant that there is no more is to be deleted."""
    marked = parse_equivalents((mutate.ROOT / mutate.EQUIVALENTS).read_text())
    names = {
        each.name for target in (MACHINES, ADAPTER) for source in sources(target) for each in source.mutants()
    }
    assert set(marked) - names == set()
