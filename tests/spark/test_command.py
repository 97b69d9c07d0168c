"""`pulsar-trio spark …` without Spark: its arguments, and what it says where Spark cannot run."""

import argparse
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import cast

import pytest

import pulsar_trio_command.command
from pulsar_security import KeyFiles
from pulsar_spark import session
from pulsar_spark.command import KEY_FILES, KEYS, _connection, _option
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_read, parse_write
from pulsar_spark.session import SparkUnavailable
from pulsar_trio_command.command import main

PYPROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"


@pytest.fixture(autouse=True)
def entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """As pyproject.toml has it, whatever is installed."""
    groups = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]

    def entry_points(group: str) -> list[EntryPoint]:
        return [EntryPoint(name, value, group) for name, value in groups[group].items()]

    monkeypatch.setattr(pulsar_trio_command.command, "entry_points", entry_points)


def run(*arguments: str) -> int:
    try:
        return main(["spark", *arguments])
    except SystemExit as end:
        return cast(int, end.code)


def test_help_names_the_jobs_and_needs_no_spark(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    assert "simulate" in capsys.readouterr().out


def test_the_command_imports_no_spark() -> None:
    code = "import sys, pulsar_spark.command; print({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simulate", "--seeds", "0"], "a whole number of at least 1, not '0'"),
        (["simulate", "--seed", "-1"], "a whole number of at least 0, not '-1'"),
        (["simulate", "--conf", "spark.ui.enabled"], "spark.NAME=VALUE, not 'spark.ui.enabled'"),
        (["audit", "a", "b", "--option", "topic=c"], "an option tls.…, auth.…, "),
        (["audit", "a", "b", "--option", "auth.tokenFile"], "an option tls.…, auth.…, "),
        (["audit", "a", "b", "--option", "auth.Token=x"], "give auth.tokenFile, or $PULSAR_TOKEN"),
        (["audit", "a", "b", "--option", "encryption.keys=k"], "encryption.keyFiles or broker.hosts"),
        (["archive", "t", "p", "--option", "encryption.keys=k"], "encryption.keyFiles or broker.hosts"),
        (["redrive", "t", "b", "--option", "encryption.keys=k"], "encryption.keyFiles or broker.hosts"),
        (["redrive", "t", "b", "--encrypt", "/k"], "NAME=FILE, without commas, not '/k'"),
        (["redrive", "t", "b", "--encrypt", "a=/a,b=/b"], "NAME=FILE, without commas, not 'a=/a,b=/b'"),
        (["audit", "a", "b", "--option", "auth.password=x"], "give $PULSAR_PASSWORD"),
        (["audit", "a", "b", "--option", "tls.keyPassword=x"], "give $PULSAR_TLS_KEY_PASSWORD"),
        (["audit", "a", "b", "--option", "auth.oauth2ClientSecret=x"], "give auth.oauth2Credentials"),
    ],
)
def test_wrong_arguments(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ([], {}, {}),
        ([], {"PULSAR_TOKEN": "t\n"}, {"auth.method": "token", "auth.token": "t"}),
        (["auth.method=none"], {"PULSAR_TOKEN": "t"}, {"auth.method": "none"}),
        ([], {"PULSAR_TLS_KEY_PASSWORD": "p"}, {}),
        (["tls.key=/k"], {"PULSAR_TLS_KEY_PASSWORD": "p"}, {"tls.key": "/k", "tls.keyPassword": "p"}),
        (
            ["auth.method=basic", "auth.user=me", "tls.trust=/t"],
            {"PULSAR_TOKEN": "t", "PULSAR_PASSWORD": "p"},
            {"auth.method": "basic", "auth.user": "me", "tls.trust": "/t", "auth.password": "p"},
        ),
    ],
)
def test_options_of_a_connection(
    given: list[str], environment: dict[str, str], expected: dict[str, str]
) -> None:
    options = [_option((), text) for text in given]
    arguments = argparse.Namespace(url="pulsar://a", option=options)
    assert _connection(arguments, environment) == {"service.url": "pulsar://a", **expected}


@pytest.mark.parametrize("use", [Use.BATCH_READ, Use.STREAM_READ])
def test_a_job_that_reads_has_files_of_keys(use: Use) -> None:
    given = _option((KEY_FILES,), "encryption.keyFiles=billing=/k")
    options = parse_read({"service.url": "pulsar://a", "topic": "t", **dict([given])}, use)
    assert options.key_files == KeyFiles((("billing", "/k"),))


def test_a_job_that_writes_has_names_and_files_of_keys() -> None:
    given = [_option((KEYS, KEY_FILES), text) for text in ("encryption.keys=k", "encryption.keyFiles=/k")]
    options = parse_write({"service.url": "pulsar://a", "topic": "t", **dict(given)}, Use.BATCH_WRITE)
    assert (options.encryption_keys, options.key_files) == (("k",), KeyFiles(every="/k"))


def test_no_pyspark_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run("simulate") == 1
    assert capsys.readouterr().err == (
        "pulsar-trio: PySpark is not installed: pip install 'pulsar-trio[spark]'\n"
    )


def test_a_session_without_java_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says that Java is missing, or that PySpark is missing where it is not installed."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=r"Java 17 or later|PySpark is not installed"):
        session.open_session("test")
