"""`pulsar-trio simulate mutate`: mutants are imported, judged and kept. Their fates are those of a sample
package; one mutant of the machines themselves is judged by the simulator."""

import faulthandler
import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from pulsar_sansio.sim.mutants import (
    Mutant,
    Probes,
    Source,
    broken_by,
    forget,
    import_mutant,
    import_probed,
    parse_equivalents,
    worlds,
)
from pulsar_trio.cli import main, mutate, mutate_judges
from pulsar_trio.cli.children import Children, Ended
from pulsar_trio.cli.mutate_judges import ADAPTER, MACHINES, Target, noticed, simulate, sources

SAMPLE = "tests.sim.mutants.sample"

TARGET = Target(
    "sample",
    (SAMPLE,),
    (f"{SAMPLE}.judging", f"{SAMPLE}.test_counting"),
    (SAMPLE,),
    (),
    f"{SAMPLE}.judging",
    ("tests/sim/mutants/sample",),
    ("tests/sim/mutants/sample",),
)

EQUIVALENT = (
    f"{SAMPLE}.counting Sum.halve bound: while self.total > self.limit // 2: => "
    "while self.total > self.limit // 3:"
)


def mutant_of(target: Target, text: str) -> Mutant:
    (found,) = [
        each
        for source in sources(target)
        if text.startswith(source.module)
        for each in source.mutants()
        if each.name.startswith(text)
    ]
    return found


# --- the hook ---------------------------------------------------------------------------------------------


def test_a_mutant_is_imported_in_place_of_its_module_and_the_file_stays() -> None:
    name = f"{SAMPLE}.counting"
    original = import_module(name)
    mutant = mutant_of(TARGET, f"{name} Sum.add comparison: if self.total + number > self.limit:")
    try:
        forget([name])
        with import_mutant(mutant):
            changed = import_module(name)
        assert not changed.Sum(10).add(10)
        assert original.Sum(10).add(10)
        forget([name])
        assert import_module(name).Sum(10).add(10)
    finally:
        sys.modules[name] = original


def test_probes_note_which_statements_were_begun() -> None:
    name = f"{SAMPLE}.counting"
    original = import_module(name)
    probes = Probes()
    try:
        forget([name])
        with import_probed([SAMPLE], probes):
            probed = import_module(name)
        assert probes.taken() == {}
        found = probed.Sum(1)
        assert sum(probes.taken()[name]) == 3
        found.add(1)
        assert sum(probes.taken()[name]) == 3, "the condition, the sum, the return"
        assert probes.taken() == {}
        assert len(probes.modules[name]) == Source(name, Path(str(original.__file__)).read_text()).statements
    finally:
        sys.modules[name] = original


def test_forgetting_leaves_what_is_kept() -> None:
    name = f"{SAMPLE}.counting"
    original = import_module(name)
    forget([SAMPLE], [name])
    assert sys.modules[name] is original


# --- processes --------------------------------------------------------------------------------------------


def ended(
    work: Callable[[Callable[[str], None]], None], processor: int = 30, clock: float = 60
) -> Ended[int]:
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
    mutant = mutant_of(MACHINES, "pulsar_sansio.client.permits Permits.attach dropped: self.give_back")
    chosen = ["produce-batch-compressed: order of time"]
    rule, where, count = noticed(ended(partial(simulate, MACHINES, mutant, chosen, 20.0)))
    assert rule
    assert (where, count) == (chosen[0], 1)


def test_worlds_have_names_that_run_them() -> None:
    names = list(worlds(2, 1))
    assert names[0] == "produce-single: order of time"
    assert "seed 1" in names
    assert "seed 2" not in names
    assert sum(": wire" in name for name in names) == sum(": step" in name for name in names) > 20
    assert [broken_by(name) for name in (names[0], "seed 1", names[-1])] == ["", "", ""]


def test_the_adapter_has_a_judge_of_its_own() -> None:
    judge = mutate_judges.judge(ADAPTER)
    names = list(judge.worlds(1, 2))
    assert names[:2] == ["seed 0", "close client: 1"]
    assert [judge.broken_by(name) for name in (names[0], names[-1])] == ["", ""]


@pytest.fixture
def simulate_mutate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """The command for the sample; its exit code and what it prints."""
    monkeypatch.setattr(mutate, "TARGETS", {"sample": TARGET, "machines": TARGET})
    monkeypatch.setattr(mutate, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(mutate_judges, "HANG", 0.5)
    # pytest has a thread that watches this test. A fork does not have the thread, and would wait for its end.
    faulthandler.cancel_dump_traceback_later()
    equivalents = tmp_path / "equivalents.txt"
    equivalents.write_text(f"{EQUIVALENT}\n    A wrong reason.\n")

    def call(*arguments: str) -> tuple[int, str]:
        code = main(
            ["simulate", "mutate", "--equivalents", str(equivalents), "--mutants", "1000", *arguments]
        )
        return code, capsys.readouterr().out

    return call


@pytest.mark.slow
def test_every_mutant_has_the_fate_that_it_must_have(
    simulate_mutate: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    results = tmp_path / "results.jsonl"
    code, out = simulate_mutate("--json", "--jobs", "2", "--results", str(results))
    found = json.loads(out)
    fates = {each["name"].partition(" ")[2]: each for each in found["results"]}
    assert not any("Sum.never" in name for name in fates), "no world reaches it"
    refused = fates["Sum.add dropped: self.refused += 1 => pass"]
    assert refused["fate"] == "tests"
    assert refused["by"].endswith("test_counting.py::test_what_was_refused_is_counted")
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
    assert len(lines) == found["mutants"]
    # Judged again is what the simulator has not noticed; the mark of an equivalent that it notices is wrong.
    code, out = simulate_mutate("--again", "--judge-equivalents", "--no-tests", "--results", str(results))
    assert code == 5
    assert "survived" in out
    assert "hang" not in out
    assert len(results.read_text().splitlines()) == len(lines) + found["tests"] + found["equivalent"]
    assert f"| {SAMPLE}.counting | {found['mutants']} | {found['simulator'] + 1} |" in out


def test_the_mutants_are_listed(simulate_mutate: Callable[..., tuple[int, str]]) -> None:
    code, out = simulate_mutate("--list", "--mutants", "3")
    assert code == 0
    assert len(out.splitlines()) == 3
    _, out = simulate_mutate("--list", "--mutant", "dropped: self.refused")
    assert out == f"{SAMPLE}.counting Sum.add dropped: self.refused += 1 => pass\n"
    _, out = simulate_mutate("--list", "--module", "elsewhere")
    assert out == "\n"


def test_code_that_fails_as_it_is_is_refused(
    simulate_mutate: Callable[..., tuple[int, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(mutate, "measure", lambda target, names, say: say("! world 1: RULE-2: wrong"))
    assert main(["simulate", "mutate"]) == 1
    assert (
        capsys.readouterr().err == "pulsar-trio simulate: the code fails as it is: world 1: RULE-2: wrong\n"
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
