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


def byte_count(text: str) -> int:
    """Bytes, at least 0."""
    return int(_number(text, 0, 2**31, int, "a whole number of bytes, at least 0"))


def port(text: str) -> int:
    """A TCP port; 0 means a free one."""
    return int(_number(text, 0, 65535, int, "a port from 0 to 65535"))


def rate(text: str) -> float:
    """Messages per second, more than 0."""
    return _number(text, 1e-6, 1e9, float, "messages per second, more than 0")


def _number(text: str, least: float, most: float, kind: type[int] | type[float], words: str) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"{words}, not {text!r}")
    return value


def seconds(text: str) -> float:
    """Seconds, more than 0, less than four months."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e7:
        raise argparse.ArgumentTypeError(f"seconds, more than 0, not {text!r}")
    return number
