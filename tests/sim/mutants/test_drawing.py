"""Reach, the draw, equivalents and the table."""

import json
import os
import subprocess
import sys

import pytest

from pulsar_sim.mutants import FateTable, Judged, ModuleSource, Reach, bits_of, drawn, parse_equivalents
from pulsar_sim.mutants.judged import EQUIVALENT, SIMULATOR, SURVIVED, TESTS

TEXT = """
LIMIT = 1

def f(a):
    a(1); a(2)
    a(3)

def g(a):
    a(4)
"""
SOURCE = ModuleSource("m", TEXT)


def reach(**worlds: list[int]) -> Reach:
    found = Reach()
    for world, statements in worlds.items():
        found.add(world, {"m": bytes(number in statements for number in range(4))})
    return found


def test_bits() -> None:
    assert bits_of(bytes([0, 1, 0, 7])) == 0b1010


def test_reach_knows_the_worlds_of_a_statement() -> None:
    found = reach(one=[0, 1], two=[1], three=[])
    assert found.of("m", 1) == ["one", "two"]
    assert found.of("m", 3) == []
    assert found.of("n", 0) == []
    assert found.all("m") == 0b11
    assert Reach.from_json(json.loads(json.dumps(found.as_json()))) == found


def test_only_what_worlds_reach_is_drawn() -> None:
    assert {each.statement for each in drawn([SOURCE], reach(one=[0, 2]), 0, 100)} == {0, 2}
    assert drawn([SOURCE], reach(one=[]), 0, 100) == []


def test_a_line_has_one_chance_however_many_mutants_it_has() -> None:
    everything = reach(one=[0, 1, 2, 3])
    for seed in range(20):
        lines = [each.line for each in drawn([SOURCE], everything, seed, 3)]
        assert sorted(lines) == [5, 6, 9]


def test_a_larger_number_begins_with_a_smaller_one() -> None:
    everything = reach(one=[0, 1, 2, 3])
    some, more = (drawn([SOURCE], everything, 7, count) for count in (4, 1000))
    assert more[:4] == some
    assert len({each.name for each in more}) == len(more)
    assert len(more) == len([each for each in SOURCE.mutants() if each.statement is not None])


def test_the_seed_decides() -> None:
    everything = reach(one=[0, 1, 2, 3])
    assert len({tuple(drawn([SOURCE], everything, seed, 2)) for seed in range(20)}) > 1


def test_the_same_seed_draws_the_same_in_another_process() -> None:
    code = """if True:
        from pathlib import Path
        from pulsar_sansio.client.producing import send_window
        from pulsar_sim.mutants import ModuleSource, Reach, drawn
        text = Path(send_window.__file__).read_text()
        source = ModuleSource("pulsar_sansio.client.producing.send_window", text)
        reach = Reach({"a": {source.module: (1 << source.statements) - 1}})
        print([each.name for each in drawn([source], reach, 3, 30)])
    """
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert found.pop().count(b"=>") == 30


def test_equivalents() -> None:
    text = "# a comment\n\nm f: a => b\n    It is never\n    read.\nm g: c => d\n    So is this.\n"
    assert parse_equivalents(text) == {"m f: a => b": "It is never read.", "m g: c => d": "So is this."}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("m f: a => b\nm g: c => d\n    Why.\n", "no reason is given for 'm f: a => b'"),
        ("    Why.\n", "line 1 is a reason without a mutant: 'Why.'"),
        ("m f: a => b\n    Why.\nm f: a => b\n    Why.\n", "line 3 names a mutant again: 'm f: a => b'"),
    ],
)
def test_equivalents_that_say_nothing(text: str, error: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_equivalents(text)
    assert str(raised.value) == error


def test_the_table_leaves_equivalents_out_of_the_percentages() -> None:
    fates = [SIMULATOR] * 8 + [TESTS] + [SURVIVED] + [EQUIVALENT] * 10
    table = FateTable.of(
        Judged(f"m{number}", "b" if number else "a", 1, fate) for number, fate in enumerate(fates)
    )
    found = table.as_json()
    assert (found["mutants"], found["percent_simulator"], found["percent_noticed"]) == (20, 80.0, 90.0)
    assert list(table.modules) == ["a", "b"]
    assert "| b | 19 | 7 | 1 | 10 | 1 |" in table.as_markdown()
    assert "| all | 20 | 8 | 1 | 10 | 1 |" in table.as_markdown()
    assert FateTable.percent(dict.fromkeys(found["modules"]["a"], 0), SIMULATOR) == 100.0
