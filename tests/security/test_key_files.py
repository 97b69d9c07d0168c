"""The files of encryption keys, as the trio adapter and Spark read them."""

import pickle
from pathlib import Path

import pytest

from pulsar_sansio import CryptoError, Secret
from pulsar_security.key_files import MAX_KEY_FILE, KeyFiles


def test_a_file_is_read_each_time_and_its_name_is_told(tmp_path: Path) -> None:
    file = tmp_path / "private.key"
    files = KeyFiles((("k", str(file)),))
    with pytest.raises(CryptoError, match=r"^key file .*private.key': No such file"):
        files.read("k")
    with pytest.raises(CryptoError, match="no file for a key of that name"):
        files.read("other")
    for text in ("one", "two"):
        file.write_text(text)
        assert pickle.loads(pickle.dumps(files)).read("k").key == Secret(text)
    file.write_bytes(bytes(MAX_KEY_FILE + 1))
    with pytest.raises(CryptoError, match="more than 65536 bytes"):
        KeyFiles(every=str(file)).read("k")
    with pytest.raises(CryptoError, match="null byte"):
        KeyFiles(every="a\0b").read("k")


def test_a_named_file_comes_before_the_file_of_every_key(tmp_path: Path) -> None:
    for name in ("own", "every"):
        (tmp_path / name).write_text(name)
    files = KeyFiles((("k", tmp_path / "own"),), tmp_path / "every")
    assert [files.read(name).key for name in ("k", "other")] == [Secret("own"), Secret("every")]
