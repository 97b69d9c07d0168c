"""Property files, as Java reads them."""

from pathlib import Path

import pytest

from pulsar_sansio import InvalidConfiguration
from pulsar_trio_command.properties import MAX_FILE, read_properties


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "broker.conf"


def read(file: Path, content: str) -> list[tuple[str, str, int]]:
    file.write_bytes(content.encode())
    return [(name, value, int(where.rsplit(":", 1)[1])) for name, value, where in read_properties(file)]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", []),
        ("\n  \n# a=1\n  ! b=2\n", []),
        ("a=1", [("a", "1", 1)]),
        ("\ufeffa=1\n", [("a", "1", 1)]),
        ("a = 1 \r\nb:2\r\n c 3\n", [("a", "1", 1), ("b", "2", 2), ("c", "3", 3)]),
        ("a=1\rb=2\\\r3\r\rc=4", [("a", "1", 1), ("b", "23", 2), ("c", "4", 5)]),
        ("a=\nb", [("a", "", 1), ("b", "", 2)]),
        ("a=b=c:d", [("a", "b=c:d", 1)]),
        ("a=1\na=2", [("a", "1", 1), ("a", "2", 2)]),
        ("a=1,\\\n   2,\\\n\t3\nb=4", [("a", "1,2,3", 1), ("b", "4", 4)]),
        ("a=1\\\n# no comment", [("a", "1# no comment", 1)]),
        ("a=1\\", [("a", "1", 1)]),
        ("a=1\\\\\nb=2", [("a", "1\\", 1), ("b", "2", 2)]),
        (r"a\=b\ c = \u00e9\t\:x", [("a=b c", "é\t:x", 1)]),
        ("a=grüße", [("a", "grüße", 1)]),
        ("#c\\\na=1", [("a", "1", 2)]),
    ],
)
def test_what_a_file_says(file: Path, content: str, found: list[tuple[str, str, int]]) -> None:
    assert read(file, content) == found


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a=1\n=2\n", ":2: NAME=VALUE with a name that is not empty"),
        (b"a=\\u12\n", ":1: \\u is followed by four hexadecimal digits"),
        (b"a=1\nb=\xff\n", ":2: not UTF-8 text"),
        (b"#" * (MAX_FILE + 1), f" is longer than {MAX_FILE} bytes"),
        (None, " cannot be read: No such file or directory"),
    ],
)
def test_an_error_names_file_and_line(file: Path, content: bytes | None, told: str) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidConfiguration) as raised:
        read_properties(file)
    assert str(raised.value) == f"{file}{told}"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="cannot be read: Is a directory"):
        read_properties(tmp_path)
