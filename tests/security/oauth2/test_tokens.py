"""The form of a token, and the file that holds one."""

from pathlib import Path

import pytest

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_security import checked_token, read_token
from pulsar_security.tokens import MAX_TOKEN
from tests.canary import CANARY


@pytest.mark.parametrize("text", [CANARY, CANARY.encode(), Secret(CANARY), "!~"])
def test_a_token_is_taken_as_it_is(text: str | bytes | Secret) -> None:
    assert checked_token(text) == Secret(text)


@pytest.mark.parametrize("wrong", [" ", "\n", "\0", "\x1f", "\x7f", "\x80", "é"])
def test_a_character_that_no_token_has(wrong: str) -> None:
    """The refusal quotes nothing of the text."""
    for text in (CANARY + wrong, wrong + CANARY):
        with pytest.raises(InvalidConfiguration) as caught:
            checked_token(text)
        assert str(caught.value) == "a token has spaces, control characters or non-ASCII characters"


def test_a_token_that_is_empty() -> None:
    with pytest.raises(InvalidConfiguration, match="a token is empty"):
        checked_token("")


def test_white_space_around_the_token_of_a_file_is_none_of_it(tmp_path: Path) -> None:
    file = tmp_path / "token.key"
    file.write_text(f"\n {CANARY}\r\n\n")
    assert read_token(file) == Secret(CANARY)
    assert read_token(str(file)) == Secret(CANARY)


def test_the_file_of_a_token_is_of_bounded_size(tmp_path: Path) -> None:
    file = tmp_path / "token.key"
    file.write_text("t" * MAX_TOKEN)
    assert read_token(file) == Secret("t" * MAX_TOKEN)
    file.write_text("t" * MAX_TOKEN + "\n")
    with pytest.raises(InvalidConfiguration, match="the file of a token has more than 65536 bytes"):
        read_token(file)


def test_a_file_that_has_no_token(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_token(tmp_path / "nothing")
    file = tmp_path / "token.key"
    file.write_text(f"{CANARY} {CANARY}")
    with pytest.raises(InvalidConfiguration) as caught:
        read_token(file)
    assert CANARY not in str(caught.value)
