"""Types of arguments on the command line: what each takes, and the words of a refusal."""

import argparse
from collections.abc import Callable

import pytest

from pulsar_trio_command.options import arguments

Parse = Callable[[str], float]

CASES: list[tuple[Parse, dict[str, float], list[str], str]] = [
    (
        arguments.positive,
        {"1": 1, "007": 7},
        ["0", "-1", "", "1.0", "x"],
        "a whole number of at least 1, not ",
    ),
    (arguments.whole, {"0": 0, "12": 12}, ["-1", "", "1.5", "x"], "a whole number of at least 0, not "),
    (
        arguments.byte_count,
        {"0": 0, "2147483648": 2**31},
        ["-1", "2147483649", "1k", ""],
        "a whole number of bytes, at least 0, not ",
    ),
    (arguments.port, {"0": 0, "65535": 65535}, ["-1", "65536", "x", ""], "a port from 0 to 65535, not "),
    (
        arguments.rate,
        {"0.5": 0.5, "1e9": 1e9},
        ["0", "-1", "nan", "inf", "2e9", "x"],
        "messages per second, more than 0, not ",
    ),
    (
        arguments.seconds,
        {"0.001": 0.001, "9999999": 9999999.0},
        ["0", "-1", "nan", "inf", "1e7", "x"],
        "seconds, more than 0, not ",
    ),
]


@pytest.mark.parametrize(
    ("parse", "text", "value"), [(parse, *each) for parse, taken, _, _ in CASES for each in taken.items()]
)
def test_a_text_is_a_number(parse: Parse, text: str, value: float) -> None:
    found = parse(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("parse", "text", "words"),
    [(parse, text, words) for parse, _, refused, words in CASES for text in refused],
)
def test_another_text_is_refused_in_one_line(parse: Parse, text: str, words: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        parse(text)
    assert str(caught.value) == f"{words}{text!r}"
