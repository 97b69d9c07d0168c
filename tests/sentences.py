"""The sentences of docstrings and comments, and the faults in them that a machine can find.

`python -m tests.sentences [FOLDER …]` prints each fault with its file and line.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "tests", "fuzz", "bench", "examples", "tools")
GENERATED = re.compile(r"_pb2\.pyi?$")

MOST_WORDS = 40
"""A sentence of more words is two sentences."""

_NO_SUBJECT = re.compile(
    r"(?:What|Whatever|Which|Whichever|Who|Whoever|Whom|Whose|Whether|How|However|Why|Of|Likewise"
    r"|It|They|He|She|And|Or|But|Nor|Then|Also|Because|Than|Though|Like|Unlike)\b"
    r"|(?:Where|Wherever|When|Whenever|While|Until|If|Unless|As|Once|Since)\b[^,:]*?"
    r"(?:,\s+(?:and|or|nor|but|with|without|which)\b[^,:]*?)*(?:[.;]\s|[.;]?$|\n\s*\n)"
    r"|(?:None|That|Those|These|This|So|The same|Not|Only)"
    r"(?=[.,:;]|\s+(?:of|for|with|without|in|on|at|by|to|from|as|but|where|when|while|until|unless|if|before"
    r"|after|which|that|who|many|much|long|often|far)\b)"
)
"""A sentence that begins so has no subject, or hides it.

A clause with a conjunction is found when no main clause follows its comma.
"""

_UNNAMED = re.compile(
    r"\b(?:[Ll]ikewise|[Ss]omebody|[Ss]omeone|[Nn]obody|[Aa]s above|[Ww]hom|[Ww]hoever)\b"
    r"|(?<!\ball )\b[Tt]he same(?=\s*[.;])"
    r"|(?<!administrator )(?<!administrators )(?<!user )(?<!users )(?<!people )(?<!readers )\b[Ww]ho\b"
)
"""Words in place of an actor's name, or of a sentence. A person may be one that acts."""

OURS = re.compile(
    r"comes?[_ -]again|came[_ -]again|coming[_ -]again|hand(?:s|ed|ing)?[_ -]out(?![a-z])|given[_ -]back"
    r"|g(?:ave|ives?)[ -]back|(?<![a-z])puts?[_ -]off(?![a-z])|verdict|keep_house|last_words"
    r"|whereabouts|undivided|misplaced"
    r"|letter_?box|let_judge|likeness|on_alike|seconds_to_ns|no_such_thing|already_there|still_in_use"
    r"|volatile_?topic|nosuchthing|alreadythere|stillinuse",
    re.IGNORECASE,
)
"""Words of our own where Pulsar has one: delivered, redelivered, reconsumed later."""

_END = re.compile(r"(?<=[.!?])[)\"'`]*(?:\s+|$)|\n\s*\n|\n\s*(?=[*-] |\d+\. )")
_WORD = re.compile(r"\S*\w\S*")


class Fault(NamedTuple):
    """One sentence that breaks the rule."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text}"


def files(folders: tuple[str, ...] = FOLDERS) -> Iterator[Path]:
    """The Python files in folders of the project, without generated ones."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not GENERATED.search(path.name):
                yield path


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each string that stands by itself: of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if not isinstance(statements, list):
                continue
            for statement in statements:
                if (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                ):
                    yield statement.lineno, statement.value.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each run of comment lines, without directives of tools."""
    first, last, text = 0, -1, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        said = token.string.lstrip("# ").rstrip("- ")
        if re.match(r"noqa|type:|mypy:|ruff:|pragma|!/", said):
            continue
        if token.start[0] == last + 1:
            text += " " + said
        else:
            if text:
                yield first, text
            first, text = token.start[0], said
        last = token.start[0]
    if text:
        yield first, text


def faults_of(text: str, begins: bool) -> Iterator[str]:
    """The faults of one text; `begins`: its first word counts."""
    stripped = text.strip()
    if begins and (found := _NO_SUBJECT.match(stripped)):
        yield f"begins without a subject: {stripped[:60]!r}"
    for found in _UNNAMED.finditer(text):
        yield f"names no actor: {found[0]!r}"
    for found in OURS.finditer(text):
        yield f"is no word of Pulsar: {found[0]!r}"
    for sentence in _END.split(stripped):
        words = len(_WORD.findall(sentence))
        if words > MOST_WORDS:
            yield f"{words} words in a sentence: {' '.join(sentence.split())[:60]!r}"


def faults(path: Path) -> Iterator[Fault]:
    """All faults in one file."""
    source = path.read_text("utf-8")
    for line, text in docstrings(ast.parse(source)):
        for each in faults_of(text, begins=True):
            yield Fault(path, line, each)
    for line, text in comments(source):
        for each in faults_of(text, begins=False):
            yield Fault(path, line, each)


if __name__ == "__main__":
    found = [each for path in files(tuple(sys.argv[1:]) or FOLDERS) for each in faults(path)]
    print(*found, f"{len(found)} faults", sep="\n")
