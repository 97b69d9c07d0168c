"""The Java of this machine: which one Spark would take, and one line where it cannot run on it."""

import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_spark import java


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ('openjdk version "11.0.2" 2019', "java is version 11"),
        ('java version "1.8.0_391"', "java is version 1"),
        ("nothing", "does not say its version"),
        ('openjdk version "17.0.15" 2025', None),
        ('openjdk version "21"', None),
    ],
)
def test_the_version_of_java(
    version: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "java"
    command.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    command.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    missing = java.missing_java()
    assert missing is None if said is None else missing is not None and said in missing


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.missing_java() == f"JAVA_HOME is {tmp_path}, which has no bin/java"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java.missing_java() == "there is no java in PATH"


def test_the_makefile_s_check_is_one_line_before_anything_is_installed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", java.__file__, "make demo-spark"],
        env={"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"make demo-spark needs Java 17 or later: JAVA_HOME is {tmp_path}, which has no bin/java\n"
    )
