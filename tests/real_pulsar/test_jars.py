"""Getting the jars: a cache that is whole or not there, and a clear word where Java or Maven is missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real_pulsar import jars
from tests.real_pulsar.jars import VERSION, Unavailable


def tool(folder: Path, name: str, script: str) -> None:
    """An executable shell script, alone on PATH with the shell's own tools."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path / "bin"


TARGET = 'for last; do :; done; target="${last#-DoutputDirectory=}"'
"""The folder that Maven is told to copy to: its last argument."""


def test_the_jars_are_fetched_once(tools: Path, tmp_path: Path) -> None:
    tool(tools, "mvn", f"{TARGET}; touch $target/pulsar-broker-1.jar; echo x >> {tmp_path}/calls")
    folder = jars.jars(tmp_path / "cache")
    assert folder == tmp_path / "cache" / "real-pulsar" / VERSION
    assert [jar.name for jar in folder.iterdir()] == ["pulsar-broker-1.jar"]
    assert jars.jars(tmp_path / "cache") == folder
    assert (tmp_path / "calls").read_text() == "x\n"


def test_a_fetch_that_fails_leaves_nothing(tools: Path, tmp_path: Path) -> None:
    tool(tools, "mvn", f"{TARGET}; touch $target/pulsar-broker-1.jar; echo '[ERROR] no route'; exit 1")
    with pytest.raises(Unavailable, match=r"^Maven could not fetch .*: \[ERROR\] no route$"):
        jars.jars(tmp_path / "cache")
    assert list((tmp_path / "cache" / "real-pulsar").iterdir()) == []


def test_a_maven_that_fetches_nothing_has_failed(tools: Path, tmp_path: Path) -> None:
    tool(tools, "mvn", "exit 0")
    with pytest.raises(Unavailable, match="exit status 0"):
        jars.jars(tmp_path / "cache")


def test_another_run_that_was_faster_is_as_good(tools: Path, tmp_path: Path) -> None:
    other = tmp_path / "cache" / "real-pulsar" / VERSION
    tool(tools, "mvn", f"{TARGET}; touch $target/pulsar-broker-1.jar; mkdir {other}; touch {other}/other.jar")
    assert jars.jars(tmp_path / "cache") == other
    assert [path.name for path in other.parent.iterdir()] == [VERSION]


def test_without_maven(tools: Path, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"needs Maven .* no `mvn` on PATH"):
        jars.jars(tmp_path / "cache")


def test_without_java(tools: Path) -> None:
    with pytest.raises(Unavailable, match="needs Java 17 or later, and there is no `java` on PATH"):
        jars.java()


@pytest.mark.parametrize(
    ("said", "version"),
    [('java version "1.8.0_202"', "version 1"), ('openjdk version "11.0.2"', "version 11"), ("?", "of no")],
)
def test_with_an_old_java(tools: Path, said: str, version: str) -> None:
    tool(tools, "java", f"echo '{said}' >&2")
    with pytest.raises(Unavailable, match=f"needs Java 17 or later; .* is {version}"):
        jars.java()


def test_java_home_comes_first(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tools, "java", "echo 'openjdk version \"11\"' >&2")
    (tmp_path / "home").mkdir()
    tool(tmp_path / "home" / "bin", "java", "echo 'openjdk version \"21.0.1\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert jars.java() == str(tmp_path / "home" / "bin" / "java")


def test_the_command_says_it_in_one_line(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.real_pulsar", "fetch"],
        env=environment | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "a real Pulsar needs Java 17 or later, and there is no `java` on PATH\n"
