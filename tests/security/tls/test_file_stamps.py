"""`file_stamps`: each way in which a file changes shows in its stamp."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pulsar_security import file_stamps


def touched(file: Path) -> None:
    os.utime(file, ns=(0, 1))


def longer_in_no_time(file: Path) -> None:
    file.write_text("longer")
    os.utime(file, ns=(0, 0))


def replaced_in_no_time(file: Path) -> None:
    """The new file has the time and the size of the one before."""
    other = file.with_name("other")
    other.write_text(file.read_text())
    os.utime(other, ns=(0, 0))
    other.replace(file)


@pytest.mark.parametrize("change", [touched, longer_in_no_time, replaced_in_no_time, Path.unlink])
def test_a_change_shows(tmp_path: Path, change: Callable[[Path], None]) -> None:
    changed, kept = tmp_path / "changed", tmp_path / "kept"
    for file in (changed, kept):
        file.write_text("text")
        os.utime(file, ns=(0, 0))
    before = file_stamps([changed, kept])
    assert file_stamps([changed, kept]) == before
    change(changed)
    after = file_stamps([changed, kept])
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_a_file_that_cannot_be_found_has_no_stamp(tmp_path: Path) -> None:
    assert file_stamps([tmp_path / "nothing", tmp_path / "nothing" / "below"]) == [None, None]


def test_a_file_that_is_added_to_a_folder_shows(tmp_path: Path) -> None:
    os.utime(tmp_path, ns=(0, 0))
    before = file_stamps([tmp_path])
    (tmp_path / "added").touch()
    assert file_stamps([tmp_path]) != before


def test_a_file_of_a_folder_that_is_written_in_place_shows(tmp_path: Path) -> None:
    """The folder may have a link to it, as `c_rehash` makes one."""
    folder, file = tmp_path / "folder", tmp_path / "file"
    folder.mkdir()
    file.write_text("text")
    os.utime(file, ns=(0, 0))
    (folder / "5a1c.0").symlink_to(file)
    (folder / "0b2d.0").write_text("another")
    before = file_stamps([folder])
    assert file_stamps([folder]) == before
    touched(file)
    assert file_stamps([folder]) != before
