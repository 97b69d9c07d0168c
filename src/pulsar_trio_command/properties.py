"""Property files as Java reads them, which is what Pulsar's configuration files are.

A line is `name=value`, `name: value` or `name value`; `#` and `!` begin a comment. A backslash at its end
joins the next line to it. A backslash in front of a character makes it plain, but for `\\t`, `\\n`, `\\r`,
`\\f` and `\\uXXXX`. Files are UTF-8. Knows nothing of what the names mean.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pulsar_sansio import InvalidConfiguration

MAX_FILE = 1024 * 1024
"""Bytes. Pulsar's own files have 90,000."""


def shown(text: str) -> str:
    """The word that `text` begins with, for errors: a value may follow it, and a value may be a secret."""
    word = re.match(r"[\w-]{0,60}", text)
    assert word is not None, "the pattern matches nothing at all, too"
    return repr(word.group() + ("" if word.end() == len(text) else "…"))


class Property(NamedTuple):
    """One setting, and the place where it was given, for errors."""

    name: str
    value: str
    where: str


_END_OF_LINE = re.compile(rb"\r\n?|\n")
_NAME = re.compile(r"(?:\\.|[^\s=:\\])*")
_BETWEEN = re.compile(r"\s*[=:]?\s*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(file: Path) -> list[Property]:
    """All settings of the file, in its order. Raises `InvalidConfiguration` naming the file."""
    try:
        with file.open("rb") as source:
            content = source.read(MAX_FILE + 1)
    except OSError as error:
        raise InvalidConfiguration(f"{file} cannot be read: {error.strerror}") from error
    if len(content) > MAX_FILE:
        raise InvalidConfiguration(f"{file} is longer than {MAX_FILE} bytes")
    return list(_properties(content, str(file)))


def _properties(content: bytes, file: str) -> Iterator[Property]:
    for number, line in _logical_lines(content, file):
        found = _NAME.match(line)
        assert found is not None, "the pattern matches an empty name, too"
        between = _BETWEEN.match(line, found.end())
        assert between is not None, "this one matches nothing at all, too"
        where = f"{file}:{number}"
        name = _plain(found.group(), where)
        if not name:
            raise InvalidConfiguration(f"{where}: NAME=VALUE with a name that is not empty")
        yield Property(name, _plain(line[between.end() :], where).strip(), where)


def _logical_lines(content: bytes, file: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their numbers; continued ones put together, under the first's number."""
    begun: tuple[int, str] | None = None
    for number, raw in enumerate(_END_OF_LINE.split(content), 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").lstrip(" \t\f")
        except UnicodeDecodeError:
            raise InvalidConfiguration(f"{file}:{number}: not UTF-8 text") from None
        if begun is None and (not line.strip() or line[0] in "#!"):
            continue
        first, before = (number, "") if begun is None else begun
        if (len(line) - len(line.rstrip("\\"))) % 2:
            begun = first, before + line[:-1]
        else:
            begun = None
            yield first, before + line
    if begun is not None:
        yield begun


def _plain(text: str, where: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape.group(1)
        if code == "u":
            raise InvalidConfiguration(f"{where}: \\u is followed by four hexadecimal digits")
        return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)

    return _ESCAPE.sub(character, text)
