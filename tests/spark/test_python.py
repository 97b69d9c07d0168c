"""The Python of Spark's workers: which it is, and one clear error where it cannot do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pulsar_spark import session
from pulsar_spark.python import WrongPython, check_python, workers_python

VERSION = ".".join(str(part) for part in sys.version_info[:2])


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ("python3", "PYSPARK_PYTHON")),
        ({"PYSPARK_PYTHON": "a"}, ("a", "PYSPARK_PYTHON")),
        ({"PYSPARK_PYTHON": "a", "PYSPARK_DRIVER_PYTHON": "b"}, ("b", "PYSPARK_DRIVER_PYTHON")),
        ({"PYSPARK_PYTHON": "a", "PYSPARK_DRIVER_PYTHON": ""}, ("a", "PYSPARK_PYTHON")),
    ],
)
def test_which_python_it_is(environment: dict[str, str], expected: tuple[str, str]) -> None:
    assert workers_python(environment) == expected


def test_this_python_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", None)
    check_python({"PYSPARK_PYTHON": sys.executable})


def test_another_python_that_has_everything(tmp_path: Path) -> None:
    check_python({"PYSPARK_PYTHON": program(tmp_path / "other", f"echo {VERSION}")})


@pytest.mark.parametrize("variable", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            f"echo {VERSION}; echo \"No module named 'pulsar_spark'\" >&2; exit 1",
            "No module na",
        ),
        ("echo 3.9; exit 1", f"it is Python 3.9, and the driver is Python {VERSION}"),
        ("exit 7", "exit code 7"),
    ],
)
def test_a_python_that_cannot_do_is_named(script: str, told: str, variable: str, tmp_path: Path) -> None:
    other = program(tmp_path / "other", script)
    with pytest.raises(WrongPython) as raised:
        check_python({variable: other})
    text = str(raised.value)
    assert "\n" not in text
    assert f"{variable} is {other}: {told}" in text
    assert f"Set {variable} to a Python that has pulsar-trio[spark]" in text
    assert sys.executable in text


def test_nothing_set_means_the_python_of_the_search_path(tmp_path: Path) -> None:
    with pytest.raises(WrongPython, match="PYSPARK_PYTHON is not set, which means python3: there is no such"):
        check_python({"PATH": str(tmp_path)})
    program(tmp_path / "python3", "exit 1")
    with pytest.raises(WrongPython, match="PYSPARK_PYTHON is not set, which means python3: exit code 1"):
        check_python({"PATH": str(tmp_path)})


def test_what_is_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"\0\1\2")
    (tmp_path / "other").chmod(0o755)
    with pytest.raises(WrongPython, match="it does not start: "):
        check_python({"PYSPARK_PYTHON": str(tmp_path / "other")})


@pytest.mark.slow
def test_a_real_python_without_the_packages_is_refused(tmp_path: Path) -> None:
    """This one, which is told to look nowhere for packages."""
    other = program(tmp_path / "other", f'exec {sys.executable} -I -S "$@"')
    with pytest.raises(WrongPython, match=f"is {other}: ModuleNotFoundError: No module named '"):
        check_python({**os.environ, "PYSPARK_PYTHON": other, "PYSPARK_DRIVER_PYTHON": ""})


@pytest.mark.slow
def test_a_real_python_with_the_packages_is_taken(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    other = program(tmp_path / "other", f'exec {sys.executable} "$@"')
    check_python({**os.environ, "PYSPARK_PYTHON": other, "PYSPARK_DRIVER_PYTHON": ""})


def test_a_session_on_this_machine_is_not_made_with_a_wrong_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(session, "missing_java", lambda: None)
    monkeypatch.setenv("PYSPARK_PYTHON", program(tmp_path / "other", "exit 1"))
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    with pytest.raises(WrongPython, match="exit code 1"):
        session.open_session("test", "local[1]")
