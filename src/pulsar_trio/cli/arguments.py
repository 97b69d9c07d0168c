"""Types of arguments: what a text on the command line must be, said in one line where it is not."""

import argparse


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, not {text!r}")
    return int(text)


def whole(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number of at least 0, not {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """Seconds, more than 0, less than four months."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e7:
        raise argparse.ArgumentTypeError(f"seconds, more than 0, not {text!r}")
    return number
