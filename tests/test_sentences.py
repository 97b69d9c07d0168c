"""Docstrings and comments are sentences: the check itself, and the folders that it finds nothing in."""

import ast

import pytest

from tests.sentences import ROOT, docstrings, faults, faults_of, files

CLEAN = (
    "src/pulsar_sansio/broker",
    "src/pulsar_sansio/client",
    "src/pulsar_sim/apps",
    "src/pulsar_sim/checks",
    "src/pulsar_sim/coverage_points",
    "src/pulsar_sim/engine",
    "src/pulsar_sim/faults",
    "src/pulsar_sim/generate",
    "src/pulsar_sim/model",
    "src/pulsar_sim/world",
    "src/pulsar_trio/producing",
    "src/pulsar_trio/transport",
    "tests/broker",
    "tests/client",
    "tests/sim/apps",
    "tests/sim/checks",
    "tests/sim/engine",
    "tests/sim/faults",
    "tests/sim/model",
    "tests/sim/world",
)
"""Folders without a fault. A folder is added when its last fault is gone; none is taken out."""


@pytest.mark.parametrize("folder", CLEAN)
def test_a_clean_folder_stays_clean(folder: str) -> None:
    paths = list(files((folder,)))
    assert paths
    assert [str(each) for path in paths for each in faults(path)] == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("What it costs.", "begins without a subject"),
        ("Whether all are free.", "begins without a subject"),
        ("Of several the last.", "begins without a subject"),
        ("The broker waits, likewise.", "names no actor"),
        ("Closed when nobody reads.", "names no actor"),
        (" ".join(["word"] * 41) + ".", "41 words in a sentence"),
        ("Return the count. " + "word " * 41, "41 words in a sentence"),
    ],
)
def test_a_fault_is_found(text: str, fault: str) -> None:
    (found,) = faults_of(text, begins=True)
    assert found.startswith(fault)


@pytest.mark.parametrize(
    "text",
    [
        "Return the number of messages.",
        "Whatsoever the broker says is true.",
        "One sentence of " + "word " * 30 + ".\n\nAnother of " + "word " * 30 + ".",
        "* a row of " + "word " * 30 + "\n* a row of " + "word " * 30,
    ],
)
def test_a_sentence_is_no_fault(text: str) -> None:
    assert list(faults_of(text, begins=True)) == []


def test_strings_behind_attributes_are_docstrings() -> None:
    tree = ast.parse('"""A module."""\nx = 1\n"""A number."""\nclass C:\n    """A class."""\n    y = 2\n')
    assert sorted(docstrings(tree)) == [(1, "A module."), (3, "A number."), (5, "A class.")]


def test_the_folders_exist() -> None:
    assert [each for each in CLEAN if not (ROOT / each).is_dir()] == []
