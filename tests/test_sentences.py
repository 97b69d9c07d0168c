"""Docstrings and comments are sentences: the check itself, and that it finds nothing in the project."""

import ast
import subprocess
from pathlib import Path

import pytest

from tests.sentences import FOLDERS, OURS, ROOT, docstrings, faults, faults_of, files

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]

WITH_WORDS = {".py", ".pyi", ".md", ".toml", ".txt", ".json", ".proto", ".conf"}
"""Files that have words of ours. Recordings have those of others."""

OF_THE_CHECK = {"tests/sentences.py", "tests/test_sentences.py"}
"""Files that name the words in order to find them."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_docstring_and_comment_is_made_of_sentences(folder: str) -> None:
    """Each begins with a subject or a verb, names its actor, and has at most 40 words in a sentence."""
    paths = list(files((folder,)))
    assert paths
    assert [str(each) for path in paths for each in faults(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_names_its_actors_and_uses_words_of_pulsar(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    found = [
        f"{number}: {each}" for number, line in enumerate(lines, 1) for each in faults_of(line, begins=False)
    ]
    assert [each for each in found if "words in a sentence" not in each] == []


def test_names_and_messages_use_words_of_pulsar() -> None:
    """In names, file names, notes of seeds and messages no word of our own stands where Pulsar has one."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0")
    ours = [
        name for name in listed if Path(name).suffix in WITH_WORDS and not name.startswith("tests/captures/")
    ]
    texts = {
        name: f"{name} {(ROOT / name).read_text('utf-8')}"
        for name in ours
        if name not in OF_THE_CHECK and (ROOT / name).exists()
    }
    assert len(texts) > 1
    assert {name: OURS.findall(text) for name, text in texts.items() if OURS.search(text)} == {}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("What it costs.", "begins without a subject"),
        ("Whether all are free.", "begins without a subject"),
        ("Of several the last.", "begins without a subject"),
        ("Where a subscription is.", "begins without a subject"),
        ("When it begins, and whether it ends.", "begins without a subject"),
        ("None until a connection needs it.", "begins without a subject"),
        ("That of the client.", "begins without a subject"),
        ("The same for a consumer.", "begins without a subject"),
        ("So many bytes.", "begins without a subject"),
        ("It waits for the broker.", "begins without a subject"),
        ("The others do the same.", "names no actor"),
        ("Closed for whoever reads.", "names no actor"),
        ("The broker tells who asked.", "names no actor"),
        ("The message is handed out.", "is no word of Pulsar"),
        ("An entry comes again.", "is no word of Pulsar"),
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
        "Where a producer waits, and the broker is gone, the client looks the topic up.",
        "When False, each frame is a message.",
        "That consumer has the same topic all the same.",
        "An administrator who removes a user sees it.",
        "One sentence of " + "word " * 30 + ".\n\nAnother of " + "word " * 30 + ".",
        "* a row of " + "word " * 30 + "\n* a row of " + "word " * 30,
    ],
)
def test_a_sentence_is_no_fault(text: str) -> None:
    assert list(faults_of(text, begins=True)) == []


def test_strings_behind_attributes_are_docstrings() -> None:
    tree = ast.parse('"""A module."""\nx = 1\n"""A number."""\nclass C:\n    """A class."""\n    y = 2\n')
    assert sorted(docstrings(tree)) == [(1, "A module."), (3, "A number."), (5, "A class.")]
