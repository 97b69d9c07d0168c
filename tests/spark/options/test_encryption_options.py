"""The options of end-to-end encryption: the files of keys, and what a write needs."""

import pytest

from pulsar_security import KeyFiles
from pulsar_spark.errors import InvalidOption, MissingOption, UnknownOption
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_read, parse_write

GIVEN = {"service.url": "pulsar://localhost", "topic": "t"}


def key_files(text: str) -> KeyFiles | None:
    return parse_read({**GIVEN, "encryption.keyFiles": text}, Use.STREAM_READ).key_files


def test_one_file_for_every_key_or_files_by_name() -> None:
    assert parse_read(GIVEN, Use.BATCH_READ).key_files is None
    assert key_files(" /k ") == KeyFiles(every="/k")
    assert key_files("a=/x, b=/y=z") == KeyFiles((("a", "/x"), ("b", "/y=z")))


@pytest.mark.parametrize("text", [",", "/k,/l", "a=", "=/k", "a=/k,a=/l"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match=r"option encryption.keyFiles: .*NAME=FILE"):
        key_files(text)


def test_a_write_encrypts_for_names() -> None:
    given = {**GIVEN, "encryption.keys": "a,b", "encryption.keyFiles": "/k"}
    assert parse_write(given, Use.STREAM_WRITE).encryption_keys == ("a", "b")
    assert parse_write(GIVEN, Use.STREAM_WRITE).encryption_keys is None


@pytest.mark.parametrize("one", ["encryption.keys", "encryption.keyFiles"])
def test_a_write_needs_both_options_or_neither(one: str) -> None:
    with pytest.raises(MissingOption, match="need each other"):
        parse_write({**GIVEN, one: "k"}, Use.STREAM_WRITE)


def test_a_read_decrypts_whatever_it_has_keys_for() -> None:
    with pytest.raises(UnknownOption, match=r"encryption.keys is for writes only"):
        parse_read({**GIVEN, "encryption.keys": "a"}, Use.BATCH_READ)
