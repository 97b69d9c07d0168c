"""The table of fates: sums by module, and shares of the mutants that are not equivalent."""

import pytest

from pulsar_sim.mutants.judged import EQUIVALENT, FATES, SIMULATOR, SURVIVED, TESTS, FateTable, Judged


def table(*fates: tuple[str, str]) -> FateTable:
    return FateTable.of(Judged(f"m{number}", module, 1, fate) for number, (module, fate) in enumerate(fates))


FOUR = table(("b", SIMULATOR), ("a", TESTS), ("b", EQUIVALENT), ("b", SURVIVED), ("b", SIMULATOR))


def test_fates_by_module() -> None:
    assert list(FOUR.modules) == ["a", "b"], "in the order of their names"
    assert FOUR.modules["b"] == {SIMULATOR: 2, TESTS: 0, EQUIVALENT: 1, SURVIVED: 1}
    assert FOUR.total == {SIMULATOR: 2, TESTS: 1, EQUIVALENT: 1, SURVIVED: 1}


@pytest.mark.parametrize(
    ("row", "fates", "percent"),
    [
        ((2, 1, 4, 1), (SIMULATOR,), 50.0),
        ((2, 1, 4, 1), (SIMULATOR, TESTS), 75.0),
        ((0, 0, 4, 0), (SIMULATOR,), 100.0),
        ((0, 0, 0, 0), (SIMULATOR,), 100.0),
        ((0, 0, 3, 2), (SIMULATOR, TESTS), 0.0),
    ],
)
def test_an_equivalent_mutant_counts_in_no_share(
    row: tuple[int, ...], fates: tuple[str, ...], percent: float
) -> None:
    assert FateTable.percent(dict(zip(FATES, row, strict=True)), *fates) == percent


def test_the_sums_as_json() -> None:
    found = FOUR.as_json()
    assert (found["mutants"], found[SURVIVED]) == (5, 1)
    assert (found["percent_simulator"], found["percent_noticed"]) == (50.0, 75.0)
    assert found["modules"] is FOUR.modules


def test_a_line_for_each_module_and_one_for_all() -> None:
    *_, first, second, last = FOUR.as_markdown().splitlines()
    assert first.startswith("| a | 1 | 0")
    assert second.startswith("| b | 4 | 2")
    assert last.startswith("| all | 5 | 2")
