"""Docstrings and comments are sentences: the check itself, and that it finds nothing in the project."""

import ast
import re
from pathlib import Path

import pytest

from tests.sentences import FOLDERS, ROOT, docstrings, faults, faults_of, files

PAGES = [
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.stem not in ("rules", "mutants", "bank")),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]
"""Pages in prose. The other three are tables of rules and of results."""

AVOIDED = re.compile(
    r"\b(?:who|whom|whoever|likewise|somebody|nobody|handed out|given back|put off|comes? again)\b",
    re.IGNORECASE,
)
"""Words in place of an actor's name or of Pulsar's word."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_docstring_and_comment_is_made_of_sentences(folder: str) -> None:
    """Each begins with a subject or a verb, names its actor, and has at most 40 words in a sentence."""
    paths = list(files((folder,)))
    assert paths
    assert [str(each) for path in paths for each in faults(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_its_actors_and_uses_words_of_pulsar(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    assert [f"{number}: {line}" for number, line in enumerate(lines, 1) if AVOIDED.search(line)] == []


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
