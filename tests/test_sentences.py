"""Docstrings and comments are sentences: the check itself, and that it finds nothing in the project."""

import ast

import pytest

from tests.sentences import FOLDERS, docstrings, faults, faults_of, files


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_docstring_and_comment_is_made_of_sentences(folder: str) -> None:
    """Each begins with a subject or a verb, names its actor, and has at most 40 words in a sentence."""
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
