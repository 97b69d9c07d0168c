"""The file of equivalent mutants: each has one name and a reason."""

import pytest

from pulsar_sim.mutants.equivalents import parse_equivalents

FILE = """# A comment.

a.b C.d bound: x < 1
    The first line of the reason,
\tand the second.

# Another comment.
e.f dropped: y()
  A reason.
"""


def test_names_and_reasons() -> None:
    assert parse_equivalents(FILE) == {
        "a.b C.d bound: x < 1": "The first line of the reason, and the second.",
        "e.f dropped: y()": "A reason.",
    }
    assert parse_equivalents("") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("  a reason\n", "line 1 is a reason without a mutant: 'a reason'"),
        ("a\n  why\n\na\n  why\n", "line 4 names a mutant again: 'a'"),
        ("a\n  why\nb\n", "no reason is given for 'b'"),
        ("a\nb\n  why\n", "no reason is given for 'a'"),
    ],
)
def test_what_is_no_such_file(text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_equivalents(text)
    assert str(caught.value) == words
